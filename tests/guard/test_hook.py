"""The hook as the client starts it: fast ways out, tickets, and what happens where it fails."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.hooks import HOOK, ROOT, Project, project
from trainwarden.guard import record
from trainwarden.guard.events import HANDLERS
from trainwarden.guard.tools import REVIEWER

PYTHONS = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"))


@pytest.fixture
def run(tmp_path: Path) -> Project:
    return project(tmp_path)


def copied(run: Project, **changed: str) -> Project:
    """The same project under a copy of the guard in which some modules say something else."""
    plugin = run.root.parent / "a plugin"
    shutil.copytree(ROOT / "src/trainwarden/guard", plugin / "src/trainwarden/guard")
    shutil.copy(ROOT / "src/trainwarden/__init__.py", plugin / "src/trainwarden")
    shutil.rmtree(plugin / "src/trainwarden/guard/__pycache__", ignore_errors=True)
    for module, text in changed.items():
        (plugin / f"src/trainwarden/guard/{module}.py").write_text(text)
    run.hook = plugin / "src/trainwarden/guard/hook.py"
    return run


def test_it_has_no_opinion_and_leaves_nothing_where_nothing_is_watched(run: Project) -> None:
    for said in (
        run.call("Bash", command="cat train.log; kill 1; rm -rf monitoring-logs"),
        run.call("Write", file_path=str(run.root / "monitoring-logs/x"), content="x"),
        run.call("mcp__x__y", anything=1),
        run.call("Bash", command="echo trainwarden"),
        run.call("Bash", command="trainwarden status"),
        run.hear("Stop", stop_hook_active=False, last_assistant_message=""),
        run.hear("TaskCompleted", task_id="1", task_subject="Step 1: Setup + Predictions"),
        run.hear("UserPromptSubmit", prompt="look at @train.log"),
        run.hear("SessionStart", source="startup"),
    ):
        assert (said.code, said.out, said.err) == (0, "", "")
    assert not (run.root / "monitoring-logs").exists()


def test_a_refusal_is_recorded_before_it_is_said(run: Project) -> None:
    run.begin()
    why = run.call("Read", file_path=str(run.root / "train.log")).why
    assert why
    began, refused, ended = run.events()
    assert [began["event"], refused["event"], ended["event"]] == ["began", "refused", "ended"]
    assert refused["tool_use"] == "t1"
    assert refused["why"] == why
    assert refused["tool"] == "Read"


def test_a_call_that_passes_is_never_allowed_in_the_users_stead(run: Project) -> None:
    run.begin()
    said = run.call("Read", file_path=str(run.root / "config.yaml"))
    assert (said.code, said.out, said.err) == (0, "", "")
    assert [event["event"] for event in run.events()] == ["began", "ended"]


def test_a_runtime_command_gets_a_ticket(run: Project) -> None:
    run.begin()
    assert not run.call("Bash", "t7", command="trainwarden status && trainwarden step 1").why
    (ticket,) = run.events("call")
    assert ticket["tool_use"] == "t7"
    assert ticket["agent"] == ticket["agent_type"] == ""
    assert [words[1:] for words in ticket["commands"]] == [["status"], ["step", "1"]]


@pytest.mark.parametrize("other", [False, True])
def test_begin_gets_a_ticket_before_a_session_is_open(run: Project, other: bool) -> None:
    if other:
        run.begin(client="client-2")
    assert not run.call("Bash", command="trainwarden begin --log train.log").why
    (ticket,) = run.events("call")
    assert ticket["commands"][0][1] == "begin"
    assert run.events() == [ticket]


def test_a_command_that_only_speaks_of_the_runtime_or_is_not_plain_gets_no_ticket(
    run: Project,
) -> None:
    for command in ("echo trainwarden begin", "bash -c 'trainwarden begin'", "trainwarden `x`"):
        run.call("Bash", command=command)
        run.begin(next=4)
        run.call("Bash", command=command)
    assert run.events("call") == []


def test_the_reviewers_calls_are_recorded(run: Project) -> None:
    run.begin(next=6)
    asked = {"tool_name": "Read", "tool_input": {"file_path": "/x/train.log"}, "tool_use_id": "t"}
    run.hear("PreToolUse", agent_id="a1", agent_type="trainwarden:quality-reviewer", **asked)
    run.hear("PreToolUse", agent_id="a2", agent_type="general-purpose", **asked)
    asked |= {"tool_name": "TodoWrite", "tool_input": {"todos": []}}
    run.hear("PreToolUse", agent_id="a3", agent_type="trainwarden:quality-reviewer", **asked)
    (event,) = run.events("agent-call")
    assert (event["agent"], event["tool"], event["about"]) == ("a1", "Read", "/x/train.log")


def test_evidence_seen_before_is_noted_with_the_ticket(run: Project) -> None:
    run.hear("UserPromptSubmit", prompt="what of @train.log?")
    run.begin()
    for _ in range(2):
        run.call("Bash", command="trainwarden predict --input p.yaml")
    (seen,) = run.events("seen")
    assert "train.log" in seen["what"]
    assert seen["session"] == "2026-01-02_030405"


BOOM = "raise RuntimeError('boom')\n"
LOOP = "while True:\n    pass\n"
CALL = {"command": "cat config.yaml"}


@pytest.mark.parametrize(("broken", "said"), [(BOOM, "boom"), (LOOP, "hung")])
def test_a_failure_before_gate_1_refuses_and_is_recorded(
    run: Project, broken: str, said: str
) -> None:
    copied(run, tools=broken).begin()
    if broken == LOOP:
        main = run.hook.with_name("main.py")
        main.write_text(main.read_text().replace("SECONDS = 5.0", "SECONDS = 0.5"))
    why = run.call("Bash", **CALL).why
    assert said in why
    assert "trainwarden abandon --why" in why
    began, failed = run.events()
    assert (began["event"], failed["event"]) == ("began", "failed")
    assert said in failed["why"]


@pytest.mark.parametrize("command", ["trainwarden abandon --why 'it fails'", "trainwarden doctor"])
def test_a_failing_guard_keeps_nobody_in(run: Project, command: str) -> None:
    copied(run, tools=BOOM).begin()
    assert run.call("Bash", command=command).out == ""
    assert run.call("Bash", command=command + " && cat train.log").why
    assert run.call("Bash", command=command + "\ncat train.log").why


def test_a_failure_after_gate_1_lets_pass_and_is_recorded(run: Project) -> None:
    copied(run, tools=BOOM).begin(next=2)
    said = run.call("Bash", **CALL)
    assert (said.code, said.out) == (0, "")
    assert run.events("failed")


def test_a_failure_where_another_client_watches_lets_pass(run: Project) -> None:
    copied(run, tools=BOOM).begin(client="client-2")
    assert run.call("Bash", **CALL).out == ""


def test_an_open_session_with_an_odd_step_counts_as_before_gate_1(run: Project) -> None:
    for step in ("1", None, [4]):
        run.begin(next=step)
        assert "abandon" in run.call("Read", file_path=str(run.root / "train.log")).why


@pytest.mark.parametrize("text", ["", "{}", "[1]", "no json"])
def test_an_open_session_that_cannot_be_read_counts_as_before_gate_1(
    run: Project, text: str
) -> None:
    run.begin().write_text(text)
    assert "abandon" in run.call("Bash", **CALL).why
    assert run.call("Bash", command="trainwarden abandon --why x").out == ""


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b'"hook_event_name":"PreToolUse"', b"7"])
def test_an_event_that_cannot_be_read_is_refused_before_gate_1_only(
    run: Project, raw: bytes
) -> None:
    run.begin()
    said = run.feed(raw)
    assert said.code == 0
    assert said.why
    assert run.events("failed")
    run.begin(next=3)
    assert run.feed(raw).out == ""


def test_a_record_that_cannot_be_written_refuses_before_gate_1(run: Project) -> None:
    run.begin()
    seen = Path(record.seen_path(str(run.root), run.client))
    seen.mkdir(parents=True)
    assert "could not be recorded" in run.call("Bash", **CALL).why
    lost = (run.data / "guard-failures.jsonl").read_text()
    assert json.loads(lost)["client"] == run.client
    run.begin(next=2)
    assert run.call("Bash", **CALL).out == ""
    assert "observe" in run.call("Bash", command="kill 17").why


def test_a_refusal_holds_where_it_cannot_be_recorded(run: Project) -> None:
    why = "no\n"
    copied(run, tools=f"REVIEWER = ''\ndef refusal(*_):\n    return {why!r}\n").begin(next=4)
    main = run.hook.with_name("main.py")
    main.write_text(main.read_text().replace('call.note("refused"', 'call.note(1 / 0, "refused"'))
    assert run.call("Bash", **CALL).why == why


@pytest.mark.parametrize("missing", ["main.py", "hook.py", "."])
def test_a_guard_that_is_not_whole_lets_pass(run: Project, missing: str) -> None:
    copied(run).begin()
    path = run.hook.parent / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    said = run.call("Bash", **CALL)
    assert said.code == 1, "2 would refuse everything"
    assert said.out == ""


def test_a_guard_that_cannot_start_lets_pass(run: Project) -> None:
    copied(run, main="def main(:\n").begin()
    said = run.call("Bash", **CALL)
    assert said.code == 1
    assert said.out == ""


def test_what_is_compiled_goes_to_the_plugins_data_where_the_plugin_is_read_only(
    run: Project,
) -> None:
    hook = str(copied(run).hook)
    script = (
        "import os; os.access = lambda *_: False\n"
        f"text = open({hook!r}).read()\n"
        f"exec(text, {{'__file__': {hook!r}, '__name__': '__main__'}})"
    )
    run.data.mkdir()
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", script],
        input=b"{}",
        env={"CLAUDE_PROJECT_DIR": str(run.root), "CLAUDE_PLUGIN_DATA": str(run.data)},
        check=True,
    )
    assert list((run.data / "pycache").rglob("main.*.pyc"))
    assert not list(run.hook.parent.rglob("*.pyc"))


def test_it_imports_nothing_dear_on_its_usual_way(run: Project) -> None:
    run.begin(next=3)
    dear = {"re", "json", "typing", "enum", "pathlib", "signal", "shlex", "subprocess", "hashlib"}
    script = (
        "import sys; sys.argv = ['x']; from trainwarden.guard.main import main; main(); "
        "sys.stderr.write(' '.join(sys.modules))"
    )
    for tool, asked in (("Bash", {"command": "tail -n 5 train.log"}), ("Read", {"file_path": "x"})):
        event = {"tool_name": tool, "tool_input": asked, "tool_use_id": "t", "cwd": str(run.root)}
        event |= {"hook_event_name": "PreToolUse", "session_id": run.client}
        done = subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); {script}",
            ],
            input=json.dumps(event, separators=(",", ":")),
            env={"CLAUDE_PROJECT_DIR": str(run.root)},
            text=True,
            capture_output=True,
        )
        assert "trainwarden.guard.tools" in done.stderr.split(), done.stderr
        assert not dear.intersection(done.stderr.split())


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.parts[-3])
def test_any_python_since_3_8_will_do(run: Project, python: Path) -> None:
    version = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info >= (3, 8))"],
        capture_output=True,
        text=True,
    )
    if version.stdout.strip() != "True":
        pytest.skip("older than 3.8")
    copied(run).python = str(python)
    run.begin()
    assert run.call("Read", file_path=str(run.root / "train.log")).why
    run.hear("UserPromptSubmit", prompt="step 5 | loss 3.9950 | lr 3.0e-4 and @train.log")
    assert len(run.events("seen")) == 2
    assert run.call("Bash", command="trainwarden predict").out == ""
    assert run.hear("Stop", last_assistant_message="").answer["decision"] == "block"
    assert run.events("failed") == []


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.parts[-3])
def test_an_older_python_is_told_of_once(run: Project, python: Path) -> None:
    if int(python.parts[-3].split(".")[1]) >= 8:
        pytest.skip("new enough")
    run.python = str(python)
    run.begin()
    said = run.call("Read", file_path=str(run.root / "train.log"))
    assert (said.code, said.out, said.err) == (0, "", "")
    said = run.hear("SessionStart", source="startup")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("trainwarden: python3 on PATH is older")


def test_the_client_is_told_to_start_it_for_every_event_it_answers() -> None:
    hooks = json.loads((ROOT / "hooks/hooks.json").read_text())["hooks"]
    assert set(hooks) == {*HANDLERS, "PreToolUse"}
    for groups in hooks.values():
        for group in groups:
            assert group.get("matcher") in (None, "Skill", REVIEWER)
            for hook in group["hooks"]:
                assert hook["command"] == "python3"
                path = hook["args"][-1].replace("${CLAUDE_PLUGIN_ROOT}", str(ROOT))
                assert Path(path) == HOOK
                assert hook["timeout"] == 10


def test_what_is_nested_too_deep_is_no_failure_that_passes(run: Project) -> None:
    deep = "[" * 200_000 + "]" * 200_000
    call = '{"hook_event_name":"PreToolUse","session_id":"client-1","tool_name":"mcp__k8s__kill",'
    raw = (call + '"tool_use_id":"t","tool_input":{"x":' + deep + "}}").encode()
    assert run.feed(raw).out == ""
    run.begin(next=4)
    assert "nested too deep" in run.feed(raw).why
    value: object = "monitoring-logs/x"
    for _ in range(700):
        value = [value]
    run.begin(client="another")
    run.client = "third"
    assert run.call("mcp__files__write_file", x=value).why
