"""What the real client does not let through while a session is open."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from support.claude import Client, front_matter
from support.cli import call as command
from support.model import Result, Script, Turn, bash, call, say
from support.procs import SLEEPER, processes
from support.watcher import BEGIN, Watcher, leave

LOG_LINE = "ms/step"
"""Stands in every line of the log, and in no config, code or text of the plugin."""


def refused(result: Result) -> str:
    """The reason of a refusal; fails where the call passed, or failed for something else."""
    told = f"{result.tool} {result.given}: {result.text}"
    assert by_guard(result), told
    return result.text


def by_guard(result: Result) -> bool:
    """Whether the guard refused a call; the runtime's own refusals have an exit code."""
    own = "Exit code" in result.text
    return result.failed and "trainwarden: " in result.text and not own


def early_reads(project: Path) -> list[Turn]:
    """Ways to see evidence before predicting."""
    notebook = str(project / "look.ipynb")
    spelled = [
        "cat train.log",
        "tail -n 3 < train.log",
        "cat train.lo*",
        "cat t''rain.log",
        "F=train.log; cat $F",
        "cat $(echo train.log)",
        "cd / && cat " + str(project / "train.log"),
        "head notes.yaml",
        "cp train.log copy.py",
        "python3 -c 'print(open(\"train.log\").read())'",
        "env tail train.log",
        "bash -c 'cat train.log'",
        "grep -r loss .",
        "ls -la checkpoints",
        "nvidia-smi",
        "ps aux",
        "kubectl logs trainer-0",
        "squeue --me",
        "docker logs trainer",
        "journalctl -n 9",
        "tail -f train.log &",
        "trainwarden collect",
        "trainwarden read train.log",
        "trainwarden predict <<'EOF'\n[]\nEOF\ncat train.log",
    ]
    return [
        call("Read", file_path=str(project / "train.log")),
        call("Read", file_path=str(project / "notes.yaml")),
        call("Read", file_path=str(project / "linked.py")),
        call("Read", file_path=str(project / "checkpoints/config.yaml")),
        call("Grep", pattern="loss", path=str(project / "train.log"), output_mode="content"),
        call("Grep", pattern="loss", output_mode="content"),
        call("Glob", pattern="checkpoints/*"),
        call("Read", file_path=str(project.parent / "user/tmp/tasks/b1.output")),
        call("NotebookEdit", notebook_path=notebook, cell_id="a", new_source="print(loss)"),
        call("Monitor", command="tail -f train.log", description="the log", timeout_ms=2000),
        bash("trainwarden step 1", run_in_background=True),
        call("WebFetch", url="https://wandb.ai/me/characters", prompt="What is the loss?"),
        call("mcp__board__latest", run="characters"),
        call(
            "Agent",
            description="read",
            prompt="Read the end of train.log.",
            subagent_type="Explore",
        ),
        *(bash(command) for command in spelled),
    ]


BOARD = """
import json, sys
def send(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        about = {"name": "board", "version": "1"}
        version = asked["params"]["protocolVersion"]
        send(asked["id"], {"protocolVersion": version, "capabilities": {"tools": {}},
                           "serverInfo": about})
    elif asked["method"] == "tools/list":
        schema = {"type": "object", "properties": {"run": {"type": "string"}}}
        send(asked["id"], {"tools": [{"name": "latest", "description": "A run's latest numbers.",
                                      "inputSchema": schema}]})
    elif asked["method"] == "tools/call":
        text = "step 600 | 1.2 ms/step"
        send(asked["id"], {"content": [{"type": "text", "text": text}]})
"""
"""A tracker's MCP server that tells a run's numbers."""


