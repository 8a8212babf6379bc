import math
import random

from support.views import reading, series
from trainwarden.diagnosis.derived import derived_observations
from trainwarden.records.assessment import KeyIndicator
from trainwarden.records.observation import Observation, Trust


def falling(n: int = 100) -> list[float]:
    rng = random.Random(4)
    return [4 - 0.02 * i + rng.gauss(0, 0.05) for i in range(n)]


def by_name(made: list[Observation]) -> dict[tuple[str, str], Observation]:
    return {(one.quantity, one.stat): one for one in made}


def test_course_of_the_indicator_can_be_cited_and_found_again() -> None:
    run = reading(series("score", falling(), every=5))
    indicator = KeyIndicator(quantity="score", direction="decrease", why="it is what counts")
    made = by_name(derived_observations([run], [], indicator))
    slope = made["score", "trend_slope"]
    assert abs(float(slope.value) + 0.004) < 0.0005
    assert float(made["score", "trend_low"].value) < float(slope.value)
    assert float(made["score", "trend_high"].value) > float(slope.value)
    assert float(made["score", "trend_p"].value) < 0.01
    assert "Theil-Sen" in (slope.text or "")
    assert slope.trust is Trust.LOG
    assert slope.place.file == run.file
    assert slope.place.offset == run.series["score"].recent[-1].offset
    assert slope.step == 500
    assert float(made["score", "median_early"].value) > float(made["score", "median_recent"].value)


def test_pace_shift_is_told_as_a_factor_of_time() -> None:
    rng = random.Random(5)
    rate = [(1000 if i < 60 else 400) * math.exp(rng.gauss(0, 0.03)) for i in range(120)]
    made = by_name(derived_observations([reading(series("tokens_per_second", rate))], [], None))
    assert abs(float(made["tokens_per_second", "shift_ratio"].value) - 2.5) < 0.1
    assert abs((made["tokens_per_second", "shift_after"].step or 0) - 61) <= 2


def test_first_value_that_is_no_number_for_any_metric() -> None:
    run = reading(series("odd_metric", [1.0, 2.0, math.nan, 1.0, math.inf]))
    made = by_name(derived_observations([run], [], None))
    first = made["odd_metric", "first_nonfinite"]
    assert first.step == 3
    assert math.isnan(float(first.value))
    assert made["odd_metric", "nonfinite"].value == 2


def test_short_or_empty_metrics_give_nothing() -> None:
    assert derived_observations([reading(series("loss", [1.0, 0.9]))], [], None) == []
    assert derived_observations([], [], None) == []


def test_what_was_observed_already_is_not_repeated() -> None:
    run = reading(series("loss", falling()))
    first = derived_observations([run], [], None)
    assert first
    assert derived_observations([run], first, None) == []
