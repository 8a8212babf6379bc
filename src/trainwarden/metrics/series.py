"""One metric over a run, bounded in memory whatever the run's length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from trainwarden.records.base import from_json_number, to_json_number


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

    def extend(self, points: Sequence[tuple[float, float, int]]) -> None:
        """Append many points at once; the outcome is that of adding them one by one."""
        if points:
            self.extend_columns(*zip(*points, strict=True))

    def extend_columns(
        self, steps: Sequence[float], values: Sequence[float], offsets: Sequence[int]
    ) -> None:
        """As `extend`, the points given as three columns: only those that are kept are made."""
        n = len(values)
        if not n:
            return
        done = 0
        while done < n:
            skip = -self.count % self.stride
            room = CAPACITY - len(self.kept)
            end = min(n, done + skip + (room - 1) * self.stride + 1)
            part = slice(done + skip, end, self.stride)
            self.kept.extend(map(Point, steps[part], values[part], offsets[part]))
            self.count += end - done
            done = end
            if len(self.kept) >= CAPACITY:
                del self.kept[1::2]
                self.stride *= 2
        length = self.count if self.count < 2 * RECENT else RECENT + self.count % RECENT
        fresh = list(map(Point, steps[-length:], values[-length:], offsets[-length:]))
        self.recent = (self.recent + fresh)[-length:]
        self.last = fresh[-1]
        self.first = self.first or Point(steps[0], values[0], offsets[0])
        finite = values
        if not math.isfinite(sum(values)):
            finite = [value for value in values if math.isfinite(value)]
        if len(finite) < n:
            self.nonfinite += n - len(finite)
            if self.first_nonfinite is None:
                at = next(i for i, value in enumerate(values) if not math.isfinite(value))
                self.first_nonfinite = Point(steps[at], values[at], offsets[at])
        if finite:
            low, high = min(finite), max(finite)
            if self.minimum is None or low < self.minimum.value:
                at = values.index(low)
                self.minimum = Point(steps[at], values[at], offsets[at])
            if self.maximum is None or high > self.maximum.value:
                at = values.index(high)
                self.maximum = Point(steps[at], values[at], offsets[at])

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
            **points,
        )
