"""Step lines whose numbers stand before, between or without their names.

darknet (https://github.com/AlexeyAB/darknet, src/detector.c): ` 12: 3.5, 3.7 avg loss, 0.001 rate,
4.2 seconds, 768 images`; StyleGAN's ticks (https://github.com/NVlabs/stylegan3,
training/training_loop.py); Deeplearning4j's ScoreIterationListener; Marian
(https://github.com/marian-nmt/marian-dev, src/training/scheduler.h): `Ep. 1 : Up. 100 : Cost 2.5`;
PyTorch's first tutorial, `[2, 4000] loss: 1.2`.
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
_SCORE = re.compile(rf"(?:.{{0,200}} )?Score at iteration (?P<step>\d+) is (?P<loss>-?{_N})\s*\Z")
_TICK = re.compile(
    rf"tick (?P<step>\d+)\s+kimg (?P<kimg>{_N})\s.*?sec/tick (?P<step_time>{_N})\s+"
    rf"sec/kimg {_N}\s+maintenance {_N}"
)
_TUTORIAL = re.compile(rf"\[(?P<epoch>\d+), +(?P<epoch_step>\d+)\] (?P<what>loss: {_N}.*)")
_MARIAN = re.compile(r"(?P<valid>\[valid\] )?Ep\. (?P<epoch>\d+) : Up\. (?P<step>\d+) : ")
_UPDATE = re.compile(rf"(?P<name>Cost|Time|Gnorm|L\.r\.) (?P<num>{_N})(?P<unit>s)?")
_SPEED = re.compile(rf"(?<![\d.,])(?P<num>{_N}) words/s")
_VALID = re.compile(rf"(?P<name>[\w-]+) : (?P<num>{_N}) : ")
_CALLED = {"L.r.": "learning_rate", "Cost": "loss", "Time": "seconds", "Gnorm": "grad_norm",
           "translation": "bleu", "ce-mean-words": "cross-entropy"}  # fmt: skip
_NAMES = {"mean": "running_loss", "rate": "learning_rate"}


class Sentences:
    """One record a line, told by the line's form."""

    name: ClassVar[str] = "sentences"
    hints: ClassVar[tuple[str, ...]] = ("avg", "score at iteration", "tick ", "] loss:", "ep. ")
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
        if found := _MARIAN.match(text, start):
            return self._marian(found)
        if _REGION.match(text, start):
            return Row(self.name, [], kind="bar", label="download")
        return None

    def _marian(self, found: re.Match[str]) -> Row | None:
        """An update's cost and rate, or one score of a validation."""
        text, pairs = found.string, [Pair("step", float(found["step"]), "", found.span("step"))]
        pairs.append(Pair("epoch", float(found["epoch"]), "", found.span("epoch")))
        places = len(pairs)
        if found["valid"]:
            if told := _VALID.match(text, found.end()):
                name = _CALLED.get(told["name"], told["name"])
                pairs.append(Pair(name, to_float(told["num"])))
            return Row(self.name, pairs, "eval") if len(pairs) > places else None
        for told in _UPDATE.finditer(text, found.end()):
            unit = told["unit"] or ""
            value = to_float(told["num"])
            pairs.append(Pair(_CALLED[told["name"]], value, unit, told.span("num")))
        if speed := _SPEED.search(text, found.end()):
            pairs.append(Pair("words_per_second", to_float(speed["num"]), "", speed.span("num")))
        return Row(self.name, pairs) if len(pairs) > places else None

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
