from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.answers import (
    MOMENT,
    RESOURCES,
    SOURCES,
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
    write_log,
)
from trainwarden.errors import Refusal
from trainwarden.procedure import duties
from trainwarden.procedure.seals import load_session, verify
from trainwarden.procedure.session import Session
from trainwarden.procedure.state import StateStore
from trainwarden.records.assessment import Assessment
from trainwarden.records.finding import Finding, Severity
from trainwarden.records.session import STEPS

ANSWERS: dict[str, Callable[[Session], Any]] = {
    "predict": lambda s: s.predict(predictions()),
    "collect": lambda s: s.collect(SOURCES),
    "compare": lambda s: s.compare(),
    "metrics": lambda s: s.assess(assessment(s)),
    "resources": lambda s: s.resources(RESOURCES),
    "review": lambda s: s.review(review(s)),
    "troubleshoot": lambda s: s.troubleshoot(skip()),
    "strategy": lambda s: s.strategize(strategy()),
    "summary": lambda s: s.finish(),
}


def test_nine_gates_are_sealed_in_order(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "done")
    assert [gate.name for gate in session.record.gates] == list(STEPS)
    assert verify(session.folder).broken is None
    for gate in session.record.gates:
        text = (session.folder / gate.file).read_text(encoding="utf-8")
        assert re.findall(r"^## (\w+)$", text, re.M) == ["Input", "Execution", "Output", "Next"]
        for key in ("step", "job", "session", "analyst", "sealed_at", "revision", "seal"):
            assert re.search(rf"^{key}: \S", text, re.M)
    assert load_session(session.folder) == session.record


@pytest.mark.parametrize("present", STEPS)
def test_no_other_step_can_be_sealed(tmp_path: Path, present: str) -> None:
    session = walk_to(begin(tmp_path), present)
    before = (session.folder / "session.json").read_bytes()
    for name, answer in ANSWERS.items():
        if name != present:
            with pytest.raises((Refusal, StopIteration)):
                answer(session)
    assert (session.folder / "session.json").read_bytes() == before
    ANSWERS[present](session)


def test_evidence_is_refused_before_the_prediction(tmp_path: Path) -> None:
    session = begin(tmp_path)
    with pytest.raises(Refusal, match="predict first"):
        session.collect(SOURCES)
    assert list(session.folder.iterdir()) == [session.folder / "session.json"]


def test_a_sealed_prediction_is_never_revised(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "review")
    session.review(review(session, verdict="reject", objections=["look again"]))
    with pytest.raises(Refusal, match="never revised"):
        session.predict(predictions())


def test_predictions_must_cover_progress_learning_and_resources(tmp_path: Path) -> None:
    session = begin(tmp_path)
    for missing in range(3):
        some = predictions()
        del some[missing]
        with pytest.raises(Refusal):
            session.predict(some)


def test_a_rejected_review_opens_a_second_revision_and_keeps_the_first(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "review")
    first = {gate.name: gate for gate in session.record.gates}
    session.review(review(session, verdict="reject", objections=["read the log again"]))
    session = Session.resume(session.store, session.folder)
    write_log(Path(session.job.logs[0]), range(400, 500, 10), append=True)
    session.collect(SOURCES)
    session.compare()
    session.assess(assessment(session))
    session.resources(RESOURCES)
    assert session.latest("predict") == first["predict"]
    collected = session.latest("collect")
    assert collected is not None
    assert (collected.revision, collected.file) == (2, "2-collect.r2.md")
    assert (session.folder / first["collect"].file).exists()
    ids = [
        o["id"]
        for gate in session.record.gates
        if gate.name == "collect"
        for o in gate.content["observations"]
    ]
    assert len(ids) == len(set(ids)), "ids of a session are never given twice"
    with pytest.raises(Refusal, match="latest seals"):
        session.review(review(session, seals={name: first[name].seal for name in STEPS[:5]}))
    gate = session.review(review(session, verdict="reject", objections=["the end is not read"]))
    assert gate.content["outcome"] == "unverified"
    assert "the end is not read" in gate.content["unverified"]
    session.troubleshoot(skip())
    assert verify(session.folder).broken is None


