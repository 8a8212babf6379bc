"""ESPnet 2: `1epoch:train:51-100batch: loss=2.5, …`, and an epoch's means in one line.

https://github.com/espnet/espnet, espnet2/train/reporter.py (`log_message`) and trainer.py.
"""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.scan import scan

_BATCH = re.compile(r"(?<!\d)(?P<epoch>\d+)epoch:(?P<mode>train|valid):\d+-(?P<n>\d+)batch: ")
_RESULTS = re.compile(r"(?<!\d)(?P<epoch>\d+)epoch results: \[train\] ")
_PART = re.compile(r", \[(?P<name>\w+)\] ")
_STARTED = re.compile(r"(?<!\d)\d+/(?P<total>\d+)epoch started")
_RENAMED = {"iter_time": "data_time", "train_time": "step_time"}
"""What ESPnet calls so is the wait for data, and the whole step."""


class ESPnet:
    """Batches are counted within their epoch, from 1; a line names the last one of an interval."""

    name: ClassVar[str] = "espnet"
    hints: ClassVar[tuple[str, ...]] = (
        "epoch:train:",
        "epoch:valid:",
        "epoch results:",
        "epoch sta",
    )
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """An interval's means; or an epoch's, of training and of validation."""
        text = line.text
        if found := _BATCH.search(text, line.start):
            memory.setdefault("espnet", True)
            pairs = [Pair("epoch", float(found["epoch"]), "", found.span("epoch"))]
            pairs.append(Pair("step", float(found["n"]), "", found.span("n")))
            values = _values(text, found.end(), len(text))
            return Row(self.name, pairs + values, "eval" if found["mode"] == "valid" else None)
        if found := _RESULTS.search(text, line.start):
            epoch = [Pair("epoch", float(found["epoch"]))]
            parts = [("train", found.end()), *((m["name"], m.end()) for m in _PART.finditer(text))]
            ends = [m.start() for m in _PART.finditer(text)] + [len(text)]
            rows: list[Row] = []
            for (name, begin), end in zip(parts, ends, strict=True):
                values = _values(text, begin, end)
                if name == "train":
                    phase = "summary" if "espnet" in memory else None
                    rows.append(Row(self.name, epoch + values, phase))  # type: ignore[arg-type]
                elif name == "valid" and values:
                    rows.append(Row(self.name, epoch + values, "eval"))
            rows[0].more = tuple(rows[1:])
            return rows[0]
        if found := _STARTED.search(text, line.start):
            return Row(self.name, [Pair("total_epochs", float(found["total"]))], kind="totals")
        return None


def _values(text: str, begin: int, end: int) -> list[Pair]:
    return [
        pair._replace(name=_RENAMED.get(pair.name, pair.name))
        for pair in scan(text, begin, end)[0]
        if pair.name not in {"time", "total_count"}
    ]
