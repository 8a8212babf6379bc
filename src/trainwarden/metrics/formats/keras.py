"""Keras: the bars of `fit` and `evaluate`, and what they print without bars.

https://github.com/keras-team/keras, utils/progbar.py. A bar is redrawn at the last batch and, with
the epoch's means and the validation, once more; Keras 2 shows `ETA: 0s` before that, Keras 3 `0s`.
PaddlePaddle's `Model.fit` prints likewise.
"""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.scan import scan

_BAR = re.compile(
    r"(?<!\d)(?P<n>\d+)/(?P<total>\d+)\s+(?:\[[=>.\s]*\]|[\u2501\xe2\x94\x81\x80-\xff]{3,}"
    r"(?:\x1b\[[\d;]*m)*)(?P<rest>.*)"
)
_QUIET = re.compile(r"(?P<n>\d+)/(?P<total>\d+) - \d+m?s(?P<rest>(?: - .*)?)\Z")
_QUIETER = re.compile(r"\s*- \d+s(?: \d+m?u?s/\w+)? - (?P<rest>\w+: .*)\Z")
_HEAD = re.compile(r"\s*Epoch (?P<epoch>\d+)/(?P<total>\d+)\s*\Z")
_NO_TIME_LEFT = re.compile(r"\s*0s\b")
HEAD, UNDERWAY, LAST, DONE = range(4)
"""How far an epoch is: its head line, bars, the bar of its last batch, the one with its means."""


class Keras:
    """`Epoch 3/10`, then ` 100/1875 [=====>....] - ETA: 3s - loss: 0.5 - accuracy: 0.8`."""

    name: ClassVar[str] = "keras"
    hints: ClassVar[tuple[str, ...]] = (" - ", "epoch ")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The bar's position in its epoch; its values only where the epoch is complete."""
        text = line.text.replace("\x08", "")
        if found := _HEAD.match(text, line.start):
            memory["keras"] = [int(found["epoch"]), int(found["total"]), HEAD]
            return None
        if " - " not in text and "[" not in text:
            return None
        state = memory.get("keras")
        epoch = state if isinstance(state, list) else None
        redraws = list(_BAR.finditer(text, line.start))
        if not redraws and (quiet := _QUIET.match(text, line.start)):
            redraws = [quiet]
        if not redraws:
            return self._barless(text, epoch, memory)
        if text[line.start : redraws[0].start()].strip() not in {"", "step"}:
            return None
        match = redraws[-1]
        n, total = int(match["n"]), int(match["total"])
        if total == 0 or n > total:
            return None
        values = scan(match["rest"], 0)[0]
        if not values and n < total:
            return None
        values = [p._replace(span=None) for p in values if p.name.lower() not in {"eta", "step"}]
        full = n == total and "ETA" not in match["rest"]
        if epoch is None:
            places = [Pair("epoch_step", float(n)), Pair("epoch_steps", float(total))]
            return Row(self.name, places + values if full else places)
        if epoch[2] == DONE and not any(pair.name.startswith("val_") for pair in values):
            # After the epoch and without a head line: `evaluate`.
            if full:
                return Row(self.name, values, "eval")
            return Row(self.name, [], kind="bar", label="evaluate")
        drawn = epoch[2] == UNDERWAY or len(redraws) > 1
        if full and drawn and _NO_TIME_LEFT.match(match["rest"]):
            stage, full = LAST, False
        else:
            stage = DONE if full else max(epoch[2], UNDERWAY)
        if stage != epoch[2]:
            memory["keras"] = [*epoch[:2], stage]
        places = [Pair("epoch", float(epoch[0])), Pair("total_epochs", float(epoch[1]))]
        places += [Pair("epoch_step", float(n)), Pair("epoch_steps", float(total))]
        return Row(self.name, places + values if full else places)

    def _barless(self, text: str, epoch: list[int] | None, memory: dict[str, object]) -> Row | None:
        """`fit(verbose=2)` of old: ` - 3s - loss: 0.5`."""
        if epoch is None or (found := _QUIETER.match(text)) is None:
            return None
        values = [pair._replace(span=None) for pair in scan(found["rest"], 0)[0]]
        if epoch[2] == DONE or not values:
            return None
        memory["keras"] = [*epoch[:2], DONE]
        places = [Pair("epoch", float(epoch[0])), Pair("total_epochs", float(epoch[1]))]
        return Row(self.name, places + values)
