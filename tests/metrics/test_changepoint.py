"""Shifts and spikes: found where they are, and not where there are none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwarden.metrics.changepoint import (
    level_shift,
    level_shifts,
    resolution,
    spikes,
)


def ar1(rng: np.random.Generator, n: int, phi: float, runs: int) -> np.ndarray:
    noise = rng.normal(size=(runs, n + 100))
    out = np.empty_like(noise)
    out[:, 0] = noise[:, 0]
    for i in range(1, n + 100):
        out[:, i] = phi * out[:, i - 1] + noise[:, i]
    return out[:, 100:]


def step_times(rng: np.random.Generator, n: int, slow_from: int, factor: float = 2.0) -> np.ndarray:
    """Step times with a slow first step and pauses for evaluation, slower from `slow_from` on."""
    times = 1 + rng.gamma(2, 0.03, size=n)
    times[slow_from:] *= factor
    times[::17] *= 8
    times[0] = 30
    return times


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(("n", "runs"), [(24, 120), (100, 80), (1000, 25)])
def test_false_alarms_stay_below_the_stated_level(n: int, runs: int, phi: float) -> None:
    alpha = 0.05
    series = 100 + ar1(np.random.default_rng(7), n, phi, runs)
    rate = sum(level_shift(list(enumerate(row)), alpha, 0) is not None for row in series) / runs
    assert rate <= alpha + 2 * math.sqrt(alpha * (1 - alpha) / runs)


@pytest.mark.parametrize(("n", "slow"), [(60, 30), (200, 20), (1000, 20), (1000, 500)])
def test_doubled_step_times_are_found_where_they_begin(n: int, slow: int) -> None:
    found = 0
    for seed in range(20):
        times = step_times(np.random.default_rng(seed), n, n - slow)
        shift = level_shift([(10 * i, v) for i, v in enumerate(times)])
        if shift and abs(shift.step - 10 * (n - slow)) <= 20:
            found += 1
            assert shift.ratio == pytest.approx(2, rel=0.15)
            assert shift.n_after >= 0.9 * slow - 2
    assert found >= 17


def test_pauses_alone_are_no_shift() -> None:
    for seed in range(20):
        times = step_times(np.random.default_rng(seed), 300, 300)
        assert level_shift(list(enumerate(times))) is None


def test_recovery_shows_as_two_shifts() -> None:
    times = step_times(np.random.default_rng(1), 400, 400)
    times[150:250] *= 3
    down = level_shifts(list(enumerate(times)))
    assert [round(shift.ratio) for shift in down] == [3, 0]
    assert abs(down[0].step - 150) <= 2
    assert abs(down[1].step - 250) <= 2


def test_small_shifts_are_left_to_the_purpose() -> None:
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.normal(1, 0.01, 200), rng.normal(1.06, 0.01, 200)])
    points = list(enumerate(values))
    assert level_shift(points) is None
    small = level_shift(points, least=0.03)
    assert small is not None
    assert small.ratio == pytest.approx(1.06, abs=0.01)


def test_false_spikes_are_rare() -> None:
    rng = np.random.default_rng(3)
    false = sum(len(spikes(list(enumerate(3 + rng.normal(0, 0.1, 2000))))) for _ in range(10))
    assert false <= 1


def test_spike_and_its_recovery() -> None:
    rng = np.random.default_rng(4)
    loss = 2 + 3 * np.arange(1, 401) ** -0.5 + rng.normal(0, 0.02, 400)
    loss[200:205] = [6, 9, 7, 4, 3.5]
    (spike,) = spikes([(10 * i, v) for i, v in enumerate(loss)])
    assert (spike.step, spike.value, spike.points) == (2000, 9, 5)
    assert spike.recovered_at == 2050
    assert spike.expected == pytest.approx(2.2, abs=0.1)
    loss[350:] += 5
    last = spikes([(10 * i, v) for i, v in enumerate(loss)])[-1]
    assert (last.step, last.recovered_at) == (3500, None)


def test_resolution_is_the_finest_step_that_is_printed() -> None:
    assert resolution(np.array([0.25, 0.5, 0.125])) == 0.125


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=60))
def test_nothing_breaks(values: list[float]) -> None:
    points = list(enumerate(v if abs(v) < 1e100 else math.inf for v in values))
    for shift in level_shifts(points):
        assert 0 <= shift.p_value < 0.01
    spikes(points)
