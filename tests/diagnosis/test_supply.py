"""What steps wait for: data, and the slowest rank."""

import numpy as np

from support.views import read_text, reading, series, view
from trainwarden.diagnosis import diagnose
from trainwarden.records.finding import Finding, Severity


def times(share: list[float], seed: int = 0) -> list[Finding]:
    rng = np.random.default_rng(seed)
    steps = [float(v) for v in np.exp(rng.normal(0, 0.05, len(share)))]
    data = [s * t for s, t in zip(share, steps, strict=True)]
    return diagnose(view(reading(series("step_time", steps), series("data_time", data))))


def test_input_that_became_slow_is_a_warning_since_then() -> None:
    (found,) = [f for f in times([0.1] * 60 + [0.7] * 60) if f.kind == "slow_input"]
    assert found.severity is Severity.WARNING
    assert found.since_step is not None
    assert abs(found.since_step - 61) <= 3


def test_input_bound_from_the_start_is_told_as_information() -> None:
    (found,) = [f for f in times([0.9] * 80) if f.kind == "slow_input"]
    assert found.severity is Severity.INFO
    assert "ever since the start" in found.summary


def test_waits_at_the_start_of_epochs_are_usual() -> None:
    assert not [f for f in times(([0.95] + [0.05] * 9) * 10) if f.kind == "slow_input"]


def test_slowest_rank_that_holds_up_the_steps() -> None:
    text = "\n".join(
        f"[step {n}] step_time={100.0 + n}s dt_med=0.003s dt_max={60.0 + n}s" for n in range(1, 5)
    )
    (found,) = [f for f in diagnose(view(read_text(text), live=False)) if f.kind == "straggler"]
    assert found.severity is Severity.WARNING
    assert found.since_step == 1


def test_ranks_that_scatter_are_no_stragglers() -> None:
    run = reading(
        series("step_time", [1.0] * 30),
        series("data_time_max", [0.02] * 30),
        series("data_time_avg", [0.005] * 30),
        series("step_time_max", [1.05] * 30),
        series("step_time_avg", [1.0] * 30),
    )
    assert not [f for f in diagnose(view(run)) if f.kind == "straggler"]
