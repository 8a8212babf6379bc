"""A run that no longer gets anywhere, long before its end.

Two forms. *Stuck*: over a recent stretch the indicator shows no trend, although it had been
progressing over a stretch of equal logarithmic length just before. Learning curves slow down, so
progress is compared per unit of log(step): a power law keeps most of its pace by that clock and an
exponential loses it gradually; only a run that stopped loses it at once. *Never learnt*: from the
start on the indicator shows no progress, and is no better than the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from trainwarden.diagnosis.base import View, whole
from trainwarden.diagnosis.course import course_of, even, noise
from trainwarden.diagnosis.optimisation import baseline_of, indicator_series
from trainwarden.diagnosis.rl import is_rl
from trainwarden.diagnosis.text import figure
from trainwarden.metrics.series import Point
from trainwarden.metrics.trend import trend
from trainwarden.records.finding import Finding, Severity

STRETCHES = tuple(share / 100 for share in range(20, 80, 5))
"""Shares of the run, ending now, that are tried."""
ALPHA = 0.05
"""Level of the test for any remaining progress: low power is not to be taken for a plateau."""
LEAST = 9
"""Points that a stretch needs."""


def detect_plateau(view: View) -> Iterator[Finding]:
    """No progress where there should be some."""
    main = indicator_series(view)
    if main is None or view.ended in {"crashed", "interrupted"}:
        return
    name, direction, series = main
    points = even(series)
    if any(not math.isfinite(point.value) for point in series.recent[-5:]):
        return
    sign = 1 if direction == "decrease" else -1
    found = _never_learnt(view, name, points, sign)
    if found is None and not is_rl(view):
        found = _stuck(view, name, points, sign)
    if found is not None:
        yield found


def _never_learnt(view: View, name: str, points: list[Point], sign: int) -> Finding | None:
    if len(points) < 50:
        return None
    baseline = baseline_of(view, name)
    warmup = view.facts.warmup_steps or 0
    points = [point for point in points if point.step >= warmup]
    total = view.total_steps
    if len(points) < 40 or (total and points[-1].step < 0.1 * total):
        return None
    found = course_of(points, "decrease" if sign > 0 else "increase")
    moving = trend(points, ALPHA)
    if found is None or moving is None or moving.direction == -sign:
        return None
    if baseline is not None:
        if not abs(found.recent - baseline) < max(0.02 * baseline, 2 * found.level_error):
            return None
    elif not is_rl(view) or moving.detectable * moving.span > 2 * found.noise:
        # Without a baseline a flat loss can be that of a model that came trained.
        return None
    chance = f", about what knowing nothing gives ({figure(baseline)})" if baseline else ""
    return Finding(
        kind="plateau",
        severity=Severity.WARNING,
        observations=view.cite(name, "median_early", "median_recent", "last"),
        since_step=whole(points[0].step),
        summary=f"{name} shows no progress from step {figure(points[0].step)} to "
        f"{figure(points[-1].step)}: {figure(found.early)} at first, {figure(found.recent)} "
        f"now{chance}.",
        meaning="What is trained does not change, or cannot learn this task as set up.",
        alternatives=(
            "The optimizer holds other parameters than the model",
            "Learning rate far too small, or all gradients masked",
            "Inputs and targets do not belong together",
        ),
        first_action="Compare the parameters of two checkpoints: do they differ at all?",
        evidence_type="inference",
        confidence=0.65,
    )


def _stuck(view: View, name: str, points: list[Point], sign: int) -> Finding | None:
    # The end of a schedule is flat by design: only what was logged at a high rate counts.
    end = _end_of_high_rate(view)
    if end is not None:
        points = [point for point in points if point.step <= end]
    if len(points) < 30:
        return None
    now, total = points[-1].step, view.total_steps
    if end is None and (view.ended == "finished" or (total and now >= 0.9 * total)):
        return None
    origin = min(points[0].step, 0.0)
    whole_run = course_of(points, "decrease" if sign > 0 else "increase")
    if whole_run is None or whole_run.gained <= 0:
        return None
    for stretch in STRETCHES:
        start = now - stretch * (now - origin)
        ratio = (now - origin) / (start - origin)
        before_from = origin + (start - origin) / ratio
        recent = [p for p in points if p.step >= start]
        before = [p for p in points if before_from <= p.step < start]
        if len(recent) < LEAST or len(before) < LEAST:
            continue
        warmup = view.facts.warmup_steps or 0
        if before_from < warmup:
            continue
        scatter = noise([p.value for p in recent])
        if not _stopped(before, recent, sign, scatter, whole_run.gained):
            continue
        moving = trend(recent, ALPHA)
        if moving is None or moving.direction == -sign:
            continue
        # Wandering makes medians less sure than independent scatter would.
        scatter *= math.sqrt(max(1.0, moving.n / moving.effective_n))
        if not _stopped(before, recent, sign, scatter, whole_run.gained):
            continue
        past, _ = _progress(before, sign, scatter)
        return Finding(
            kind="plateau",
            severity=Severity.WARNING,
            observations=view.cite(name, "median_recent", "median_early", "last"),
            since_step=whole(start),
            summary=f"{name} shows no progress from step {figure(start)} to "
            f"{figure(now)}; it stands at {figure(whole_run.recent)}. The stretch before, "
            f"as long on the logarithmic clock of learning curves, had gained {figure(past)}.",
            meaning="The run stopped learning all at once, unlike a curve that flattens out.",
            alternatives=(
                "The learning rate was cut or the schedule ended",
                "Parameters were frozen, or the optimizer lost them",
                "The data from there on repeat or carry no signal",
            ),
            first_action="Compare the parameters of checkpoints before and after that step, and "
            "the learning rate there.",
            evidence_type="inference",
            confidence=0.6,
        )
    return None


def _stopped(
    before: list[Point], recent: list[Point], sign: int, scatter: float, gained: float
) -> bool:
    """Whether a clear gain over the stretch before is followed by practically none."""
    past, past_error = _progress(before, sign, scatter)
    present, present_error = _progress(recent, sign, scatter)
    if past < 6 * past_error or past < 0.05 * gained:
        return False
    return present + 3 * present_error < 0.25 * past


def _progress(points: list[Point], sign: int, scatter: float) -> tuple[float, float]:
    """Gain over a stretch, by the medians of its outer thirds, with its standard error."""
    third = len(points) // 3
    first = median(p.value for p in points[:third])
    last = median(p.value for p in points[-third:])
    error = 1.2533 * scatter * math.sqrt(2 / third)
    return 1.5 * sign * (first - last), 1.5 * error


def _end_of_high_rate(view: View) -> float | None:
    """The last step at which the learning rate was at least 0.3 of its peak, None if not known."""
    rates = view.series("learning_rate")
    if rates is None or rates.maximum is None or rates.count < 10:
        return None
    least = 0.3 * rates.maximum.value
    high = [point.step for point in rates.finite() if point.value >= least]
    return max(high, default=None)
