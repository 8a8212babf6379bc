"""The metrics of one log while it is read: one column for each name, canonical names at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from operator import lt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwarden.metrics.names import Canonical, canonical, slug
from trainwarden.metrics.series import Series
from trainwarden.metrics.values import UNITS

RawPoint = tuple[float, float, int]
Run = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Points as three columns of one length: steps, values, offsets."""
MAX_COLUMNS = 1000
MAX_PENDING = 30_000
DERIVED = "from timestamps"
"""The column of step times that no line prints."""
_BINARY = {"k": 1024.0, "K": 1024.0, "M": 1024.0**2, "G": 1024.0**3}


@dataclass(slots=True)
class Column:
    """One logged name in one phase, with points not yet folded into its series."""

    original: str
    phase: str | None
    meaning: Canonical
    series: Series
    pending: list[RawPoint] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    waiting: int = 0
    """How many points the runs hold."""
    promotable: bool = True
    """False for values of an end-of-run summary: they stand for themselves."""
    steady: bool = False
    """Whether a value is printed again and again until there is a new one (by a bar)."""
    shown: RawPoint | None = None
    """What a bar said last when it was redrawn where it stood."""

    def take(self, run: Run) -> None:
        """Take many points at once, after those that are pending."""
        self.gather()
        self._take(*run)

    def fold(self) -> None:
        """Move the pending points into the series; a repeated line counts once."""
        self.gather()
        if self.runs:
            steps, values, offsets = map(np.concatenate, zip(*self.runs, strict=True))
            self.runs.clear()
            self.waiting = 0
            self.series.extend_arrays(steps, values, offsets)

    def gather(self) -> None:
        """Make a run of the points that are pending."""
        if not self.pending:
            return
        steps, values, offsets = zip(*self.pending, strict=True)
        self.pending.clear()
        self._take(np.array(steps, float), np.array(values, float), np.array(offsets, np.int64))

    def _take(self, steps: NDArray[Any], values: NDArray[Any], offsets: NDArray[Any]) -> None:
        """Keep points as a run, without those that repeat the one before."""
        if self.meaning.unit == "ratio":
            # nanoGPT prints mfu -100% until it can tell; others print 37.5 for 37.5%.
            values = np.where(values <= 1.5, values, values * 0.01)
            if (values < 0).any():
                told = ~(values < 0)
                steps, values, offsets = steps[told], values[told], offsets[told]
        if not len(values):
            return
        before = self.runs[-1] if self.runs else None
        last = self.series.last or (-1.0, math.nan)
        step, value = (before[0][-1], before[1][-1]) if before else last[:2]
        fresh = np.empty(len(values), bool)
        fresh[0] = values[0] != value or (steps[0] != step and not self.steady)
        np.not_equal(values[1:], values[:-1], out=fresh[1:])
        if not self.steady:
            fresh[1:] |= steps[1:] != steps[:-1]
        if not fresh.all():
            steps, values, offsets = steps[fresh], values[fresh], offsets[fresh]
        if len(steps):
            self.runs.append((steps, values, offsets))
            self.waiting += len(steps)

    def copy(self) -> Column:
        """An independent copy; pending points must be folded first."""
        return replace(self, series=self.series.copy(), pending=[], runs=[], waiting=0)


