"""A scripted model: a Messages server on loopback that speaks the words of scripts.

A script is a generator: it yields the model's turns, and gets what the client sent next.

    def script() -> Script:
        asked = yield call("Bash", command="trainwarden begin --log train.log")
        assert "session" in asked.results[0].text
        yield say("Done.")
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "claude-sonnet-4-6"
COMPACTS = "an <analysis> block followed by a <summary> block"
"""Stands in a request that wants the conversation summed up, which has tools as any other has."""


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
