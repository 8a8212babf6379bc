"""Logs of single values after their step: llm.c's `s:10 trl:3.2`, build-nanogpt's `9 val 3.2`."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Phase, Row
from trainwarden.metrics.values import NUMBER, to_float

_LINE = re.compile(
    rf"s:(?P<s>\d+) (?P<llmc>trl|tel|eval):(?P<first>{NUMBER})"
    rf"(?: lr:(?P<lr>{NUMBER}))?(?: norm:(?P<norm>{NUMBER}))?\s*\Z"
    rf"|(?P<n>\d+) (?P<nano>train|val|hella) (?P<value>{NUMBER})\s*\Z"
)
_NAMES = {
    "trl": "train_loss",
    "tel": "test_loss",
    "eval": "hellaswag",
    "train": "train_loss",
    "val": "val_loss",
    "hella": "hellaswag",
}
# What llm.c says of itself before its first step, which is told as 1: until then it stands at 0.
_PLANNED = re.compile(r"\| train_num_batches\s+\| (?P<total>\d+)\s+\|\s*\Z")


class StepLines:
    """One measure a line, of training, validation or HellaSwag."""

    name: ClassVar[str] = "steps"
    hints: ClassVar[tuple[str, ...]] = ("s:", " train ", " val ", " hella ", "train_num_batches")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:  # noqa: ARG002
        """The step and its value."""
        text = line.text
        if planned := _PLANNED.match(text):
            pairs = [Pair("total_steps", float(planned["total"])), Pair("step", 0.0)]
            return Row(self.name, pairs, kind="totals")
        found = _LINE.match(text)
        if found is None:
            return None
        at, name, value = ("s", "llmc", "first") if found["s"] else ("n", "nano", "value")
        pairs = [
            Pair("step", float(found[at]), "", found.span(at)),
            Pair(_NAMES[found[name]], to_float(found[value]), "", found.span(value)),
        ]
        for rest in ("lr", "norm"):
            if found[rest]:
                pairs.append(Pair(rest, to_float(found[rest]), "", found.span(rest)))
        phase: Phase | None = "eval" if found[name] in {"tel", "val"} else None
        return Row(self.name, pairs, phase, repeatable=True)
