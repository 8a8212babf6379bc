"""Courses of learning rates told from what was logged, exactly where nothing else fits."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwarden.metrics.schedule import learning_rate_at
from trainwarden.metrics.schedule_fit import fitted_rate


def logged(
    rate: Callable[[float], float], until: int, every: int = 10
) -> list[tuple[float, float]]:
    """Rates as printed: four significant digits."""
    return [(float(s), float(f"{rate(s):.3e}")) for s in range(every, until + 1, every)]


COURSES: dict[str, Callable[[float], float]] = {
    "linear": lambda s: learning_rate_at(s, 3e-4, 2000, 100, "linear") or 0.0,
    "cosine": lambda s: learning_rate_at(s, 3e-4, 2000, 100, "cosine") or 0.0,
    "cosine to a tenth": lambda s: learning_rate_at(s, 3e-4, 2000, 100, "cosine", 3e-5) or 0.0,
    "inverse square root": lambda s: learning_rate_at(s, 3e-4, None, 100, "inverse_sqrt") or 0.0,
    "exponential": lambda s: 3e-4 * 0.999**s,
}


@pytest.mark.parametrize("name", COURSES)
@pytest.mark.parametrize("seen", [800, 1200, 1500])
def test_what_follows_lies_inside_and_little_else_does(name: str, seen: int) -> None:
    rate = COURSES[name]
    at = seen * 1.25
    found = fitted_rate(logged(rate, seen), at, at)
    assert found is not None
    interval, rises = found
    assert not rises
    assert interval.low <= rate(at) <= interval.high
    assert interval.width < 0.15 * 3e-4


def test_a_rise_is_said_to_be_one() -> None:
    found = fitted_rate(logged(lambda s: 1e-6 * s, 100), 150, 160)
    assert found is not None
    interval, rises = found
    assert rises
    assert interval.low <= 1.5e-4
    assert 1.6e-4 <= interval.high < 1.75e-4


def test_what_follows_no_schedule_fits_none() -> None:
    assert fitted_rate([(s, 1e-3) for s in range(50)], 600, 600) is None
    assert fitted_rate(logged(lambda s: 1e-3 * (1.5 + math.sin(s)), 500), 600, 600) is None
    assert fitted_rate([(1, 1e-3), (2, 5e-4)], 3, 3) is None
    assert fitted_rate([], 3, 3) is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9999), st.floats(0, 1e6)), max_size=40),
    st.integers(0, 20_000),
)
def test_any_rates_give_an_ordered_interval(points: list[tuple[int, float]], at: int) -> None:
    found = fitted_rate(points, at, at + 10)
    if found is not None:
        interval, _ = found
        assert 0 <= interval.low <= interval.center <= interval.high
        assert math.isfinite(interval.high)
