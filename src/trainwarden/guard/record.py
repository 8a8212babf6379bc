"""What the guard and the runtime tell each other: files below `monitoring-logs/guard/`.

`open/<client>.<session>.json`: an open session, written by the runtime when it opens and with every
seal, removed when it ends. `<client>` is the Claude Code session that holds it, `-` for none.

`seen/<client>.jsonl`: what the guard saw of a client session, one event a line, only appended to,
each with `event` and `at` (seconds since 1970):

    began, ended    tool_use: around each call that was judged for a client that holds a session
    refused         tool_use, tool, why
    call            tool_use, agent ("" for the main one), agent_type, commands (lists of words): a
                    call of the runtime that passed, the ticket of its commands
    seen            what, session: evidence that was in the context before gate 1
    skill           name: a skill of the plugin that the client loaded for the main agent
    agent-start     agent, agent_type: the reviewer
    agent-call      agent, tool, about
    agent-stop      agent, agent_type, message: its last words
    failed          where, why: the guard failed inside

The runtime adds `used` (tool_use, command), `opened` (session, tool_use) and `sealed` (session,
step, revision).
"""

from __future__ import annotations

import os
import time

from trainwarden.guard.plainjson import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOBODY = "-"
MOST = 65_536
"""Characters of one text of an event; the rest is cut."""


class Open:
    """An open session as the guard knows it."""

    __slots__ = (
        "authority",
        "client",
        "command",
        "config",
        "evidence",
        "job",
        "next",
        "revision",
        "root",
        "session",
    )

    def __init__(self, data: dict[str, Any]) -> None:
        self.session: str = data["session"]
        self.job: str = data["job"]
        self.client: str = data["client"]
        self.root: str = data["root"]
        """The folder that has `monitoring-logs/`, absolute."""
        self.authority: str = data["authority"]
        self.next: int = data["next"]
        """The step to be sealed now, 1 to 9."""
        self.revision: int = data["revision"]
        self.command: str = data["command"]
        """What seals it, as typed."""
        self.evidence: list[str] = data["evidence"]
        """Absolute paths: the job's logs, output, tracker and checkpoint folders."""
        self.config: list[str] = data["config"]
        """Absolute paths that may be read before gate 1: the job's config and model folder."""

    def as_data(self) -> dict[str, Any]:
        """For `dumps`."""
        return {name: getattr(self, name) for name in self.__slots__}


def folder(root: str) -> str:
    """Where guard and runtime meet, for a project's root."""
    return os.path.join(root, "monitoring-logs", "guard")


def plain(client: str) -> str:
    """A client's id as a file name."""
    kept = "".join(c if (c.isalnum() and c.isascii()) or c in "-_" else "_" for c in client[:100])
    return kept or NOBODY


def open_path(root: str, client: str, session: str) -> str:
    """The file that says a session is open."""
    return os.path.join(folder(root), "open", f"{plain(client)}.{session}.json")


def seen_path(root: str, client: str) -> str:
    """The guard's record of a client session."""
    return os.path.join(folder(root), "seen", f"{plain(client)}.jsonl")


def open_names(root: str) -> list[str]:
    """The files of all open sessions of a project, in no order. Raises OSError."""
    try:
        names = os.listdir(os.path.join(folder(root), "open"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [name for name in names if name[-5:] == ".json"]  # quicker than a call each


def opened(root: str, name: str) -> Open | None:
    """What such a file says; nothing where it is gone by now.

    A file that cannot be read raises: whoever judges must not take it for no session.
    """
    try:
        with open(os.path.join(folder(root), "open", name), encoding="utf-8") as file:
            return Open(loads(file.read()))
    except FileNotFoundError:
        return None


def open_sessions(root: str, client: str) -> tuple[list[Open], int]:
    """The sessions that a client holds, and how many are open in all; raises as `opened`."""
    names = open_names(root)
    start = plain(client) + "."
    own = sorted([name for name in names if name.startswith(start)])
    held = [opened(root, name) for name in own]
    return [session for session in held if session is not None], len(names)


def append(root: str, client: str, event: str, **fields: Any) -> None:
    """Add an event to a client's record, in one write. Raises OSError."""
    kept = {name: v[:MOST] if isinstance(v, str) else v for name, v in fields.items()}
    line = dumps({"event": event, "at": time.time(), **kept}) + "\n"
    path = seen_path(root, client)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    try:
        target = os.open(path, flags, 0o644)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        target = os.open(path, flags, 0o644)
    try:
        os.write(target, line.encode())
    finally:
        os.close(target)


def events(root: str, client: str) -> list[dict[str, Any]]:
    """All events of a client's record, oldest first; a torn last line is left out."""
    try:
        with open(seen_path(root, client), encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
    except FileNotFoundError:
        return []
    found = []
    for line in lines[:-1]:
        try:
            data = loads(line)
        except ValueError:
            continue
        if isinstance(data, dict) and "event" in data:
            found.append(data)
    return found
