from __future__ import annotations

import math

import pytest

from trainwarden.procedure.compare import calibrate, compare, matters
from trainwarden.records.assessment import KeyIndicator
from trainwarden.records.observation import Observation, Trust
from trainwarden.records.prediction import Prediction


def predicted(name: str = "P1", quantity: str = "loss", **fields: object) -> Prediction:
    return Prediction(id=name, quantity=quantity, level=0.9, basis="test", **fields)


def seen(name: str, value: object, quantity: str = "loss", **fields: object) -> Observation:
    fields.setdefault("trust", Trust.LOG)
    return Observation(id=name, quantity=quantity, value=value, source="log", **fields)


@pytest.mark.parametrize(
    ("value", "outcome", "miss"),
    [
        (1.0, "held", None),
        (2.0, "held", None),
        (2.5, "missed", 0.5),
        (0.0, "missed", 1.0),
        (math.nan, "missed", math.inf),
        ("nonsense", "missed", None),
    ],
)
def test_interval(value: object, outcome: str, miss: float | None) -> None:
    (comparison,) = compare([predicted(low=1.0, high=2.0)], [seen("E1", value)])
    assert (comparison.outcome, comparison.miss) == (outcome, miss)


def test_sets_tell_true_from_one() -> None:
    prediction = predicted(quantity="process.alive", one_of=(True,))
    held = compare([prediction], [seen("E1", True, "process.alive")])[0]
    missed = compare([prediction], [seen("E1", False, "process.alive")])[0]
    assert (held.outcome, missed.outcome) == ("held", "missed")


def test_unobserved_is_no_miss() -> None:
    (comparison,) = compare([predicted(low=1, high=2)], [seen("E1", 1, "step")])
    assert comparison.outcome == "unobserved"


def test_the_more_trusted_source_is_believed() -> None:
    observations = [
        seen("E1", 100.0, trust=Trust.TRACKER),
        seen("E2", 1.5, trust=Trust.LOG),
    ]
    assert compare([predicted(low=1, high=2)], observations)[0].observation == "E2"


def test_without_a_subject_the_worst_counts() -> None:
    observations = [
        seen("E1", 0.9, "gpu.power_share", subject="GPU 0"),
        seen("E2", 0.1, "gpu.power_share", subject="GPU 1"),
    ]
    prediction = predicted(quantity="gpu.power_share", low=0.5, high=1.0)
    (comparison,) = compare([prediction], observations)
    assert (comparison.observation, comparison.outcome) == ("E2", "missed")


def test_what_matters() -> None:
    indicator = KeyIndicator(quantity="loss", direction="decrease", why="only one")
    near, far = compare(
        [predicted(low=1, high=2), predicted("P2", low=1, high=2, stat="max")],
        [seen("E1", 2.1), seen("E2", 9.0, stat="max")],
    )
    assert not matters(near, indicator)
    assert matters(far, indicator)
    assert not matters(far, None)
    (gone,) = compare(
        [predicted(quantity="process.alive", one_of=(True,))], [seen("E1", False, "process.alive")]
    )
    assert matters(gone, None)


def test_calibration_adds_up() -> None:
    predictions = [predicted(low=1, high=2), predicted("P2", "step", low=0, high=10)]
    first = calibrate({}, predictions, compare(predictions, [seen("E1", 3.0)]))
    second = calibrate(
        first, predictions, compare(predictions, [seen("E1", 1.5), seen("E2", 5, "step")])
    )
    assert (second["loss"].made, second["loss"].held, second["loss"].missed) == (2, 1, 1)
    assert second["loss"].expected == pytest.approx(1.8)
    assert second["loss"].miss_total == pytest.approx(1.0)
    assert (second["step"].unobserved, second["step"].held) == (1, 1)
    assert first["loss"].made == 1, "the earlier record is not changed"
