"""What the guard's record says: tickets, what it vouches for, reviewers, skills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.answers import begin, predictions, walk_to
from support.guarded import AGENT, passed, reviewer
from trainwarden.guard import record
from trainwarden.procedure import witness as module
from trainwarden.procedure.aside import collected_before
from trainwarden.procedure.client import Client
from trainwarden.procedure.session import Session
from trainwarden.procedure.witness import Witness, _ticket
from trainwarden.records.job import Job

ME = Client("client-1")


def note(root: Path, event: str, **fields: Any) -> None:
    record.append(str(root), ME.session, event, **fields)


def live(root: Path, command: str, session: Session | None = None) -> Witness:
    """A witness of a call that the guard passed."""
    passed(root, ME.session, command)
    witness = Witness.of(root, ME, command)
    if session is not None:
        witness.meet(session.header.session)
        session.witness = witness
    return witness


def opened(root: Path) -> Session:
    return begin(root, analyst="claude-code", witness=live(root, "begin"))


def test_a_ticket_is_for_one_command_once(tmp_path: Path) -> None:
    passed(tmp_path, ME.session, "collect", use="t1")
    assert not Witness.of(tmp_path, ME, "compare").live
    assert Witness.of(tmp_path, ME, "collect").ticket == "t1"
    assert not Witness.of(tmp_path, ME, "collect").live
    assert not Witness.of(tmp_path, Client("another"), "collect").live
    assert not Witness.of(tmp_path / "elsewhere", ME, "collect").live


def test_one_call_may_ask_for_several_commands(tmp_path: Path) -> None:
    commands = [["trainwarden", "collect"], ["trainwarden", "--x", "compare"]]
    note(tmp_path, "call", tool_use="t1", commands=commands)
    assert Witness.of(tmp_path, ME, "collect").live
    assert Witness.of(tmp_path, ME, "compare").live
    assert not Witness.of(tmp_path, ME, "compare").live


def test_a_call_that_was_never_run_is_no_ticket_later(tmp_path: Path) -> None:
    passed(tmp_path, ME.session, "collect", use="denied-by-the-user")
    passed(tmp_path, ME.session, "predict", use="run")
    assert Witness.of(tmp_path, ME, "predict").live
    assert not Witness.of(tmp_path, ME, "collect").live


def test_showing_the_material_is_no_ticket_for_a_verdict(tmp_path: Path) -> None:
    passed(tmp_path, ME.session, "review", "--material")
    assert not Witness.of(tmp_path, ME, "review").live


def test_nothing_is_written_where_there_is_no_guard(tmp_path: Path) -> None:
    begin(tmp_path, witness=Witness.of(tmp_path, ME, "begin")).predict(predictions())
    assert not Path(record.seen_path(str(tmp_path), ME.session)).exists()


CALLS = st.lists(
    st.tuples(st.integers(0, 4), st.lists(st.sampled_from(["predict", "collect"]), max_size=3)),
    max_size=8,
)


@given(CALLS, st.lists(st.sampled_from(["predict", "collect"]), max_size=12))
def test_no_command_is_vouched_for_more_often_than_it_was_passed(
    calls: list[tuple[int, list[str]]], commands: list[str]
) -> None:
    events: list[dict[str, Any]] = []
    asked: dict[tuple[str, str], int] = {}
    for number, (_, names) in enumerate(calls):
        argvs = [["trainwarden", name] for name in names]
        events.append({"event": "call", "tool_use": f"t{number}", "commands": argvs})
        for name in names:
            asked[f"t{number}", name] = asked.get((f"t{number}", name), 0) + 1
    for command in commands:
        if use := _ticket(events, command):
            asked[use, command] -= 1
            events.append({"event": "used", "tool_use": use, "command": command})
    assert all(left >= 0 for left in asked.values())


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["tool_use", "commands", "command", "agent", "session"]),
            st.one_of(st.none(), st.integers(), st.text(max_size=5), st.lists(st.text())),
        ).flatmap(
            lambda d: st.sampled_from(["call", "used", "sealed", "agent-stop"]).map(
                lambda event: d | {"event": event}
            )
        ),
        max_size=6,
    )
)
def test_an_odd_record_is_no_ticket_and_no_failure(events: list[dict[str, Any]]) -> None:
    assert _ticket(events, "predict") == ""


def test_gates_are_vouched_for_while_the_guard_lives(tmp_path: Path) -> None:
    session = opened(tmp_path)
    live(tmp_path, "predict", session)
    gate = session.predict(predictions())
    assert gate.guarded is True
    assert not gate.unguarded
    assert "guarded: true" in (session.folder / gate.file).read_text()


def test_what_speaks_against_it(tmp_path: Path) -> None:
    session = opened(tmp_path)
    name = session.header.session
    witness = live(tmp_path, "predict", session)
    assert witness.objection(name) == ""
    assert "saw no call" in Witness(tmp_path, ME).objection(name)
    assert "outside of Claude Code" in Witness(tmp_path, None).objection(name)
    assert "does not tell" in Witness(tmp_path, Client("")).objection(name)
    assert "beginning" in witness.objection("another session")
    note(tmp_path, "failed", where="PreToolUse", why="ValueError: x")
    assert "the guard failed: PreToolUse: ValueError: x" in witness.objection(name)


def test_a_failure_counts_for_one_gate(tmp_path: Path) -> None:
    session = opened(tmp_path)
    note(tmp_path, "failed", where="PreToolUse", why="broken")
    live(tmp_path, "predict", session)
    assert session.predict(predictions()).guarded is False
    live(tmp_path, "collect", session)
    assert session.collect([]).guarded is True


def test_opening_it_once_more_forgets_no_failure(tmp_path: Path) -> None:
    session = opened(tmp_path)
    note(tmp_path, "failed", where="PreToolUse", why="broken")
    live(tmp_path, "resume").opened(session.header.session)
    live(tmp_path, "predict", session)
    assert "the guard failed" in session.predict(predictions()).unguarded
    live(tmp_path, "resume").opened(session.header.session)
    live(tmp_path, "collect", session)
    assert session.collect([]).guarded is True


def test_predictions_after_a_session_that_was_given_up_say_what_it_had_read(
    tmp_path: Path,
) -> None:
    session = opened(tmp_path)
    live(tmp_path, "predict", session)
    session.predict(predictions())
    live(tmp_path, "collect", session)
    session.collect([])
    again = begin(tmp_path, session.job, take_over="any", witness=live(tmp_path, "begin"))
    live(tmp_path, "predict", again)
    (told,) = again.predict(predictions()).content["seen_before"]
    assert told.startswith(f"what session {session.header.session} collected")


def test_predictions_of_what_another_session_of_the_client_has_just_read(tmp_path: Path) -> None:
    def through(session: Session) -> Session:
        live(tmp_path, "predict", session)
        session.predict(predictions())
        live(tmp_path, "collect", session)
        session.collect()
        return session

    def told(job: Job) -> list[str]:
        again = begin(tmp_path, job, take_over="any", witness=live(tmp_path, "begin"))
        live(tmp_path, "predict", again)
        seen: list[str] = again.predict(predictions()).content["seen_before"]
        return seen

    first = opened(tmp_path)
    through(first)
    what = f"what session {first.header.session} collected"
    other = first.job.model_copy(update={"id": "other"})
    assert told(other) == [f"{what} from the same log for job {first.job.id}"]
    assert told(other.model_copy(update={"id": "third", "logs": ()})) == []


def test_a_session_that_ended_is_history_unless_its_log_says_no_more(tmp_path: Path) -> None:
    session = walk_to(opened(tmp_path), "summary")
    session.finish()
    sessions = [session.header.session]
    (said,) = collected_before(session.store, session.job, sessions)
    assert said.endswith("collected, and the log has not grown since")
    with Path(session.job.logs[0]).open("a") as log:
        log.write("step 5000 loss=1.0\n")
    assert collected_before(session.store, session.job, sessions) == []


def test_a_root_that_the_guard_does_not_watch(tmp_path: Path) -> None:
    session = opened(tmp_path)
    witness = live(tmp_path, "predict", session)
    witness.client = Client(ME.session, tmp_path)
    assert witness.objection(session.header.session) == ""
    witness.client = Client(ME.session, tmp_path / "elsewhere")
    assert "the guard watches" in witness.objection(session.header.session)


def test_a_call_that_was_never_judged_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STILL_JUDGING", 0.0)
    session = opened(tmp_path)
    witness = live(tmp_path, "predict", session)
    note(tmp_path, "began", tool_use="hung")
    assert "did not finish" in witness.objection(session.header.session)
    note(tmp_path, "ended", tool_use="hung")
    assert witness.objection(session.header.session) == ""


def test_predictions_in_the_call_that_opened_the_session(tmp_path: Path) -> None:
    commands = [["trainwarden", "begin"], ["trainwarden", "predict"]]
    note(tmp_path, "call", tool_use="both", commands=commands)
    session = begin(tmp_path, witness=Witness.of(tmp_path, ME, "begin"))
    session.witness = Witness.of(tmp_path, ME, "predict")
    gate = session.predict(predictions())
    assert gate.guarded is False
    assert "in the call that opened the session" in gate.unguarded


def test_a_session_whose_opening_was_not_seen(tmp_path: Path) -> None:
    passed(tmp_path, ME.session, "status")
    session = begin(tmp_path, witness=Witness.of(tmp_path, ME, "begin"))
    live(tmp_path, "predict", session)
    assert "how the session was opened" in session.predict(predictions()).unguarded


def test_a_session_that_the_guard_was_not_told_of(tmp_path: Path) -> None:
    session = opened(tmp_path)
    for path in (tmp_path / "monitoring-logs" / "guard" / "open").iterdir():
        path.unlink()
    live(tmp_path, "predict", session)
    assert "had not been told" in session.predict(predictions()).unguarded


def test_outside_of_claude_code_gates_say_nothing_of_a_guard(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "metrics")
    assert all(gate.guarded is None for gate in session.record.gates)
    assert "guarded" not in session.record.model_dump_json()
    assert "seen_before" not in session.content("predict")
    assert "client" not in session.record.model_dump(mode="json")["header"]


def test_gate_1_says_what_had_been_seen(tmp_path: Path) -> None:
    session = opened(tmp_path)
    note(tmp_path, "seen", what="a prompt named @train.log\x1b[31m", session=session.header.session)
    note(tmp_path, "seen", what="of another watch", session="2020-01-01_000000")
    note(tmp_path, "seen", what="a log was pasted")
    live(tmp_path, "predict", session)
    gate = session.predict(predictions())
    assert [text.partition("@")[0] for text in gate.content["seen_before"]] == [
        "a prompt named ",
        "a log was pasted",
    ]
    text = (session.folder / gate.file).read_text()
    assert "Seen before predicting:" in text
    assert "- a prompt named @train.log" in text
    assert "No evidence of this session" not in text


def test_reviewers_that_count(tmp_path: Path) -> None:
    session = opened(tmp_path)
    name, root = session.header.session, str(tmp_path)
    reviewer(tmp_path, ME.session, "too-early", "x")
    note(tmp_path, "sealed", session="another", step=5)
    reviewer(tmp_path, ME.session, "of-another", "x")
    assert Witness(tmp_path, ME).reviewers(name) == ([], False)
    note(tmp_path, "sealed", session=name, step=5, revision=1)
    note(tmp_path, "agent-stop", agent="too-early", agent_type=AGENT, message="x")
    reviewer(tmp_path, ME.session, "hasty", "x", reads=0)
    record.append(root, ME.session, "agent-start", agent="other", agent_type="general-purpose")
    note(tmp_path, "agent-call", agent="other", tool="Read", about="x")
    note(tmp_path, "agent-stop", agent="other", agent_type=AGENT, message="x")
    reviewer(tmp_path, ME.session, "a1", "first")
    note(tmp_path, "agent-stop", agent="a1", agent_type=AGENT, message="again")
    assert Witness(tmp_path, ME).reviewers(name)[1] is False
    note(tmp_path, "agent-start", agent="c3", agent_type=AGENT)
    reviewer(tmp_path, ME.session, "b2 [x]", "second")
    heard, at_work = Witness(tmp_path, ME).reviewers(name)
    assert [(one.name, one.message, one.read) for one in heard] == [
        ("quality-reviewer hasty", "x", False),
        ("quality-reviewer a1", "first", True),
        ("quality-reviewer a1", "again", True),
        ("quality-reviewer b2x", "second", True),
    ]
    assert at_work
    note(tmp_path, "sealed", session=name, step=5, revision=2)
    assert Witness(tmp_path, ME).reviewers(name) == ([], False)


def test_skills_are_named_without_the_plugin(tmp_path: Path) -> None:
    note(tmp_path, "skill", name="trainwarden:grpo-monitor")
    note(tmp_path, "skill", name="wandb-monitor")
    note(tmp_path, "skill", name="trainwarden:grpo-monitor")
    assert Witness(tmp_path, ME).skills() == ["grpo-monitor", "wandb-monitor"]
