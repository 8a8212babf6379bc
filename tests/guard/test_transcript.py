"""Evidence that reached the conversation before gate 1, as the client writes it down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.hooks import Project, project
from trainwarden.guard import record
from trainwarden.guard.transcript import LATE, UNKNOWN, exposures, unjudged


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    run = project(tmp_path)
    monkeypatch.setenv("CLAUDE_PLUGIN_DATA", str(run.data))
    return run


def found(run: Project, *entries: dict[str, Any], **opened: Any) -> list[str]:
    """What is found in a conversation of those entries."""
    path = run.root.parent / "projects" / "c.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries))
    return exposures(session(run, **opened), {"transcript_path": str(path)}, run.client)


def session(run: Project, **opened: Any) -> record.Open:
    run.begin(**opened)
    return record.open_sessions(str(run.root), run.client)[0][0]


def used(tool: str, result: Any, error: bool = False, **asked: Any) -> list[dict[str, Any]]:
    """A call and its answer."""
    call = {"type": "tool_use", "id": f"t-{tool}-{asked}", "name": tool, "input": asked}
    answer = {"type": "tool_result", "tool_use_id": call["id"], "content": result}
    if error:
        answer["is_error"] = True
    return [
        {"type": "assistant", "cwd": "/", "message": {"role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [answer]}},
    ]


def test_a_call_that_no_guard_judged_is_found(run: Project) -> None:
    begin, before = used("Bash", "begun", command="begin"), used("Read", "x", file_path="before")
    judged, passed = used("Read", "x", file_path="a.py"), used("Read", "x", file_path="b.py")
    refused = used("Read", "PreToolUse:Read hook error", error=True, file_path="c.py")
    planned = used("TodoWrite", "x", todos="")
    beside = used("Read", "x", file_path="d.py")
    begin[0]["message"]["id"] = beside[0]["message"]["id"] = "m1"
    passed[0]["message"]["id"] = "m2"
    one = session(run)
    use = begin[0]["message"]["content"][0]["id"]
    record.append(str(run.root), run.client, "opened", session=one.session, tool_use=use)
    use = judged[0]["message"]["content"][0]["id"]
    record.append(str(run.root), run.client, "began", tool_use=use)

    def missed(*entries: dict[str, Any]) -> list[str]:
        path = run.root.parent / "c.jsonl"
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        return unjudged(one, {"transcript_path": str(path)}, run.client)

    fine = [*before, *begin, *beside, *judged, *refused, *planned]
    assert missed(*fine) == []
    assert missed(*fine, passed[0]) == []
    assert missed(*fine, *passed) == ["Read"]
    assert missed(*passed) == []
    assert unjudged(one, {"transcript_path": "/not/there"}, run.client) == []


def attached(content: Any) -> dict[str, Any]:
    return {"type": "attachment", "attachment": {"type": "file", "content": content}}


LINE = "step 250 | loss 3.7500 | lr 3.0e-4"


@pytest.mark.parametrize(
    "asked",
    [
        {"tool": "Read", "file_path": "{root}/train.log"},
        {"tool": "Read", "file_path": "{root}/out/metrics.csv"},
        {"tool": "Grep", "pattern": "loss", "path": "{root}/out"},
        {"tool": "Bash", "command": "tail -5 '{root}/train.log'"},
        {"tool": "Bash", "command": "cd x; head train.log | wc -l"},
        {"tool": "Bash", "command": "cat <{root}/out/x>y"},
        {"tool": "Monitor", "command": "tail -f ../train.log"},
        {"tool": "Bash", "command": "nvidia-smi"},
        {"tool": "Bash", "command": "kubectl logs pod-1"},
        {"tool": "Bash", "command": "trainwarden read train.log"},
        {"tool": "Bash", "command": "sleep 1; /usr/bin/ps aux | grep python"},
        {"tool": "Bash", "command": "ssh node1 'nvidia-smi -L'"},
        {"tool": "WebFetch", "url": "https://wandb.ai/team/project/runs/x", "prompt": "p"},
        {"tool": "mcp__wandb__query", "q": "x"},
        {"tool": "Bash", "command": "trainwarden status; cat train.log"},
        {"tool": "Agent", "prompt": "Summarize train.log for me"},
    ],
    ids=lambda asked: str(list(asked.values())),
)
def test_a_call_that_touched_evidence_is_found(run: Project, asked: dict[str, str]) -> None:
    asked = {name: text.replace("{root}", str(run.root)) for name, text in asked.items()}
    tool = asked.pop("tool")
    (what,) = found(run, *used(tool, "something", **asked))
    assert what.startswith(f"{tool} was used ")


@pytest.mark.parametrize(
    "asked",
    [
        {"tool": "Read", "file_path": "{root}/config.yaml"},
        {"tool": "Read", "file_path": "{root}/train.py"},
        {"tool": "Bash", "command": "ls; git log --oneline"},
        {"tool": "Bash", "command": "pip show wandb; grep -n ps train.py; ls top"},
        {"tool": "WebFetch", "url": "https://docs.python.org/3/", "prompt": "p"},
        {"tool": "mcp__files__list", "q": "wandb"},
        {"tool": "Bash", "command": "trainwarden begin --log train.log"},
        {"tool": "Bash", "command": "trainwarden show"},
        {"tool": "Skill", "skill": "trainwarden:wandb-monitor"},
    ],
    ids=lambda asked: str(list(asked.values())),
)
def test_other_calls_are_not(run: Project, asked: dict[str, str]) -> None:
    asked = {name: text.replace("{root}", str(run.root)) for name, text in asked.items()}
    tool = asked.pop("tool")
    result = f"gate 2: {LINE}\n{LINE}" if "trainwarden " in str(asked) else "max_steps: 2000000"
    assert found(run, *used(tool, result, **asked)) == []


def test_a_call_that_was_refused_or_never_answered_brought_nothing(run: Project) -> None:
    log = str(run.root / "train.log")
    refused = used("Read", "PreToolUse:Read hook error: no", error=True, file_path=log)
    assert found(run, *refused) == []
    assert found(run, used("Read", LINE, file_path=log)[0]) == []


def test_a_command_that_failed_may_have_printed(run: Project) -> None:
    failed = used("Bash", "Exit code 1\nloss 3", error=True, command="grep x train.log; false")
    assert found(run, *failed) == ["Bash was used on train.log"]


@pytest.mark.parametrize(
    "entry",
    [
        attached({"type": "text", "file": {"content": f"x\n     1\t{LINE}\ny"}}),
        {"type": "user", "message": {"role": "user", "content": f"It says\n> {LINE}\r\nok?"}},
        {"type": "user", "message": {"content": [{"type": "text", "text": f"   250→{LINE}"}]}},
        {"type": "system", "subtype": "local_command", "content": f"<stdout>\n{LINE}\n</stdout>"},
    ],
)
def test_lines_of_the_log_are_found_wherever_they_stand(
    run: Project, entry: dict[str, Any]
) -> None:
    assert found(run, entry) == ["the conversation had 1 line of train.log"]


def test_lines_in_a_result_are_found_whatever_the_call_was(run: Project) -> None:
    assert found(run, *used("mcp__x__y", [{"type": "text", "text": LINE}], ask="status")) == [
        "a tool's result had 1 line of train.log"
    ]


def test_json_lines_and_other_scripts_are_found(run: Project) -> None:
    lines = ['{"step": 41, "loss": 2.31, "tag": "a\\tb"}', "Schritt 17 – Verlust 2,3456 ünï"]
    (run.root / "train.log").write_text("\n".join(lines) + "\n")
    assert found(run, attached("\n".join(lines))) == ["the conversation had 2 lines of train.log"]


def test_what_never_reached_the_model_is_not_counted(run: Project) -> None:
    held_back = f"UserPromptSubmit operation blocked by hook:\nno\n\nOriginal prompt: \n{LINE}\n"
    assert not found(
        run,
        {"type": "queue-operation", "operation": "enqueue", "content": LINE},
        {"type": "system", "subtype": "informational", "content": held_back},
        {"type": "attachment", "attachment": {"type": "prompt_snapshot", "systemPrompt": [LINE]}},
    )


def test_config_and_code_repeated_in_the_log_are_no_evidence(run: Project) -> None:
    with (run.root / "train.log").open("a") as log:
        log.write('  File "train.py", line 12\n    loss = model(batch[0:12], steps=1000)\n')
    config = (run.root / "config.yaml").read_text()
    assert (
        found(run, *used("Read", config + (run.root / "train.py").read_text(), file_path="x")) == []
    )


def test_what_a_sub_agent_read_is_found(run: Project) -> None:
    folder = run.root.parent / "projects" / "c" / "subagents"
    folder.mkdir(parents=True)
    entries = used("Read", LINE, file_path=str(run.root / "train.log"))
    (folder / "agent-1.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (what,) = found(run)
    assert what == f"a sub-agent: Read was used on {run.root}/train.log"


def test_prompts_before_the_session_are_remembered_without_their_text(run: Project) -> None:
    run.hear("UserPromptSubmit", prompt=f"so\n{LINE}\nand @train.log and @config.yaml")
    kept = next((run.data / "prompts").iterdir()).read_text()
    assert "3.7500" not in kept
    assert found(run) == [
        f"a prompt mentioned @{run.root}/train.log",
        "a prompt had 1 line of train.log",
    ]


def test_an_image_in_a_prompt_may_be_a_curve(run: Project) -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "aaaa"}}
    assert found(run, {"type": "user", "message": {"role": "user", "content": [image]}}) == [
        "a prompt had an image"
    ]


def test_what_is_on_record_is_not_told_again(run: Project) -> None:
    entries = used("Bash", "x", command="nvidia-smi")
    (what,) = found(run, *entries)
    record.append(str(run.root), run.client, "seen", what=what, session="2026-01-02_030405")
    assert found(run, *entries) == []
    assert found(run, *entries, session="2026-01-03_000000", next=1) in ([], [what])


def test_a_torn_or_foreign_conversation_is_read_as_far_as_it_goes(run: Project) -> None:
    path = run.root.parent / "torn.jsonl"
    path.write_bytes(
        b'[1]\n7\n{"type": "user"}\n{"type": "user", "message": 7}\n\xff\n{"type": "us'
    )
    data = {"transcript_path": str(path)}
    assert exposures(session(run), data, run.client) == []


@pytest.mark.parametrize("data", [{}, {"transcript_path": None}, {"transcript_path": "/nowhere/x"}])
def test_where_there_is_no_transcript_it_is_said(run: Project, data: dict[str, Any]) -> None:
    assert exposures(session(run), data, run.client) == [UNKNOWN]


def test_logs_in_a_folder_of_evidence_count_and_what_a_checkpoint_keeps_does_not(
    run: Project,
) -> None:
    (run.root / "out" / "rank1.log").write_text("rank 1 step 10 loss 2.345\n")
    (run.root / "out" / "config.json").write_text(
        '"max_position_embeddings": 2048,\n"x": 123456789\n'
    )
    assert found(run, attached('"max_position_embeddings": 2048,\n"x": 123456789')) == []
    assert found(run, attached("rank 1 step 10 loss 2.345")) == [
        "the conversation had 1 line of rank1.log"
    ]


def test_what_the_client_writes_down_late_is_waited_for(
    run: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run.root.parent / "c.jsonl"
    path.write_text("")
    data = {"transcript_path": str(path), "tool_use_id": "toolu_now"}
    now = {"type": "tool_use", "id": "toolu_now", "name": "Bash", "input": {"command": "true"}}
    last = {"type": "assistant", "message": {"role": "assistant", "content": [now]}}
    entries = [*used("Read", LINE, file_path=str(run.root / "train.log")), last]

    def write(_: float) -> None:
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))

    monkeypatch.setattr("trainwarden.guard.transcript.time.sleep", write)
    found = exposures(session(run), data, run.client)
    assert any("Read was used on" in what for what in found)
    assert LATE not in found


def test_a_conversation_that_stays_behind_is_said_to(
    run: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run.root.parent / "c.jsonl"
    path.write_text("")
    monkeypatch.setattr("trainwarden.guard.transcript.PATIENCE", 0.0)
    data = {"transcript_path": str(path), "tool_use_id": "toolu_now"}
    assert LATE in exposures(session(run), data, run.client)
