"""Resumes that lost what had been learnt, and losses that are summed instead of averaged."""

import math

import numpy as np
import pytest

from support.views import reading, series, view
from trainwarden.diagnosis import diagnose
from trainwarden.metrics.reading import Event, Reading
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.finding import Finding, Severity


def resumed(seed: int, jump: float, length: int = 80) -> Reading:
    rng = np.random.default_rng(seed)
    fall = [2 + 5 * math.exp(-i / 40) for i in range(120)]
    later = [fall[-1] + jump * math.exp(-i / 200) for i in range(length)]
    loss = series("loss", [v * math.exp(0.02 * float(rng.normal())) for v in fall + later])
    run = reading(loss)
    seam = loss.recent[119].offset + 1
    run.events.append(Event("resume", "Resuming from checkpoint-120", seam, 121))
    return run


def bad(run: Reading) -> list[Finding]:
    return [f for f in diagnose(view(run)) if f.kind == "bad_resume"]


@pytest.mark.parametrize("seed", range(6))
def test_loss_that_jumps_at_a_resume(seed: int) -> None:
    (found,) = bad(resumed(seed, 3.0))
    assert found.severity is Severity.WARNING
    assert found.since_step == 121
    assert not bad(resumed(seed, 0.0))
    assert not bad(resumed(seed, 0.05))


def test_loss_that_came_back_is_information() -> None:
    run = resumed(0, 3.0, 60)
    loss = run.series["loss"]
    for step in range(181, 260):
        loss.add(step, 2.2, 40 * step)
    (found,) = bad(run)
    assert found.severity is Severity.INFO


@pytest.mark.parametrize(("factor", "told"), [(16, True), (1, False)])
def test_loss_times_the_accumulated_batches(factor: int, told: bool) -> None:
    values = [factor * (math.log(32000) - 0.01 * i) for i in range(30)]
    facts = TrainingFacts(vocab_size=32000, accumulation=16, task="lm")
    found = diagnose(view(reading(series("loss", values)), facts=facts))
    assert ("accumulation_scaling" in [f.kind for f in found]) is told
