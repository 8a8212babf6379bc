"""The learning rate that is to be expected: by the config's schedule, or by what was logged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from trainwarden.analysts.rules.history import History
from trainwarden.metrics.forecast import Interval, forecast
from trainwarden.metrics.schedule import learning_rate_at
from trainwarden.metrics.schedule_fit import fitted_rate
from trainwarden.metrics.series import Point, Series
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.hostile import clean

LARGEST = 0.01
"""Rates are seldom larger: a rule of thumb where only zeros were logged and no config tells."""


@dataclass(frozen=True)
class Schedule:
    """A learning-rate schedule with its numbers."""

    name: str
    peak: float
    total: float | None
    warmup: float
    minimum: float

    def at(self, step: float) -> float:
        """The rate at a step; NaN where the schedule cannot tell."""
        value = learning_rate_at(step, self.peak, self.total, self.warmup, self.name, self.minimum)
        return math.nan if value is None else value

    def __str__(self) -> str:
        return (
            f"{self.name} schedule, peak {self.peak:g}, warm-up {self.warmup:g}, "
            f"total {self.total or 0:g}, minimum {self.minimum:g},"
        )


def configured_schedule(facts: TrainingFacts, total: int | None) -> Schedule | None:
    """The schedule that a config tells, `total` being the planned steps."""
    if not facts.learning_rate:
        return None
    warmup = facts.warmup_steps
    if warmup is None:
        warmup = math.ceil((facts.warmup_ratio or 0.0) * total) if total else 0
    name = facts.schedule or "linear"
    return Schedule(name, facts.learning_rate, total, warmup, facts.min_learning_rate or 0.0)


def _schedules(history: History, facts: TrainingFacts, series: Series) -> Iterator[Schedule]:
    """The config's schedule, then what usual schedules would be with the peak that was logged."""
    configured = configured_schedule(facts, history.total)
    if configured is not None and facts.schedule:
        yield configured
    points = series.finite()
    top = max(points, key=lambda point: point.value)
    falling = [point for point in points if point.step > top.step and point.value < top.value]
    if history.total is None or len(falling) < 8 or points[-1].value > 0.995 * top.value:
        return
    minima = {facts.min_learning_rate or 0.0, 0.0, 0.1 * top.value}
    for name in ("linear", "cosine"):
        for least in sorted(minima):
            yield Schedule(name, top.value, history.total, max(0.0, top.step - 1), least)


def rate_at(
    history: History, facts: TrainingFacts, step: Interval, level: float = 0.9
) -> Interval | None:
    """The rate between the steps of `step`; None where none was logged, or not often enough."""
    series = history.series("learning_rate")
    points = series.finite()[-200:] if series else []
    if series is None or not points:
        return None
    # The rate seen is the one last printed: up to a line behind the step, and counted from 0 or 1.
    low, high = max(0.0, step.low - history.cadence - 1), step.high + 1
    for schedule in _schedules(history, facts, series) if len(points) >= 8 else ():
        errors = sorted(abs(schedule.at(point.step) - point.value) for point in points)
        error = errors[int(0.9 * (len(errors) - 1))]
        # It counts where it tells what was logged, but for one printed step more or less.
        if error > 0.01 * schedule.peak:
            continue
        values = [schedule.at(low + (high - low) * k / 64) for k in range(65)]
        slack = 1.5 * error + 1e-4 * schedule.peak
        basis = clean(
            f"{schedule} between steps {low:.0f} and {high:.0f}, which tells the "
            f"{len(points)} latest logged rates to within {error:.2g}"
        )
        least, most = max(0.0, min(values) - slack), max(values) + slack
        return Interval(least, most, (least + most) / 2, basis)
    return _by_course(series.finite(), facts, step, low, high, level)


def _by_course(
    points: list[Point],
    facts: TrainingFacts,
    step: Interval,
    low: float,
    high: float,
    level: float,
) -> Interval | None:
    last = points[-1].value
    fitted = fitted_rate(points, low, high)
    if fitted is not None and not fitted[1]:
        return fitted[0]
    rising = len(points) < 4 or (
        last > points[len(points) // 2].value and last >= 0.999 * max(p.value for p in points)
    )
    said = [f for at in dict.fromkeys((step.low, step.high)) if (f := forecast(points, at, level))]
    least, most = min(f.low for f in said), max(f.high for f in said)
    basis = said[-1].basis
    if fitted is not None:
        least, most, basis = fitted[0].low, fitted[0].high, fitted[0].basis
    elif rising and len(points) < 4:
        most = max(facts.learning_rate or 10 * last or LARGEST, most)
        least = min(least, 0.5 * last)
        peak = "the config's peak" if facts.learning_rate else "ten times as much: a rule of thumb"
        basis += f"; a warm-up may be under way, so up to {peak}"
    if rising:
        # A warm-up ends, and nothing logged tells when.
        least = min(least, 0.9 * last)
        basis += "; it rises, and such a warm-up may end any time, to stay or to fall slowly"
    return Interval(least, most, min(max(last, least), most), basis)
