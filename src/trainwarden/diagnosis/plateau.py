"""A run that no longer gets anywhere, long before its end.

Two forms. *Stuck*: the indicator had been progressing and then stopped all at once, unlike a curve
that flattens out by itself; `decay` tells these apart. *Never learnt*: from the start on the
indicator shows no progress, and is no better than the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from trainwarden.diagnosis.base import View, whole
from trainwarden.diagnosis.course import course_of, even, noise, order_chance
from trainwarden.diagnosis.decay import find_stop
from trainwarden.diagnosis.optimisation import baseline_of, indicator_series
from trainwarden.diagnosis.rl import is_rl
from trainwarden.diagnosis.text import figure
from trainwarden.metrics.series import Point
from trainwarden.metrics.trend import blocks, trend
from trainwarden.records.finding import Finding, Severity

ALPHA = 0.05
"""Level of the test for any remaining progress: low power is not to be taken for a plateau."""
LEAST = 9
"""Points needed on either side of a stop."""
MOST = 400
"""More points are gathered into so many blocks."""
SURE = 7.0
"""Squared standard errors by which a stop must explain a curve better. Of healthy curves of many
shapes fewer than one look in a hundred comes so far (measured by the tests)."""
MISFIT = 4.0
"""Squared scatters by which points may miss the curve: beyond, it is no such curve at all."""


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
        found = _stuck(view, name, points, sign) or _one_answer(view, name, points, sign)
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
    elif not is_rl(view) or moving.detectable * moving.span > found.noise:
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


def _one_answer(view: View, name: str, points: list[Point], sign: int) -> Finding | None:
    """In a short log: the accuracy on held-out data is the same to the last digit each time."""
    held = view.series("eval_accuracy")
    if held is None or not SAME <= held.count < 50 or len(points) < SAME:
        return None
    values = [point.value for point in held.recent[-SAME:]]
    if len(set(values)) > 1 or not 0 < values[0] < 0.9:
        return None
    if order_chance([sign * point.value for point in points], rising=False) < 0.1:
        return None
    return Finding(
        kind="plateau",
        severity=Severity.WARNING,
        observations=view.cite("eval_accuracy", "last", "first") or view.cite_log(),
        since_step=whole(held.recent[-SAME:][0].step),
        summary=f"eval_accuracy is {figure(values[0])} in each of the last {SAME} evaluations, "
        f"and {name} does not improve.",
        meaning="The model gives the same answer to everything.",
        alternatives=(
            "Learning rate too high: the first steps broke it",
            "Labels or inputs that are the same or mixed up",
            "An output layer that does not fit the loss",
        ),
        first_action="Look at the outputs for ten different inputs; try to overfit one batch.",
        evidence_type="inference",
        confidence=0.65,
    )


SAME = 7


def _stuck(view: View, name: str, points: list[Point], sign: int) -> Finding | None:
    # The end of a schedule is flat by design: only what was logged at a high rate counts.
    end = _end_of_high_rate(view)
    if end is not None:
        points = [point for point in points if point.step <= end]
    warmup = view.facts.warmup_steps or 0
    points = [point for point in points if point.step >= warmup]
    if len(points) < 30:
        return None
    now, total = points[-1].step, view.total_steps
    if end is None and (view.ended == "finished" or (total and now >= 0.9 * total)):
        return None
    whole_run = course_of(points, "decrease" if sign > 0 else "increase")
    if whole_run is None or whole_run.gained <= 0:
        return None
    steps, values = blocks(points, MOST)
    stops = _stops(steps.tolist())
    found = find_stop(steps, sign * values, stops, SURE) if stops else None
    if found is None or found.gain < SURE or found.misfit > MISFIT:
        return None
    recent = [point for point in points if point.step >= found.step]
    moving = trend(recent, ALPHA)
    if moving is None or moving.direction == -sign:
        return None
    scatter = noise([point.value for point in recent])
    if found.missed < max(0.03 * whole_run.gained, 0.5 * scatter):
        return None
    return Finding(
        kind="plateau",
        severity=Severity.WARNING,
        observations=view.cite(name, "median_recent", "median_early", "last"),
        since_step=whole(found.step),
        summary=f"{name} shows no progress from step {figure(found.step)} to {figure(now)}; it "
        f"stands at {figure(whole_run.recent)}. As it fell until then, about "
        f"{figure(found.missed)} more would have been gained since.",
        meaning="The run stopped learning all at once, unlike a curve that flattens out.",
        alternatives=(
            "The learning rate was cut or the schedule ended",
            "Parameters were frozen, or the optimizer lost them",
            "The data from there on repeat or carry no signal",
        ),
        first_action="Compare the parameters of checkpoints before and after that step, and the "
        "learning rate there.",
        evidence_type="inference",
        confidence=0.6,
    )


def _stops(steps: Sequence[float]) -> list[float]:
    """Where it may have stopped: with enough points on either side to tell."""
    n = len(steps)
    places = {round(LEAST + (n - 2 * LEAST) * k / 31) for k in range(32)}
    return [float(steps[place]) for place in sorted(places) if LEAST <= place <= n - LEAST]


def _end_of_high_rate(view: View) -> float | None:
    """The last step at which the learning rate was at least 0.3 of its peak, None if not known."""
    rates = view.series("learning_rate")
    if rates is None or rates.maximum is None or rates.count < 10:
        return None
    least = 0.3 * rates.maximum.value
    high = [point.step for point in rates.finite() if point.value >= least]
    return max(high, default=None)
