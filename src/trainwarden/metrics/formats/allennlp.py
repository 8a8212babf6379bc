"""AllenNLP's table of an epoch: `loss | 0.362 | 0.607` under `Training | Validation`."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.values import NUMBER, to_float

_HEAD = re.compile(r"\s*Training \|\s+Validation\s*\Z")
_EPOCH = re.compile(r"Epoch (?P<epoch>\d+)/(?P<last>\d+)\s*\Z")
_CELLS = re.compile(
    rf"(?P<name>[\w/.-]+)\s+\|\s+(?P<train>{NUMBER}|N/A)\s+\|\s+(?P<eval>{NUMBER}|N/A)\s*\Z"
)


class TrainAndEval:
    """One measure a line, of training and of validation; the epoch is told before."""

    name: ClassVar[str] = "allennlp"
    hints: ClassVar[tuple[str, ...]] = (" | ", "epoch ")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """A measure's two values."""
        text, start = line.text, line.start
        if epoch := _EPOCH.match(text, start):
            memory["two_epoch"] = [int(epoch["epoch"]), int(epoch["last"])]
            return None
        if _HEAD.match(text, start):
            memory["two_head"] = True
            return None
        if "two_head" not in memory:
            return None
        cells = _CELLS.match(text, start)
        if cells is None:
            del memory["two_head"]
            return None
        pairs: list[Pair] = []
        if isinstance(place := memory.get("two_epoch"), list):
            pairs += [Pair("epoch", float(place[0])), Pair("total_epochs", float(place[1]))]
        for head in ("train", "eval"):
            if cells[head] != "N/A":
                name = f"validation_{cells['name']}" if head == "eval" else cells["name"]
                pairs.append(Pair(name, to_float(cells[head])))
        return Row(self.name, pairs)