BAD_ASSESSMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "no reasoning": ({"reasoning": "fine"}, "five words or more"),
    "no citation": ({"reasoning": "The loss goes down as it ought to do."}, "cite at least one"),
    "no source": ({"expected": "It should fall to 1.2 by now or so."}, "no source"),
    "no progress": ({"progress": ()}, "progress must cite"),
    "warning without process": ({"status": "WARNING", "progress": ()}, "process"),
    "critical without failure": ({"status": "CRITICAL"}, "failure must cite"),
    "uncertain without question": ({"status": "UNCERTAIN"}, "question"),
    "wrong way": (
        {
            "indicator": {
                "quantity": "loss",
                "direction": "increase",
                "why": "more is more in this world",
            }
        },
        "has not moved",
    ),
    "unknown observation": ({"progress": ("E999",)}, "no observation"),
    "unknown dispute": ({"disputed": {"F99": "it is not so at all, I think"}}, "no finding"),
}


@pytest.mark.parametrize("case", BAD_ASSESSMENTS)
def test_a_status_must_do_its_duties(tmp_path: Path, case: str) -> None:
    session = walk_to(begin(tmp_path), "metrics")
    changes, message = BAD_ASSESSMENTS[case]
    with pytest.raises(Refusal, match=message):
        session.assess(assessment(session, **changes))
    assert session.latest("metrics") is None
    session.assess(assessment(session))


def test_a_machine_reading_is_no_progress(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "metrics")
    size = find(session, "log.size")
    with pytest.raises(Refusal, match="a GPU that is busy show nothing"):
        session.assess(assessment(session, progress=(size.id,)))


def test_a_wrong_number_is_named(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "metrics")
    last = find(session, "loss")
    with pytest.raises(Refusal, match=r"0\.1234"):
        session.assess(
            assessment(session, reasoning=f"The loss is now down to 0.1234 [{last.id}].")
        )


def test_the_reviewer_is_another_and_rereads(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "review")
    with pytest.raises(Refusal, match="cannot be the analyst"):
        session.review(review(session, reviewer="Tester"))
    size, last = find(session, "log.size"), find(session, "loss")
    beside = {"observation": size.id, "found": 1, "agrees": True, "how": "stat"}
    with pytest.raises(Refusal, match="re-read at least one"):
        session.review(review(session, reread=[beside]))
    against = {"observation": last.id, "found": 9, "agrees": False, "how": "tail"}
    with pytest.raises(Refusal, match="that is a rejection"):
        session.review(review(session, reread=[against]))


