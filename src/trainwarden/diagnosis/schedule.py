"""Whether steps change the model at all: the loss scale and the learning rate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from trainwarden.diagnosis.base import View, whole
from trainwarden.diagnosis.course import unbroken
from trainwarden.diagnosis.text import figure
from trainwarden.records.finding import Finding, Severity


def detect_loss_scale(view: View) -> Iterator[Finding]:
    """A dynamic loss scale that has collapsed."""
    series = view.series("loss_scale")
    if series is None or series.last is None or series.maximum is None or series.count < 5:
        return
    last, top = series.last.value, series.maximum.value
    if not math.isfinite(last) or last > 1 or last <= 0 or top < 64 * last:
        return
    recent = [p.value for p in series.recent[-5:]]
    if any(b > a for a, b in pairwise(recent)):
        return
    yield Finding(
        kind="loss_scale",
        severity=Severity.CRITICAL,
        observations=view.cite("loss_scale", "last", "max"),
        since_step=whole(series.last.step),
        summary=f"The loss scale fell from {figure(top)} to {figure(last)}.",
        meaning="Every step overflows: with the scale at its floor nothing is learnt.",
        alternatives=("The weights are already NaN", "16-bit range is too small for this model"),
        first_action="Find the first non-finite loss or gradient; try bf16 from the checkpoint "
        "before it.",
        evidence_type="observation",
        confidence=0.9,
    )


def detect_lr(view: View) -> Iterator[Finding]:
    """A learning rate that is 0 (or negative) long before the run's end."""
    series = view.series("learning_rate")
    step, total = view.step, view.total_steps
    if series is None or series.count < 10 or series.last is None:
        return
    stretch = unbroken(series, lambda value: value <= 0)
    if len(stretch) < 10:
        return
    ending = total is not None and step is not None and step >= 0.9 * total
    if ending or view.ended == "finished" or total is None:
        return
    yield Finding(
        kind="lr_schedule",
        severity=Severity.WARNING,
        observations=view.cite("learning_rate", "last"),
        since_step=whole(stretch[0].step),
        summary=f"The learning rate is {figure(series.last.value)} for at least ten values, at "
        f"step {figure(step)} of {figure(total)}.",
        meaning="Without a learning rate no step changes the model.",
        alternatives=(
            "The schedule is shorter than the run",
            "Steps skipped by the loss scaler never advance the schedule",
            "The log rounds a small rate to 0",
        ),
        first_action="Compute the schedule from the config for this step and compare.",
        evidence_type="observation",
        confidence=0.8,
    )


def detect_no_rate(view: View) -> Iterator[Finding]:
    """A learning rate of 0 at every step from the first, with no gradient or no progress."""
    rate, loss = view.series("learning_rate"), view.series("loss")
    if rate is None or rate.count < 5 or rate.maximum is None or rate.maximum.value > 0:
        return
    norms = view.series("grad_norm")
    dead = norms is not None and not any(p.value > 0 for p in norms.points())
    skipped = loss is not None and loss.count >= 5 and all(p.value == 0 for p in loss.recent)
    if not (dead or skipped):
        return  # many a log rounds a small rate to 0
    yield Finding(
        kind="lr_schedule",
        severity=Severity.WARNING,
        observations=(*view.cite("learning_rate", "last"), *view.cite("grad_norm", "last")),
        since_step=whole(rate.first.step if rate.first else None),
        summary=f"The learning rate is 0 in all {rate.count} values, "
        + ("and so is the gradient norm." if dead else "and so is the loss."),
        meaning="No step has changed the model since the run began.",
        alternatives=(
            "Every step overflows and is skipped, so that the schedule never advances",
            "The schedule was built for no steps",
        ),
        first_action="Count optimizer steps that were skipped; print the schedule's first values.",
        evidence_type="observation",
        confidence=0.8,
    )
