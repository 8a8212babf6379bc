"""Trend tests: error rates by simulation, power on real shapes of curves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwarden.metrics.trend import (
    BLOCKS,
    LEAST,
    autocorrelation,
    blocks,
    mann_kendall,
    opening_run,
    progress,
    ranks,
    sign_test,
    t_quantile,
    t_two_sided,
    theil_sen,
    trend,
)


def ar1(rng: np.random.Generator, n: int, phi: float, runs: int) -> np.ndarray:
    """Stationary AR(1) noise, one run a row."""
    noise = rng.normal(size=(runs, n + 100))
    out = np.empty_like(noise)
    out[:, 0] = noise[:, 0] / math.sqrt(1 - phi * phi)
    for i in range(1, n + 100):
        out[:, i] = phi * out[:, i - 1] + noise[:, i]
    return out[:, 100:]


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8, 0.9])
@pytest.mark.parametrize(("n", "runs"), [(12, 150), (40, 100), (150, 50)])
def test_false_positives_stay_below_the_stated_level(n: int, runs: int, phi: float) -> None:
    alpha = 0.05
    series = ar1(np.random.default_rng(n), n, phi, runs)
    found = [trend(list(enumerate(row)), alpha) for row in series]
    rate = sum(one is not None and one.direction != 0 for one in found) / runs
    # Two standard errors for the finite number of runs.
    assert rate <= alpha + 2 * math.sqrt(alpha * (1 - alpha) / runs)


@pytest.mark.parametrize(
    "shape",
    [
        lambda s: 2 + 5 * s**-0.5,
        lambda s: 3 - 0.2 * np.log(s),
        lambda s: 2 + 2 * np.exp(-s / 20),
        lambda s: 1 - s / 200,
    ],
)
def test_sees_curves_of_losses(shape: object) -> None:
    steps = np.arange(1, 101, dtype=float)
    level = shape(steps)  # type: ignore[operator]
    noise = np.random.default_rng(3).normal(size=100) * 0.03 * np.ptp(level)
    found = progress(list(zip(steps * 10, level + noise, strict=True)), "decrease")
    assert found.verdict == "yes"
    assert found.trend is not None
    assert found.trend.slope < 0
    assert found.trend.slope_low <= found.trend.slope <= found.trend.slope_high


def test_no_progress_says_what_would_have_been_seen() -> None:
    rng = np.random.default_rng(5)
    found = progress([(i, v) for i, v in enumerate(rng.normal(3, 0.1, size=200))], "decrease")
    assert found.verdict == "no"
    assert found.trend is not None
    # A slope of the size called detectable is indeed found most of the time.
    slope = found.trend.detectable
    hits = 0
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(3, 0.1, size=200)
        hits += (
            progress([(i, v - slope * i) for i, v in enumerate(noise)], "decrease").verdict == "yes"
        )
    assert 20 <= hits <= 40
    assert "probability of 0.8" in found.remark


def test_the_wrong_way_is_told() -> None:
    rng = np.random.default_rng(5)
    points = [(i, 3 + 0.01 * i + rng.normal(0, 0.1)) for i in range(200)]
    assert progress(points, "decrease").verdict == "against"
    assert progress(points, "increase").verdict == "yes"


def test_few_or_constant_points_decide_nothing() -> None:
    assert progress([(i, -i) for i in range(LEAST - 1)], "decrease").verdict == "undecided"
    assert trend([(5, float(i)) for i in range(50)]) is None
    flat = trend([(i, 1.0) for i in range(50)])
    assert flat is not None
    assert (flat.direction, flat.p_value, flat.slope) == (0, 1.0, 0.0)
    assert trend([(i, math.nan) for i in range(50)]) is None


def test_students_t_against_tables() -> None:
    for t, dof, p in [(12.706, 1, 0.05), (2.776, 4, 0.05), (2.763, 28, 0.01), (1.96, 1e6, 0.05)]:
        assert t_two_sided(t, dof) == pytest.approx(p, rel=2e-3)
        assert t_quantile(1 - p, dof) == pytest.approx(t, rel=1e-3)


def test_mann_kendall_by_hand() -> None:
    found = mann_kendall([10, 22, 21, 30, 22, 30, 40, 41], correct=False)
    assert found.s == 22
    assert found.variance == pytest.approx((8 * 7 * 21 - 2 * (2 * 1 * 9)) / 18)
    assert sign_test([1, 2, 3, 4, 5, 6, 7]) == pytest.approx(2 / 2**6)
    assert list(ranks(np.array([3.0, 1.0, 3.0]))) == [2.5, 1.0, 2.5]
    assert list(autocorrelation(np.ones(9), 3)) == [0.0, 0.0, 0.0]


def test_theil_sen_ignores_outliers_and_refuses_one_step() -> None:
    values = [2.0 * i + 1 for i in range(30)]
    values[7] = 1e9
    line = theil_sen(list(range(30)), values)
    assert line.slope == pytest.approx(2.0)
    assert line.low <= 2.0 <= line.high
    with pytest.raises(ValueError, match="different steps"):
        theil_sen([1, 1, 1], [1, 2, 3])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=8, max_size=40), st.floats(0.1, 10), st.floats(-5, 5)
)
def test_trend_does_not_depend_on_units(values: list[float], scale: float, shift: float) -> None:
    rounded = [float(round(v, 2)) for v in values]
    plain = mann_kendall(rounded, correct=False)
    turned = mann_kendall([-v for v in rounded], correct=False)
    assert turned.s == -plain.s
    assert turned.p_value == pytest.approx(plain.p_value)
    found = trend([(i * scale + shift, v) for i, v in enumerate(rounded)])
    assert found is not None
    assert 0 <= found.p_value <= 1
    assert found.detectable >= 0


def test_long_series_are_gathered() -> None:
    x, y = blocks([(i, i % 2) for i in range(10_001)])
    assert len(x) == len(y) == BLOCKS
    assert np.all(np.diff(x) > 0)


@pytest.mark.parametrize("scale", [4, 6, 10])
def test_sees_short_curves_that_fall_steeply_and_lie_flat(scale: float) -> None:
    hits = 0
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(0, 0.01, 34)
        values = 1 + 2 * np.exp(-np.arange(34) / scale) + noise
        hits += progress(list(enumerate(values)), "decrease").verdict == "yes"
    assert hits >= 16


@pytest.mark.parametrize("phi", [0.0, 0.9, 0.97])
def test_opening_runs_are_as_rare_as_said(phi: float) -> None:
    series = ar1(np.random.default_rng(8), 40, phi, 4000)
    for alpha in (0.05, 0.01):
        found = sum(opening_run(row, row[1] - row[0]) <= alpha for row in series) / len(series)
        assert found <= alpha
    assert opening_run([5, 4, 3, 2, 1], -1) == 2 / 2**4
    assert opening_run([5, 6, 3, 2, 1], -1) == 1
