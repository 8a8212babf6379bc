"""Bars that rich draws for Lightning: `Epoch 1/4 ━━ 40/40 0:00:01 • 0:00:00 98.2it/s loss: 0.6`."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.values import NUMBER, to_float

_BAR = re.compile(
    r"(?P<desc>[^\xe2]{0,60})(?:\xe2(?:\x94\x81|\x95[\xb8\xba])){1,200} *"
    r"(?P<n>\d+)/(?P<total>\d+) [\d:-]+ \xe2\x80\xa2 [\d:-]+ (?P<rate>[\d.]+)it/s ?"
)
_EPOCH = re.compile(r"Epoch (?P<epoch>\d+)(?:/(?P<last>\d+))?\Z")
_ITEM = re.compile(rf" *(?P<name>[A-Za-z_][^\s:]*): +(?P<num>{NUMBER})(?= |\Z)")
_INDENT = " " * 24
"""A bar that is too wide goes on below, under where its values begin."""


class Rich:
    """Lightning's epochs count from 0, up to the last one; its values may be wrapped."""

    name: ClassVar[str] = "rich"
    hints: ClassVar[tuple[str, ...]] = ("\xe2\x80\xa2", _INDENT)
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The bar with its values, or more of these."""
        text, held = line.text, memory.get("rich")
        if isinstance(held, str) and text.startswith(_INDENT):
            return Row(self.name, self._items(f"{held} {text.strip()}", memory), kind="partial")
        memory.pop("rich", None)
        found = _BAR.match(text, line.start)
        if found is None:
            return None
        epoch = _EPOCH.match(found["desc"].strip())
        if epoch is None:
            return Row(self.name, [], kind="bar")  # of a validation
        place = [Pair("epoch", float(epoch["epoch"]) + 1.0)]
        if epoch["last"]:
            place.append(Pair("total_epochs", float(epoch["last"]) + 1.0))
        place.append(Pair("epoch_step", float(found["n"])))
        place.append(Pair("epoch_steps", float(found["total"])))
        place.append(Pair("it/s", to_float(found["rate"])))
        pairs = place + self._items(text[found.end() :].rstrip(), memory)
        return Row(self.name, pairs, kind="partial", label="head")

    def _items(self, text: str, memory: dict[str, object]) -> list[Pair]:
        """The values that are told in full; the rest is kept until it goes on."""
        pairs, end = [], 0
        while item := _ITEM.match(text, end):
            pairs.append(Pair(item["name"], to_float(item["num"])))
            end = item.end()
        memory["rich"] = text[end:].strip()[:200]
        return pairs