def test_no_way_to_read_before_predicting(
    client: Client, project: Path, watcher: Watcher, tmp_path: Path
) -> None:
    (project / "notes.yaml").symlink_to("train.log")
    (project / "linked.py").hardlink_to(project / "train.log")
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": [], "outputs": []}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (project / "look.ipynb").write_text(json.dumps(notebook))
    (tmp_path / "board.py").write_text(BOARD)
    server = {"command": sys.executable, "args": [str(tmp_path / "board.py")]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"board": server}}))
    reasons: list[str] = []

    def main() -> Script:
        asked = yield call("mcp__board__latest", run="characters")
        assert LOG_LINE in asked.result.text, "with no session open the tracker can be asked"
        # What is edited must have been read, so that the refusal is the guard's.
        yield call("Read", file_path=str(project / "look.ipynb"))
        yield say("It goes well.")
        yield from watcher.begin()
        passed = []
        for attempt in early_reads(project):
            asked = yield attempt
            if not by_guard(asked.result):
                passed.append((asked.result.tool, asked.result.given, asked.result.text[:200]))
            reasons.append(asked.result.text)
        assert passed == []
        for harmless in (
            call("Read", file_path=str(project / "config.yaml")),
            call("Read", file_path=str(project / "model.py")),
            call("Grep", pattern="class", path=str(project / "model.py"), output_mode="content"),
            bash("cat config.yaml | head -20"),
            bash("trainwarden step 1"),
            bash("trainwarden status"),
        ):
            asked = yield harmless
            assert not asked.result.failed, f"{asked.result.given}: {asked.result.text}"
        yield from watcher.seal("predict")
        asked = yield call("Read", file_path=str(project / "train.log"))
        assert LOG_LINE in asked.result.text, "after gate 1 reading is free"
        asked = yield bash("tail -n 2 train.log | cut -d'|' -f2")
        assert "loss" in asked.result.text
        asked = yield call("Monitor", command="tail -n 1 train.log", description="the log")
        assert not asked.result.failed, asked.result.text
        yield leave()

    run = client.run(
        ["How is the run?", "/trainwarden:monitor train.log"],
        main(),
        arguments=[
            *("--mcp-config", str(tmp_path / "mcp.json"), "--strict-mcp-config"),
            *("--allowedTools", "mcp__board__latest"),
        ],
    )
    assert run.code == 0, run.errors
    assert len(reasons) == len(early_reads(project))
    assert all("trainwarden predict" in reason for reason in reasons), "each says what to do"
    assert json.loads((project / "look.ipynb").read_text()) == notebook
    assert run.agents == [], "no sub-agent was started"
    seen = [a for a in run.asked if any(LOG_LINE in r.text for r in a.results)]
    assert len(seen) == 2, "only the tracker before the session, and the log after gate 1"


def test_folders_by_other_names(client: Client, project: Path, watcher: Watcher) -> None:
    """The project is entered by a link, and the shell stands in the checkpoints' folder."""
    link = project.with_name("link")
    link.symlink_to(project)
    client.project = link

    def main() -> Script:
        yield bash("cd checkpoints && pwd")
        asked = yield bash(
            BEGIN.replace("train.log", str(link / "train.log")).replace(
                "config.yaml", str(link / "config.yaml")
            )
        )
        assert not asked.result.failed, asked.result.text
        asked = yield bash("cat config.yaml")
        refused(asked.result)
        for attempt in (
            call("Read", file_path=str(link / "train.log")),
            call("Read", file_path=str(project / "train.log")),
            call("Read", file_path=f"/proc/self/cwd/{project}/train.log"),
        ):
            asked = yield attempt
            refused(asked.result)
        yield from watcher.seal("predict")
        asked = yield bash("trainwarden status && cat ../train.log")
        assert LOG_LINE in asked.result.text
        yield leave()

    run = client.run("/trainwarden:monitor train.log", main())
    assert not (project / "checkpoints/monitoring-logs").exists()
    assert front_matter(watcher.folder / "1-predict.md")["guarded"] is True
    assert sum(LOG_LINE in asked.new for asked in run.of()) == 1


def test_a_sub_agent_of_before_is_judged_as_well(
    client: Client, project: Path, watcher: Watcher
) -> None:
    opened, tried = threading.Event(), threading.Event()

    def helper() -> Script:
        assert opened.wait(30)
        asked = yield call("Read", file_path=str(project / "train.log"))
        assert "before gate 1" in refused(asked.result).lower() or "predict" in asked.result.text
        asked = yield bash("tail train.log")
        refused(asked.result)
        tried.set()
        yield say("It could not be read.")

    def main() -> Script:
        yield call(
            "Agent",
            description="look at the log",
            prompt="Read train.log.",
            subagent_type="general-purpose",
            run_in_background=True,
        )
        yield from watcher.begin()
        opened.set()
        assert tried.wait(30)
        yield from watcher.seal("predict")
        yield leave()

    run = client.run("/trainwarden:monitor train.log", main(), helper())
    assert len(run.agents) == 1
    assert all(LOG_LINE not in asked.context for asked in run.asked)


def test_a_skipped_step(client: Client, watcher: Watcher) -> None:
    def main() -> Script:
        yield from watcher.begin()
        yield from watcher.seal("predict", "collect")
        again = "predict <<'EOF'\n- {quantity: loss, low: 1, high: 2, level: 0.9, basis: seen}\nEOF"
        ahead = "resources <<'EOF'\nreasoning: all is well here\nEOF"
        for step in (ahead, "finish", again):
            asked = yield bash(f"trainwarden {step}")
            assert asked.result.failed
            assert "trainwarden compare" in asked.result.text, asked.result.text
        yield from watcher.seal("compare")
        yield leave()

    client.run("/trainwarden:monitor train.log", main())
    names = [gate.name for gate in sorted(watcher.folder.glob("[1-9]-*.md"))]
    assert names == ["1-predict.md", "2-collect.md", "3-compare.md"]
    assert all(front_matter(watcher.folder / name)["guarded"] is True for name in names)


