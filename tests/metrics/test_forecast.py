"""Forecasts hold as often as they say, on curves of many kinds and on real logs where present."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trainwarden.metrics.forecast import (
    current,
    forecast,
    printed_precision,
)
from trainwarden.metrics.reader import LogReader

CORPUS = Path(__file__).parents[2] / "../shared/corpus"
Curve = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def _ar(rng: np.random.Generator, n: int, phi: float) -> np.ndarray:
    out = rng.normal(size=n)
    for i in range(1, n):
        out[i] = phi * out[i - 1] + math.sqrt(1 - phi * phi) * out[i]
    return out


CURVES: dict[str, Curve] = {
    "power law": lambda r, s: 2 + 8 * s**-0.4 + r.normal(0, 0.05, len(s)),
    "exponential to a plateau": lambda r, s: 1 + 3 * np.exp(-s / 60) + r.normal(0, 0.05, len(s)),
    "plateau": lambda r, s: 3 + r.normal(0, 0.1, len(s)),
    "wandering": lambda r, s: 3 + 0.2 * _ar(r, len(s), 0.9),
    "random walk": lambda r, s: 5 + np.cumsum(r.normal(0, 0.05, len(s))),
    "growing noise": lambda r, s: 1 + 0.3 * r.normal(0, 1, len(s)) * np.sqrt(s / len(s)),
    "heavy tails": lambda r, s: np.exp(r.normal(0, 0.7, len(s))),
    "one step down": lambda r, s: np.where(s < 70, 3.0, 2.0) + r.normal(0, 0.1, len(s)),
    "straight": lambda r, s: 0.2 + 0.003 * s + r.normal(0, 0.02, len(s)),
    "counts": lambda r, s: r.poisson(3, len(s)).astype(float),
}


@pytest.mark.parametrize("name", CURVES)
def test_coverage_at_nine_tenths(name: str) -> None:
    held = total = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        steps = np.arange(1, 241, dtype=float)
        points = list(zip(10 * steps, np.round(CURVES[name](rng, steps), 4), strict=True))
        for cut in (60, 80, 120, 180):
            target = int(cut * rng.choice([1.1, 1.33])) - 1
            expected = forecast(points[:cut], points[target][0], 0.9)
            assert expected is not None
            assert expected.low <= expected.center <= expected.high
            held += expected.low <= points[target][1] <= expected.high
            total += 1
    # 96 draws a curve, four of a seed: two standard errors below nine tenths. What falls once, at
    # a step that nothing foretells, is missed by those who look just before.
    assert held / total >= (0.8 if name == "one step down" else 0.84), f"{held} of {total}"


def test_coverage_over_all_curves_and_width() -> None:
    held: list[bool] = []
    widths: list[float] = []
    for name, curve in CURVES.items():
        for seed in range(3):
            rng = np.random.default_rng(100 + seed)
            steps = np.arange(1, 201, dtype=float)
            points = list(zip(steps, curve(rng, steps), strict=True))
            for cut, target in ((50, 100), (100, 150), (150, 200)):
                expected = forecast(points[:cut], target)
                assert expected is not None
                held.append(expected.low <= points[target - 1][1] <= expected.high)
                if name == "plateau":
                    widths.append(expected.width)
    assert sum(held) / len(held) >= 0.85
    # Independent noise of 0.1 has its ideal 90 % interval 0.33 wide.
    assert np.median(widths) < 2 * 0.33


def test_higher_levels_are_wider() -> None:
    rng = np.random.default_rng(0)
    points = [(i, 3 + rng.normal()) for i in range(200)]
    spans = [forecast(points, 250, level) for level in (0.5, 0.8, 0.95)]
    widths = [span.width for span in spans if span]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


def test_constant_series_have_the_width_of_their_print() -> None:
    expected = forecast([(i, 0.25) for i in range(100)], 150)
    assert expected is not None
    assert 0 < expected.width < 0.02
    assert printed_precision([0.25, 0.5]) == 0.01
    assert printed_precision([3.0, 100.0]) == 1.0
    assert printed_precision([1e-4, 2.5e-5]) == pytest.approx(1e-6)


def test_few_points_are_wide_and_say_so() -> None:
    expected = forecast([(500, 3.2)], 1000)
    assert expected is not None
    assert expected.low <= 2.4 <= expected.high
    assert "rule of thumb" in expected.basis
    assert forecast([], 10) is None
    assert forecast([(1, math.nan)], 10) is None


def test_what_was_repeated_after_a_resume_is_superseded() -> None:
    x, y = current([(1, 1.0), (2, 2.0), (3, 3.0), (2, 20.0), (3, 30.0)])
    assert list(x) == [1, 2, 3]
    assert list(y) == [1, 20, 30]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-5, 10_000), st.floats(-1e12, 1e12) | st.just(math.nan)),
        max_size=60,
    ),
    st.integers(-10, 100_000),
)
@example([(0, 5e-324), (1, 5e-324)], 0)
def test_any_series_gives_an_ordered_interval_with_width(
    points: list[tuple[int, float]], at: int
) -> None:
    expected = forecast(points, at)
    if expected is None:
        assert not any(math.isfinite(value) for _, value in points)
        return
    assert expected.low <= expected.center <= expected.high
    assert expected.width > 0
    assert math.isfinite(expected.width)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the sample of real logs is not here")
def test_coverage_on_real_logs() -> None:
    """Cut each log's main metrics at quarters and predict the next cut's last value."""
    held: list[bool] = []
    for path in sorted(CORPUS.glob("*/*")):
        if path.suffix in {".tfevents", ".wandb"} or path.stat().st_size > 60_000:
            continue
        reader = LogReader(str(path))
        reader.feed(path.read_bytes())
        for name, series in reader.reading.series.items():
            points = series.finite()
            if name not in {"loss", "grad_norm", "eval_loss", "step_time"} or len(points) < 12:
                continue
            for k in (1, 2, 3):
                cut, target = len(points) * k // 4, len(points) * (k + 1) // 4 - 1
                expected = forecast(points[:cut], points[target].step)
                assert expected is not None
                held.append(expected.low <= points[target].value <= expected.high)
    assert len(held) >= 20
    assert sum(held) / len(held) >= 0.85


def test_what_is_positive_stays_so_and_what_is_signed_need_not() -> None:
    rng = np.random.default_rng(3)
    points = [(i, float(v)) for i, v in enumerate(np.exp(rng.normal(0, 0.4, 120)))]
    positive, signed = forecast(points, 160), forecast(points, 160, signed=True)
    assert positive is not None
    assert signed is not None
    assert positive.low > 0 > signed.low


def test_shares_stay_between_zero_and_one() -> None:
    rising = [(i, 1 - 0.5 * 0.9**i) for i in range(60)]
    expected = forecast(rising, 75, share=True)
    assert expected is not None
    assert 0.9 < expected.low < expected.high <= 1
    # One look at a beginning tells little of where an accuracy goes, and no factor of it.
    first = forecast([(10, 0.004)], 20, share=True)
    assert first is not None
    assert first.low == 0
    assert first.high > 0.3


def test_the_width_follows_the_level() -> None:
    rng = np.random.default_rng(7)
    for points in (
        [(1, 0.8), (2, 0.79)],
        [(i, 0.8 + 0.01 * (i % 2)) for i in range(6)],
        [(i, float(v)) for i, v in enumerate(rng.normal(3, 0.1, 200))],
    ):
        half, most = forecast(points, points[-1][0] + 2, 0.5), forecast(points, points[-1][0] + 2)
        assert half is not None
        assert most is not None
        assert half.width < 0.65 * most.width
        assert half.center == pytest.approx(most.center)
