"""One metric over a run, bounded in memory whatever the run's length."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainwarden.records.base import from_json_number, to_json_number

Array = NDArray[Any]


class Point(NamedTuple):
    """A value with the step it belongs to and where it was read."""

    step: float
    value: float
    offset: int
    """Byte offset of its line in the file it was read from."""


CAPACITY = 2048
RECENT = 512


@dataclass
class Series:
    """Points of one metric: all counted, an even thinning kept, the last `RECENT` kept exactly.

    Every `stride`-th point is kept; when `CAPACITY` is reached every other one is dropped and the
    stride doubles, so that what is kept always spans the whole run evenly.
    """

    name: str
    original: str
    unit: str | None = None
    count: int = 0
    first: Point | None = None
    last: Point | None = None
    minimum: Point | None = None
    maximum: Point | None = None
    nonfinite: int = 0
    first_nonfinite: Point | None = None
    stride: int = 1
    kept: list[Point] = field(default_factory=list)
    recent: list[Point] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    """Of a series joined from several files: in which of them `first`, `minimum` and so on lie."""

    def add(self, step: float, value: float, offset: int = 0) -> None:
        """Append a point; steps are expected to grow, but nothing breaks where they don't."""
        point = Point(step, value, offset)
        if self.count % self.stride == 0:
            self.kept.append(point)
            if len(self.kept) >= CAPACITY:
                del self.kept[1::2]
                self.stride *= 2
        self.recent.append(point)
        if len(self.recent) >= 2 * RECENT:
            del self.recent[:RECENT]
        self.count += 1
        self.last = point
        self.first = self.first or point
        if math.isfinite(value):
            if self.minimum is None or value < self.minimum.value:
                self.minimum = point
            if self.maximum is None or value > self.maximum.value:
                self.maximum = point
        else:
            self.nonfinite += 1
            self.first_nonfinite = self.first_nonfinite or point

    def extend_arrays(self, steps: Array, values: Array, offsets: Array) -> None:
        """Append many points at once; the outcome is that of adding them one by one."""
        n = len(values)
        if not n:
            return

        def points(part: slice) -> Iterable[Point]:
            return map(Point, steps[part].tolist(), values[part].tolist(), offsets[part].tolist())

        def at(index: Any) -> Point:
            return next(iter(points(slice(int(index), int(index) + 1))))

        self._append(n, points)
        finite = np.isfinite(values)
        odd = low = high = None
        if not finite.all():
            odd = at(np.argmin(finite))
        if finite.any():
            low = at(np.argmin(np.where(finite, values, np.inf)))
            high = at(np.argmax(np.where(finite, values, -np.inf)))
        self._note(low, high, n - int(finite.sum()), odd)

    def _append(self, n: int, points: Callable[[slice], Iterable[Point]]) -> None:
        """Keep what is to be kept of `n` more points; `points` makes those of a part."""
        done = 0
        while done < n:
            skip = -self.count % self.stride
            room = CAPACITY - len(self.kept)
            end = min(n, done + skip + (room - 1) * self.stride + 1)
            self.kept.extend(points(slice(done + skip, end, self.stride)))
            self.count += end - done
            done = end
            if len(self.kept) >= CAPACITY:
                del self.kept[1::2]
                self.stride *= 2
        length = self.count if self.count < 2 * RECENT else RECENT + self.count % RECENT
        fresh = list(points(slice(max(0, n - length), n)))
        self.recent = (self.recent + fresh)[-length:]
        self.last = fresh[-1]
        self.first = self.first or next(iter(points(slice(0, 1))))

    def _note(
        self, low: Point | None, high: Point | None, nonfinite: int, odd: Point | None
    ) -> None:
        """Take the extremes of points just appended, and the first that is no finite number."""
        self.nonfinite += nonfinite
        self.first_nonfinite = self.first_nonfinite or odd
        if low is not None and (self.minimum is None or low.value < self.minimum.value):
            self.minimum = low
        if high is not None and (self.maximum is None or high.value > self.maximum.value):
            self.maximum = high

    def copy(self) -> Series:
        """An independent copy."""
        return replace(self, kept=list(self.kept), recent=list(self.recent))

    def points(self) -> list[Point]:
        """The thinned past followed by the exact recent points, in order of arrival."""
        if not self.recent or self.count <= len(self.recent):
            return list(self.recent)
        seen_before = self.count - len(self.recent)
        past = -(-seen_before // self.stride)
        return self.kept[:past] + self.recent

    def finite(self) -> list[Point]:
        """`points` without NaN and infinities."""
        return [point for point in self.points() if math.isfinite(point.value)]

    def before(self, step: float) -> Series:
        """Without the points of `step` and later ones; itself where there are none.

        Where the cut lies among the thinned points, the count is that up to the last one kept.
        """
        recent = [point for point in self.recent if point.step < step]
        kept = [point for point in self.kept if point.step < step]
        if len(recent) == len(self.recent) and len(kept) == len(self.kept):
            return self
        if not kept:
            return Series(self.name, self.original, self.unit)
        if recent:
            count = self.count - (len(self.recent) - len(recent))
        else:
            count, recent = (len(kept) - 1) * self.stride + 1, kept[-1:]
        left = replace(self, count=count, kept=kept, recent=recent, last=recent[-1])
        finite = left.finite()
        if self.minimum is not None and self.minimum.step >= step:
            left.minimum = min(finite, key=lambda point: point.value, default=None)
        if self.maximum is not None and self.maximum.step >= step:
            left.maximum = max(finite, key=lambda point: point.value, default=None)
        if self.first_nonfinite is not None:
            if self.first_nonfinite.step >= step:
                left.nonfinite, left.first_nonfinite = 0, None
            else:
                gone = self.points()[len(left.points()) :]
                left.nonfinite -= sum(not math.isfinite(point.value) for point in gone)
        return left

    def joined(self, other: Series, file: str, other_file: str) -> Series:
        """This series followed by one of the same metric from another file; not to be added to."""
        if not self.count or not other.count:
            return other if other.count else self
        both = replace(other, count=self.count + other.count, origins={})
        stride = max(self.stride, other.stride)
        past = self.kept[:: stride // self.stride]
        if other.count > len(other.recent):
            past = past + other.kept[:: stride // other.stride]
        else:
            past = past if stride > 1 else self.points()
        hidden = both.count - len(both.recent)
        while len(past) >= CAPACITY:
            past = past[::2]
        both.kept, both.stride = past, max(1, hidden // max(1, len(past)))
        slots = ("first", "minimum", "maximum", "first_nonfinite")
        for name in slots:
            mine, theirs = getattr(self, name), getattr(other, name)
            chosen = _earlier_or_extreme(name, mine, theirs)
            setattr(both, name, chosen)
            if chosen is not None:
                owner, place = (self, file) if chosen is mine else (other, other_file)
                both.origins[name] = owner.origins.get(name, place)
        both.origins["last"] = other.origins.get("last", other_file)
        both.nonfinite = self.nonfinite + other.nonfinite
        return both

    def stretched(self, factor: int) -> Series:
        """A copy whose steps are `factor` times as far."""

        def far(point: Point | None) -> Point | None:
            return None if point is None else point._replace(step=point.step * factor)

        return replace(
            self,
            first=far(self.first),
            last=far(self.last),
            minimum=far(self.minimum),
            maximum=far(self.maximum),
            first_nonfinite=far(self.first_nonfinite),
            kept=[p._replace(step=p.step * factor) for p in self.kept],
            recent=[p._replace(step=p.step * factor) for p in self.recent],
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data for the reading cache; `from_json` is its inverse."""

        def pack(point: Point | None) -> list[Any] | None:
            return None if point is None else [to_json_number(item) for item in point]

        return {
            "name": self.name,
            "original": self.original,
            "unit": self.unit,
            "count": self.count,
            "first": pack(self.first),
            "last": pack(self.last),
            "minimum": pack(self.minimum),
            "maximum": pack(self.maximum),
            "nonfinite": self.nonfinite,
            "first_nonfinite": pack(self.first_nonfinite),
            "stride": self.stride,
            "kept": [pack(point) for point in self.kept],
            "recent": [pack(point) for point in self.recent],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Series:
        """Rebuild what `to_json` gave. Raises KeyError, TypeError or ValueError on other data."""

        def unpack(packed: list[Any] | None) -> Point | None:
            if packed is None:
                return None
            step, value, offset = packed
            return Point(from_json_number(step), from_json_number(value), int(offset))

        points = {
            key: unpack(data[key])
            for key in ("first", "last", "minimum", "maximum", "first_nonfinite")
        }
        return cls(
            name=data["name"],
            original=data["original"],
            unit=data["unit"],
            count=int(data["count"]),
            nonfinite=int(data["nonfinite"]),
            stride=int(data["stride"]),
            kept=[point for packed in data["kept"] if (point := unpack(packed))],
            recent=[point for packed in data["recent"] if (point := unpack(packed))],
            first=points["first"],
            last=points["last"],
            minimum=points["minimum"],
            maximum=points["maximum"],
            first_nonfinite=points["first_nonfinite"],
        )


def _earlier_or_extreme(slot: str, mine: Point | None, theirs: Point | None) -> Point | None:
    if mine is None or theirs is None:
        return mine or theirs
    if slot == "minimum":
        return theirs if theirs.value < mine.value else mine
    if slot == "maximum":
        return theirs if theirs.value > mine.value else mine
    return mine
