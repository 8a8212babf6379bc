"""Step lines whose numbers stand before, between or without their names.

darknet (https://github.com/AlexeyAB/darknet, src/detector.c): ` 12: 3.5, 3.7 avg loss, 0.001 rate,
4.2 seconds, 768 images`; StyleGAN's ticks (https://github.com/NVlabs/stylegan3,
training/training_loop.py); Deeplearning4j's ScoreIterationListener; PyTorch's first tutorial, `[2,
4000] loss: 1.2`.
"""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.scan import scan
from trainwarden.metrics.values import NUMBER, to_float

_N = rf"(?:{NUMBER})"
_DARKNET = re.compile(
    rf"\s*(?P<step>\d+): (?P<loss>-?{_N}), (?P<mean>-?{_N}) avg(?: loss)?, (?P<rate>{_N}) rate, "
    rf"(?P<step_time>{_N}) seconds, \d+ images"
)
_REGION = re.compile(r"(?:v3 \(|Region )[^:]{0,200}?(?:Avg|Normalizer)")
_SCORE = re.compile(rf"(?:.* )?Score at iteration (?P<step>\d+) is (?P<loss>-?{_N})\s*\Z")
_TICK = re.compile(
    rf"tick (?P<step>\d+)\s+kimg (?P<kimg>{_N})\s.*?sec/tick (?P<step_time>{_N})\s+"
    rf"sec/kimg {_N}\s+maintenance {_N}"
)
_TUTORIAL = re.compile(rf"\[(?P<epoch>\d+), +(?P<epoch_step>\d+)\] (?P<what>loss: {_N}.*)")
_NAMES = {"mean": "running_loss", "rate": "learning_rate"}


class Sentences:
    """One record a line, told by the line's form."""

    name: ClassVar[str] = "sentences"
    hints: ClassVar[tuple[str, ...]] = ("avg", "score at iteration", "tick ", "] loss:")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:  # noqa: ARG002
        """The step and what is told of it; nothing of darknet's lines for each of its layers."""
        text, start = line.text, line.start
        if found := _DARKNET.match(text):
            row = self._row(found)
            row.rank = 0  # the step is no rank of srun's
            return row
        for pattern in (_SCORE, _TICK, _TUTORIAL):
            if found := pattern.match(text, start):
                return self._row(found)
        if _REGION.match(text, start):
            return Row(self.name, [], kind="bar", label="download")
        return None

    def _row(self, found: re.Match[str]) -> Row:
        groups = found.groupdict()
        more: list[Pair] = []
        if groups.pop("what", None):
            more = scan(found.string, found.start("what"))[0]
        pairs = [
            Pair(_NAMES.get(name, name), to_float(value), "", found.span(name))
            for name, value in groups.items()
        ]
        return Row(self.name, pairs + more)