class Columns:
    """All columns of a log by original name and phase."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str | None], Column] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def every(self) -> list[Column]:
        """All columns, in the order in which they came up."""
        return list(self._by_key.values())

    def get(self, original: str, phase: str | None, unit: str = "") -> Column | None:
        """The column of a name; None where there are too many already."""
        meaning, own = canonical(original, "eval" if phase == "eval" else None)
        if unit == "%" and not meaning.known and meaning.name in {"loss", "eval_loss"}:
            # Epoch 1/5 | Loss: 0.9 | Train: 64.2% | Test: 61.9%
            meaning = meaning._replace(name=meaning.name.replace("loss", "accuracy"))
        if phase == "summary" and own == "eval":
            phase = "eval"
        key = (original, "summary" if phase == "summary" else (own or phase))
        column = self._by_key.get(key)
        if column is None:
            if len(self._by_key) >= MAX_COLUMNS:
                return None
            name = original.strip()
            base = meaning.unit
            if base == "bytes" and not unit and meaning.scale == 1.0:
                base = None  # megabytes or bytes: the log does not say
            if base is None and unit in _BINARY and meaning.unit == "bytes":
                base = "bytes"
            if base is None and unit and (found := UNITS.get(unit.lower())) and found[0] != "ratio":
                base = found[0]
            column = Column(name, key[1], meaning, Series(slug(name), name, base))
            column.promotable = phase != "summary"
            self._by_key[key] = column
        return column

    def factor(self, column: Column, unit: str) -> float:
        """What brings a value printed with `unit` to the column's unit."""
        base = column.series.unit
        if unit:
            found = UNITS.get(unit.lower())
            if found is not None:
                if found[0] == base or (found[0] == "ratio" and _share(column.meaning.name)):
                    return found[1]
                return 1.0
            if unit[:1] in "kMGT" and "/" in unit:
                return {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[unit[0]]
            if base == "bytes" and unit in _BINARY:
                return _BINARY[unit]  # detectron2: max_mem: 2740M
            if unit in {"k", "K"}:
                return 1e3
            if unit == "M":
                return 1e6
        return column.meaning.scale

    def settle(self, x: float) -> None:
        """Take what a bar that stands at `x` said last: no further step will say it again."""
        for column in self._by_key.values():
            if column.shown is not None and column.shown[0] == x:
                column.pending.append(column.shown)

    def ease(self) -> None:
        """Fold where much is pending: often is dear, and seldom needs memory."""
        for column in self._by_key.values():
            if len(column.pending) + column.waiting > MAX_PENDING:
                column.fold()

    def fold(self) -> None:
        """Fold what is pending everywhere."""
        for column in self._by_key.values():
            if column.pending or column.runs:
                column.fold()

    def named(self) -> dict[str, Series]:
        """The series by canonical name: of several that mean the same the best one has it."""
        candidates: dict[str, list[Column]] = {}
        for column in self._by_key.values():
            if column.series.count:
                told = _elapsed(column) or _negated(column)
                name = slug(column.original) if told else column.meaning.name
                candidates.setdefault(name, []).append(column)
        chosen: dict[str, Series] = {}
        others: list[Column] = []
        for name, group in candidates.items():
            group.sort(key=lambda c: (c.meaning.rank, _unsaid(c), -c.series.count))
            best = next((c for c in group if c.promotable or not c.meaning.known), None)
            if best is not None:
                chosen[name] = _renamed(best, name)
            others += [column for column in group if column is not best]
        for column in others:
            if column.original == DERIVED:
                continue
            name = slug(column.original)
            if column.phase == "eval" and not name.startswith(("eval", "val", "test")):
                name = f"eval_{name}"
            base, number = name, 2
            while name in chosen:
                name, number = f"{base}_{number}", number + 1
            chosen[name] = _renamed(column, name)
        return chosen

    def copy(self) -> Columns:
        """An independent copy."""
        self.fold()
        other = Columns()
        other._by_key = {key: column.copy() for key, column in self._by_key.items()}
        return other

    def to_state(self) -> list[dict[str, Any]]:
        """Plain data; `from_state` is its inverse."""
        self.fold()
        return [
            {
                "key": list(key),
                "name": column.meaning.name,
                "promotable": column.promotable,
                "steady": column.steady,
                "shown": column.shown,
                "series": column.series.to_json(),
            }
            for key, column in self._by_key.items()
        ]

    @classmethod
    def from_state(cls, state: list[dict[str, Any]]) -> Columns:
        """Rebuild what `to_state` gave."""
        columns = cls()
        for item in state:
            original, phase = item["key"]
            meaning, _own = canonical(original, "eval" if phase == "eval" else None)
            meaning = meaning._replace(name=str(item["name"]))
            series = Series.from_json(item["series"])
            flags = (bool(item["promotable"]), bool(item["steady"]))
            column = Column(series.original, phase, meaning, series, [], [], 0, *flags)
            if (shown := item.get("shown")) is not None:
                column.shown = (float(shown[0]), float(shown[1]), int(shown[2]))
            columns._by_key[(original, phase)] = column
        return columns


def _elapsed(column: Column) -> bool:
    """Whether seconds called just `time` are those since the start: they only grow."""
    if column.meaning.name != "step_time" or slug(column.original) not in {"time", "seconds"}:
        return False
    points = column.series.points()
    values = [point.value for point in points]
    return len(values) > 3 and values[-1] > 2 * values[0] and all(map(lt, values, values[1:]))


def _unsaid(column: Column) -> bool:
    """Whether a value of evaluations is called one by the line alone: `loss`, not `valid_loss`.

    Such lines may also tell how an evaluation comes along. A test is another evaluation.
    """
    named = canonical(column.original)[1] is not None and "test" not in column.original.lower()
    return column.phase == "eval" and not named


def _negated(column: Column) -> bool:
    """Whether an `entropy_loss` is the entropy with its sign turned, as in Stable-Baselines3.

    The number stays as it was printed, so it must not be called an entropy.
    """
    low = column.series.minimum
    called = column.meaning.name == "entropy" and slug(column.original).endswith("loss")
    return called and low is not None and low.value < 0


def _share(name: str) -> bool:
    return name.removeprefix("eval_") in {"mfu", "accuracy"}


def _renamed(column: Column, name: str) -> Series:
    series = column.series
    series.name = name
    return series
