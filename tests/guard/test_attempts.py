"""More than a hundred ways round the guard, each refused; what a session needs, each allowed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from support.attempts import (
    ALLOWED,
    ALLOWED_REVIEWER_BASH,
    HEAVY,
    REFUSED,
    REFUSED_LATE_BASH,
    REFUSED_REVIEWER_BASH,
    REVIEWER_TOOLS,
)
from support.ground import Project
from trainwarden.guard.tools import REVIEWER


def rows(table: dict[str, list[tuple[str, dict[str, Any]]]]) -> list[Any]:
    return [
        pytest.param(stage, tool, given, id=f"{stage}-{tool}-{next(iter(given.values()), '')}")
        for stage, calls in table.items()
        for tool, given in calls
    ]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("attempts"))


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_PLUGIN_DATA", "CLAUDE_CODE_TMPDIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("stage", "tool", "given"), rows(REFUSED))
def test_an_attempt_is_refused(
    project: Project, stage: str, tool: str, given: dict[str, Any]
) -> None:
    reason = project.refusal(stage, tool, given)
    assert reason is not None
    assert reason.startswith("trainwarden: ")
    assert len(reason) < 1_000


@pytest.mark.parametrize("number", range(len(HEAVY)))
def test_what_is_long_is_judged_in_time(project: Project, number: int) -> None:
    tool, given = HEAVY[number]
    for stage in ("early", "late"):
        started = time.process_time()
        assert project.refusal(stage, tool, given) is not None
        assert time.process_time() - started < 1


@pytest.mark.parametrize(("stage", "tool", "given"), rows(ALLOWED))
def test_what_a_session_needs_is_allowed(
    project: Project, stage: str, tool: str, given: dict[str, Any]
) -> None:
    assert project.refusal(stage, tool, given) is None


@pytest.mark.parametrize("kind", ["general-purpose", REVIEWER])
def test_a_sub_agent_is_judged_alike(project: Project, kind: str) -> None:
    for tool, given in REFUSED["early"]:
        reason = project.refusal("early", tool, given, agent_id="a1", agent_type=kind)
        assert reason is not None, (tool, given)


@pytest.mark.parametrize("stage", ["late", "act"])
def test_a_reviewer_changes_nothing(project: Project, stage: str) -> None:
    commands = [("Bash", {"command": line}) for line in REFUSED_REVIEWER_BASH + REFUSED_LATE_BASH]
    for tool, given in [*commands, *REVIEWER_TOOLS]:
        reason = project.refusal(stage, tool, given, agent_id="a1", agent_type=REVIEWER)
        assert reason is not None, (tool, given)


@pytest.mark.parametrize("stage", ["late", "act"])
def test_a_reviewer_reads(project: Project, stage: str) -> None:
    for line in ALLOWED_REVIEWER_BASH:
        given = {"command": line}
        reason = project.refusal(stage, "Bash", given, agent_id="a1", agent_type=REVIEWER)
        assert reason is None, line


def test_the_table_is_as_long_as_it_says() -> None:
    assert sum(len(calls) for calls in REFUSED.values()) >= 500
    assert sum(len(calls) for calls in ALLOWED.values()) >= 300
    for table in (REFUSED, ALLOWED):
        for stage, calls in table.items():
            assert len({(tool, str(given)) for tool, given in calls}) == len(calls), stage
