"""Predictions by rules: wide from the config, honest from history."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwarden.analysts.rules import RulesAnalyst
from trainwarden.analysts.rules.predict import LEVEL, LONGEST, predict
from trainwarden.metrics.reading import Reading
from trainwarden.metrics.schedule import learning_rate_at
from trainwarden.metrics.series import Series
from trainwarden.procedure.foresight import prediction_complaints
from trainwarden.procedure.roles import Briefing
from trainwarden.records.assessment import Criterion
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.job import Job
from trainwarden.records.prediction import Calibration, Prediction
from trainwarden.records.session import SessionHeader
from trainwarden.records.state import JobState, Meta

BEGUN = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def briefing(
    facts: TrainingFacts,
    minutes: float = 0.0,
    past: tuple[Reading, ...] = (),
    samples: Iterable[dict[str, object]] = (),
    guidance: str | None = None,
) -> Briefing:
    now = BEGUN + timedelta(minutes=minutes)
    state = JobState(meta=Meta(job="j", created=BEGUN, last_updated=now))
    header = SessionHeader(
        session="s", number=2, job=Job(id="j", guidance=guidance), analyst="rules", begun_at=now
    )
    return Briefing(
        header=header,
        facts=facts,
        now=now,
        state=state if past else None,
        past=past,
        samples=tuple(samples),
    )


def reading(ended: str = "running", total: int | None = None, **metrics: list[float]) -> Reading:
    """A log with a line every 10 steps; values may be fewer for sparse metrics."""
    made = Reading("/run/train.log", "text", 9_000, 100, ended=ended, total_steps=total, runs=1)  # type: ignore[arg-type]
    most = max(len(values) for values in metrics.values())
    for name, values in metrics.items():
        made.series[name] = Series(name, name)
        every = 10 * most // len(values)
        for i, value in enumerate(values, 1):
            made.series[name].add(i * every, value, i)
    made.last_step = 10 * most
    return made


def sample(minutes: float, step: float, **more: object) -> dict[str, object]:
    return {"time": (BEGUN + timedelta(minutes=minutes)).isoformat(), "step": step, **more}


def by_name(made: tuple[Prediction, ...]) -> dict[str, Prediction]:
    assert len({p.quantity for p in made}) == len(made)
    assert all(p.basis and p.stat == "last" for p in made)
    return {p.quantity: p for p in made}


def bounds(prediction: Prediction) -> tuple[float, float]:
    assert prediction.low is not None
    assert prediction.high is not None
    return prediction.low, prediction.high


def test_first_session_from_the_config_alone() -> None:
    facts = TrainingFacts(
        max_steps=1000,
        vocab_size=50257,
        learning_rate=3e-4,
        schedule="cosine",
        keys={"max_steps": "train.max_iters"},
    )
    made = by_name(RulesAnalyst().predict(briefing(facts)))
    assert bounds(made["step"]) == (0, 1000)
    assert "train.max_iters" in made["step"].basis
    low, high = bounds(made["loss"])
    assert low == 0
    assert math.log(50257) < high < 1.5 * math.log(50257)
    assert bounds(made["learning_rate"])[1] == pytest.approx(3e-4, rel=0.02)
    assert {"process.alive", "log.ended"} <= set(made)
    assert "gpu.power_share" not in made
    assert made["loss"].level == LEVEL
    made = by_name(predict(briefing(TrainingFacts(precision="bf16"))))
    assert "gpu.power_share" in made


def test_first_session_without_any_fact_is_one_sided() -> None:
    made = by_name(predict(briefing(TrainingFacts())))
    assert bounds(made["step"]) == (0, LONGEST)
    assert (made["loss"].low, made["loss"].high) == (0, None)
    learning = by_name(predict(briefing(TrainingFacts(task="rl"))))
    assert "reward" in learning
    assert "loss" not in learning


def curve(n: int, seed: int = 0) -> list[float]:
    steps = np.arange(1, n + 1)
    return [float(v) for v in 2 + 6 * steps**-0.4 + np.random.default_rng(seed).normal(0, 0.04, n)]


def test_later_sessions_extrapolate_to_the_moment() -> None:
    held = 0
    for seed in range(20):
        values = curve(200, seed)
        past = reading(loss=values[:100], eval_loss=values[:100:25], grad_norm=[1.0, 1.2] * 50)
        looks = [sample(10, 500), sample(20, 1000, rss=2e9)]
        made = by_name(predict(briefing(TrainingFacts(), 30, (past,), looks)))
        low, high = bounds(made["step"])
        assert 1000 < low <= 1500 <= high < 2500
        low, high = bounds(made["loss"])
        held += low <= values[149] <= high
        assert high - low < 1.0
        assert {"eval_loss", "grad_norm", "process.rss", "process.alive"} <= set(made)
    assert held >= 18


def test_one_look_and_no_pace_says_only_that_it_does_not_go_back() -> None:
    past = reading(loss=curve(50))
    made = by_name(predict(briefing(TrainingFacts(), 30, (past,), [sample(10, 500)])))
    assert (made["step"].low, made["step"].high) == (500, None)
    paced = reading(loss=curve(50), step_time=[1.2] * 50)
    live = by_name(predict(briefing(TrainingFacts(), 30, (paced,), [sample(10, 500, rss=1e9)])))
    low, high = bounds(live["step"])
    assert low <= 500 + 20 * 60 / 1.2 <= high < 3000


def test_a_run_due_to_end_is_expected_to_have_ended() -> None:
    past = reading(loss=curve(90), total=1000)
    looks = [sample(0, 500), sample(10, 900)]
    made = by_name(predict(briefing(TrainingFacts(), 60, (past,), looks)))
    assert bounds(made["step"])[1] == 1000
    assert made["log.ended"].one_of == ("finished",)
    assert made["process.alive"].one_of == (False,)
    soon = by_name(predict(briefing(TrainingFacts(), 12.2, (past,), looks)))
    assert "running" in (soon["log.ended"].one_of or ())
    early = by_name(predict(briefing(TrainingFacts(), 11, (past,), looks)))
    assert early["process.alive"].one_of == (True,)


def test_a_finished_log_stays_as_it_is() -> None:
    past = reading("finished", total=1000, loss=curve(100))
    made = by_name(predict(briefing(TrainingFacts(), 99, (past,), [sample(10, 1000)])))
    assert bounds(made["step"]) == (1000, 1000)
    assert made["log.ended"].one_of == ("finished",)
    low, high = bounds(made["loss"])
    assert high - low < 1e-3
    assert made["process.alive"].one_of == (False,)


def test_a_crashed_log_stays_or_is_started_again() -> None:
    past = reading("crashed", loss=curve(100))
    looks = [sample(10, 500), sample(20, 1000)]
    made = by_name(predict(briefing(TrainingFacts(), 30, (past,), looks)))
    assert bounds(made["step"])[0] == 1000
    assert "crashed" in (made["log.ended"].one_of or ())


@pytest.mark.parametrize("known", [True, False])
def test_the_learning_rate_follows_its_schedule(known: bool) -> None:
    rates = [learning_rate_at(10 * i, 1e-3, 2000, 100, "cosine") for i in range(1, 101)]
    past = reading(total=2000, loss=curve(100), learning_rate=[rate or 0.0 for rate in rates])
    facts = TrainingFacts()
    if known:
        facts = TrainingFacts(learning_rate=1e-3, schedule="cosine", warmup_steps=100)
    looks = [sample(10, 500), sample(20, 1000)]
    made = by_name(predict(briefing(facts, 30, (past,), looks)))
    low, high = bounds(made["learning_rate"])
    truth = learning_rate_at(1500, 1e-3, 2000, 100, "cosine")
    assert truth is not None
    assert low <= truth <= high
    assert "cosine schedule" in made["learning_rate"].basis


def test_the_reward_leads_in_reinforcement_and_the_user_leads_all() -> None:
    past = reading(loss=curve(50), reward=curve(50), kl=curve(50), eval_accuracy=[0.1, 0.2])
    looks = [sample(10, 250), sample(20, 500)]
    made = predict(briefing(TrainingFacts(), 30, (past,), looks))
    assert [p.quantity for p in made][:2] == ["step", "reward"]
    said = predict(briefing(TrainingFacts(), 30, (past,), looks, "watch eval accuracy"))
    assert [p.quantity for p in said][:2] == ["step", "eval_accuracy"]


def test_what_held_too_seldom_is_widened() -> None:
    past = reading(loss=curve(100))
    looks = [sample(10, 500), sample(20, 1000)]
    plain = briefing(TrainingFacts(), 30, (past,), looks)
    narrow = bounds(by_name(predict(plain))["loss"])
    assert plain.state is not None
    plain.state.monitor.calibration["loss"] = Calibration(made=6, held=3, missed=3, expected=5.4)
    made = by_name(predict(plain))["loss"]
    wide = bounds(made)
    assert wide[1] - wide[0] > 1.5 * (narrow[1] - narrow[0])
    assert "only 3 of 6" in made.basis


def test_a_loss_that_is_nan_is_expected_to_stay_so() -> None:
    past = reading(loss=[*curve(20), *[math.nan] * 10])
    made = by_name(predict(briefing(TrainingFacts(), 30, (past,), [sample(20, 300)])))
    assert any(isinstance(v, float) and math.isnan(v) for v in made["loss"].one_of or ())


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(width=32), min_size=1, max_size=30),
    st.lists(
        st.fixed_dictionaries(
            {"time": st.sampled_from([None, "x", "2026-03-01T12:10:00Z", "2026-03-01T11:00:00Z"])},
            optional={"step": st.none() | st.integers(-9, 10**9) | st.text(), "rss": st.floats()},
        ),
        max_size=4,
    ),
    st.sampled_from(["running", "unknown", "finished", "crashed", "interrupted"]),
    st.none() | st.integers(1, 10**6),
)
def test_any_history_gives_predictions(
    values: list[float], samples: list[dict[str, object]], ended: str, total: int | None
) -> None:
    past = reading(ended, total, loss=values, learning_rate=values)
    made = by_name(predict(briefing(TrainingFacts(), 30, (past,), samples)))
    assert {"step", "log.ended"} <= set(made)


def test_nothing_is_said_of_the_process_when_the_run_may_just_have_ended() -> None:
    past = reading(loss=curve(90), total=1000)
    looks = [
        sample(0, 500, **{"host.memory_available": 8e9}),
        sample(10, 900, **{"host.memory_available": 6e9, "gpu.power": {"GPU 0": 80.0}}),
    ]
    made = by_name(predict(briefing(TrainingFacts(), 12.2, (past,), looks)))
    assert "process.alive" not in made
    assert made["host.memory_available"].low == 1.5e9
    assert "gpu.power_share" in made
    assert {p.level for p in made.values()} <= {0.5, 0.6, 0.7, 0.8, 0.9, 0.95}


def test_a_log_that_says_finished_without_a_plan_may_go_on() -> None:
    past = reading("finished", loss=curve(100))
    looks = [sample(0, 500), sample(10, 1000)]
    made = by_name(predict(briefing(TrainingFacts(), 20, (past,), looks)))
    assert {"finished", "running"} <= set(made["log.ended"].one_of or ())
    low, high = bounds(made["step"])
    assert (low, high > 1200) == (1000, True)


def test_policy_losses_may_be_negative_and_accuracies_are_shares() -> None:
    rng = np.random.default_rng(2)
    noise = [float(v) for v in np.abs(rng.normal(0, 0.02, 60))]
    past = reading(loss=noise, kl=noise, reward=curve(60), eval_accuracy=[0.9, 0.95, 0.97, 0.98])
    looks = [sample(10, 300), sample(20, 600)]
    made = by_name(predict(briefing(TrainingFacts(), 30, (past,), looks)))
    assert bounds(made["loss"])[0] < 0
    assert bounds(made["eval_accuracy"])[1] <= 1
    plain = reading(loss=noise)
    assert bounds(by_name(predict(briefing(TrainingFacts(), 30, (plain,), looks)))["loss"])[0] >= 0


def test_what_the_procedure_would_take_for_empty_is_left_out() -> None:
    """A learning rate a hundred times the config's has an honest interval that looks vacuous."""
    facts = TrainingFacts(learning_rate=0.002, vocab_size=64, max_steps=2000)
    wild = [0.002] * 30 + [0.2, 0.2, 0.002, 0.2, 0.1, 0.2, 0.002, 0.2] * 4
    past = (reading(loss=[3 - n / 40 for n in range(62)], learning_rate=wild),)
    told = briefing(facts, 30, past, [sample(10, 300), sample(20, 620)])
    criteria = (Criterion(id="C1", name="learning_rate", value=0.002, source="config"),)
    header = told.header.model_copy(update={"criteria": criteria})
    made = predict(replace(told, header=header))
    assert prediction_complaints(made, criteria) == []
    assert {"step", "loss"} <= {one.quantity for one in made}
