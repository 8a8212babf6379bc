"""Steps 4, 5, 7 and 8 by rules owe what anybody owes: held to the procedure's own checks."""

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from support.briefings import briefing
from support.runs import Values, times, train
from support.views import NOW, read_text, reading, seen, series
from trainwarden.analysts.rules.assess import assess
from trainwarden.analysts.rules.resources import resources
from trainwarden.analysts.rules.strategize import group_of, playbook, strategize
from trainwarden.analysts.rules.troubleshoot import troubleshoot
from trainwarden.analysts.rules.words import Writer
from trainwarden.procedure import duties, planning
from trainwarden.procedure.grounding import Citable
from trainwarden.procedure.roles import Briefing
from trainwarden.procedure.wording import FEWEST_WORDS
from trainwarden.records.assessment import Assessment, Status, Troubleshooting
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.hypothesis import Hypothesis, Measure, Strategy
from trainwarden.records.observation import SourceReport, Trust
from trainwarden.records.prediction import Comparison, Prediction

FACTS = TrainingFacts(
    max_steps=4000, warmup_steps=200, vocab_size=256, log_every=10, eval_every=250, task="lm"
)


def machine() -> list[Any]:
    made = [
        seen("process.alive", True, subject="job", pid=71),
        seen("process.count", 3, subject="job"),
        seen("process.rss", 4_123_456_789, subject="job", unit="bytes"),
        seen("process.rss_growth", 1234.5, subject="job", unit="bytes/s"),
        seen("process.cpu", 1.37, subject="job", unit="cores"),
        seen("process.state", "disk-sleep", subject="pid 71", pid=71),
        seen("process.launcher_alive", True, subject="job"),
        seen("host.memory_available", 61_234_567_890, unit="bytes", trust=Trust.HARDWARE),
        seen("host.memory_total", 135_000_000_000, unit="bytes", trust=Trust.HARDWARE),
        seen("host.load1", 0.731, trust=Trust.HARDWARE),
        seen("host.cores", 16, trust=Trust.HARDWARE),
        seen("host.shm_free", 17_000_000_000, unit="bytes", trust=Trust.HARDWARE),
        seen("disk.free", 512_345_678_901, subject="/runs", unit="B", trust=Trust.HARDWARE),
        seen("disk.total", 999_345_678_901, subject="/runs", unit="B", trust=Trust.HARDWARE),
        seen("checkpoint.count", 5, trust=Trust.HARDWARE),
        seen("checkpoint.age", 312.7, unit="s", trust=Trust.HARDWARE),
        seen("checkpoint.interval", 600.3, stat="median", unit="s", trust=Trust.HARDWARE),
        seen("checkpoint.incomplete", 0, trust=Trust.HARDWARE),
        seen("kernel.readable", False, trust=Trust.HARDWARE, text="no permission"),
        seen("source.kernel", "failed", trust=Trust.HARDWARE, text="no permission"),
    ]
    for index in range(2):
        for name, value, unit in (
            ("readable", True, None),
            ("utilization", 0.9731 - 0.9 * index, "ratio"),
            ("memory_used", 61_000_123_456, "bytes"),
            ("memory_total", 85_899_345_920, "bytes"),
            ("power_share", 0.8731, "ratio"),
            ("temperature", 61, "celsius"),
            ("throttle", "sw_power_cap" if index else "none", None),
            ("ecc_uncorrected", 0, "errors"),
        ):
            made.append(
                seen(f"gpu.{name}", value, subject=f"GPU {index}", unit=unit, trust=Trust.HARDWARE)
            )
    return made


REPORTS = (
    SourceReport(source="log", trust=Trust.LOG, status="ok"),
    SourceReport(source="kernel", trust=Trust.HARDWARE, status="failed", message="no permission"),
)


def walk(given: Briefing) -> tuple[Assessment, str, Troubleshooting, Strategy]:
    """Steps 4, 5, 7, 8, each held to what the procedure refuses."""
    verdict = assess(given)
    complaints = duties.assessment_complaints(
        verdict,
        given.observations,
        given.header.criteria,
        given.predictions,
        given.comparisons,
        given.findings,
    )
    assert complaints == []
    given = replace(given, assessment=verdict)
    citable = Citable(
        given.observations.values(),
        given.header.criteria,
        given.predictions,
        given.comparisons,
        given.findings,
    )
    text = resources(given)
    assert citable.complaints("resources", text) == []
    assert len(text.split()) >= 5
    causes = troubleshoot(given)
    assert (
        duties.troubleshooting_complaints(
            causes, verdict, citable, given.observations, given.findings, given.comparisons
        )
        == []
    )
    given = replace(given, troubleshooting=causes)
    strategy = strategize(given)
    assert (
        planning.strategy_complaints(strategy, verdict.status, given.due, given.observations, NOW)
        == []
    )
    return verdict, text, causes, strategy


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("points", [120, 300])
def test_learning_run_is_healthy(seed: int, points: int) -> None:
    given = briefing(train(seed, points), facts=FACTS, more=machine(), reports=REPORTS)
    verdict, text, causes, strategy = walk(given)
    assert verdict.status is Status.HEALTHY, verdict.reasoning
    assert "GPU 0" in text
    assert "GPU 1" in text
    assert "kernel" in text
    assert causes.skipped
    assert not strategy.hypotheses
    assert strategy.evaluate_after.step is not None
    assert strategy.evaluate_after.step > 10 * points


