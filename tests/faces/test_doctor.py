"""`trainwarden doctor`: sound where all is, exact where something is not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.answers import make_job
from support.cli import answer, call
from trainwarden.guard import record

Standin = Callable[..., dict[str, str]]
CLIENT = "0b0c"


@pytest.fixture(autouse=True)
def _outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CODE_SESSION_ID", "CLAUDECODE", "TRAINWARDEN_ROOT", "TRAINWARDEN_DATA"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", CLIENT)
    monkeypatch.setenv("TRAINWARDEN_ROOT", str(tmp_path))


def looked(root: Path, code: int, **environment: str) -> dict[str, list[tuple[str, str]]]:
    """States and texts by what was looked at."""
    data: Any = answer("doctor", "--root", root, code=code, **environment)
    assert data["sound"] is (code == 0)
    found: dict[str, list[tuple[str, str]]] = {}
    for check in data["checks"]:
        found.setdefault(check["name"], []).append((check["state"], check["text"]))
    return found


def test_sound_outside_of_claude_code_and_nothing_is_left_behind(tmp_path: Path) -> None:
    found = looked(tmp_path, 0)
    assert found["guard"] == [("ok", "its hook starts and answers")]
    assert found["plugin"][0][0] == "ok"
    assert found["sessions"] == [("ok", "none is open")]
    assert found["guard here"][0][0] == "note"
    assert list(tmp_path.iterdir()) == []


def test_a_line_a_thing(tmp_path: Path) -> None:
    done = call("doctor", "--root", tmp_path)
    assert done.returncode == 0
    assert all(line.startswith(("ok  ", "note  ")) for line in done.stdout.splitlines())


@pytest.mark.usefixtures("inside")
def test_the_guard_lives_where_it_saw_this_call(tmp_path: Path) -> None:
    def ticket() -> None:
        command = {"commands": [["trainwarden", "doctor"]], "agent": "", "agent_type": ""}
        record.append(str(tmp_path), CLIENT, "call", tool_use="toolu_1", **command)

    ticket()
    assert looked(tmp_path, 0)["guard here"] == [("ok", "live: it saw this call")]
    # A ticket is good for one call.
    assert looked(tmp_path, 1)["guard here"][0][0] == "broken"


@pytest.mark.usefixtures("inside")
def test_a_guard_that_never_started_is_told_from_one_that_missed_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((state, text),) = looked(tmp_path, 1)["guard here"]
    assert state == "broken"
    assert "did not see this call" in text
    monkeypatch.delenv("TRAINWARDEN_ROOT")
    ((state, text),) = looked(tmp_path, 1)["guard here"]
    assert state == "broken"
    assert "started no hook" in text


@pytest.mark.usefixtures("inside")
def test_a_root_that_the_guard_does_not_watch(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert f"it watches {tmp_path}, not {other}" in looked(other, 1)["guard here"][0][1]


@pytest.mark.usefixtures("inside")
def test_failures_on_record_are_told(tmp_path: Path) -> None:
    record.append(str(tmp_path), CLIENT, "failed", where="PreToolUse", why="KeyError: 'x'")
    record.append(str(tmp_path), CLIENT, "began", tool_use="toolu_7")
    told = [text for _, text in looked(tmp_path, 1)["guard here"]]
    assert any("failed 1 times" in text and "KeyError" in text for text in told)
    assert any("1 calls without coming to an end" in text for text in told)


def test_without_python3_no_hook_can_start(tmp_path: Path) -> None:
    ((state, text),) = looked(tmp_path, 1, PATH=str(tmp_path))["guard"]
    assert (state, "no python3 on PATH" in text) == ("broken", True)


def test_an_open_session_is_told_with_what_comes_next_and_nothing_of_the_run(
    tmp_path: Path,
) -> None:
    make_job(tmp_path)
    answer("begin", "--log", "train.log", "--config", "config.yaml", cwd=tmp_path)
    ((state, text),) = looked(tmp_path, 0)["sessions"]
    assert state == "note"
    assert "held by no client" in text
    assert "Next: step 1 of 9: trainwarden predict" in text


def test_a_broken_seal_is_named(tmp_path: Path) -> None:
    make_job(tmp_path)
    answer("run", "--log", "train.log", "--config", "config.yaml", cwd=tmp_path, code=None)
    assert looked(tmp_path, 0)["seals"][0][0] == "ok"
    (gate,) = tmp_path.glob("monitoring-logs/*/4-metrics.md")
    gate.write_text(gate.read_text() + "more")
    ((state, text),) = looked(tmp_path, 1)["seals"]
    assert state == "broken"
    assert "4-metrics.md" in text


def test_a_state_that_cannot_be_read_is_named_and_left_in_place(tmp_path: Path) -> None:
    state = tmp_path / "monitoring-logs/jobs/some-job.json"
    state.parent.mkdir(parents=True)
    state.write_text("{")
    ((broken, text),) = looked(tmp_path, 1)["states"]
    assert broken == "broken"
    assert str(state) in text
    assert state.read_text() == "{"


def test_of_the_gpus_only_that_they_can_be_read(tmp_path: Path, nvml_standin: Standin) -> None:
    environment = nvml_standin(devices=[{"name": "NVIDIA H100"}, {"name": "NVIDIA H100"}])
    assert looked(tmp_path, 0, **environment)["GPUs"] == [("ok", "NVML answers")]


def test_another_version_first_on_path(tmp_path: Path) -> None:
    other = tmp_path / "trainwarden"
    other.write_text("#!/bin/sh\necho trainwarden, version 0.0.1\n")
    other.chmod(0o755)
    path = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    told = looked(tmp_path, 1, PATH=path)["runtime"]
    assert ("broken", True) in [(state, "is version 0.0.1" in text) for state, text in told]
