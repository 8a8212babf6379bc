"""Does it learn: values that are no numbers, zero loss, divergence, spikes, overfitting, scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from trainwarden.diagnosis.base import View, whole
from trainwarden.diagnosis.course import (
    Course,
    Direction,
    course,
    current_run,
    moved,
    unbroken,
)
from trainwarden.diagnosis.rl import is_rl
from trainwarden.diagnosis.text import figure, share
from trainwarden.metrics.series import Point, Series
from trainwarden.metrics.trend import trend
from trainwarden.records.finding import Finding, Severity

LOSSES = ("loss", "eval_loss", "train_loss_total", "perplexity", "eval_perplexity")
ALPHA = 0.001
"""Level of the tests: a run is looked at many times, so each look may err only rarely."""


def detect_nan(view: View) -> Iterator[Finding]:
    """A loss (train or evaluation) or gradient norm that is no number, since its first step."""
    for name in (*LOSSES, "grad_norm", "reward", "kl"):
        series = view.series(name)
        if series is None or not series.nonfinite or series.first_nonfinite is None:
            continue
        first = series.first_nonfinite
        recent = series.recent[-20:]
        bad = sum(not math.isfinite(point.value) for point in recent)
        now_bad = bool(recent) and not math.isfinite(recent[-1].value)
        if name == "grad_norm":
            severity = _bad_gradients(view, series)
            if severity is None:
                continue
        elif now_bad or bad >= 2:
            severity = Severity.CRITICAL
        else:
            severity = Severity.WARNING
        value = "nan" if math.isnan(first.value) else figure(first.value)
        now = "and is so now" if now_bad else f"and {bad} of the last {len(recent)} values are"
        yield Finding(
            kind="nan_loss",
            severity=severity,
            observations=view.cite(name, "first_nonfinite", "last"),
            since_step=whole(first.step),
            summary=f"{name} became {value} at step {figure(first.step)} {now}.",
            meaning="From the first such value on, weights updated with it can be lost for good.",
            alternatives=(
                "Learning rate too high for this model or batch",
                "A corrupt batch or label",
                "Overflow of a 16-bit format",
                "A failing GPU",
            ),
            first_action="Keep the last checkpoint from before that step; look at gradient norm, "
            "learning rate and data of the steps just before it.",
            evidence_type="observation",
            confidence=0.95,
        )


def _bad_gradients(view: View, series: Series) -> Severity | None:
    """Single overflows belong to dynamic loss scaling; a stretch up to now does not."""
    recent = [math.isfinite(point.value) for point in series.recent[-10:]]
    if len(recent) >= 3 and not any(recent[-3:]):
        loss = view.series("loss")
        if loss and loss.last and (loss.last.value == 0 or not math.isfinite(loss.last.value)):
            return Severity.CRITICAL
        return Severity.WARNING
    return Severity.INFO


def detect_zero_loss(view: View) -> Iterator[Finding]:
    """A loss of exactly 0, with no gradient where gradients are logged."""
    loss = view.series("loss")
    if loss is None or is_rl(view):
        return
    stretch = unbroken(loss, lambda value: value == 0)
    zeros = len(stretch)
    norms = view.series("grad_norm")
    if zeros < (3 if norms else 5):
        return
    fell = _fell_at_once(loss, zeros)
    least = TINY if fell else 0.0
    if norms and any(point.value > least for point in norms.recent[-min(zeros, 3) :]):
        return
    gradient = " with a gradient norm of next to 0 or nan" if norms else ""
    yield Finding(
        kind="zero_loss",
        severity=Severity.CRITICAL,
        observations=(*view.cite("loss", "last"), *view.cite("grad_norm", "last")),
        since_step=whole(stretch[0].step),
        summary=f"The loss is exactly 0 in the last {zeros} values{gradient}: nothing is learnt.",
        meaning="No target contributes to the loss, or overflow made every step void.",
        alternatives=(
            "All labels are masked (a template that does not fit the tokenizer)",
            "16-bit overflow that the trainer prints as 0",
            "The model was loaded broken",
        ),
        first_action="Count the unmasked labels of one batch and compute its loss in fp32.",
        evidence_type="observation",
        confidence=0.95,
    )


def _fell_at_once(loss: Series, zeros: int) -> bool:
    """Whether the value before the zeros was that of a model that still had to learn."""
    before = [point.value for point in loss.points()[:-zeros]]
    return bool(before) and before[-1] > 0.05


TINY = 1e-3
"""A gradient norm up to this beside a loss that fell to exactly 0 at once is that of no loss."""


def indicator_series(view: View) -> tuple[str, Direction, Series] | None:
    """The key indicator (else the loss) with its direction."""
    if view.indicator is not None:
        found = view.series(view.indicator.quantity)
        if found is not None:
            return view.indicator.quantity, view.indicator.direction, found
    found = view.series("loss")
    return ("loss", "decrease", found) if found is not None else None


def baseline_of(view: View, name: str) -> float | None:
    """The loss of a model that learnt nothing: ln(vocabulary) or ln(classes), if known."""
    for size in (view.facts.num_classes, view.facts.vocab_size):
        if size and size > 1 and name in ("loss", "eval_loss"):
            return math.log(size)
    return None


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
    if len(found.points) < 20 and found.lost < 0.4 * found.gained:
        return None
    tail = [p for p in after if p.step >= found.best_step]
    moving = trend(tail[-60:], 0.01)
    if moving is not None and moving.direction == -found.sign:
        return None  # on its way back
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


def detect_spike(view: View) -> Iterator[Finding]:
    """A loss far outside what came before: recovered (info) or still up (warning)."""
    series = view.series("loss")
    if series is None or is_rl(view):
        return
    points = [p for p in current_run(series.recent) if math.isfinite(p.value)]
    if len(points) < 40:
        return
    from trainwarden.metrics.changepoint import spikes

    found = spikes(points, threshold=8.0)
    if not found:
        return
    last = found[-1]
    open_end = last.recovered_at is None
    value, usual = last.value, last.expected
    # Single batches scatter: what is still up must also tower over all that was logged before.
    before = [p.value for p in points if p.step < last.step]
    towering = value > 2 * usual and (not before or value > 1.5 * max(before))
    if open_end and not towering:
        return
    yield Finding(
        kind="loss_spike",
        severity=Severity.WARNING if open_end else Severity.INFO,
        observations=view.cite("loss", "last", "max"),
        since_step=whole(last.step),
        summary=f"loss rose to {figure(value)} at step {figure(last.step)} where "
        f"{figure(usual)} was usual; "
        + (
            "it has not come back yet."
            if open_end
            else f"it was back by step {figure(last.recovered_at)}."
        ),
        meaning="Spikes that recover are common in large runs; one that stays is divergence.",
        alternatives=("A hard or corrupt batch", "Too high a learning rate"),
        first_action="Watch a fixed number of steps before doing anything.",
        evidence_type="observation",
        confidence=0.8,
    )
