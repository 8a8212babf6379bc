"""From rows to series: what each number of a line means at this place of the log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainwarden.metrics.columns import Column
from trainwarden.metrics.ending import EndingWatch
from trainwarden.metrics.formats.base import PART, Row, key_of
from trainwarden.metrics.formats.boxes import boxed
from trainwarden.metrics.names import EVALUATED, canonical
from trainwarden.metrics.places import Logger, places_at, position_indices
from trainwarden.metrics.repeats import repeats, said
from trainwarden.metrics.tracker import Tracker

_SECTION = re.compile(
    r"\W*(?:(?P<train>TRAINING|Training|Beginning of Epoch|Running training)"
    r"|(?P<eval>EVALUATION|EVAL PERFORMANCE|eval metrics|Running Evaluation|Running Prediction"
    r"|Running evaluation|Evaluating|Validating|Test Error))\b"
)
SECTION_WORDS = ("training", "epoch", "eval", "predict", "validating", "test error")
_CLOSING = frozenset({"hf-dict", "jsonl", "dll"})
MAX_BLOCK = 500
MAX_BINDINGS = 400

BlockItem = tuple[Row, int, "float | None", "int | None"]


@dataclass(slots=True)
class Binding:
    """What the numbers of a row of one shape are, in order."""

    row: Row
    """With the phase that section and place give it."""
    shape: str
    places: list[tuple[str, int]]
    values: list[tuple[int, Any, float]]
    """Index among the row's numbers, the column's `append`, factor."""
    takes: list[tuple[int, Column, float]]
    """Likewise with the column itself."""
    closing: bool
    """Whether the line itself says that it sums up the run."""
    evaluated: list[tuple[int, Any, float]]
    """Of a bar, the values of evaluations: they may come with the last redraw."""
    progress: bool
    """Whether a bar carries a result, as that of training does."""
    testing: bool
    """Whether all values are of a test after training."""
    free: bool = False
    """Whether it is a row of training that says nothing of its place but the epoch."""
    step_at: int = -1
    total_at: int = -1
    epoch_at: int = -1
    logger: Logger | None = None


class Recorder:
    """Keeps the tracker, the section that the log is in, and the record under way."""

    def __init__(self) -> None:
        self.tracker = Tracker()
        self.ending = EndingWatch()
        self.section: str | None = None
        self.block: list[BlockItem] = []
        self.restarts: list[tuple[float, float | None, int]] = []
        """Where a restart was seen since they were last taken: step, time, offset."""
        self._bindings: dict[Any, Binding] = {}

    def heading(self, body: str) -> None:
        """Take a line that may begin a section of training or evaluation."""
        if len(body) < 200 and (found := _SECTION.match(body)):
            self.end_block()
            self.section = "eval" if found["eval"] else None

    def row(self, row: Row, offset: int, time: float | None, rank: int | None) -> None:
        """Take one parsed line."""
        rank = rank if row.rank is None else row.rank
        if row.kind == "metrics":
            if self.block:
                self.end_block()
            if row.format == "hf-dict" and not self.tracker.records and _recorded(row):
                self.tracker.tells_records()
                self._bindings.clear()
            numbers = row.numbers or [pair.value for pair in row.pairs]
            key = (row.format, row.key) if row.key is not None else None
            self.numbers(row, numbers, offset, time, rank, key)
            if row.final:
                self.ending.finished(self.tracker.current)
        elif row.kind == "bar":
            if row.pairs:
                self.numbers(row, [pair.value for pair in row.pairs], offset, time, rank)
        elif row.kind == "partial":
            if row.label == "head":
                self.end_block()
            if len(self.block) < MAX_BLOCK:
                self.block.append((row, offset, time, rank))
        elif row.kind == "end":
            self.end_block()
        elif row.kind == "head":
            self.end_block()
            self.section = None
            told = {pair.name: pair.value for pair in row.pairs}
            self.tracker.headed(told["epoch"], told.get("total_epochs"))
        else:
            if row.phase == "train":
                self.section = None
            for pair in row.pairs:
                if pair.name in {"total_steps", "max_steps"} and pair.value > 0:
                    self.tracker.stated_total = pair.value
                elif pair.name == "total_epochs" and not self.tracker.total_epochs:
                    self.tracker.total_epochs = pair.value
                elif pair.name == "step" and pair.value > self.tracker.current:
                    self.tracker.stands_at(pair.value)

    def end_block(self) -> None:
        """A record of several lines is complete."""
        if not self.block:
            return
        block, self.block = self.block, []
        pairs = [pair for row, *_ in block for pair in row.pairs]
        if boxed(pairs):
            first, offset, time, rank = block[0]
            self.row(Row(first.format, pairs, first.phase), offset, time, rank)

    def close(self) -> None:
        """The log ends here, for now: what is held back counts as it is."""
        self.end_block()
        self.tracker.columns.settle(self.tracker.bar_at)

    def numbers(
        self,
        row: Row,
        numbers: Sequence[float],
        offset: int,
        time: float | None,
        rank: int | None,
        key: Any = None,
    ) -> None:
        """Take a row's numbers, in the order of its pairs. Rows of one `key` mean the same."""
        tracker = self.tracker
        if row.bare and tracker.records and row.phase != "eval":
            return  # what a model wrote, or what a callback says again
        if key is None:
            key = key_of(row)
        if self.section is not None and row.phase != "eval":
            self._settle_section(row, numbers)
        place = (key, self.section, tracker.explicit, tracker.detailed)
        binding = self._bindings.get(place)
        if binding is None:
            binding = self._bind(row, place)
        # The common case, at once: a line with its step, ahead of the last one of its kind.
        if (at := binding.step_at) >= 0 and tracker.explicit:
            logger = binding.logger or tracker.loggers.get(binding.shape)
            x = numbers[at]
            if (
                logger is not None
                and x > logger.last >= 0
                and logger.rank == rank
                and not logger.base
                and x > tracker.current
                and (binding.epoch_at < 0 or tracker.first_epoch is not None)
            ):
                spot = binding.epoch_at
                if spot >= 0 and numbers[spot] == numbers[spot]:
                    tracker.epoch = logger.epoch = numbers[spot]
                binding.logger = logger
                logger.rows += 1
                logger.stride = x - logger.last
                logger.last = tracker.current = tracker.printed = x
                tracker.resuming = False
                if binding.total_at >= 0 and numbers[binding.total_at] >= x:
                    tracker.total = numbers[binding.total_at]
                for index, append, factor in binding.values:
                    append((x, numbers[index] * factor, offset))
                tracker.rows += 1
                if time is not None:
                    tracker.timed(time, x, offset)
                self.ending.went_on(x)
                return
        self._slowly(binding, numbers, offset, time, rank)

    def bound(self, key: Any) -> Binding | None:
        """What the numbers of rows of one key are here, where such rows were taken before."""
        tracker = self.tracker
        return self._bindings.get((key, self.section, tracker.explicit, tracker.detailed))

    def can_merge(self, key: Any) -> bool:
        """Whether rows of one key, as far as is known, may be taken many at once."""
        binding = self.bound(key)
        if binding is None or binding.row.kind == "bar":
            return True
        if binding.row.bare and self.tracker.records:
            return False
        return binding.step_at >= 0 or binding.free

    def _slowly(
        self,
        binding: Binding,
        numbers: Sequence[float],
        offset: int,
        time: float | None,
        rank: int | None,
    ) -> None:
        tracker, row = self.tracker, binding.row
        places = {
            role: numbers[index]
            for role, index in binding.places
            if numbers[index] == numbers[index]
        }
        x: float | None
        moved = True
        if row.kind == "bar":
            x, moved = tracker.bar(places, row.label, binding.progress, self.section == "eval")
        elif binding.closing:
            if tracker.rows and row.format in _CLOSING:
                self.ending.finished(tracker.current)
            if "epoch" in places:
                tracker.epoch_done(places["epoch"])
            x = max(tracker.current, 0.0)
        else:
            x = self._locate(binding, places, numbers, rank)
        if tracker.restarted_at is not None:
            self.restarts.append((tracker.restarted_at, time, offset))
            tracker.restarted_at = None
        if x is None:
            return
        for index, append, factor in binding.values if moved else binding.evaluated:
            append((x, numbers[index] * factor, offset))
        if not moved:
            # Lightning counts on first and tells the new values when it draws the bar again.
            for index, column, factor in binding.takes:
                if not column.steady:
                    column.shown = (x, numbers[index] * factor, offset)
        if row.phase in {"eval", "summary"}:
            self.ending.pause()
            return
        if row.kind != "bar":
            tracker.rows += 1
            if binding.testing:
                tracker.test_rows = tracker.rows
            if time is not None:
                tracker.timed(time, x, offset)
        elif not binding.values or not moved:
            return
        self.ending.went_on(x)

    def _locate(
        self,
        binding: Binding,
        places: dict[str, float],
        numbers: Sequence[float],
        rank: int | None,
    ) -> float | None:
        """The step of a row; that of the one before where it says the same again."""
        tracker, row = self.tracker, binding.row
        if row.phase in {"eval", "summary"} or not places.keys().isdisjoint({"step", "epoch_step"}):
            return tracker.locate(places, row, binding.shape, rank)
        if any(pair.unit == PART for pair in row.pairs):
            tracker.counted = True
        now, before = said(row, numbers, tracker.bar_at), tracker.said
        tracker.said = now
        now["x"] = (
            before["x"]
            if repeats(now, before)
            else tracker.locate(places, row, binding.shape, rank)
        )
        return now["x"]  # type: ignore[no-any-return]

    def _settle_section(self, row: Row, numbers: Sequence[float]) -> None:
        """A section of evaluation ends where training goes on."""
        if row.phase == "train" or (row.kind == "metrics" and _trains(row)):
            self.section = None
            return
        places = {role: numbers[index] for role, index in places_at(row)}
        if row.kind != "bar" and self.tracker.ahead(places):
            self.section = None

    def _bind(self, row: Row, key: Any) -> Binding:
        tracker = self.tracker
        places = places_at(row)
        phased = row
        own_step = False
        if row.kind != "bar":
            if row.phase is None and self.section == "eval":
                phased = replace(row, phase="eval")
            elif row.phase in {None, "train"} and tracker.sums_up(dict.fromkeys(dict(places), 0.0)):
                phased = replace(row, phase="summary")
                own_step = "step" in dict(places)
            elif row.phase is None and not {"step", "epoch_step"} & dict(places).keys():
                taken = position_indices(row)
                owns = {canonical(p.name)[1] for i, p in enumerate(row.pairs) if i not in taken}
                if owns == {"eval"}:
                    phased = replace(row, phase="eval")
        taken = position_indices(row)
        values: list[tuple[int, Any, float]] = []
        takes: list[tuple[int, Column, float]] = []
        evaluated: list[tuple[int, Any, float]] = []
        for index, pair in enumerate(row.pairs):
            if index in taken:
                continue
            phase = phased.phase
            meaning = canonical(pair.name)[0]
            rate = meaning.known and meaning.role == "setting" and phase == "summary"
            if rate or (own_step and meaning.name.removeprefix("eval_") not in EVALUATED):
                phase = row.phase  # the rate at that step, not a mean of the epoch
            column = tracker.columns.get(pair.name, phase, pair.unit)
            if column is not None:
                factor = tracker.columns.factor(column, pair.unit)
                values.append((index, column.pending.append, factor))
                takes.append((index, column, factor))
                if row.kind == "bar" and column.meaning.name.startswith("eval_"):
                    column.steady = True
                    evaluated.append(values[-1])
        names = [row.pairs[index].name for index, _append, _factor in values]
        testing = bool(names) and all(name.startswith("test") for name in names)
        shape, closing = _shape(phased), row.phase == "summary"
        progress = any(canonical(name)[0].name in EVALUATED for name in names)
        binding = Binding(
            phased, shape, places, values, takes, closing, evaluated, progress, testing
        )
        roles = dict(places)
        simple = roles.keys() <= {"step", "total_steps", "epoch"} and row.kind == "metrics"
        if simple and phased.phase not in {"eval", "summary"} and not testing:
            binding.free = roles.keys() <= {"epoch"}
            binding.step_at = roles.get("step", -1)
            binding.total_at = roles.get("total_steps", -1)
            binding.epoch_at = roles.get("epoch", -1)
        if len(self._bindings) >= MAX_BINDINGS:
            self._bindings.clear()
        self._bindings[key] = binding
        return binding

    def copy(self) -> Recorder:
        """An independent copy."""
        other = Recorder()
        other.tracker = self.tracker.copy()
        other.ending = self.ending.copy()
        other.section = self.section
        other.block = list(self.block)
        return other


def _trains(row: Row) -> bool:
    """Whether a row tells what only training has: a learning rate, the norm of gradients."""
    for pair in row.pairs:
        meaning, own = canonical(pair.name)
        if meaning.known and meaning.name in {"learning_rate", "grad_norm"} and own != "eval":
            return True
    return False


def _recorded(row: Row) -> bool:
    """Whether a row is a trainer's record: a loss and its learning rate, and no step."""
    names = {canonical(pair.name)[0].name for pair in row.pairs}
    return {"loss", "learning_rate"} <= names and not names & {"step", "epoch_step"}


def _shape(row: Row) -> str:
    """Which way of printing steps a row belongs to."""
    name = row.pairs[0].name if row.pairs else ""
    for pair in row.pairs:
        meaning = canonical(pair.name)[0]
        if meaning.known and meaning.name == "step":
            name = pair.name
            break
    return f"{row.format}:{name}:{row.phase or ''}"