def test_the_time_that_is_left_is_told_with_what_may_be_wrong_with_it() -> None:
    given = briefing(train(1, 300), facts=FACTS, more=machine(), reports=REPORTS)
    *_, strategy = walk(given)
    paces = [value for value in times(1, 300)[150:] if value is not None]
    left = (4000 - 3000) * sum(paces) / len(paces)
    said = re.search(
        r"1000 steps that are left take (\S+) (s|min) "
        r"\(even odds: (\S+) \S+ to (\S+) \S+; nine in ten: (\S+) \S+ to (\S+) ",
        strategy.plan.actions[0],
    )
    assert said is not None, strategy.plan.actions
    unit = {"s": 1, "min": 60}[said[2]]
    center, low, high, lowest, highest = (float(said[n]) * unit for n in (1, 3, 4, 5, 6))
    assert center == pytest.approx(left, rel=0.1)
    assert lowest < low < center < high < highest


@pytest.mark.parametrize("seed", range(4))
def test_finished_run_is_judged_by_its_whole_course(seed: int) -> None:
    def converge(values: dict[str, Values]) -> None:
        values["loss"] = [
            1.2 + 4 * math.exp(-i / 60) + 0.01 * math.sin(17 * i + seed) for i in range(400)
        ]

    given = briefing(train(seed, 400, change=converge, ended="finished"), facts=FACTS)
    verdict, _, _, strategy = walk(given)
    assert verdict.status is Status.HEALTHY
    assert strategy.evaluate_after.time is not None


def nan(values: dict[str, Values]) -> None:
    values["loss"][200:] = [math.nan] * 100


def diverge(values: dict[str, Values]) -> None:
    values["loss"][200:] = [v + 3 for v in values["loss"][200:]]


def slow(values: dict[str, Values]) -> None:
    values["step_time"][150:] = [2 * v for v in values["step_time"][150:]]


def flat(values: dict[str, Values]) -> None:
    values["loss"] = [math.log(256) * (1 + 0.01 * math.sin(12.9 * i)) for i in range(300)]


@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [
        (nan, Status.CRITICAL, "nan_loss"),
        (diverge, Status.CRITICAL, "divergence"),
        (slow, Status.WARNING, "step_time_regression"),
        (flat, Status.WARNING, "plateau"),
    ],
)
def test_fault_gets_its_status_causes_and_hypotheses(fault: Any, status: Status, kind: str) -> None:
    given = briefing(train(1, change=fault), facts=FACTS, more=machine(), reports=REPORTS)
    verdict, _, causes, strategy = walk(given)
    assert verdict.status is status
    assert kind in {f.kind for f in given.findings}
    assert causes.causes[0].role == "initiating"
    assert len(strategy.hypotheses) == 3
    assert strategy.chosen == "1"
    assert all("{" not in text for h in strategy.hypotheses for text in (h.action, h.statement))


def test_crash_with_a_traceback() -> None:
    text = "\n".join(
        [
            *(f"step {n} | loss {3 - 0.02 * n:.4f} | lr 1e-4" for n in range(1, 40)),
            "Traceback (most recent call last):",
            '  File "train.py", line 71, in <module>',
            "ValueError: shapes (12,31) and (32,8) not aligned: 31 (dim 1) != 32 (dim 0)",
            "",
        ]
    )
    verdict, _, causes, _ = walk(briefing(read_text(text)))
    assert verdict.status is Status.CRITICAL
    assert "shapes" in causes.causes[0].statement


def test_stopped_process() -> None:
    more = [*machine(), seen("process.state", "stopped", subject="pid 72", pid=72),
            seen("log.age", 77.25, unit="s", trust=Trust.LOG)]  # fmt: skip
    verdict, _, _, strategy = walk(briefing(train(1), facts=FACTS, more=more))
    assert verdict.status is Status.CRITICAL
    assert strategy.hypotheses[0].success is not None
    assert strategy.hypotheses[0].success.quantity == "step"


