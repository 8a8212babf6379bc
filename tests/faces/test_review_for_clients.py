"""Step 4's skills and step 6's verdict in Claude Code: what counts and what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from support.answers import RESOURCES, assessment, begin, make_job, predictions, review
from support.cli import call
from support.guarded import AGENT, guarded, passed, reviewer, unguarded
from trainwarden.errors import Refusal
from trainwarden.evidence.logs import LogSource
from trainwarden.guard import record
from trainwarden.procedure.auditing import expand_seals
from trainwarden.procedure.client import Client
from trainwarden.procedure.session import Session
from trainwarden.procedure.verdicts import block_in
from trainwarden.procedure.witness import Witness

ME = Client("c1")


def claim(session: Session, command: str) -> Session:
    root = session.store.logs.parent
    passed(root, ME.session, command)
    session.witness = Witness.of(root, ME, command)
    session.witness.meet(session.header.session)
    return session


def watched(root: Path, config: str = "") -> Session:
    """A guarded session with gates 1 to 3 sealed."""
    job = make_job(root)
    if config:
        (root / "config.yaml").write_text(config)
    passed(root, ME.session, "begin")
    witness = Witness.of(root, ME, "begin")
    session = begin(root, job, analyst="claude-code", witness=witness)
    claim(session, "predict").predict(predictions())
    claim(session, "collect").collect([LogSource()])
    claim(session, "compare").compare()
    return session


def to_review(root: Path) -> Session:
    session = watched(root)
    claim(session, "assess").assess(assessment(session))
    claim(session, "resources").resources(RESOURCES)
    return session


def message(session: Session, digits: int = 64, **changes: Any) -> str:
    """How a reviewer ends."""
    data = review(session, **changes).model_dump(mode="json", exclude={"reviewer"})
    data["seals"] = {name: seal[:digits] for name, seal in data["seals"].items()}
    return f"I read all gates.\n\n```yaml\n{yaml.safe_dump(data)}```\n"


def outcome(root: Path) -> str:
    return next((root / "monitoring-logs").glob("*/6-review.md")).read_text(encoding="utf-8")


def test_the_verdict_is_the_reviewers_own(tmp_path: Path) -> None:
    session = to_review(tmp_path)
    reviewer(tmp_path, ME.session, "a1b2", message(session, 12))
    done = guarded(tmp_path, ME.session, "review")
    assert done.returncode == 0, done.stderr
    assert "approved by quality-reviewer a1b2" in done.stdout
    text = outcome(tmp_path)
    assert "guarded: true" in text
    assert all(seal in text for seal in session.reviewed_seals().values())


def test_a_later_verdict_does_not_replace_the_first(tmp_path: Path) -> None:
    session = to_review(tmp_path)
    rejection = message(session, verdict="reject", objections=("the loss is noise",))
    reviewer(tmp_path, ME.session, "first", rejection)
    reviewer(tmp_path, ME.session, "second", message(session))
    done = guarded(tmp_path, ME.session, "review")
    assert "rejected by quality-reviewer first" in done.stdout
    assert "the loss is noise" in done.stdout
    assert "revision 2" in done.stdout


def test_a_verdict_of_another_round_is_not_taken(tmp_path: Path) -> None:
    session = to_review(tmp_path)
    rejection = message(session, verdict="reject", objections=("the loss is noise",))
    reviewer(tmp_path, ME.session, "first", rejection)
    assert guarded(tmp_path, ME.session, "review").returncode == 0
    again = Session.resume(session.store, session.folder)
    claim(again, "collect").collect([LogSource()])
    claim(again, "compare").compare()
    claim(again, "assess").assess(assessment(again))
    claim(again, "resources").resources(RESOURCES)
    done = guarded(tmp_path, ME.session, "review")
    assert done.returncode == 2
    assert "no reviewer of the plugin has given a verdict" in done.stderr
    reviewer(tmp_path, ME.session, "second", message(again))
    assert "approved by quality-reviewer second" in guarded(tmp_path, ME.session, "review").stdout


def test_nobody_reviewed_yet(tmp_path: Path) -> None:
    to_review(tmp_path)
    for argv in (["review"], ["review", "--builtin"]):
        done = guarded(tmp_path, ME.session, *argv)
        assert done.returncode == 2
        assert "start the sub-agent trainwarden:quality-reviewer" in done.stderr


def test_a_reviewer_at_work_is_waited_for(tmp_path: Path) -> None:
    to_review(tmp_path)
    record.append(str(tmp_path), ME.session, "agent-start", agent="a", agent_type=AGENT)
    for argv in (["review"], ["review", "--builtin"]):
        done = guarded(tmp_path, ME.session, *argv)
        assert done.returncode == 2
        assert "still at work" in done.stderr


def test_a_reviewer_that_read_nothing_gives_no_verdict(tmp_path: Path) -> None:
    session = to_review(tmp_path)
    reviewer(tmp_path, ME.session, "a1", message(session), reads=0)
    assert "it read nothing" in guarded(tmp_path, ME.session, "review").stderr
    assert guarded(tmp_path, ME.session, "review", "--builtin").returncode == 0


@pytest.mark.parametrize(
    ("spoilt", "told"),
    [
        ("All is well, I approve.", "no fenced ```yaml block"),
        ("```yaml\nverdict: [\n```", "neither YAML nor JSON"),
        ("```yaml\nverdict: maybe\n```", "verdict: Input should be 'approve' or 'reject'"),
        ("```yaml\nverdict: &a approve\nseals: *a\n```", "aliases"),
    ],
)
def test_a_verdict_that_cannot_be_used_is_told_and_the_builtin_may_stand_in(
    tmp_path: Path, spoilt: str, told: str
) -> None:
    to_review(tmp_path)
    reviewer(tmp_path, ME.session, "a1", spoilt)
    done = guarded(tmp_path, ME.session, "review")
    assert done.returncode == 2
    assert "the verdict of quality-reviewer a1 cannot be used" in done.stderr
    assert told in done.stderr
    assert "start the sub-agent" in done.stderr
    done = guarded(tmp_path, ME.session, "review", "--builtin")
    assert done.returncode == 0, done.stderr
    assert "guarded: true" in outcome(tmp_path)


def test_a_verdict_on_other_seals_is_passed_over_for_a_right_one(tmp_path: Path) -> None:
    session = to_review(tmp_path)
    reviewer(tmp_path, ME.session, "a1", message(session, 11))
    assert "seals: the verdict must name" in guarded(tmp_path, ME.session, "review").stderr
    reviewer(tmp_path, ME.session, "b2", message(session))
    assert "approved by quality-reviewer b2" in guarded(tmp_path, ME.session, "review").stdout


def test_the_builtin_does_not_replace_a_reviewers_verdict(tmp_path: Path) -> None:
    session = to_review(tmp_path)
    rejection = message(session, verdict="reject", objections=("the loss is noise",))
    reviewer(tmp_path, ME.session, "a1", rejection)
    done = guarded(tmp_path, ME.session, "review", "--builtin")
    assert done.returncode == 2
    assert "quality-reviewer a1 has given its verdict (reject)" in done.stderr


def test_a_verdict_handed_in_is_refused(tmp_path: Path) -> None:
    session = to_review(tmp_path)
    reviewer(tmp_path, ME.session, "a1", message(session))
    forged = yaml.safe_dump(review(session).model_dump(mode="json"))
    (tmp_path / "verdict.yaml").write_text(forged)
    for argv, stdin in ((["review"], forged), (["review", "--input", "verdict.yaml"], "")):
        for how in (guarded, unguarded):
            done = how(tmp_path, ME.session, *argv, stdin=stdin)
            assert done.returncode == 2
            assert "handed in is not taken" in done.stderr
    # Nor where the client is hidden from the command.
    done = call("review", "--root", tmp_path, stdin=forged)
    assert "resume" in done.stderr
    assert call("resume", "--root", tmp_path).returncode == 0
    done = call("review", "--root", tmp_path, stdin=forged)
    assert done.returncode == 2
    assert "opened in Claude Code" in done.stderr


def test_without_a_guard_only_the_builtin_audits(tmp_path: Path) -> None:
    session = to_review(tmp_path)
    reviewer(tmp_path, ME.session, "a1", message(session))
    done = unguarded(tmp_path, ME.session, "review")
    assert done.returncode == 2
    assert "trainwarden review --builtin" in done.stderr
    assert unguarded(tmp_path, ME.session, "review", "--builtin").returncode == 0
    assert "guarded: false" in outcome(tmp_path)


def test_the_material_takes_no_ticket_and_needs_no_hold(tmp_path: Path) -> None:
    session = to_review(tmp_path)
    passed(tmp_path, ME.session, "review")
    assert unguarded(tmp_path, ME.session, "review", "--material").returncode == 0
    assert all(
        event.get("command") != "review" for event in record.events(str(tmp_path), ME.session)
    )
    reviewer(tmp_path, ME.session, "a1", message(session))
    assert unguarded(tmp_path, ME.session, "review").returncode == 0


def test_step_6_comes_after_step_5(tmp_path: Path) -> None:
    watched(tmp_path)
    for argv in (["review"], ["review", "--builtin"]):
        done = guarded(tmp_path, ME.session, *argv)
        assert "cannot be sealed yet" in done.stderr


def test_skills_are_asked_for_and_must_be_loaded(tmp_path: Path) -> None:
    session = watched(tmp_path, "max_steps: 2000\nvocab_size: 64\nworld_size: 8\nuse_wandb: true\n")
    claim(session, "assess")
    with pytest.raises(Refusal, match="load trainwarden:distributed-monitor first"):
        session.assess(assessment(session))
    record.append(str(tmp_path), ME.session, "skill", name="trainwarden:distributed-monitor")
    with pytest.raises(Refusal, match="load trainwarden:wandb-monitor first"):
        session.assess(assessment(session))
    record.append(str(tmp_path), ME.session, "skill", name="wandb-monitor")
    gate = session.assess(assessment(session))
    assert gate.guarded is True
    skills = gate.content["skills"]
    assert [one["skill"] for one in skills["demanded"]] == ["distributed-monitor", "wandb-monitor"]
    assert skills["loaded"] == ["distributed-monitor", "wandb-monitor"]
    text = (session.folder / gate.file).read_text()
    assert "- distributed-monitor, loaded: the config gives 8 ranks: world_size" in text


def test_without_a_guard_what_was_not_loaded_is_noted(tmp_path: Path) -> None:
    session = watched(tmp_path, "max_steps: 2000\nvocab_size: 64\nworld_size: 8\n")
    session.witness = Witness.of(tmp_path, ME, "assess")
    gate = session.assess(assessment(session))
    assert gate.guarded is False
    assert "- distributed-monitor, NOT loaded" in (session.folder / gate.file).read_text()


def test_outside_of_claude_code_no_skill_is_asked_for(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    (tmp_path / "config.yaml").write_text("max_steps: 2000\nvocab_size: 64\nworld_size: 8\n")
    session = begin(tmp_path, job)
    session.predict(predictions())
    session.collect([LogSource()])
    done = call("compare", "--root", tmp_path)
    assert "load before assess" not in done.stdout
    session = Session.resume(session.store, session.folder)
    assert "skills" not in session.assess(assessment(session)).content


def test_compare_says_what_to_load(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    (tmp_path / "config.yaml").write_text("max_steps: 2000\nvocab_size: 64\nworld_size: 8\n")
    passed(tmp_path, ME.session, "begin")
    session = begin(tmp_path, job, witness=Witness.of(tmp_path, ME, "begin"))
    claim(session, "predict").predict(predictions())
    claim(session, "collect").collect([LogSource()])
    done = guarded(tmp_path, ME.session, "compare")
    assert "load before assess (Skill tool): trainwarden:distributed-monitor (" in done.stdout


SEAL = st.text("0123456789abcdef", min_size=64, max_size=64)


@given(SEAL, st.integers(0, 64))
def test_seals_by_their_first_digits(seal: str, digits: int) -> None:
    said = {"predict": seal[:digits].upper() + "…"}
    whole = expand_seals(said, {"predict": seal})
    assert whole["predict"] == (seal if digits >= 12 else said["predict"])
    assert expand_seals({"other": seal[:12]}, {"predict": seal}) == {"other": seal[:12]}


@given(st.text(max_size=200))
def test_any_message_is_read_or_refused(text: str) -> None:
    for whole in (text, f"```yaml\n{text}\n```", f"```yaml\nverdict: reject\n{text}\n```"):
        try:
            assert "verdict" in block_in(whole)
        except Refusal:
            continue


def test_the_last_verdict_block_of_a_message_counts() -> None:
    text = '```yaml\nverdict: approve\n```\nno:\n~~~json\n{"verdict": "reject"}\n~~~\n```\nx\n```'
    assert block_in(text) == {"verdict": "reject"}
