"""The real Claude Code client, run offline against a scripted Messages server on loopback.

A script is a generator: it yields the model's turns, and gets what the client sent next.

    def script() -> Script:
        asked = yield call("Bash", command="trainwarden begin --log train.log")
        assert "session" in asked.results[0].text
        yield say("Done.")
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MODEL = "claude-sonnet-4-6"
TOOLS = (
    "Agent,Bash,Edit,Glob,Grep,Monitor,NotebookEdit,Read,Skill,TaskCreate,TaskList,TaskUpdate,"
    "TaskStop,WebFetch,Write,ToolSearch"
)
COMPACTS = "an <analysis> block followed by a <summary> block"
"""Stands in a request that wants the conversation summed up, which has tools as any other has."""
LIMIT = 200.0
"""Seconds after which a client is ended; far more than any of the tests needs."""


def executable() -> str | None:
    """The client: the one named by TRAINWARDEN_CLAUDE, or the one that `make client` installed."""
    named = os.environ.get("TRAINWARDEN_CLAUDE")
    path = Path(named) if named else ROOT / ".client/claude"
    return str(path) if path.exists() else None


@dataclass(frozen=True)
class Turn:
    """What the model answers: text, then tool calls."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    tokens: int = 1000
    """How full the context is said to be; near a million makes the client compact it."""

    def __and__(self, other: Turn) -> Turn:
        return Turn(self.text + other.text, self.calls + other.calls)


def say(text: str, tokens: int = 1000) -> Turn:
    """End the turn with words."""
    return Turn(text, tokens=tokens)


def call(tool: str, **given: Any) -> Turn:
    """Call a tool; several are called at once with `&`."""
    return Turn(calls=((tool, given),))


def bash(command: str, **more: Any) -> Turn:
    """Call Bash."""
    return call("Bash", command=command, description="a command of the tests", **more)


@dataclass(frozen=True)
class Result:
    """What came of a tool call, as the model sees it."""

    tool: str
    given: dict[str, Any]
    text: str
    failed: bool


@dataclass
class Asked:
    """One request of the client."""

    lane: str
    """`main`, the id of a sub-agent, or `side` for a title or a summary."""
    body: dict[str, Any]

    @property
    def system(self) -> str:
        """The system prompt."""
        return _words(self.body.get("system", ""))

    @property
    def tools(self) -> list[str]:
        """The names of the tools that are offered."""
        return [tool["name"] for tool in self.body.get("tools", ())]

    @property
    def new(self) -> str:
        """All that the model is told since its last turn, tool results included."""
        return "\n".join(_words(message["content"]) for message in self._since())

    @property
    def context(self) -> str:
        """All that the model is told, from the first message to the last."""
        return "\n".join(_words(message["content"]) for message in self.body["messages"])

    @property
    def results(self) -> list[Result]:
        """What came of the calls of the model's last turn."""
        calls = {
            block["id"]: block
            for message in self.body["messages"]
            if message["role"] == "assistant" and isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_use"
        }
        return [
            Result(
                calls[block["tool_use_id"]]["name"],
                calls[block["tool_use_id"]]["input"],
                _words(block.get("content", "")),
                bool(block.get("is_error")),
            )
            for message in self._since()
            if isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_result"
        ]

    @property
    def result(self) -> Result:
        """What came of the one call of the model's last turn."""
        (one,) = self.results
        return one

    def _since(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["messages"]
        last = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
        return messages[last + 1 :]


Script = Generator[Turn, Asked, None]


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            block["text"] if block["type"] == "text" else _words(block.get("content", ""))
            for block in content
        )
    return ""


class Lane:
    """A conversation: the main one or a sub-agent's."""

    def __init__(self, script: Script | None) -> None:
        self.script = script
        self.begun = False
        self.lock = threading.Lock()

    def answer(self, asked: Asked) -> Turn:
        """The script's next turn; once it is over, nothing more to say."""
        with self.lock:
            if self.script is None:
                return say("I have nothing more to say.")
            try:
                if not self.begun:
                    self.begun = True
                    return next(self.script)
                return self.script.send(asked)
            except StopIteration:
                self.script = None
                return say("I have nothing more to say.")


class Server:
    """Speaks the Messages API with the words of scripts, and keeps all that it was asked."""

    def __init__(self, main: Script, agents: Sequence[Script], compacted: str) -> None:
        self.asked: list[Asked] = []
        self.failed: BaseException | None = None
        self._lanes = {"main": Lane(main)}
        self._waiting = list(agents)
        self._compacted = compacted
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Nothing on the tests' own output."""

            def do_GET(self) -> None:
                self._send(b"{}", "application/json")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if not self.path.startswith("/v1/messages?") and self.path != "/v1/messages":
                    return self._send(b"{}", "application/json")
                turn = server.turn(json.loads(body), self.headers.get("x-claude-code-agent-id"))
                return self._send(b"".join(_stream(turn)), "text/event-stream")

            def _send(self, body: bytes, kind: str) -> None:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.send_response(200)
                    self.send_header("content-type", kind)
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def turn(self, body: dict[str, Any], agent: str | None) -> Turn:
        """The answer to a request."""
        name = agent or "main"
        if COMPACTS in Asked(name, body).new:
            self.asked.append(Asked("side", body))
            return say(f"<analysis>All of it.</analysis><summary>{self._compacted}</summary>")
        if not body.get("tools"):
            self.asked.append(Asked("side", body))
            return say("A title")
        with self._lock:
            if name not in self._lanes:
                self._lanes[name] = Lane(self._waiting.pop(0) if self._waiting else None)
            lane = self._lanes[name]
        asked = Asked(name, body)
        self.asked.append(asked)
        try:
            return lane.answer(asked)
        except BaseException as error:
            self.failed = self.failed or error
            return say("The script of the test failed.")

    def __enter__(self) -> Server:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def _stream(turn: Turn) -> Iterator[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    usage = {"input_tokens": turn.tokens, "output_tokens": 1}
    yield event(
        "message_start",
        message={
            "id": f"msg_{secrets.token_hex(8)}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        },
    )
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if turn.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}))
    for name, given in turn.calls:
        start = {"type": "tool_use", "id": f"toolu_{secrets.token_hex(8)}", "name": name}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
        blocks.append((start | {"input": {}}, delta))
    for index, (start, delta) in enumerate(blocks):
        yield event("content_block_start", index=index, content_block=start)
        yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    reason = "tool_use" if turn.calls else "end_turn"
    yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
    yield event("message_stop")


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
                *(program, "-p"),
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


def broken_plugin(folder: Path, change: Callable[[Path], None]) -> Path:
    """A copy of the plugin, changed; its commands run in the environment of this one."""
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
