"""Figures of a metric's course as observations, so that they can be cited and read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trainwarden.diagnosis.course import course_of, even, moved
from trainwarden.diagnosis.speed import RATES, pace_shift
from trainwarden.metrics.indicator import is_measure_of_learning
from trainwarden.metrics.reading import Reading
from trainwarden.metrics.series import Point, Series
from trainwarden.metrics.trend import LEAST, progress, trend
from trainwarden.records.assessment import KeyIndicator
from trainwarden.records.base import Scalar
from trainwarden.records.observation import Observation, Place, Trust

ALPHA = 0.01
"""Level of the tests for a trend, told in the text of each."""
INCREASING = ("reward", "accuracy", "eval_accuracy", "f1", "mfu")
ALWAYS = ("loss", "eval_loss", "reward")
MOST_COURSES = 12
"""Metrics of learning whose course is told; a log can hold hundreds."""
_WHOLE = 1e15


def derived_observations(
    readings: Sequence[Reading],
    observations: Iterable[Observation],
    indicator: KeyIndicator | None,
) -> list[Observation]:
    """Observations computed from series; ids are still to be given.

    For the key indicator and every other measure of learning: `course` (`falling`, `rising`,
    `level` or `undecided`). For the indicator and for loss, eval_loss and reward:
    `median_early`, `median_recent`, `best`, `spread`, `trend_slope` (units a step), `trend_low`,
    `trend_high`, `trend_p`, and over the last half `recent_slope` and `recent_p`; for what tells
    the pace `shift_before`, `shift_after` and `shift_ratio`; for any metric with NaN or infinities
    `nonfinite` and
    `first_nonfinite`. What `observations` already holds is not repeated.
    """
    have = {(seen.quantity, seen.stat) for seen in observations}
    names = list(dict.fromkeys((*((indicator.quantity,) if indicator else ()), *ALWAYS)))
    made: list[Observation] = []
    done: set[str] = set()
    courses = 0
    for reading in readings:
        for name, series in reading.series.items():
            if name in done or not series.count:
                continue
            found = list(_nonfinite(reading, series))
            if name in names or (is_measure_of_learning(name) and courses < MOST_COURSES):
                found += _way(reading, series)
                courses += 1
            if name in names:
                up = (
                    indicator.direction == "increase"
                    if (indicator and indicator.quantity == name)
                    else name in INCREASING
                )
                found += _course(reading, series, up)
            if name == "step_time" or name in RATES:
                found += _shift(reading, series, name == "step_time")
            if found:
                done.add(name)
            made += [one for one in found if (one.quantity, one.stat) not in have]
    return made


def _observe(
    reading: Reading,
    series: Series,
    stat: str,
    value: Scalar,
    at: Point,
    text: str,
    unit: str | None = None,
) -> Observation:
    step = int(at.step) if abs(at.step) < _WHOLE else None
    file, offset = reading.place(at.offset)
    return Observation(
        quantity=series.name,
        stat=stat,
        value=value,
        unit=unit if unit is not None else series.unit,
        step=step,
        source="log",
        trust=Trust.LOG,
        # It is worked out of the whole log, whichever of its files the point lies in.
        place=Place(
            file=reading.file, offset=offset if file == reading.file else None, api="derived"
        ),
        text=text,
    )


def _nonfinite(reading: Reading, series: Series) -> Iterator[Observation]:
    if series.nonfinite and series.first_nonfinite is not None:
        first = series.first_nonfinite
        yield _observe(
            reading,
            series,
            "first_nonfinite",
            first.value,
            first,
            "the first value that is no finite number",
        )
        yield _observe(
            reading,
            series,
            "nonfinite",
            series.nonfinite,
            series.last or first,
            f"values that are no finite numbers, of {series.count}",
            "count",
        )


def _way(reading: Reading, series: Series) -> list[Observation]:
    """Where a metric has gone, by tests with a stated error rate: what a claim of progress needs.

    A direction counts only where the recent level also lies on that side of the early one.
    """
    points = even(series)
    if len(points) < LEAST:
        return []
    tested, way = progress(points, "increase", ALPHA), moved(points, ALPHA)
    way = tested.trend.direction or way if tested.trend is not None else way
    whole = course_of(points, "increase")
    if whole is None or whole.net * way <= 0:
        way = 0
    still = "level" if tested.verdict == "no" else "undecided"
    value = {1: "rising", -1: "falling"}.get(way, still)
    text = f"trend or shift of level, alpha {ALPHA:g}: {tested.remark}"
    at = series.last or Point(0, 0.0, 0)
    return [_observe(reading, series, "course", value, at, text, "")]


def _course(reading: Reading, series: Series, up: bool) -> list[Observation]:
    points = even(series)
    found = course_of(points, "increase" if up else "decrease")
    if found is None:
        return []
    last, width = points[-1], len(found.recent_points)
    best = points[found.best_index]

    def make(stat: str, value: float, text: str, at: Point = last) -> Observation:
        unit = f"{series.unit or 'units'} a step" if stat.endswith("slope") else None
        unit = "probability" if stat.endswith("_p") else unit
        return _observe(reading, series, stat, value, at, text, unit)

    made = [
        make(
            "median_early",
            found.early,
            f"median of the first {width} values kept",
            points[width - 1],
        ),
        make("median_recent", found.recent, f"median of the last {width} values kept"),
        make("best", found.best, f"best running median of {width} values", best),
        make("spread", found.noise, "robust standard deviation about the level"),
    ]
    tested = progress(points, "increase" if up else "decrease", ALPHA)
    if tested.trend is not None:
        method = f"Theil-Sen slope, {1 - ALPHA:.0%} interval; {tested.remark}"
        made += [
            make("trend_slope", tested.trend.slope, method),
            make("trend_low", tested.trend.slope_low, method),
            make("trend_high", tested.trend.slope_high, method),
            make("trend_p", tested.trend.p_value, tested.remark),
        ]
    half = points[len(points) // 2 :]
    later = trend(half, ALPHA) if len(half) >= LEAST else None
    if later is not None:
        text = f"the same over the last half ({len(half)} values), alpha {ALPHA:g}"
        made += [make("recent_slope", later.slope, text), make("recent_p", later.p_value, text)]
    return made


def _shift(reading: Reading, series: Series, is_time: bool) -> list[Observation]:
    found = pace_shift(series, is_time)
    last = series.last
    if found is None or last is None:
        return []
    shift, slower = found
    at = next((p for p in series.points() if p.step >= shift.step), last)
    text = f"level shift by a rank test over all splits, p={shift.p_value:.2g}, alpha 0.001"
    return [
        _observe(reading, series, "shift_before", shift.before, at, text),
        _observe(reading, series, "shift_after", shift.after, at, text),
        _observe(
            reading,
            series,
            "shift_ratio",
            slower,
            at,
            text + "; how many times as long a step takes",
            "ratio",
        ),
    ]
