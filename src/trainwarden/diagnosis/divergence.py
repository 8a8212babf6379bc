"""A loss that left the level it had reached, by robust statistics of its whole course.

Gradient norms bear a doubtful rise of the loss out; alone they never alarm.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from trainwarden.diagnosis.base import View, whole
from trainwarden.diagnosis.course import LEAST_APART, Course, Direction, course, moved
from trainwarden.diagnosis.optimisation import baseline_of, indicator_series
from trainwarden.diagnosis.rl import is_rl
from trainwarden.diagnosis.text import figure, share
from trainwarden.metrics.series import Point
from trainwarden.metrics.trend import trend
from trainwarden.records.finding import Finding, Severity

ALPHA = 0.001
"""Level of the tests: a run is looked at many times, so each look may err only rarely."""
ALPHA_LEFT = 0.004
"""Level of the test that a level was left; size and duration are asked for besides."""


def detect_divergence(view: View) -> Iterator[Finding]:
    """A loss that left the level it had reached and does not come back."""
    names = {"loss"}
    if (main := indicator_series(view)) is not None:
        names.add(main[0])
    for name in sorted(names):
        series = view.series(name)
        direction: Direction = "decrease"
        if main is not None and name == main[0]:
            direction = main[1]
        if series is None or (name == "loss" and is_rl(view)) or name == "eval_loss":
            continue
        found = course(series, direction)
        if found is None:
            continue
        finding = (
            _left_its_level(view, name, found)
            or _turned_around(view, name, found)
            or _went_wrong_at_once(view, name, found)
        )
        if finding is not None:
            yield finding
            return


def _left_its_level(view: View, name: str, found: Course) -> Finding | None:
    after = found.points[found.best_index + 1 :]
    if len(after) < 3 or found.gained <= 0:
        return None
    # The last points all stand clearly above the best level: by the noise, by the gain, and by
    # how far this run's level had wandered back before without being lost.
    margin = max(5 * found.noise, 0.25 * found.gained, 2.5 * found.drawdown)
    worst_recent = min(found.sign * (point.value - found.best) for point in found.recent_points)
    if found.lost < margin or worst_recent < 0.5 * margin:
        return None
    borne_out = _gradients_grew(view, found)
    if len(found.points) < YOUNG and not borne_out and not _beyond_doubt(found):
        return None
    tail = [p for p in after if p.step >= found.best_step]
    moving = trend(tail[-60:], 0.01)
    if moving is not None and moving.direction == -found.sign:
        return None  # on its way back
    # Noise that wanders slowly leaves its level as well: told by tests that are safe against it.
    width = len(found.recent_points)
    path = found.points[max(0, found.best_index - width) :]
    if not borne_out and moved(path, ALPHA_LEFT) != found.sign:
        return None
    lost = found.lost / found.gained
    above = baseline_of(view, name)
    over = above is not None and found.recent >= above
    critical = lost >= 0.5 or over
    reinforced = is_rl(view)
    since = _onset(found, after, margin)
    return Finding(
        kind="divergence",
        severity=Severity.CRITICAL if critical and not reinforced else Severity.WARNING,
        observations=_course_citations(view, name),
        since_step=whole(since.step),
        summary=f"{name} had reached {figure(found.best)} about step {figure(found.best_step)} "
        f"and stands at {figure(found.recent)} now (median of the last "
        f"{len(found.recent_points)} values): {share(min(lost, 99))} of what had been gained is "
        "lost, and it does not come back.",
        meaning="The optimizer left the region it had found; steps from here on rarely repair it.",
        alternatives=(
            "A change of data (new shard, curriculum, another mixture) rather than of the weights",
            "A resumed or restarted learning-rate schedule",
            "A failing device that corrupts gradients",
        ),
        first_action="Keep the checkpoint nearest to the best level safe, then compare learning "
        "rate, gradient norm and data just before the rise.",
        evidence_type="inference",
        confidence=0.7,
    )


YOUNG = 50
"""Fewer points do not tell yet how far a loss wanders by itself."""


def _beyond_doubt(found: Course) -> bool:
    """Worse than at its very start: a loss that wanders back to where it began is not lost yet,
    and of few points a slow wave looks like a fall and a rise."""
    if found.net >= -max(3 * found.noise, 0.1 * found.gained):
        return False
    return len(found.points) >= LEAST_APART or found.lost >= 1.5 * found.gained


def _gradients_grew(view: View, found: Course) -> bool:
    """Whether gradients are twice what they were up to the best level. Alone that says nothing:
    they scatter by orders of magnitude."""
    norms = view.series("grad_norm")
    if norms is None or found.lost < 0.4 * found.gained:
        return False
    usual = [p.value for p in norms.finite() if p.step <= found.best_step]
    now = [p.value for p in norms.finite() if p.step >= found.recent_points[0].step]
    return len(usual) >= 3 and len(now) >= 3 and median(now) > 2 * median(usual) > 0


def _onset(found: Course, after: list[Point], margin: float) -> Point:
    """The first point of the rise that was not taken back."""
    worse = [found.sign * (point.value - found.best) for point in after]
    # Medians of five: single values scatter to either side.
    levels = [median(worse[max(0, i - 2) : i + 3]) for i in range(len(worse))]
    high = len(levels) - 1
    while high > 0 and levels[high - 1] > 0.5 * margin:
        high -= 1
    # Down from there to where it had last been at its usual level.
    usual = max(found.noise, 0.02 * margin)
    while high > 0 and worse[high - 1] > usual:
        high -= 1
    return after[high]


def _turned_around(view: View, name: str, found: Course) -> Finding | None:
    """In a short log: ever better at first, then ever worse for at least three points."""
    values = [found.sign * point.value for point in found.points]
    if len(values) > 24 or is_rl(view):
        return None
    low = min(range(len(values)), key=lambda i: values[i])
    fall, rise = values[: low + 1], values[low:]
    if len(fall) < 3 or len(rise) < 4:
        return None
    gained, lost = fall[0] - fall[-1], rise[-1] - rise[0]
    backwards = max((b - a for a, b in pairwise(fall)), default=0.0)
    if any(b <= a for a, b in pairwise(rise)):
        return None
    if lost < 0.4 * gained or lost < 3 * max(backwards, 0.0) or gained <= 3 * backwards:
        return None
    # What had hardly been gained was not lost: the first steps of a warm-up go up and down.
    if gained < 0.25 * abs(fall[0]):
        return None
    best = found.points[low]
    return Finding(
        kind="divergence",
        severity=Severity.CRITICAL,
        observations=view.cite(name, "min" if found.sign > 0 else "max", "last"),
        since_step=whole(found.points[low + 1].step),
        summary=f"{name} was best ({figure(best.value)}) at step {figure(best.step)} and has been "
        f"worse at each of the {len(rise) - 1} points since, up to "
        f"{figure(found.points[-1].value)}.",
        meaning="The optimizer left the region it had found; steps from here on rarely repair it.",
        alternatives=(
            "Learning rate too high once the warm-up was over",
            "A change of data rather than of the weights",
        ),
        first_action="Keep the checkpoint nearest to the best point safe, then compare learning "
        "rate and gradient norm just before the rise.",
        evidence_type="inference",
        confidence=0.6,
    )


def _went_wrong_at_once(view: View, name: str, found: Course) -> Finding | None:
    """Never better than at the start, and clearly worse now."""
    # Rewards sink for long while a policy finds its way: that is for the status to weigh.
    if len(found.points) < 12 or found.net >= 0 or is_rl(view):
        return None
    rise = -found.net
    if rise < max(5 * found.noise, 0.1 * abs(found.early)) or found.lost < rise * 0.8:
        return None
    if moved(found.points, ALPHA) != found.sign:
        return None
    return Finding(
        kind="divergence",
        severity=Severity.CRITICAL,
        observations=_course_citations(view, name),
        since_step=whole(found.points[0].step),
        summary=f"{name} has moved the wrong way since the start: {figure(found.early)} at first, "
        f"{figure(found.recent)} now (medians).",
        meaning="The updates make the model worse: too large a step, a wrong sign or wrong data.",
        alternatives=(
            "Learning rate too high or warm-up missing",
            "The objective or its sign is wrong",
            "A schedule that makes the data harder",
        ),
        first_action="Compare with a short run at a tenth of the learning rate from the same "
        "start.",
        evidence_type="inference",
        confidence=0.65,
    )


def _course_citations(view: View, name: str) -> tuple[str, ...]:
    return view.cite(name, "best", "median_recent", "last")
