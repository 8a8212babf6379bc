"""An analyst who wants to be done: what does not say anything is not sealed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.answers import (
    MOMENT,
    RESOURCES,
    assessment,
    begin,
    find,
    hypothesis,
    make_job,
    predictions,
    review,
    skip,
    strategy,
    walk_to,
)
from trainwarden.errors import Refusal
from trainwarden.procedure.auditing import same_name
from trainwarden.procedure.foresight import prediction_complaints
from trainwarden.procedure.session import Session
from trainwarden.records.assessment import Criterion, Troubleshooting
from trainwarden.records.job import Job
from trainwarden.records.prediction import Prediction


def predicted(**changes: Any) -> Prediction:
    fields = {"quantity": "loss", "low": 0.5, "high": 5.0, "level": 0.9, "basis": "the config"}
    return Prediction.model_validate({k: v for k, v in (fields | changes).items() if v != ""})


CRITERIA = (Criterion(id="C1", name="baseline_loss", value=4.16, source="ln(vocab_size)"),)
VACUOUS = {
    "unlikely": {"level": 0.01},
    "everything": {"low": -1e308, "high": 1e308},
    "one-sided everything": {"low": -1e300, "high": None},
    "hardly anything": {"low": 0, "high": 1000},
    "a pace above zero": {"quantity": "tokens_per_second", "low": 0, "high": 1e300},
    "both flags": {"quantity": "process.alive", "low": "", "high": "", "one_of": [True, False]},
    "every ending": {
        "quantity": "log.ended",
        "low": "",
        "high": "",
        "one_of": ["finished", "crashed", "interrupted", "running", "unknown", "x"],
    },
    "seen already": {"basis": "as [E3] shows"},
}


@pytest.mark.parametrize("case", VACUOUS)
def test_a_prediction_must_be_able_to_miss(case: str) -> None:
    given = [one for one in predictions() if one.quantity != "loss"]
    good = [*given, predicted(stat="min")]
    assert prediction_complaints([*good, predicted()], CRITERIA) == []
    bad = predicted(**VACUOUS[case])
    listed = [one for one in good if one.quantity != bad.quantity]
    assert prediction_complaints([*listed, bad, predicted(quantity="eval_loss")], CRITERIA)


@pytest.mark.parametrize(
    ("missing", "instead"),
    [
        ("step", {"quantity": "step", "stat": "count"}),
        ("step", {"quantity": "step", "subject": "nobody"}),
        ("loss", {"quantity": "learning_rate"}),
        ("loss", {"quantity": "loss", "stat": "nonsense"}),
        ("process.alive", {"quantity": "gpu.count"}),
        ("process.alive", {"quantity": "host.cores"}),
    ],
)
def test_what_must_be_predicted_has_no_stand_in(missing: str, instead: dict[str, Any]) -> None:
    given = [one for one in predictions() if one.quantity != missing]
    assert prediction_complaints([*given, predicted(**instead)])


@pytest.mark.parametrize(
    "fields", [{"low": "nan"}, {"low": "inf", "high": ""}, {"high": "-inf", "low": ""}]
)
def test_a_bound_is_a_number(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="number"):
        predicted(**fields)


def write(path: Path, losses: list[float], extra: str = "") -> None:
    path.write_text(
        "".join(
            f"step {10 * i} | loss {loss:.4f} | lr {3e-4 * (1 - i / 200):.2e} {extra}\n"
            for i, loss in enumerate(losses)
        )
    )


def wave(start: float, slope: float, points: int = 60) -> list[float]:
    return [start + slope * i + 0.05 * ((i * 7919) % 11 - 5) / 5 for i in range(points)]


def at_metrics(root: Path, losses: list[float]) -> Session:
    job = make_job(root)
    write(Path(job.logs[0]), losses)
    return walk_to(begin(root, job), "metrics")


@pytest.mark.parametrize(
    "losses",
    [
        pytest.param(wave(2.0, 0.0), id="flat"),
        pytest.param([2.6, *wave(2.0, 0.003)], id="rising after a high first value"),
        pytest.param([*wave(2.0, 0.0), 1.7], id="flat with a low last value"),
        pytest.param(wave(6.0, -0.01), id="falling far above a uniform guess"),
        pytest.param([*wave(3.0, -0.02), float("nan")], id="ends in nan"),
        pytest.param([3.0, 2.0, 1.9], id="three points"),
    ],
)
def test_no_healthy_without_progress(tmp_path: Path, losses: list[float]) -> None:
    session = at_metrics(tmp_path, losses)
    last = find(session, "loss")
    reasons = {
        f.id: f"the values are noise as the last [{last.id}] shows" for f in session.findings
    }
    with pytest.raises(Refusal, match="HEALTHY"):
        session.assess(assessment(session, disputed=reasons))


@pytest.mark.parametrize(
    ("quantity", "direction", "message"),
    [
        ("learning_rate", "decrease", "no measure of learning"),
        ("step", "increase", "no measure of learning"),
        ("loss", "increase", "has not moved as it should"),
    ],
)
def test_no_healthy_by_another_indicator(
    tmp_path: Path, quantity: str, direction: str, message: str
) -> None:
    session = at_metrics(tmp_path, wave(3.0, -0.02))
    indicator = {"quantity": quantity, "direction": direction, "why": "it is what can be seen here"}
    seen = find(session, quantity)
    with pytest.raises(Refusal, match=message):
        session.assess(assessment(session, indicator=indicator, progress=(seen.id,)))
    session.assess(assessment(session))


def test_a_dispute_cites(tmp_path: Path) -> None:
    session = at_metrics(tmp_path, [*wave(3.0, -0.02), float("nan")])
    assert session.findings
    with pytest.raises(Refusal, match="speaks against it"):
        session.assess(
            assessment(session, disputed={session.findings[0].id: "I do not believe that one bit"})
        )


def uncertain(session: Session, **more: Any) -> Any:
    last = find(session, "loss")
    fields = {
        "status": "UNCERTAIN",
        "progress": (),
        "reasoning": f"The loss alone [{last.id}] does not tell what was asked.",
        "tried": "The trend of the loss over the whole run.",
        "why_failed": "The question is about another measure altogether.",
        "would_resolve": "An evaluation on the held-out set would.",
        "question": "Is there an evaluation that can be run now?",
    }
    return assessment(session, **(fields | more))


def test_uncertain_owes_four_different_things(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "metrics")
    same = "Nothing more can be said about it"
    with pytest.raises(Refusal, match="say the same"):
        session.assess(uncertain(session, tried=same, question=same + "?"))


def test_a_deferral_binds_later_sessions(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    session = walk_to(begin(tmp_path, job), "metrics")
    wait = {"signal": "the rate is still rising in its warm-up", "until_step": 600}
    for until in (100, 10**9):
        with pytest.raises(Refusal, match="deferral"):
            session.assess(uncertain(session, deferral=wait | {"until_step": until}))
    with pytest.raises(Refusal, match="no source"):
        session.assess(
            uncertain(session, deferral=wait | {"signal": "the rate is 0.7 of its peak"})
        )
    session.assess(uncertain(session, deferral=wait))
    to_the_end(session)
    later = walk_to(begin(tmp_path, job), "metrics")
    with pytest.raises(Refusal, match="that binds"):
        later.assess(uncertain(later, deferral=wait | {"until_step": 900}))
    later.assess(uncertain(later, deferral=wait))


def a_cause(session: Session) -> dict[str, Any]:
    return {
        "statement": "The run logs no evaluation at all so far.",
        "role": "initiating",
        "observations": [find(session, "loss").id],
        "evidence_type": "inference",
        "confidence": 0.5,
        "first_action": "Evaluate a checkpoint by hand.",
    }


def to_the_end(session: Session, **plan: Any) -> None:
    """From a sealed UNCERTAIN on."""
    session.resources(RESOURCES)
    session.review(review(session))
    session.troubleshoot(Troubleshooting.model_validate({"causes": [a_cause(session)]}))
    three = [hypothesis(name) for name in ("data", "optimiser", "hardware")]
    session.strategize(strategy(**({"hypotheses": three, "chosen": 2} | plan)))
    session.finish()


@pytest.mark.parametrize(
    "name", ["Tester", " t e s t e r", "TESTER.", "tést-er", "tеster", "ｔester"]
)
def test_no_one_reviews_himself_under_another_spelling(tmp_path: Path, name: str) -> None:
    session = walk_to(begin(tmp_path), "review")
    with pytest.raises(Refusal, match="reviewer"):
        session.review(review(session, reviewer=name))


def test_names_are_one_but_for_case_and_punctuation() -> None:
    assert same_name("quality-reviewer", "Quality Reviewer")
    assert not same_name("rules", "built-in reviewer")


@pytest.mark.parametrize("found", [1, 99.0, None, "as the gate says", True, "nan"])
def test_what_was_read_again_must_be_what_was_observed(tmp_path: Path, found: object) -> None:
    session = walk_to(begin(tmp_path), "review")
    last = find(session, "loss")
    item = {"observation": last.id, "found": found, "agrees": True, "how": "tail"}
    with pytest.raises(Refusal, match="not what it says"):
        session.review(review(session, reread=[item]))
    session.review(review(session, reread=[item | {"found": f"{last.value:.3f}"}]))


def test_hypotheses_differ_in_more_than_words(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "metrics")
    session.assess(uncertain(session))
    session.resources(RESOURCES)
    session.review(review(session))
    cause = a_cause(session)
    both = {"causes": [cause], "skipped": "nothing to see here now"}
    with pytest.raises(Refusal, match="not both"):
        session.troubleshoot(Troubleshooting.model_validate(both))
    session.troubleshoot(Troubleshooting.model_validate({"causes": [cause]}))
    three = [hypothesis(name) for name in ("data", "optimiser", "hardware")]
    said = "The rate is too high for it."
    for wrong, message in (
        ({"dimension": "DATA."}, "another dimension"),
        ({"statement": "The DATA is -- what holds the run back!"}, "wording of their statement"),
        ({"action": three[0]["action"].upper()}, "wording of their action"),
        (
            {"statement": said, "counter_hypothesis": "The rate is not too high for it."},
            "mechanism",
        ),
        ({"expected_outcome": said, "failure_criterion": said}, "shows it false"),
    ):
        with pytest.raises(Refusal, match=message):
            session.strategize(
                strategy(hypotheses=[three[0], three[1] | wrong, three[2]], chosen=1)
            )
    for wrong in ({"chosen": " "}, {"chosen": 0}, {"chosen": "1.0"}, {"chosen": "None"}):
        with pytest.raises(Refusal, match="chosen"):
            session.strategize(strategy(hypotheses=three, **wrong))
    for when in ({"step": 10**9}, {"time": "9999-01-01T00:00:00Z"}):
        with pytest.raises(Refusal, match="never"):
            session.strategize(strategy(hypotheses=three, chosen=1, evaluate_after=when))
    # A number is a place, whatever ids the others were given.
    named = [three[0] | {"id": "3"}, three[1], three[2]]
    gate = session.strategize(strategy(hypotheses=named, chosen=3))
    assert gate.content["strategy"]["chosen"] == "H1-3"


def test_judgement_of_a_hypothesis_cannot_be_put_off_or_turned(tmp_path: Path) -> None:
    moment, job = [MOMENT], make_job(tmp_path)
    session = walk_to(begin(tmp_path, job, clock=lambda: moment[0]), "metrics")
    session.assess(uncertain(session))
    low = {"success": {"quantity": "loss", "comparison": "<", "threshold": 0.1}}
    three = [hypothesis("data", **low), hypothesis("optimiser"), hypothesis("hardware")]
    hour = {"time": (MOMENT + timedelta(hours=1)).isoformat()}
    to_the_end(session, hypotheses=three, chosen="1", evaluate_after=hour)
    moment[0] = MOMENT + timedelta(minutes=30)
    second = walk_to(begin(tmp_path, job, clock=lambda: moment[0]), "strategy")
    second.strategize(strategy(evaluate_after={"step": 2000}))
    second.finish()
    moment[0] = MOMENT + timedelta(hours=2)
    third = begin(tmp_path, job, clock=lambda: moment[0])
    assert [h.id for h in third.due] == ["H1-1"]
    walk_to(third, "strategy")
    seen = find(third, "loss")
    score = {"hypothesis": "H1-1", "outcome": "CONFIRMED", "observations": [seen.id]}
    with pytest.raises(Refusal, match="against its own measures"):
        third.strategize(strategy(scores=[score | {"reasoning": "It fell as was expected of it."}]))
    told = {"outcome": "REFUTED", "reasoning": "It fell to 0.05 and not below."}
    with pytest.raises(Refusal, match="no source"):
        third.strategize(strategy(scores=[score | told]))
    told = {"outcome": "REFUTED", "reasoning": "It did not fall below its threshold."}
    third.strategize(strategy(scores=[score | told]))


def test_troubleshooting_skips_nothing_while_uncertain(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path, Job.model_validate(make_job(tmp_path))), "metrics")
    session.assess(uncertain(session))
    session.resources(RESOURCES)
    session.review(review(session))
    with pytest.raises(Refusal, match="cannot be skipped"):
        session.troubleshoot(skip())


def test_all_that_is_wrong_with_an_assessment_is_told_at_once(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "metrics")
    with pytest.raises(Refusal) as refused:
        session.assess(
            assessment(
                session,
                progress=("E9999",),
                expected="It should be at 0.123 by now, and then fall.",
            )
        )
    told = str(refused.value)
    assert "0.123" in told
    assert "E9999 is no observation" in told
    assert "HEALTHY: progress must cite observations of loss" in told