def test_troubleshooting_is_skipped_only_where_nothing_asks_for_it(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    with Path(job.logs[0]).open("a") as log:
        log.writelines(
            f"step {step} | loss nan | grad_norm nan | lr 3.0e-04\n" for step in range(400, 480, 10)
        )
    session = walk_to(begin(tmp_path, job), "metrics")
    last = find(session, "loss")
    changes = {"reasoning": f"The loss is nan [{last.id}] since a while.", "failure": (last.id,)}
    with pytest.raises(Refusal, match="critical"):
        session.assess(assessment(session))
    session.assess(assessment(session, status="CRITICAL", progress=(), **changes))
    session.resources(RESOURCES)
    session.review(review(session))
    with pytest.raises(Refusal, match="cannot be skipped"):
        session.troubleshoot(skip())


def test_hypotheses_can_fail_and_are_scored_when_due(tmp_path: Path) -> None:
    moment = [MOMENT]
    job = make_job(tmp_path)
    session = begin(tmp_path, job, clock=lambda: moment[0])
    walk_to(session, "metrics")
    last = find(session, "loss")
    session.assess(
        assessment(
            session,
            status="UNCERTAIN",
            reasoning=f"The loss alone [{last.id}] does not tell what was asked.",
            tried="The trend of the loss over the whole run.",
            why_failed="The question is about another measure altogether.",
            would_resolve="An evaluation on the held-out set would.",
            question="Is there an evaluation that can be run now?",
        )
    )
    session.resources(RESOURCES)
    session.review(review(session))
    cause = {
        "statement": "The run logs no evaluation at all so far.",
        "role": "initiating",
        "observations": [last.id],
        "evidence_type": "inference",
        "confidence": 0.5,
        "first_action": "Evaluate a checkpoint by hand.",
    }
    from trainwarden.records.assessment import Troubleshooting

    session.troubleshoot(Troubleshooting.model_validate({"causes": [cause]}))
    three = [hypothesis(name) for name in ("data", "optimiser", "hardware")]
    due_at = {"time": (MOMENT + timedelta(hours=1)).isoformat()}
    for wrong in (
        {"hypotheses": three[:2], "chosen": "1"},
        {"hypotheses": [three[0], three[0], three[1]], "chosen": "1"},
        {"hypotheses": three},
        {"hypotheses": three, "chosen": "7"},
        {"hypotheses": three, "chosen": "1", "evaluate_after": {"time": MOMENT.isoformat()}},
        {"hypotheses": three, "chosen": "1", "evaluate_after": {"step": 5}},
    ):
        with pytest.raises(Refusal):
            session.strategize(strategy(**({"evaluate_after": due_at} | wrong)))
    session.strategize(strategy(hypotheses=three, chosen="2", evaluate_after=due_at))
    session.finish()

    early = begin(tmp_path, job, clock=lambda: MOMENT + timedelta(minutes=5))
    assert early.due == ()
    moment[0] = MOMENT + timedelta(hours=2)
    later = begin(tmp_path, job, clock=lambda: moment[0], take_over="any")
    assert [h.id for h in later.due] == ["H1-2"]
    write_log(Path(job.logs[0]), range(400, 500, 10), append=True)
    walk_to(later, "strategy")
    with pytest.raises(Refusal, match="H1-2"):
        later.strategize(strategy())
    seen = find(later, "loss")
    score = {
        "hypothesis": "H1-2",
        "outcome": "CONFIRMED",
        "observations": [seen.id],
        "reasoning": "It fell as was expected of it.",
    }
    with pytest.raises(Refusal, match="must cite"):
        later.strategize(strategy(scores=[score | {"observations": []}]))
    later.strategize(strategy(scores=[score]))
    later.finish()
    state, _ = StateStore(tmp_path).load(job.id)
    assert state is not None
    assert state.strategy.hypotheses == []
    assert [outcome.outcome for outcome in state.strategy.outcomes] == ["CONFIRMED"]


def test_state_takes_over_and_an_interrupted_finish_is_completed(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    session = walk_to(begin(tmp_path, job), "summary")
    path = session.store.path(job.id)
    before = path.read_bytes()
    session.finish()
    after = json.loads(path.read_text())
    path.write_bytes(before)  # as if killed between the last gate and the state
    later = begin(tmp_path, job)
    completed = json.loads(path.read_text())
    assert completed["monitor"]["status_history"] == after["monitor"]["status_history"]
    assert completed["monitor"]["calibration"]["loss"]["held"] == 1
    assert later.header.number == 2
    assert "previous_status" in {criterion.name for criterion in later.header.criteria}


def test_two_sessions_at_once_are_refused_or_one_is_set_aside(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    first = walk_to(begin(tmp_path, job), "collect")
    with pytest.raises(Refusal, match="still open"):
        begin(tmp_path, job)
    second = begin(tmp_path, job, take_over="any")
    assert any(first.header.session in note for note in second.header.notes)
    assert first.folder != second.folder
    assert verify(first.folder).broken is None


def test_the_clock_set_back_is_noted(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    walk_to(begin(tmp_path, job, clock=lambda: MOMENT), "done")
    later = begin(tmp_path, job, clock=lambda: MOMENT - timedelta(hours=3))
    assert any("set back" in note for note in later.header.notes)
    walk_to(later, "done")
    assert verify(later.folder).broken is None


def test_learnings_are_kept_and_shown(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    session = walk_to(begin(tmp_path, job), "review")
    learnings = [
        {"scope": "job", "text": "evaluation pauses the log"},
        {"scope": "all", "text": "power tells more than utilisation"},
    ]
    session.review(review(session, learnings=learnings))
    session.troubleshoot(skip())
    session.strategize(strategy())
    session.finish()
    later = begin(tmp_path, job)
    assert set(later.header.learnings) == {item["text"] for item in learnings}
    assert "power tells more" in (session.store.logs / "learnings.md").read_text()


def tamper_text(folder: Path) -> str:
    path = folder / "4-metrics.md"
    path.write_text(path.read_text().replace("HEALTHY", "WARNING"))
    return "4-metrics.md"


def tamper_front(folder: Path) -> str:
    path = folder / "1-predict.md"
    path.write_text(path.read_text().replace("revision: 1", "revision: 2"))
    return "1-predict.md"


def tamper_data(folder: Path) -> str:
    path = folder / "session.json"
    data = json.loads(path.read_text())
    data["gates"][2]["content"]["held"] = 99
    path.write_text(json.dumps(data))
    return "3-compare.md"


def tamper_header(folder: Path) -> str:
    path = folder / "session.json"
    data = json.loads(path.read_text())
    data["header"]["authority"] = "act"
    path.write_text(json.dumps(data))
    return "1-predict.md"


def remove_file(folder: Path) -> str:
    (folder / "5-resources.md").unlink()
    return "5-resources.md"


def remove_gate(folder: Path) -> str:
    path = folder / "session.json"
    data = json.loads(path.read_text())
    del data["gates"][5]
    path.write_text(json.dumps(data))
    return "7-troubleshoot.md"


def cut_the_end(folder: Path) -> str:
    path = folder / "session.json"
    data = json.loads(path.read_text())
    del data["gates"][6:]
    path.write_text(json.dumps(data))
    return "the end of the chain"


def reorder(folder: Path) -> str:
    path = folder / "session.json"
    data = json.loads(path.read_text())
    data["gates"][1], data["gates"][2] = data["gates"][2], data["gates"][1]
    path.write_text(json.dumps(data))
    return "3-compare.md"


@pytest.mark.parametrize(
    "tamper",
    [
        tamper_text,
        tamper_front,
        tamper_data,
        tamper_header,
        remove_file,
        remove_gate,
        cut_the_end,
        reorder,
    ],
)
def test_verify_names_the_first_broken_gate(tmp_path: Path, tamper: Callable[[Path], str]) -> None:
    session = walk_to(begin(tmp_path), "done")
    head = session.head
    assert verify(session.folder, head).broken is None
    expected = tamper(session.folder)
    checked = verify(session.folder, head)
    assert checked.broken == expected
    assert checked.problem


def test_a_healthy_answers_each_warning(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "metrics")
    finding = Finding(
        id="F1",
        kind="memory_leak",
        severity=Severity.WARNING,
        observations=(find(session, "loss").id,),
        summary="memory grows",
        confidence=0.5,
    )

    def complaints(given: Assessment) -> list[str]:
        known = session.observations, session.header.criteria, session.predictions
        return duties.assessment_complaints(given, *known, session.comparisons, [finding])

    silent = assessment(session)
    assert any("answer it in the reasoning" in complaint for complaint in complaints(silent))
    spoken = assessment(session, reasoning=f"{silent.reasoning} Memory has time yet [F1].")
    assert not any("answer it" in complaint for complaint in complaints(spoken))
