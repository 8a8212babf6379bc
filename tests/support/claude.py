"""The real Claude Code client, run offline against a scripted model."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.model import MODEL, Asked, Result, Script, Server

ROOT = Path(__file__).parents[2]
TOOLS = (
    "Agent,Bash,Edit,Glob,Grep,Monitor,NotebookEdit,Read,Skill,TaskCreate,TaskList,TaskUpdate,"
    "TaskStop,WebFetch,Write,ToolSearch"
)
LIMIT = 200.0
"""Seconds after which a client is ended; far more than any of the tests needs."""


def executable() -> str | None:
    """The client: the one named by TRAINWARDEN_CLAUDE, or the one that `make client` installed."""
    named = os.environ.get("TRAINWARDEN_CLAUDE")
    path = Path(named) if named else ROOT / ".client/claude"
    return str(path) if path.exists() else None


@dataclass
class Run:
    """What became of a run of the client."""

    code: int
    events: list[dict[str, Any]]
    """The lines of its stream-json output."""
    errors: str
    asked: list[Asked]

    @property
    def session(self) -> str:
        """The client session's id."""
        return next(e["session_id"] for e in self.events if "session_id" in e)

    @property
    def final(self) -> str:
        """The last words to the user."""
        return next(e.get("result", "") for e in reversed(self.events) if e["type"] == "result")

    @property
    def stopped(self) -> list[str]:
        """What a turn's end was blocked with, each time."""
        return [asked.new for asked in self.of() if "Stop hook feedback" in asked.new]

    def of(self, lane: str = "main") -> list[Asked]:
        """The requests of one conversation."""
        return [asked for asked in self.asked if asked.lane == lane]

    @property
    def agents(self) -> list[list[Asked]]:
        """The requests of each sub-agent."""
        names = dict.fromkeys(a.lane for a in self.asked if a.lane not in ("main", "side"))
        return [self.of(name) for name in names]

    @property
    def results(self) -> list[Result]:
        """What came of all calls of the main conversation, in order."""
        return [result for asked in self.of() for result in asked.results]


@dataclass
class Client:
    """A user with a home of their own, in a project, with the plugin."""

    home: Path
    project: Path
    plugin: Path | None = ROOT
    """None where it is installed in the client's configuration."""
    path: Sequence[str] = (f"{sys.base_prefix}/bin", "/usr/bin", "/bin")
    """Has a Python and no trainwarden: that comes from the plugin's own `bin`."""
    tools: str = TOOLS
    """What the user has allowed beforehand."""
    environment: dict[str, str] = field(default_factory=dict)
    within: Sequence[str] = ()
    """What starts the client, as something that takes a right from it."""
    process: subprocess.Popen[str] | None = None

    def kill(self) -> None:
        """End the running process as a closed lid or a dead machine does: at once."""
        assert self.process is not None
        _end(self.process)

    def variables(self, url: str) -> dict[str, str]:
        """The client's whole environment."""
        for name in ("home", "config", "tmp"):
            (self.home / name).mkdir(parents=True, exist_ok=True)
        return {
            "PATH": os.pathsep.join(self.path),
            "HOME": str(self.home / "home"),
            "CLAUDE_CONFIG_DIR": str(self.home / "config"),
            "CLAUDE_CODE_TMPDIR": str(self.home / "tmp"),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "no-key",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "LANG": "C.UTF-8",
            **self.environment,
        }

    def run(
        self,
        prompt: str | Sequence[str],
        main: Script,
        *agents: Script,
        arguments: Sequence[str] = (),
        compacted: str = "A summary of what went before.",
        limit: float = LIMIT,
        **environment: str,
    ) -> Run:
        """One process of the client, to its end.

        Several prompts are typed one after another into one process, each after the answer to the
        one before. An assertion that fails in a script is raised here.
        """
        program = executable()
        assert program is not None, "the client is not installed: make client"
        with Server(main, agents, compacted) as server:
            command = [
                *(*self.within, program, "-p"),
                *(("--plugin-dir", str(self.plugin)) if self.plugin else ()),
                *("--model", MODEL, "--allowedTools", self.tools),
                *("--output-format", "stream-json", "--verbose", "--include-hook-events"),
                *arguments,
            ]
            typed = isinstance(prompt, str)
            command += [prompt] if isinstance(prompt, str) else ["--input-format", "stream-json"]
            process = subprocess.Popen(
                command,
                cwd=self.project,
                env=self.variables(server.url) | environment,
                stdin=subprocess.DEVNULL if typed else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self.process = process
            timer = threading.Timer(limit, _end, (process,))
            timer.start()
            try:
                events = _converse(process, [] if isinstance(prompt, str) else prompt)
                code = process.wait()
                errors = process.stderr.read() if process.stderr else ""
            finally:
                late = not timer.is_alive()
                timer.cancel()
                _end(process)
        if server.failed is not None:
            raise server.failed
        assert not late, f"the client did not end within {limit} s: {events[-3:]}"
        return Run(code, events, errors, server.asked)


def _converse(process: subprocess.Popen[str], prompts: Sequence[str]) -> list[dict[str, Any]]:
    waiting = list(prompts)

    def type_next() -> None:
        assert process.stdin
        if not waiting:
            process.stdin.close()
            return
        message = {"role": "user", "content": waiting.pop(0)}
        process.stdin.write(json.dumps({"type": "user", "message": message}) + "\n")
        process.stdin.flush()

    events = []
    if process.stdin:
        type_next()
    assert process.stdout
    for line in process.stdout:
        with contextlib.suppress(ValueError):
            events.append(json.loads(line))
            if events[-1].get("type") == "result" and process.stdin:
                type_next()
    return events


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def plugin_copy(folder: Path, change: Callable[[Path], None] = lambda _: None) -> Path:
    """A copy of the plugin, maybe changed; its commands run in the environment of this one."""
    copy = folder / "plugin"
    for name in ("bin", "hooks", "skills", "agents", "commands", "steps", "src", ".claude-plugin"):
        shutil.copytree(ROOT / name, copy / name, symlinks=True)
    shutil.copy(ROOT / "pyproject.toml", copy)
    (copy / ".venv").symlink_to(ROOT / ".venv")
    change(copy)
    return copy


def front_matter(gate: Path) -> Mapping[str, Any]:
    """What stands above a gate's text."""
    import yaml

    _, head, _ = gate.read_text(encoding="utf-8").split("---\n", 2)
    data: dict[str, Any] = yaml.safe_load(head)
    return data
