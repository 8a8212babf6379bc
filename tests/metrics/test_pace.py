"""A run's pace: the step at a moment and the time until its end hold as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from trainwarden.metrics.pace import (
    Rate,
    forecast_step,
    printed_looks,
    step_rate,
    time_to_finish,
)


def test_steps_by_the_pace_between_looks() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        paces = np.exp(rng.normal(0, 0.08, 6)) * 2.0
        looks, step = [(0.0, 0.0)], 0.0
        for k, pace in enumerate(paces[:5]):
            step += 600 * pace
            looks.append((600.0 * (k + 1), float(int(step))))
        expected = forecast_step(looks, 3600.0, cadence=10)
        assert expected is not None
        held += expected.low <= step + 600 * paces[5] <= expected.high
    assert held / 200 >= 0.9


def test_steps_never_beyond_the_total_nor_back() -> None:
    looks = [(0.0, 0.0), (100.0, 100.0), (200.0, 200.0)]
    near = forecast_step(looks, 100_000.0, total=250, cadence=10)
    assert near is not None
    assert (near.low, near.high) == (239.0, 250)
    now = forecast_step(looks, 200.0, total=250)
    assert now is not None
    assert now.low == 200
    one = forecast_step([(0.0, 50.0)], 100.0, rate=Rate(0.5, 2.0, 1.0, 0))
    assert one is not None
    assert (one.low, one.center, one.high) == (99.0, 150.0, 251.0)
    assert forecast_step([(0.0, 50.0)], 100.0) is None
    assert step_rate([(0, 5), (10, 5)]) is None
    # A restart from step 20: only what follows it tells the pace.
    rate = step_rate([(0, 0), (10, 1000), (20, 20), (30, 40)])
    assert rate is not None
    assert rate.center == pytest.approx(2.0, rel=0.5)


def test_looks_are_worked_out_of_step_times_without_the_first_slow_ones() -> None:
    points = [(step, 30.0 if step < 20 else 2.0) for step in range(10, 1001, 10)]
    looks = printed_looks(points)
    assert len(looks) == 9
    assert looks[0][0] == 0.0
    assert looks[-1] == (pytest.approx((1000 - looks[0][1]) * 2), 1000)
    assert printed_looks(points[:3]) == []
    rate = step_rate(looks)
    assert rate is not None
    assert rate.center == pytest.approx(0.5)


def test_the_end_is_as_far_off_as_the_pace_says() -> None:
    said = time_to_finish(Rate(0.5, 2.0, 1.0, 8), 400, 1000)
    assert said is not None
    assert (said.low, said.center, said.high) == (300, 600, 1200)
    assert time_to_finish(Rate(0.0, 2.0, 1.0, 8), 400, 1000) is None
    assert time_to_finish(Rate(0.5, 2.0, 1.0, 8), 400, 300) is None


def test_times_to_finish_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    held = {0.5: 0, 0.9: 0}
    for _ in range(200):
        drift = np.exp(np.cumsum(rng.normal(0, 0.02, 100)))
        times = drift * rng.gamma(20, 1 / 20, 100)
        for level in held:
            rate = step_rate(printed_looks(list(enumerate(times[:60]))), level)
            assert rate is not None
            said = time_to_finish(rate, 59, 99)
            assert said is not None
            held[level] += said.low <= times[60:].sum() <= said.high
    assert held[0.9] / 200 >= 0.8
    assert 0.35 <= held[0.5] / 200 <= 0.75
