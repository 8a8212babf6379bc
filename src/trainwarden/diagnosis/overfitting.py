"""Does what is learnt hold beyond the training data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from trainwarden.diagnosis.base import View, whole
from trainwarden.diagnosis.course import course, even, moved
from trainwarden.diagnosis.text import figure
from trainwarden.metrics.series import Series
from trainwarden.metrics.trend import trend
from trainwarden.records.finding import Finding, Severity


def detect_overfitting(view: View) -> Iterator[Finding]:
    """Evaluation loss rising for good while the training loss does not."""
    evaluation, training = view.series("eval_loss"), view.series("loss")
    if evaluation is None or training is None:
        return
    points = even(evaluation)
    if apart := _far_apart(view, evaluation, training):
        yield apart
        return
    if len(points) < 6:
        return
    best = min(range(len(points)), key=lambda i: points[i].value)
    after = points[best + 1 :]
    if len(after) < 3:
        return
    found = course(evaluation, "decrease")
    scatter = found.noise if found else 0.0
    low = points[best].value
    last = sorted(p.value for p in after[-3:])[1]
    rise = last - low
    if rise < max(3 * scatter, 0.02 * abs(low)) or min(p.value for p in after[-3:]) <= low:
        return
    moving = trend(points[best:], 0.05)
    monotone = all(b.value > a.value for a, b in pairwise(after))
    if not (monotone or (moving is not None and moving.direction == 1)):
        return
    since = [p for p in even(training) if p.step >= points[best].step]
    if len(since) < 3 or moved(since, 0.05) == 1:
        return  # where the training loss rises as well, the run diverges
    yield Finding(
        kind="overfitting",
        severity=Severity.WARNING,
        observations=(*view.cite("eval_loss", "min", "last"), *view.cite("loss", "last")),
        since_step=whole(points[best].step),
        summary=f"eval_loss was lowest ({figure(low)}) at step {figure(points[best].step)} and is "
        f"{figure(points[-1].value)} now, while the training loss did not rise.",
        meaning="The model learns the training set by heart; later checkpoints are worse.",
        alternatives=(
            "Training and evaluation data differ in kind",
            "Calibration worsens while accuracy still improves",
        ),
        first_action="Take the checkpoint of the lowest evaluation loss; check accuracy as well.",
        evidence_type="inference",
        confidence=0.7,
    )


def _far_apart(view: View, evaluation: Series, training: Series) -> Finding | None:
    """By heart from the first epochs on: nearly all right in training, mostly wrong elsewhere."""
    right, held = view.series("accuracy"), view.series("eval_accuracy")
    if right is None or held is None or not 4 <= held.count < 50:
        return None
    last = [series.recent[-3:] for series in (right, held, training, evaluation)]
    if any(len(points) < 3 for points in last):
        return None
    seen, other, low, high = ([point.value for point in points] for points in last)
    part = 100.0 if max(seen) > 1.5 else 1.0
    if min(seen) < 0.95 * part or max(other) > min(seen) - 0.4 * part:
        return None
    if min(high) < 10 * max(low) or min(high) <= min(p.value for p in evaluation.points()[:-3]):
        return None
    return Finding(
        kind="overfitting",
        severity=Severity.WARNING,
        observations=(*view.cite("eval_loss", "last"), *view.cite("loss", "last")),
        since_step=whole(last[1][0].step),
        summary=f"Accuracy is {figure(seen[-1])} in training and {figure(other[-1])} in "
        f"evaluation, and eval_loss ({figure(high[-1])}) is many times the loss "
        f"({figure(low[-1])}).",
        meaning="The model knows the training set by heart and little else.",
        alternatives=(
            "Training and evaluation data differ in kind",
            "Evaluation prepares its data another way, or runs the model in another mode",
        ),
        first_action="Evaluate on a part of the training set: if that is bad as well, it is the "
        "evaluation.",
        evidence_type="inference",
        confidence=0.65,
    )
