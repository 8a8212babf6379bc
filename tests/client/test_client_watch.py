"""A whole session in the real client, from the slash command to gate 9."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from support.claude import Client, Run, front_matter
from support.model import Script, bash, call, say
from support.watcher import Watcher, leave
from trainwarden.procedure.gates import TASKS


@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
def test_from_the_slash_command_to_gate_9(
    client: Client, watcher: Watcher, background: bool
) -> None:
    """In one turn with no leave given by the user beyond what the skill brings for that turn."""
    if not background:
        client.tools = "Read"

    def main() -> Script:
        yield call("Skill", skill="trainwarden:training-monitor")
        yield from watcher.watch(background)
        yield say("HEALTHY: the loss fell to its end.")

    run = client.run("/trainwarden:monitor train.log", main(), watcher.reviewer())
    assert run.code == 0, run.errors
    watcher.check_whole()
    first = run.of()[0].context
    assert "train.log" in first
    assert "trainwarden begin" in first + run.of()[1].new, "what to do first must reach the model"
    assert "trainwarden predict" in run.of()[1].new, "the skill must reach the model"
    ((asked, *_),) = run.agents
    assert "verdict" in asked.system, "the reviewer's own text must reach it"
    assert "Write" not in asked.tools
    assert "Edit" not in asked.tools
    assert not run.stopped or background
    review = (watcher.folder / "6-review.md").read_text()
    assert f"quality-reviewer {asked.lane}" in review
    assert run.final.startswith("HEALTHY")
    assert "HEALTHY" in (watcher.folder / "9-summary.md").read_text()


def test_tasks_close_with_their_gates(client: Client, watcher: Watcher) -> None:
    def main() -> Script:
        for subject in TASKS:
            yield call("TaskCreate", subject=subject, description="as the skill says")
        yield from watcher.begin()
        asked = yield call("TaskUpdate", taskId="1", status="in_progress")
        assert "Updated task" in asked.result.text
        asked = yield call("TaskUpdate", taskId="1", status="completed")
        assert "trainwarden predict" in asked.result.text, asked.result.text
        asked = yield call("TaskUpdate", taskId="9", status="completed")
        assert "hook feedback" in asked.result.text, asked.result.text
        yield from watcher.seal("predict")
        asked = yield call("TaskUpdate", taskId="1", status="completed")
        assert "Updated task #1" in asked.result.text, asked.result.text
        asked = yield call("TaskList")
        lines = asked.result.text.splitlines()
        assert next(line for line in lines if "[completed]" in line).startswith("#1 ")
        assert len([line for line in lines if "[completed]" in line]) == 1
        yield leave()

    run = client.run("/trainwarden:monitor train.log", main(), CLAUDE_CODE_ENABLE_TODO_TOOLS="1")
    assert run.code == 0, run.errors


def test_a_domain_skill_that_the_run_asks_for(
    client: Client, project: Path, watcher: Watcher
) -> None:
    config = project / "config.yaml"
    config.write_text(config.read_text() + "report_to: wandb\nwandb_project: characters\n")

    def main() -> Script:
        yield from watcher.begin()
        asked = yield from watcher.seal("predict", "collect", "compare")
        assert "wandb-monitor" in asked.result.text, "compare says which skill gate 4 asks for"
        asked = yield bash(watcher.command("assess"))
        assert asked.result.failed
        assert "trainwarden:wandb-monitor" in asked.result.text
        asked = yield call("Skill", skill="trainwarden:wandb-monitor")
        assert not asked.result.failed
        assert "wandb" in asked.new.lower()
        yield from watcher.seal("assess")
        yield leave()

    client.run("/trainwarden:monitor train.log", main())
    gate = watcher.folder / "4-metrics.md"
    assert front_matter(gate)["guarded"] is True
    assert "wandb-monitor" in gate.read_text()


def test_two_projects_at_once(
    client: Client, watcher: Watcher, tmp_path: Path, trained: Path
) -> None:
    import shutil

    other = tmp_path / "other project"
    shutil.copytree(trained, other)
    pairs = [(client, watcher), (Client(tmp_path / "second", other), Watcher(other))]
    runs: list[Run] = []

    def work(one: Client, its: Watcher) -> None:
        def main() -> Script:
            yield from its.watch()
            yield say("HEALTHY")

        runs.append(one.run("/trainwarden:monitor train.log", main(), its.reviewer()))

    threads = [threading.Thread(target=work, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(runs) == 2
    for _, its in pairs:
        its.check_whole()