@pytest.mark.parametrize("points", [0, 1, 3, 7])
def test_too_little_to_judge_is_uncertain(points: int) -> None:
    run = train(1, points, evaluated=False) if points else reading(ended="unknown")
    verdict, _, causes, _ = walk(briefing(run, facts=FACTS))
    assert verdict.status is Status.UNCERTAIN
    assert verdict.question
    assert causes.causes


def test_warmup_defers_with_a_signal_and_an_end() -> None:
    verdict, _, _, _ = walk(briefing(train(1, 6, evaluated=False), facts=FACTS))
    assert verdict.status is Status.UNCERTAIN
    assert verdict.deferral is not None
    assert verdict.deferral.until_step > 200


def test_no_deferral_once_the_warmup_is_over() -> None:
    facts = replace(FACTS, warmup_steps=20)
    verdict, _, _, _ = walk(briefing(train(1, 6, evaluated=False), facts=facts))
    assert verdict.deferral is None


def test_nothing_read_at_all() -> None:
    more = [seen("source.log", "failed", trust=Trust.LOG, text="no such file")]
    report = SourceReport(source="log", trust=Trust.LOG, status="failed", message="no such file")
    verdict, text, _, _ = walk(briefing(more=more, reports=(report,)))
    assert verdict.status is Status.UNCERTAIN
    assert "log" in text


def test_reward_is_judged_by_its_rise() -> None:
    import random

    rng = random.Random(3)
    run = reading(
        series("reward", [0.1 + 0.004 * i + rng.gauss(0, 0.05) for i in range(120)]),
        series("reward_std", [0.2] * 120),
        series("loss", [rng.gauss(0, 0.01) for _ in range(120)]),
    )
    verdict, _, _, _ = walk(briefing(run, facts=TrainingFacts(task="grpo")))
    assert verdict.indicator.quantity == "reward"
    assert verdict.status is Status.HEALTHY


def test_miss_of_the_indicator_is_looked_into() -> None:
    given = briefing(train(2, 300), facts=FACTS)
    prediction = Prediction(id="P1", quantity="loss", low=0.5, high=0.9, level=0.9, basis="trend")
    last = next(o for o in given.observations.values() if (o.quantity, o.stat) == ("loss", "last"))
    comparison = Comparison(
        prediction="P1", quantity="loss", observation=last.id, actual=last.value,
        outcome="missed", miss=3.0,
    )  # fmt: skip
    given = replace(given, predictions=(prediction,), comparisons=(comparison,))
    _, _, causes, _ = walk(given)
    assert "P1" in causes.causes[0].statement


def hypothesis(**more: Any) -> Hypothesis:
    entry = playbook()["hypotheses"]["unclear"][0]
    texts = {k: str(v) for k, v in entry.items() if k not in ("success", "failure")}
    return Hypothesis.model_validate(texts | {"id": "H1-1"} | more)


@pytest.mark.parametrize(
    ("measures", "outcome"),
    [
        ({"success": Measure(quantity="loss", comparison="<", threshold=100)}, "CONFIRMED"),
        ({"success": Measure(quantity="loss", comparison="<", threshold=0)}, "REFUTED"),
        ({"failure": Measure(quantity="loss", comparison=">", threshold=0)}, "REFUTED"),
        ({"success": Measure(quantity="nowhere", comparison=">", threshold=0)}, "INCONCLUSIVE"),
        ({}, "INCONCLUSIVE"),
    ],
)
def test_due_hypotheses_are_scored_by_their_measures(measures: Any, outcome: str) -> None:
    given = briefing(train(2), facts=FACTS, due=(hypothesis(**measures),))
    _, _, _, strategy = walk(given)
    assert [s.outcome for s in strategy.scores] == [outcome]
    assert bool(strategy.scores[0].observations) == (outcome != "INCONCLUSIVE")


def test_playbook_knows_every_kind_and_is_whole() -> None:
    from typing import get_args

    from trainwarden.records.finding import FindingKind

    for kind in get_args(FindingKind):
        assert group_of(kind) != "unclear", kind
    for group, entries in playbook()["hypotheses"].items():
        assert len(entries) == 3, group
        assert len({e["dimension"] for e in entries}) == 3, group
        for entry in entries:
            assert entry["counter_hypothesis"] != entry["statement"]
            for name in (
                "statement",
                "action",
                "expected_outcome",
                "failure_criterion",
                "counter_hypothesis",
            ):
                assert len(str(entry[name]).split()) >= FEWEST_WORDS, entry[name]


def test_writer_never_says_a_number_that_is_not_there() -> None:
    given = briefing(train(2), facts=FACTS)
    writer = Writer(given)
    first = next(iter(given.observations))
    writer.say(f"It is 123.456 [{first}].", "It was seen.")
    assert writer.text == "It was seen."
