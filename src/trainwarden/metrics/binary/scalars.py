"""Numbers of binary run files, put into series: what steps, pace and restarts they tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwarden.metrics.columns import DERIVED, Column, Columns
from trainwarden.metrics.names import POSITIONS, canonical, slug
from trainwarden.metrics.series import Series

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Run = tuple[Floats, Floats, Ints]
"""Points as columns: steps, values, offsets."""
ENOUGH = 1 << 18
"""Points that are held before they go into their series."""
MAX_TAGS = 1000
"""As many names as are remembered where no step is told, or to find what tells the pace."""


@dataclass
class Points:
    """Points of one name, in order of arrival."""

    tag: str
    offsets: Ints
    """Where each one's record begins in the file."""
    steps: Floats
    values: Floats
    times: Floats
    """Unix seconds."""
    rank: int = 0
    """Which of the values of its record the first one is."""


@dataclass
class Scalars:
    """The series of one run under way."""

    phase: str | None = None
    """Of names that tell none themselves, as the file's folder does."""
    columns: Columns = field(default_factory=Columns)
    places: dict[str, float] = field(default_factory=dict)
    """By role, the last value of names that say where the run is."""
    counts: dict[str, int] = field(default_factory=dict)
    """Points by name, as long as no step but 0 was seen."""
    stepped: bool = False
    clock: str | None = None
    """The name whose points tell the pace: the first one with two."""
    firsts: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Step and time of the first point of each name, until there is a clock."""
    ticked: tuple[float, float] | None = None
    """Step and time of the clock's last point."""
    restarts: int = 0
    _held: dict[str, tuple[Column, list[Run]]] = field(default_factory=dict, repr=False)
    """Points that are not yet in their series, by name."""
    _size: int = 0

    def __post_init__(self) -> None:
        # Before any other, so that the order of the series does not tell how the file was cut.
        self.columns.get(DERIVED, None)

    @property
    def counted(self) -> bool:
        """Whether points are counted, for want of steps."""
        return not self.stepped and any(n > 1 for n in self.counts.values())

    def take(self, tag: str, steps: Floats, values: Floats, offsets: Ints) -> None:
        """Append points of one name, in order of arrival."""
        meaning, _own = canonical(tag, self.phase)
        if meaning.role == "position" and meaning.known and meaning.name in POSITIONS:
            self.places[meaning.name] = float(values[-1])
            return
        column = self.columns.get(tag, self.phase)
        if column is None:
            return
        scale = self.columns.factor(column, "")
        self._hold(column, steps, values if scale == 1.0 else values * scale, offsets)

    def _hold(self, column: Column, steps: Floats, values: Floats, offsets: Ints) -> None:
        self._held.setdefault(column.original, (column, []))[1].append((steps, values, offsets))
        self._size += len(values)
        if self._size >= ENOUGH:
            self.fold()

    def fold(self) -> None:
        """Move the points held into their series."""
        for column, runs in self._held.values():
            steps, values, offsets = (np.concatenate(parts) for parts in zip(*runs, strict=True))
            if column.meaning.unit == "ratio":
                # nanoGPT tells mfu -100% until it knows; others tell 37.5 for 37.5%.
                steps, offsets = steps[~(values < 0)], offsets[~(values < 0)]
                values = values[~(values < 0)]
                values = np.where(values > 1.5, values * 0.01, values)
            column.series.extend_arrays(steps, values, offsets)
        self._held.clear()
        self._size = 0

    def trains(self, tag: str) -> bool:
        """Whether a name is of training."""
        meaning, own = canonical(tag, self.phase)
        return (own or self.phase) != "eval" and meaning.role != "position"

    def count(self, tag: str, length: int) -> Floats:
        """Steps of points that tell none: how many of the name there were before."""
        before = self.counts.get(tag, 0)
        if before or len(self.counts) < MAX_TAGS:
            self.counts[tag] = before + length
        return np.arange(before, before + length, dtype=np.float64)

    def tick(self, steps: Floats, times: Floats, offsets: Ints) -> None:
        """Seconds per step from points of the clock."""
        if self.ticked is not None:
            steps = np.concatenate([[self.ticked[0]], steps])
            times = np.concatenate([[self.ticked[1]], times])
        else:
            offsets = offsets[1:]
        self.ticked = float(steps[-1]), float(times[-1])
        ahead, passed = np.diff(steps), np.diff(times)
        with np.errstate(all="ignore"):
            good = (ahead > 0) & (passed > 0) & np.isfinite(passed)
            pace = passed[good] / ahead[good]
        column = self.columns.get(DERIVED, None)
        if column is not None and len(pace):
            self._hold(column, steps[1:][good], pace, offsets[good])

    def find_clock(self, every: Sequence[Points]) -> None:
        """The first name of training with two points tells the pace."""
        if self.clock is not None:
            return
        trained = [points for points in every if self.trains(points.tag)]
        seconds = [
            (int(points.offsets[1 - (points.tag in self.firsts)]), points.tag)
            for points in trained
            if points.tag in self.firsts or len(points.steps) > 1
        ]
        if seconds:
            self.clock = min(seconds)[1]
            self.ticked = self.firsts.get(self.clock)
            self.firsts.clear()
            return
        for points in trained:
            if len(self.firsts) < MAX_TAGS:
                self.firsts[points.tag] = float(points.steps[0]), float(points.times[0])

    def purge(self, step: float) -> None:
        """Training starts again at `step`: what was told of it and later steps holds no more."""
        self.fold()
        gone = False
        for column in self.columns.every():
            before = column.series.before(step)
            gone = gone or before.count < column.series.count
            column.series = before
        self.restarts += gone
        if self.ticked is not None and self.ticked[0] >= step:
            self.ticked = None

    def far(self) -> int | None:
        """The last step: of training, or of evaluations where there is nothing else."""
        self.fold()
        lasts: dict[bool, float] = {}
        for column in self.columns.every():
            point = column.series.last
            if point is not None and column.original != DERIVED and point.step == point.step:
                evaluation = column.meaning.name.startswith("eval_")
                lasts[evaluation] = max(lasts.get(evaluation, point.step), point.step)
        step = lasts.get(False, lasts.get(True))
        return int(step) if step is not None and abs(step) < 2**62 else None

    def has(self, name: str) -> bool:
        """Whether a name has points, or says where the run is."""
        meaning = canonical(name, self.phase)[0]
        position = meaning.known and meaning.name in POSITIONS
        return position or any(one.original == name.strip() for one in self.columns.every())

    def summary(
        self, series: dict[str, Series], name: str, step: float, value: float, offset: int
    ) -> None:
        """Add what a run's summary alone says to its named series: a result, under its own name."""
        key = slug(name)
        if key not in series:
            series[key] = Series(key, name)
            series[key].add(step, value, offset)

    def named(self) -> dict[str, Series]:
        """The series by canonical name."""
        self.fold()
        return self.columns.named()

    def to_state(self) -> dict[str, Any]:
        """Plain data; `from_state` is its inverse."""
        self.fold()
        state = {name: value for name, value in vars(self).items() if name[0] != "_"}
        return {**state, "columns": self.columns.to_state()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Scalars:
        """Rebuild what `to_state` gave. Raises KeyError, TypeError or ValueError."""
        data = dict(state)
        data["columns"] = Columns.from_state(data["columns"])
        data["firsts"] = {tag: (float(a), float(b)) for tag, (a, b) in data["firsts"].items()}
        ticked = data["ticked"]
        data["ticked"] = None if ticked is None else (float(ticked[0]), float(ticked[1]))
        return cls(**data)
