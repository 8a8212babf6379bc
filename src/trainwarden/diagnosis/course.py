"""The course of a metric, in the robust figures that detectors and analysts go by."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from trainwarden.metrics.series import Point, Series

Direction = Literal["decrease", "increase"]
LEAST = 6
"""Fewer points have no course."""
LEAST_APART = 16
"""Fewer points are not judged by the distance of their two ends."""


def current_run(points: Sequence[Point]) -> list[Point]:
    """Points of the run as it stands: what a resumed or restarted run wrote over is left out."""
    kept: list[Point] = []
    ceiling = math.inf
    for point in reversed(points):
        if point.step <= ceiling:
            kept.append(point)
            ceiling = point.step
    kept.reverse()
    return kept


def even(series: Series) -> list[Point]:
    """Finite points of the present run, spread evenly over it and up to the last one."""
    points = [point for point in series.kept if math.isfinite(point.value)]
    last = series.recent[-1] if series.recent else None
    if last and math.isfinite(last.value) and (not points or points[-1] != last):
        points.append(last)
    return current_run(points)


def spread(values: Sequence[float]) -> float:
    """Robust standard deviation (scaled median absolute deviation); 0 for fewer than three."""
    if len(values) < 3:
        return 0.0
    middle = median(values)
    return 1.4826 * median(abs(value - middle) for value in values)


def noise(values: Sequence[float]) -> float:
    """Robust standard deviation of the scatter about a slowly moving level.

    The larger of what successive differences and what residuals of a running median of five
    tell: the first misses slow wandering, the second shrinks in short series.
    """
    if len(values) < 4:
        return 0.0
    steps = [b - a for a, b in itertools.pairwise(values)]
    smooth = [median(values[max(0, i - 2) : i + 3]) for i in range(len(values))]
    residuals = [value - level for value, level in zip(values, smooth, strict=True)]
    return max(spread(steps) / math.sqrt(2), spread(residuals))


def unbroken(series: Series, holds: Callable[[float], bool]) -> list[Point]:
    """The longest stretch of points up to the last one for whose values `holds`, oldest first."""
    kept: list[Point] = []
    for point in reversed(series.points()):
        if not holds(point.value):
            break
        kept.append(point)
    kept.reverse()
    return kept


MOST_ORDERED = 40


def order_chance(values: Sequence[float], rising: bool) -> float:
    """Chance of an order that goes at least as far one way, by the exact distribution of Kendall's
    statistic for independent values (one-sided; ties count for nothing). For at most
    `MOST_ORDERED` values, longer ones are thinned."""
    if len(values) > MOST_ORDERED:
        last = len(values) - 1
        values = [values[round(last * k / (MOST_ORDERED - 1))] for k in range(MOST_ORDERED)]
    n = len(values)
    sign = 1 if rising else -1
    wrong = sum(sign * (b - a) <= 0 for a, b in itertools.combinations(values, 2))
    ways = [1]
    for size in range(2, n + 1):
        # How many orders of `size` values have so many pairs the wrong way round.
        longer = [0] * (len(ways) + size - 1)
        for pairs, count in enumerate(ways):
            for more in range(size):
                longer[pairs + more] += count
        ways = longer
    return sum(ways[: wrong + 1]) / math.factorial(n)


WANDER = 4.4
"""By how much the error of a mean grows under first-order noise with a coefficient of 0.9."""


def moved(points: Sequence[Point], alpha: float = 0.01) -> int:
    """-1, 0 or 1: where a metric has gone over its course.

    Told by a trend, by shifts of level, or by medians of the first and last tenth that differ by
    four standard errors, these taken as large as first-order noise with a coefficient of 0.9 makes
    them. The first is safe against wandering and so misses collapses and short steep curves; the
    others see those. The two tests are each held to half of `alpha`.
    """
    from trainwarden.metrics.changepoint import level_shifts
    from trainwarden.metrics.trend import trend

    found = trend(points, alpha / 2)
    if found is not None and found.direction:
        return found.direction
    ways = {1 if s.after > s.before else -1 for s in level_shifts(points, alpha / 2, 0.0)}
    if len(ways) == 1:
        return ways.pop()
    whole = course_of(list(points), "increase")
    if whole is None or len(points) < LEAST_APART or ways:
        return 0
    change = whole.recent - whole.early
    error = WANDER * math.sqrt(2) * whole.level_error
    return int(math.copysign(1, change)) if abs(change) > 4 * error > 0 else 0


@dataclass(frozen=True)
class Course:
    """A metric's course. All values are as logged; `sign` turns better into lower.

    `early` and `recent` are medians over the first and last tenth (at least three points),
    `best` the best of a running median over as many points as `recent` holds.
    """

    points: list[Point]
    sign: int
    early: float
    recent: float
    recent_points: list[Point]
    best: float
    best_step: float
    best_index: int
    noise: float
    """Scatter of single points about the level of the second half."""
    drawdown: float
    """The most that the running median had ever lost of its best so far, before `best`."""

    @property
    def gained(self) -> float:
        """From the early level to the best, positive for improvement."""
        return self.sign * (self.early - self.best)

    @property
    def lost(self) -> float:
        """From the best level to the recent one, positive for a loss."""
        return self.sign * (self.recent - self.best)

    @property
    def net(self) -> float:
        """From the early level to the recent one, positive for improvement."""
        return self.sign * (self.early - self.recent)

    @property
    def level_error(self) -> float:
        """Standard error of the median of the recent points, were they independent."""
        return 1.2533 * self.noise / math.sqrt(len(self.recent_points))


def turned(found: Course, start: float) -> float:
    """The step at which the level left `start` for the recent one: half of the way, for good.

    Levels are medians of five, so that single values neither hasten nor delay it.
    """
    values = [point.value for point in found.points]
    levels = [median(values[max(0, i - 2) : i + 3]) for i in range(len(values))]
    way = found.recent - start
    at = len(levels) - 1
    while at > 0 and (levels[at - 1] - start) * math.copysign(1, way) > 0.5 * abs(way):
        at -= 1
    return found.points[at].step


def course(series: Series | None, direction: Direction) -> Course | None:
    """The course of a series; None where it has fewer than `LEAST` finite points."""
    if series is None:
        return None
    return course_of(even(series), direction)


def course_of(points: list[Point], direction: Direction) -> Course | None:
    """The course of points in order of their steps."""
    n = len(points)
    if n < LEAST:
        return None
    sign = 1 if direction == "decrease" else -1
    width = min(max(3, n // 10), 200)
    values = [point.value for point in points]
    # Windows that overlap by half are enough to find the best level, and stay linear.
    hop = max(1, width // 2)
    starts = list(range(0, n - width + 1, hop))
    levels = [median(values[start : start + width]) for start in starts]
    best = min(range(len(levels)), key=lambda i: sign * levels[i])
    middle = starts[best] + width // 2
    drawdown, record = 0.0, levels[0]
    for level in levels[: best + 1]:
        record = min(record, level, key=lambda v: sign * v)
        drawdown = max(drawdown, sign * (level - record))
    return Course(
        points=points,
        sign=sign,
        early=median(values[:width]),
        recent=median(values[-width:]),
        recent_points=points[-width:],
        best=levels[best],
        best_step=points[middle].step,
        best_index=middle,
        noise=noise(values[n // 2 :] if n >= 16 else values),
        drawdown=drawdown,
    )
