"""Runs that were resumed, and losses that are not scaled as they should be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from trainwarden.diagnosis.base import View, whole
from trainwarden.diagnosis.course import noise
from trainwarden.diagnosis.optimisation import baseline_of
from trainwarden.diagnosis.rl import is_rl
from trainwarden.diagnosis.text import figure
from trainwarden.metrics.reading import Reading
from trainwarden.metrics.series import Point
from trainwarden.records.finding import Finding, Severity

NEAR = 10
"""Points on either side of a resume that are compared."""


def _seams(reading: Reading, points: list[Point]) -> list[int]:
    """Where, among points in order of arrival, the run was taken up again."""
    marks = {event.offset for event in reading.events if event.kind == "resume"}
    seams = set()
    for index in range(1, len(points)):
        before, here = points[index - 1], points[index]
        if here.step < before.step or any(before.offset < m < here.offset for m in marks):
            seams.add(index)
    return sorted(seams)


def _within(points: list[Point], seam: int) -> bool:
    """Whether the log begins in the middle of a run, and what was resumed within it as well.

    Then all that it shows of the time before is beyond the checkpoint, at most by what is shown.
    """
    start, first = points[0].step, points[seam].step
    shown = max(point.step for point in points[:seam]) - start
    return start > 10 * max(shown, 1.0) and first >= start and shown > 0


def detect_bad_resume(view: View) -> Iterator[Finding]:
    """A loss that is far higher after a resume than it was before."""
    if is_rl(view):
        return
    for reading in view.readings:
        loss = reading.series.get("loss")
        if loss is None or loss.count < 8:
            continue
        points = [point for point in loss.points() if math.isfinite(point.value)]
        for seam in reversed(_seams(reading, points)):
            first = points[seam]
            # What it had reached at that step, not what was logged beyond the checkpoint.
            before = [p for p in points[:seam] if p.step <= first.step][-NEAR:]
            after = points[seam : seam + 5]
            if len(before) < 5 and _within(points, seam):
                before = points[:seam][-NEAR:]
            elif first.step <= points[0].step:
                continue
            if len(before) < 5 or len(after) < 3:
                continue
            old, new = median(p.value for p in before), median(p.value for p in after)
            begun = median(p.value for p in points[:3])
            if first.step <= points[0].step:
                begun = old + 4 * max(noise([p.value for p in before]), 0.05 * abs(old))
            scatter = noise([p.value for p in before])
            lost = new - old
            if lost < 6 * scatter or lost < 0.25 * (begun - old) or lost < 0.05 * abs(old):
                continue
            now = median(p.value for p in points[-5:])
            back = now <= old + 2 * scatter
            yield Finding(
                kind="bad_resume",
                severity=Severity.INFO if back else Severity.WARNING,
                observations=view.cite("loss", "last", "first"),
                since_step=whole(first.step),
                summary=f"The run was resumed at step {figure(first.step)} with a loss of "
                f"{figure(new)} where {figure(old)} had been reached (medians)"
                + (f"; it is back at {figure(now)} now." if back else "."),
                meaning="What was learnt before is not all there after the resume.",
                alternatives=(
                    "Weights or part of them (a head, an adapter) were not loaded",
                    "Optimizer state was lost, or the learning rate restarted high",
                    "The data order or mixture changed",
                ),
                first_action="Evaluate the checkpoint itself, without training, and compare with "
                "the loss before the interruption.",
                evidence_type="inference",
                confidence=0.7,
            )
            return


def detect_scaled_loss(view: View) -> Iterator[Finding]:
    """A loss that is a multiple of what it can be, by the number of accumulated batches."""
    steps, baseline = view.facts.accumulation, baseline_of(view, "loss")
    loss = view.series("loss")
    if loss is None or loss.first is None or baseline is None or not steps or steps < 2:
        return
    begun = [point for point in loss.points()[:5] if math.isfinite(point.value)]
    if len(begun) < 2 or is_rl(view):
        return
    level = median(point.value for point in begun)
    if level < 1.5 * baseline or not 0.1 * baseline < level / steps < 1.3 * baseline:
        return
    yield Finding(
        kind="accumulation_scaling",
        severity=Severity.WARNING,
        observations=view.cite("loss", "first", "last"),
        since_step=whole(begun[0].step),
        summary=f"loss began at {figure(level)}, more than the {figure(baseline)} of a uniform "
        f"guess; divided by the {figure(steps)} batches that are accumulated it would be "
        f"{figure(level / steps)}.",
        meaning="The loss is summed over accumulated batches instead of averaged, and so are the "
        "gradients: the effective learning rate is larger by that factor.",
        alternatives=(
            "Only what is printed is summed, and gradients are right",
            "A bad initialisation, or labels that the model cannot have",
        ),
        first_action="Compare loss and gradient norm of one step with and without accumulation "
        "at the same total batch.",
        evidence_type="inference",
        confidence=0.6,
    )
