"""Which step a row of W&B's history belongs to: the run's own, where it logs one.

`_step` counts calls of `log`. Runs log their own step as a value like others (`iter`,
`global_step`, `trainer/global_step`) and may declare with `define_metric` which name is the axis of
which others. A row without it belongs to the last one told.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwarden.metrics.binary.scalars import Floats
from trainwarden.metrics.names import canonical

Columns = dict[str, tuple[NDArray[np.int64], Floats]]
"""By name, the rows that have a value, and the values."""
_WEAK = frozenset({"batch", "batch_idx", "episode"})
"""Names that count something smaller than, or other than, steps."""
_OWN = 99
"""Rank of `_step`: any other axis is better."""
MAX_AXES = 64
MAX_DECLARED = 1000
_NOTHING: tuple[NDArray[np.int64], Floats] = (np.zeros(0, np.int64), np.zeros(0))


@dataclass
class _Axis:
    """A name that counts steps, and where it stands."""

    rank: int
    count: int = 0
    falls: int = 0
    """How often it fell back: steps that begin anew each epoch are counted on."""
    base: float = 0.0
    last: float = 0.0
    """As logged."""
    stride: float = 1.0
    dead: bool = False
    """Whether it fell back so often that it counts no steps."""

    def take(self, values: Floats) -> tuple[Floats, int]:
        """Steps of its next values, counted on over falls; and how many before it is dead."""
        known = self.count > 0
        raw = np.concatenate([[self.last], values]) if known else values
        ahead = np.diff(raw)
        fell = ahead < 0
        # The stride before a fall is how far the value before it was ahead.
        strides = np.concatenate([[self.stride], ahead])[: len(ahead)]
        strides = np.where(strides > 0, strides, 1.0)
        bases = self.base + np.cumsum(np.where(fell, raw[:-1] + strides, 0.0))
        counts = self.count + np.arange(1, len(values) + 1)
        falls = self.falls + np.cumsum(fell)
        if not known:
            bases, falls = np.concatenate([[self.base], bases]), np.concatenate([[0], falls])
        dying = np.flatnonzero((falls > 4) & (falls > counts / 4))
        self.count, self.falls = int(counts[-1]), int(falls[-1])
        self.base, self.last = float(bases[-1]), float(values[-1])
        self.stride = float(ahead[-1]) if len(ahead) else self.stride
        self.dead = len(dying) > 0
        return values + bases, int(dying[0]) if len(dying) else len(values)


class Axes:
    """The axes of one history."""

    def __init__(self) -> None:
        self.last = 0.0
        """Step of the last row, on the axis of the series."""
        self.by_name: dict[str, str] = {}
        """Declared: the axis of a name."""
        self.by_head: dict[str, str] = {}
        """Declared: the axis of names that begin so."""
        self.shared = ""
        """Declared: the axis of all names."""
        self._axes: dict[str, _Axis] = {}
        self._carried: dict[str, float] = {}
        """Last values of declared axes, as logged."""
        self._time: float | None = None

    def declare(self, name: str, pattern: str, axis: str) -> None:
        """What `define_metric` said: `name`, or names that fit `pattern`, are over `axis`."""
        if not axis or len(self.by_name) + len(self.by_head) >= MAX_DECLARED:
            return
        if pattern == "*":
            self.shared = axis
            if axis in self._axes:
                self._axes[axis].rank = -1
        elif pattern.endswith("*"):
            self.by_head[pattern[:-1]] = axis
        else:
            self.by_name[name or pattern] = axis

    @property
    def best(self) -> str | None:
        """The axis of the series."""
        alive = [name for name, axis in self._axes.items() if axis.count and not axis.dead]
        return min(alive, key=lambda name: self._axes[name].rank, default=None)

    @property
    def printed(self) -> float | None:
        """The last step as logged."""
        return None if (best := self.best) is None else self._axes[best].last

    @property
    def relative(self) -> bool:
        """Whether the steps of the series count on where those logged begin anew."""
        return (best := self.best) is not None and self._axes[best].falls > 0

    def place(self, n: int, columns: Columns) -> tuple[Floats, Floats]:
        """Step and time (NaN where none is told) of each of the next `n` rows."""
        for name in columns:
            if name not in self._axes and len(self._axes) < MAX_AXES:
                rank = self._rank(name)
                if rank is not None:
                    self._axes[name] = _Axis(rank)
        steps, held = np.full(n, self.last), np.zeros(n, dtype=bool)
        # From the weakest axis to the best: each holds from the row on that it was first told in.
        names = list(self._axes)
        for name in sorted(names, key=lambda one: (-self._axes[one].rank, -names.index(one))):
            axis = self._axes[name]
            if axis.dead:
                continue
            before = axis.last + axis.base if axis.count else None
            rows, values = columns.get(name, _NOTHING)
            rows, values = rows[good := np.isfinite(values)], values[good]
            end = n
            if len(values):
                values, alive = axis.take(values)
                if axis.dead:
                    end = int(rows[alive])
            filled = _carried(n, rows, values, before)
            here = np.isfinite(filled)
            here[end:] = False
            steps[here] = filled[here]
            held |= here
        # Where an axis is found to count no steps, and there is no other: the step told last.
        lasts = np.maximum.accumulate(np.where(held, np.arange(n), -1))
        steps[lasts >= 0] = steps[lasts[lasts >= 0]]
        if n:
            self.last = float(steps[-1])
        rows, stamps = columns.get("_timestamp", _NOTHING)
        times = _carried(n, rows, stamps, self._time)
        if len(stamps):
            self._time = float(stamps[-1])
        return steps, times

    def _rank(self, name: str) -> int | None:
        if name == self.shared:
            return -1
        if name.startswith("_"):
            return _OWN if name == "_step" else None
        meaning, own = canonical(name)
        if meaning.name != "step" or not meaning.known or own == "eval":
            return None
        return None if name.rpartition("/")[2].lower() in _WEAK else meaning.rank

    def declared(self, name: str, steps: Floats, columns: Columns) -> Floats:
        """The steps of the rows for `name`: those of the axis declared for it, if any."""
        axis = self.by_name.get(name)
        if axis is None:
            heads = [head for head in self.by_head if name.startswith(head)]
            axis = self.by_head[max(heads, key=len)] if heads else None
        if axis is None or axis == name or axis == self.best:
            return steps
        filled = _carried(len(steps), *columns.get(axis, _NOTHING), self._carried.get(axis))
        return np.where(np.isfinite(filled), filled, steps)

    def done(self, columns: Columns) -> None:
        """The rows placed last are settled."""
        for axis in {*self.by_name.values(), *self.by_head.values()}:
            rows, values = columns.get(axis, _NOTHING)
            if len(rows):
                self._carried[axis] = float(values[-1])

    def to_state(self) -> dict[str, Any]:
        """Plain data; `from_state` is its inverse."""
        state = vars(self).copy()
        state["_axes"] = {name: asdict(axis) for name, axis in self._axes.items()}
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Axes:
        """Rebuild what `to_state` gave. Raises KeyError, TypeError or ValueError."""
        axes = cls()
        for name in vars(axes):
            setattr(axes, name, state[name])
        axes._axes = {name: _Axis(**data) for name, data in state["_axes"].items()}
        return axes


def _carried(n: int, rows: NDArray[np.int64], values: Floats, before: float | None) -> Floats:
    """For each of `n` rows its value, or that of the last row that has one; NaN before any."""
    filled = np.full(n, np.nan if before is None else before)
    if len(rows):
        at = np.searchsorted(rows, np.arange(n), side="right") - 1
        filled[at >= 0] = values[at[at >= 0]]
    return filled
