"""Each prediction against its observation: pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from trainwarden.records.assessment import KeyIndicator
from trainwarden.records.observation import Observation
from trainwarden.records.prediction import Calibration, Comparison, Prediction


def compare(
    predictions: Iterable[Prediction], observations: Iterable[Observation]
) -> tuple[Comparison, ...]:
    """Hold each prediction against the most trusted observation of its quantity.

    A prediction without a subject is about all subjects: the worst one counts.
    """
    observed = list(observations)
    return tuple(_one(prediction, observed) for prediction in predictions)


def _one(prediction: Prediction, observed: list[Observation]) -> Comparison:
    matching = [
        item
        for item in observed
        if item.quantity == prediction.quantity
        and item.stat == prediction.stat
        and prediction.subject in (None, item.subject)
    ]
    if not matching:
        return Comparison(
            prediction=prediction.id,
            quantity=prediction.quantity,
            observation=None,
            actual=None,
            outcome="unobserved",
            remark="no source gave this quantity",
        )
    best = max(item.trust for item in matching)
    trusted = [item for item in matching if item.trust == best]
    # Of several readings of one subject (a metric in several files) the last step speaks.
    latest = {item.subject: item for item in sorted(trusted, key=lambda item: item.step or 0)}
    judged = [(item, *_miss(prediction, item)) for item in latest.values()]
    item, held, miss = max(judged, key=lambda one: (not one[1], one[2] or 0.0))
    return Comparison(
        prediction=prediction.id,
        quantity=prediction.quantity,
        observation=item.id,
        actual=item.value,
        outcome="held" if held else "missed",
        miss=None if held else miss,
        remark="" if len(judged) == 1 else f"the worst of {len(judged)} subjects: {item.subject}",
    )


def _miss(prediction: Prediction, item: Observation) -> tuple[bool, float | None]:
    value = item.value
    if prediction.one_of is not None:
        return any(_same(value, option) for option in prediction.one_of), None
    if isinstance(value, str):
        return False, None
    if math.isnan(value):
        return False, math.inf
    low = -math.inf if prediction.low is None else prediction.low
    high = math.inf if prediction.high is None else prediction.high
    if low <= value <= high:
        return True, None
    distance = low - value if value < low else value - high
    width = high - low
    return False, distance / width if 0 < width < math.inf else None


def _same(value: object, option: object) -> bool:
    if isinstance(value, bool) or isinstance(option, bool):
        return value is option
    if isinstance(value, float) and isinstance(option, float) and math.isnan(value):
        return math.isnan(option)
    return value == option


def matters(comparison: Comparison, indicator: KeyIndicator | None) -> bool:
    """Whether a deviation would change the assessment.

    It does when a set was left (a process gone, a run ended), or when the key indicator lies on
    the bad side of its interval. A number of another quantity a little outside does not.
    """
    if comparison.outcome != "missed":
        return False
    if comparison.quantity in {"process.alive", "log.ended", "gpu.count", "gpu.readable"}:
        return True
    if indicator is None or comparison.quantity != indicator.quantity:
        return False
    return comparison.miss is None or comparison.miss > 1.0


def calibrate(
    calibration: Mapping[str, Calibration],
    predictions: Iterable[Prediction],
    comparisons: Iterable[Comparison],
) -> dict[str, Calibration]:
    """The record of all predictions so far, with these added."""
    levels = {prediction.id: prediction.level for prediction in predictions}
    counts = {name: count.model_copy() for name, count in calibration.items()}
    for comparison in comparisons:
        count = counts.setdefault(comparison.quantity, Calibration())
        count.made += 1
        if comparison.outcome == "unobserved":
            count.unobserved += 1
            continue
        count.expected += levels[comparison.prediction]
        if comparison.outcome == "held":
            count.held += 1
        else:
            count.missed += 1
            if comparison.miss is not None and math.isfinite(comparison.miss):
                count.miss_total += comparison.miss
    return counts
