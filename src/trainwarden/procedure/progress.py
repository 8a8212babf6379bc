"""What HEALTHY owes: progress beyond the baseline, by tests that the runtime made. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from trainwarden.metrics.indicator import direction_of
from trainwarden.records.assessment import Assessment, Criterion, KeyIndicator
from trainwarden.records.observation import Observation

BESIDE_BASELINE = 0.05
"""Level of the trend test where the loss already lies beyond what no learning would give."""
CROSS_ENTROPIES = ("loss", "eval_loss")


def progress_complaints(
    assessment: Assessment,
    observations: Mapping[str, Observation],
    criteria: Sequence[Criterion],
    runtime: KeyIndicator | None = None,
) -> list[str]:
    """Why HEALTHY does not stand: cited progress of the indicator, tested, beyond the baseline.

    Never by one point against another: by the sealed observation `course` of the indicator, which
    comes from tests with a stated error rate.
    """
    indicator = assessment.indicator
    name = indicator.quantity
    figures = {o.stat: o for o in observations.values() if o.quantity == name}
    course = figures.get("course")
    shown = [observations[cited] for cited in assessment.progress if cited in observations]
    if not any(item.quantity == name for item in shown):
        return [
            f"HEALTHY: progress must cite observations of {name} that show it "
            "beyond the baseline; a process that lives and a GPU that is busy show nothing"
        ]
    if course is None:
        tested = dict.fromkeys(o.quantity for o in observations.values() if o.stat == "course")
        return [
            f"HEALTHY: {name} is no measure of learning that was tested (others are not, nor those "
            "with too few points); tested were: "
            + (", ".join(tested) or "none, so the status is another one")
        ]
    better = direction_of(name)
    if runtime is not None and runtime.quantity == name:
        better = runtime.direction
    if indicator.direction != better:
        return [
            f"HEALTHY: {name} has not moved as it should: progress is to {better} here, "
            f"not to {indicator.direction}"
        ]
    last = _number(figures.get("last"))
    if last is not None and not math.isfinite(last):
        return [f"HEALTHY: the last {name} is no finite number [{figures['last'].id}]"]
    baseline = _baseline(name, criteria)
    level = _number(figures.get("median_recent"), figures.get("last"))
    if baseline is not None and level is not None and level >= float(baseline.value):
        return [
            f"HEALTHY: {name} is not beyond the baseline {float(baseline.value):.4g} "
            f"[{baseline.id}], what a uniform guess would give; choose another status"
        ]
    wanted = "falling" if better == "decrease" else "rising"
    if course.value == wanted or (baseline is not None and _trend(figures, better)):
        return []
    return [
        f"HEALTHY: {name} has not moved in the direction {better!r} by the runtime's tests "
        f"({course.value} [{course.id}]); choose another status"
    ]


def _trend(figures: Mapping[str, Observation], better: str) -> bool:
    slope, chance = _number(figures.get("trend_slope")), _number(figures.get("trend_p"))
    if slope is None or chance is None:
        return False
    return chance < BESIDE_BASELINE and (slope < 0) is (better == "decrease") and slope != 0


def _baseline(name: str, criteria: Iterable[Criterion]) -> Criterion | None:
    if name not in CROSS_ENTROPIES:
        return None
    return next((c for c in criteria if c.name == "baseline_loss"), None)


def _number(*items: Observation | None) -> float | None:
    for item in items:
        if item is not None and isinstance(item.value, (int, float)):
            return float(item.value)
    return None