def test_only_the_runtime_writes_gates(client: Client, project: Path, watcher: Watcher) -> None:
    """Not even where the user has lifted all permissions."""
    logs = project / "monitoring-logs"

    def attempts() -> list[Turn]:
        gate = watcher.folder / "1-predict.md"
        return [
            call("Write", file_path=str(watcher.folder / "9-summary.md"), content="HEALTHY"),
            call(
                "Edit",
                file_path=str(gate),
                old_string="0.9",
                new_string="0.5",
                replace_all=True,
            ),
            call("Write", file_path=str(logs / "guard/seen/x.jsonl"), content="{}"),
            bash(f"echo HEALTHY > {watcher.folder}/9-summary.md"),
            bash(f"sed -i s/0.9/0.5/ {gate}"),
            bash(f"cp config.yaml {logs}/jobs/mine.json"),
            bash("rm -rf monitoring-logs/guard"),
            bash("mv monitoring-logs other"),
            bash("cd monitoring-logs && touch here"),
            bash("python3 -c \"open('monitoring-logs/x','w')\""),
        ]

    def main() -> Script:
        yield from watcher.begin()
        yield from watcher.seal("predict")
        # An Edit needs the file read before, so that the refusal is the guard's.
        yield call("Read", file_path=str(watcher.folder / "1-predict.md"))
        for attempt in attempts():
            asked = yield attempt
            refused(asked.result)
        yield from watcher.seal("collect")
        yield leave()

    free = ["--permission-mode", "bypassPermissions"]
    client.run("/trainwarden:monitor train.log", main(), arguments=free, IS_SANDBOX="1")
    assert not list(logs.glob("*/9-summary.md"))
    assert {gate.name for gate in watcher.folder.glob("*.md")} == {"1-predict.md", "2-collect.md"}
    assert command("verify", watcher.folder.name, "--root", project).returncode == 0


def test_observe_stops_nothing_and_act_may(
    client: Client, project: Path, watcher: Watcher, tmp_path: Path
) -> None:
    with processes(tmp_path) as started:
        pid = started.python("train.py", SLEEPER)
        before = {path: path.read_bytes() for path in sorted(project.rglob("*")) if path.is_file()}

        def observing() -> Script:
            asked = yield bash("sleep 100", run_in_background=True)
            task = asked.result.text.split("ID: ")[1].split(".")[0]
            yield from watcher.begin()
            yield from watcher.seal("predict", "collect")
            yield call("Read", file_path=str(project / "config.yaml"))
            for attempt in (
                bash(f"kill {pid}"),
                bash("pkill -f train.py"),
                bash(f"python3 -c 'import os; os.kill({pid}, 9)'"),
                bash("rm -r checkpoints"),
                bash("truncate -s 0 train.log"),
                bash("scancel 1"),
                bash("kubectl delete pod trainer-0"),
                bash("sed -i s/600/900/ config.yaml"),
                call("Write", file_path=str(project / "train.log"), content=""),
                call(
                    "Edit",
                    file_path=str(project / "config.yaml"),
                    old_string="600",
                    new_string="900",
                ),
                call("TaskStop", task_id=task),
            ):
                asked = yield attempt
                assert "observe" in refused(asked.result), asked.result.text
            yield bash("trainwarden abandon --why 'leave to act is needed'")
            asked = yield call("TaskStop", task_id=task)
            assert not asked.result.failed, asked.result.text
            yield say("Given up.")

        client.run("/trainwarden:monitor train.log", observing())
        assert os.kill(pid, 0) is None
        for path, content in before.items():
            assert path.read_bytes() == content, path

        def acting() -> Script:
            asked = yield bash(BEGIN + " --authority act")
            assert not asked.result.failed, asked.result.text
            yield from watcher.seal("predict", "collect")
            asked = yield bash(f"kill -9 {pid}")
            assert not asked.result.failed, asked.result.text
            asked = yield bash("echo x > monitoring-logs/jobs/mine.json")
            refused(asked.result)
            yield bash("trainwarden abandon --why 'the test is over'")
            yield say("Ended it.")

        client.run("/trainwarden:monitor train.log", acting())
        started.popen[0].wait(10)
