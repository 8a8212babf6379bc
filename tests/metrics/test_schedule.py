"""Learning-rate schedules against their closed forms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.metrics.schedule import learning_rate_at

PEAK, TOTAL, WARMUP = 3e-4, 1000, 100
WARMED = ["constant_with_warmup", "linear", "cosine", "cosine_with_min_lr", "polynomial",
          "inverse_sqrt", "cosine_with_restarts"]  # fmt: skip


@pytest.mark.parametrize("schedule", WARMED)
def test_warmup_is_a_line_from_zero_to_the_peak(schedule: str) -> None:
    for step in (0, 1, 50, 99):
        rate = learning_rate_at(step, PEAK, TOTAL, WARMUP, schedule)
        assert rate == pytest.approx(PEAK * step / WARMUP)
    assert learning_rate_at(WARMUP, PEAK, TOTAL, WARMUP, schedule) == pytest.approx(PEAK)


def test_constant_takes_no_warmup() -> None:
    assert learning_rate_at(0, PEAK, None, WARMUP, "constant") == PEAK
    assert learning_rate_at(5000, PEAK, None, WARMUP, "constant_with_warmup") == PEAK


def test_linear() -> None:
    assert learning_rate_at(550, PEAK, TOTAL, WARMUP, "linear") == pytest.approx(PEAK / 2)
    assert learning_rate_at(1000, PEAK, TOTAL, WARMUP, "linear") == 0
    assert learning_rate_at(1200, PEAK, TOTAL, WARMUP, "linear") == 0
    half = learning_rate_at(550, PEAK, TOTAL, WARMUP, "linear", 1e-4)
    assert half == pytest.approx(2e-4)


def test_cosine() -> None:
    for step in (100, 325, 550, 775, 1000):
        progress = (step - WARMUP) / (TOTAL - WARMUP)
        expected = PEAK * 0.5 * (1 + math.cos(math.pi * progress))
        assert learning_rate_at(step, PEAK, TOTAL, WARMUP, "cosine") == pytest.approx(expected)
    # 0.75 of the way down, to a tenth of the peak: 0.9 * (1 - sqrt(1/2)) / 2 + 0.1.
    rate = learning_rate_at(775, 1.0, TOTAL, WARMUP, "cosine_with_min_lr", 0.1)
    assert rate == pytest.approx(0.9 * (1 - math.sqrt(0.5)) / 2 + 0.1)
    assert learning_rate_at(2000, 1.0, TOTAL, WARMUP, "cosine", 0.1) == pytest.approx(0.1)


def test_cosine_with_restarts() -> None:
    at = [learning_rate_at(s, 1.0, 100, 0, "cosine_with_restarts", cycles=2) for s in (0, 25, 50)]
    assert at == pytest.approx([1.0, 0.5, 1.0])
    assert learning_rate_at(100, 1.0, 100, 0, "cosine_with_restarts", cycles=2) == 0


def test_polynomial() -> None:
    rate = learning_rate_at(500, 1.0, 1000, 0, "polynomial", power=2.0)
    assert rate == pytest.approx((1 - 1e-7) * 0.25 + 1e-7)
    assert learning_rate_at(1500, 1.0, 1000, 0, "polynomial") == pytest.approx(1e-7)
    assert learning_rate_at(1000, 1.0, 1000, 0, "polynomial", 0.2) == pytest.approx(0.2)


def test_inverse_sqrt() -> None:
    rate = learning_rate_at(400, PEAK, None, 100, "inverse_sqrt")
    assert rate == pytest.approx(PEAK / 2)
    # Without warm-up the time scale is 10,000 steps.
    assert learning_rate_at(30_000, 1.0, None, 0, "inverse_sqrt") == pytest.approx(0.5)


def test_wsd() -> None:
    def rate(step: float) -> float | None:
        return learning_rate_at(step, 1.0, 1000, 100, "wsd", 0.1, decay_steps=200)

    assert [rate(s) for s in (50, 100, 500, 800)] == pytest.approx([0.5, 1.0, 1.0, 1.0])
    assert rate(900) == pytest.approx(0.55)
    assert rate(1000) == pytest.approx(0.1)
    assert learning_rate_at(900, 1.0, 1000, 100, "wsd") is None


def test_step() -> None:
    rates = [learning_rate_at(s, 1.0, None, 0, "step", step_size=30) for s in (0, 29, 30, 65)]
    assert rates == pytest.approx([1.0, 1.0, 0.1, 0.01])
    assert learning_rate_at(5, 1.0, None, 0, "step") is None


@pytest.mark.parametrize(
    ("step", "peak", "total", "warmup", "schedule", "minimum"),
    [
        (5, 1.0, 10, 0, "one_cycle", None),
        (5, 1.0, 10, 0, None, None),
        (5, 1.0, None, 0, "cosine", None),
        (5, 1.0, 0, 0, "linear", None),
        (-1, 1.0, 10, 0, "linear", None),
        (5, math.nan, 10, 0, "linear", None),
        (5, 0.0, 10, 0, "linear", None),
        (5, 1.0, 10, 0, "linear", 2.0),
    ],
)
def test_what_cannot_be_told(
    step: float, peak: float, total: float | None, warmup: float,
    schedule: str | None, minimum: float | None,
) -> None:  # fmt: skip
    assert learning_rate_at(step, peak, total, warmup, schedule, minimum) is None


@given(
    step=st.integers(0, 10_000),
    total=st.integers(1, 5000),
    warmup=st.integers(0, 5000),
    schedule=st.sampled_from(WARMED),
    share=st.floats(0, 1),
)
def test_between_the_least_and_the_peak(
    step: int, total: int, warmup: int, schedule: str, share: float
) -> None:
    rate = learning_rate_at(step, PEAK, total, warmup, schedule, share * PEAK)
    assert rate is not None
    assert 0 <= rate <= PEAK * (1 + 1e-9)
    if step >= warmup:
        assert rate >= share * PEAK * (1 - 1e-9)
