"""Open sessions: who holds them, what the guard is told, going on and giving up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.answers import begin, make_job, predictions, walk_to, write_log
from support.cli import answer, call
from support.guarded import environment, guarded, opened, passed, unguarded
from trainwarden.guard import record
from trainwarden.procedure.client import Client
from trainwarden.procedure.leftovers import tidy
from trainwarden.procedure.session import Session
from trainwarden.procedure.state import StateStore
from trainwarden.procedure.witness import Witness

PREDICTIONS = """
- {quantity: step, low: 0, high: 9000, level: 0.9, basis: config}
- {quantity: loss, low: 0, high: 9, level: 0.9, basis: config}
- {quantity: host.load1, high: 99, level: 0.9, basis: any machine}
"""


def front(root: Path, step: int) -> str:
    (path,) = (root / "monitoring-logs").glob(f"*/{step}-*.md")
    return path.read_text(encoding="utf-8").split("\n---\n")[0]


def state(root: Path) -> dict[str, Any]:
    (path,) = (root / "monitoring-logs" / "jobs").glob("*.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_the_guard_is_told_from_begin_to_the_end(tmp_path: Path) -> None:
    make_job(tmp_path)
    assert guarded(tmp_path, "c1", "begin", "--authority", "act").returncode == 0
    (told,) = opened(tmp_path)
    assert told["client"] == "c1"
    assert told["authority"] == "act"
    assert told["next"] == 1
    assert told["command"] == "trainwarden predict"
    assert told["root"] == str(tmp_path)
    assert told["config"] == [str(tmp_path / "config.yaml")]
    assert told["evidence"] == [str(tmp_path / "train.log")]
    assert "analyst claude-code" in guarded(tmp_path, "c1", "show").stdout
    done = guarded(tmp_path, "c1", "predict", stdin=PREDICTIONS)
    assert done.returncode == 0, done.stderr
    assert "guarded: true" in front(tmp_path, 1)
    assert [one["next"] for one in opened(tmp_path)] == [2]
    assert unguarded(tmp_path, "c1", "collect").returncode == 0
    assert "guarded: false" in front(tmp_path, 2)
    assert guarded(tmp_path, "c1", "abandon", "--why", "enough").returncode == 0
    assert opened(tmp_path) == []


def test_outside_of_claude_code_nobody_holds_it_and_gates_say_nothing(tmp_path: Path) -> None:
    make_job(tmp_path)
    answer("begin", "--root", tmp_path)
    assert [one["client"] for one in opened(tmp_path)] == ["-"]
    call("predict", "--root", tmp_path, stdin=PREDICTIONS)
    assert "guarded" not in front(tmp_path, 1)


def test_the_root_is_the_project_that_is_guarded(tmp_path: Path) -> None:
    make_job(tmp_path)
    below = tmp_path / "below"
    below.mkdir()
    done = call("begin", cwd=below, **environment(tmp_path, "c1"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "monitoring-logs").is_dir()
    assert not (below / "monitoring-logs").exists()


def test_a_root_elsewhere_is_said_not_to_be_guarded(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    make_job(other)
    done = guarded(project, "c1", "begin", "--root", other)
    assert f"not guarded: the guard watches {project}, not {other}" in done.stdout


def test_places_of_evidence(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    (tmp_path / "config.yaml").write_text(
        "max_steps: 9\noutput_dir: out\ntrainer: {logging_dir: out/tb, default_root_dir: .}\n"
    )
    (tmp_path / "wandb").mkdir()
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "real.log"
    write_log(log, range(5))
    (tmp_path / "train.log").unlink()
    (tmp_path / "train.log").symlink_to(log)
    begin(tmp_path, job)
    (told,) = opened(tmp_path)
    assert set(told["evidence"]) == {
        str(tmp_path / name)
        for name in ("train.log", "logs", "logs/real.log", "wandb", "out", "out/tb")
    }


def test_before_gate_1_commands_that_read_of_runs_are_refused(tmp_path: Path) -> None:
    make_job(tmp_path)
    guarded(tmp_path, "c1", "begin")
    log = str(tmp_path / "train.log")
    for argv in (
        ["run"], ["run", "--root", str(tmp_path)], ["read", log], ["replay", log], ["probe"],
        ["jobs"], ["reread", "E1"],
    ):  # fmt: skip
        done = unguarded(tmp_path, "c1", *argv)
        assert done.returncode == 2, argv
        assert "gate 1" in done.stderr, argv
        assert "trainwarden abandon --why" in done.stderr
        assert "loss" not in done.stdout
    assert unguarded(tmp_path, "c1", "read", "--help").returncode == 0
    assert unguarded(tmp_path, "another", "read", log).returncode == 0
    assert call("read", log, cwd=tmp_path).returncode == 0
    assert guarded(tmp_path, "c1", "predict", stdin=PREDICTIONS).returncode == 0
    assert unguarded(tmp_path, "c1", "read", log).returncode == 0


def test_run_is_a_watch_of_its_own_in_claude_code_too(tmp_path: Path) -> None:
    make_job(tmp_path)
    done = guarded(tmp_path, "c1", "run", "--json")
    assert done.returncode in (0, 10, 20), done.stderr
    gates = json.loads(unguarded(tmp_path, "c1", "show", "--json").stdout)["gates"]
    assert len(gates) == 9
    assert all("guarded" not in gate for gate in gates)
    assert opened(tmp_path) == []


def test_another_client_takes_over_only_by_resume(tmp_path: Path) -> None:
    make_job(tmp_path)
    guarded(tmp_path, "c1", "begin")
    guarded(tmp_path, "c1", "predict", stdin=PREDICTIONS)
    for done in (guarded(tmp_path, "c2", "collect"), call("collect", "--root", tmp_path)):
        assert done.returncode == 2
        assert "held by a Claude Code session: `trainwarden resume --session" in done.stderr
    told = guarded(tmp_path, "c2", "resume")
    assert told.returncode == 0, told.stderr
    assert "authority observe" in told.stdout
    assert "C1 max_steps 2000" in told.stdout
    assert "P2 loss 0..9" in told.stdout
    assert "[x] Step 1: Setup + Predictions\n[ ] Step 2: Collect Evidence" in told.stdout
    assert told.stdout.rstrip().endswith("Next: step 2 of 9: trainwarden collect")
    assert [one["client"] for one in opened(tmp_path)] == ["c2"]
    assert guarded(tmp_path, "c1", "collect").returncode == 2
    assert guarded(tmp_path, "c2", "collect").returncode == 0
    assert "guarded: true" in front(tmp_path, 2)


def test_a_session_gone_on_with_outside_is_not_guarded(tmp_path: Path) -> None:
    make_job(tmp_path)
    guarded(tmp_path, "c1", "begin")
    assert call("resume", "--root", tmp_path).returncode == 0
    assert call("predict", "--root", tmp_path, stdin=PREDICTIONS).returncode == 0
    assert "guarded: false" in front(tmp_path, 1)


def test_resume_before_gate_1_shows_nothing_of_the_run(tmp_path: Path) -> None:
    make_job(tmp_path)
    guarded(tmp_path, "c1", "begin")
    told = guarded(tmp_path, "c2", "resume")
    assert told.returncode == 0
    assert "E1" not in told.stdout
    assert "step 390" not in told.stdout
    data = json.loads(guarded(tmp_path, "c2", "resume", "--json").stdout)
    assert [step["done"] for step in data["steps"]] == [False] * 9


def test_resume_tells_what_was_assessed(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "review")
    told = call("resume", "--root", tmp_path).stdout
    assert f"status HEALTHY: {session.assessment.reasoning}" in told
    assert "findings: none" in told or "F1 " in told
    assert all(f"{name} " in told for name in session.load_bearing())


def test_a_finished_session_cannot_be_resumed(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "")
    done = call("resume", "--root", tmp_path, "--session", session.header.session)
    assert done.returncode == 2
    assert "is not open" in done.stderr


def test_the_own_session_is_meant_where_several_are_open(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, client in ((one, "c1"), (two, "c2")):
        folder.mkdir()
        make_job(folder)
        argv = ("begin", "--config", folder / "config.yaml", "--log", folder / "train.log")
        assert guarded(tmp_path, client, *argv).returncode == 0
    assert guarded(tmp_path, "c1", "predict", stdin=PREDICTIONS).returncode == 0
    assert sorted((told["client"], told["next"]) for told in opened(tmp_path)) == [
        ("c1", 2),
        ("c2", 1),
    ]
    done = guarded(tmp_path, "c3", "predict", stdin=PREDICTIONS)
    assert "several sessions are open" in done.stderr
    assert guarded(tmp_path, "c2", "abandon", "--why", "mine alone").returncode == 0
    assert [told["client"] for told in opened(tmp_path)] == ["c1"]


def test_guard_and_runtime_name_the_steps_alike() -> None:
    from trainwarden.guard import events
    from trainwarden.procedure import gates

    assert tuple(f"Step {n}: {name}" for n, name in enumerate(events.TASKS, 1)) == gates.TASKS


def test_status_lists_the_steps_of_what_is_open(tmp_path: Path) -> None:
    walk_to(begin(tmp_path), "metrics")
    told = call("status", "--root", tmp_path).stdout
    assert "[x] Step 3: Compare Predictions vs Actuals\n[ ] Step 4: Analyze Metrics" in told
    assert "[ ] Step 9: Write State\nNext: step 4 of 9: trainwarden assess" in told
    (row,) = answer("status", "--root", tmp_path)["jobs"]
    assert [step["done"] for step in row["steps"]] == [True] * 3 + [False] * 6


def test_abandon_keeps_the_reason_and_frees_the_job(tmp_path: Path) -> None:
    session = begin(tmp_path)
    done = answer("abandon", "--root", tmp_path, "--why", "the user stopped the run\x1b[0m")
    assert done["abandoned"] == session.header.session
    (row,) = state(tmp_path)["monitor"]["abandoned"]
    assert row["why"].startswith("the user stopped the run")
    assert "\x1b" not in row["why"]
    assert answer("verify", "--root", tmp_path)["intact"] is True
    assert answer("begin", "--root", tmp_path)["header"]["number"] == 2
    again = call("abandon", "--root", tmp_path, "--why", "x", "--session", "2020-01-01_000000")
    assert again.returncode == 2
    assert "nothing to give up" in again.stderr
    assert call("abandon", "--root", tmp_path, "--why", " ").returncode == 2


def garbage(session: Session) -> None:
    (session.folder / "session.json").write_text("{")


def changed(session: Session) -> None:
    (session.folder / "1-predict.md").write_text("changed")


def gone(session: Session) -> None:
    for path in session.folder.iterdir():
        path.unlink()
    session.folder.rmdir()


def no_state(session: Session) -> None:
    session.store.path(session.job.id).write_text("[")


def no_guard(session: Session) -> None:
    for path in (session.store.logs / "guard" / "open").iterdir():
        path.write_text("nonsense")


@pytest.mark.parametrize("spoil", [garbage, changed, gone, no_state, no_guard])
def test_abandon_works_whatever_happened(tmp_path: Path, spoil: Callable[[Session], None]) -> None:
    session = begin(tmp_path)
    session.predict(predictions())
    spoil(session)
    done = call("abandon", "--root", tmp_path, "--why", "it is broken")
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "monitoring-logs" / "guard" / "open").iterdir())
    assert call("begin", "--root", tmp_path).returncode == 0


def test_a_session_set_aside_or_finished_is_open_no_more(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    first = begin(tmp_path, job)
    second = begin(tmp_path, job, take_over="any")
    assert [told["session"] for told in opened(tmp_path)] == [second.header.session]
    assert first.header.session != second.header.session
    walk_to(second, "")
    assert opened(tmp_path) == []


def test_replayed_sessions_are_nobodys(tmp_path: Path) -> None:
    begin(tmp_path, live=False)
    assert opened(tmp_path) == []


# Kills --------------------------------------------------------------------------------------------


def killed(work: Callable[[], object], place: int) -> bool:
    """Do it in a child that dies at its n-th change of a name; whether it came to that."""
    child = os.fork()
    if child == 0:
        left = place
        replace, unlink = Path.replace, Path.unlink

        def counted(change: Any) -> Any:
            def changing(path: Path, *arguments: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if left == 0:
                    os._exit(9)
                return change(path, *arguments, **options)

            return changing

        Path.replace, Path.unlink = counted(replace), counted(unlink)  # type: ignore[method-assign]
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 9)
    return code == 9


def never_blind(root: Path) -> None:
    """Whatever is open by a state is known to the guard, as at that step or an earlier one."""
    store = StateStore(root)
    told = {one["session"]: one for one in opened(root)}
    for job in store.known():
        known = store.peek(job)
        assert known is not None
        if (current := known.monitor.open_session) is None:
            continue
        following = len(Session.resume(store, store.logs / current.session).record.gates) + 1
        if following <= 9:
            assert told[current.session]["next"] <= following


def tidied(root: Path) -> None:
    """After whoever comes next, the guard knows what is open, and nothing else."""
    store = StateStore(root)
    tidy(store)
    told = {one["session"]: one["next"] for one in opened(root)}
    current = {}
    for job in store.known():
        known = store.peek(job)
        if known and (one := known.monitor.open_session):
            record_of = Session.resume(store, store.logs / one.session).record
            current[one.session] = min(len(record_of.gates) + 1, 9)
    assert told == current
    assert not list((root / "monitoring-logs" / "guard").rglob(".*.new"))


def test_killed_at_every_change_of_a_name(tmp_path: Path) -> None:
    job = make_job(tmp_path)

    def watch() -> None:
        passed(tmp_path, "c1", "begin")
        witness = Witness.of(tmp_path, Client("c1"), "begin")
        walk_to(begin(tmp_path, job, take_over="any", witness=None if place % 2 else witness), "")

    for place in range(1, 60):
        if not killed(watch, place):
            break
        never_blind(tmp_path)
        if place % 3:
            tidied(tmp_path)
    else:
        raise AssertionError("a watch changes fewer names than that")
    assert place > 25
    tidied(tmp_path)
    assert opened(tmp_path) == []


def test_whoever_is_at_work_on_a_job_is_left_alone(tmp_path: Path) -> None:
    session = begin(tmp_path)
    store = session.store
    store.path(session.job.id).unlink()  # as before the state is first written
    with store.hold(session.job.id, wait=0, purpose="begin"):
        tidy(store)
        assert len(opened(tmp_path)) == 1
    tidy(store)
    assert opened(tmp_path) == []


def test_a_file_that_lags_behind_is_renewed(tmp_path: Path) -> None:
    session = begin(tmp_path)
    path = Path(record.open_path(str(tmp_path), "-", session.header.session))
    before = path.read_text()
    session.predict(predictions())
    path.write_text(before)
    call("status", "--root", tmp_path)
    assert [told["next"] for told in opened(tmp_path)] == [2]
