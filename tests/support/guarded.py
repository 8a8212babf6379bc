"""A Claude Code session as the runtime meets it: its environment, and the guard's record of it."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Any

from support.cli import call
from trainwarden.guard import record

AGENT = "trainwarden:quality-reviewer"
_uses = itertools.count(1)


def environment(root: Path, client: str) -> dict[str, str]:
    """What the client and the guard set for a Bash call."""
    return {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": client, "TRAINWARDEN_ROOT": str(root)}


def passed(root: Path, client: str, *argv: str | Path, use: str = "") -> str:
    """Record what the guard records of a call that it lets pass."""
    use = use or f"toolu_{next(_uses)}"
    record.append(str(root), client, "began", tool_use=use)
    commands = [["trainwarden", *map(str, argv)]]
    record.append(str(root), client, "call", tool_use=use, agent="", commands=commands)
    record.append(str(root), client, "ended", tool_use=use)
    return use


def guarded(
    root: Path, client: str, *argv: str | Path, stdin: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    """A command in a client whose guard is live."""
    passed(root, client, *argv)
    return unguarded(root, client, *argv, stdin=stdin, **more)


def unguarded(
    root: Path, client: str, *argv: str | Path, stdin: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    """A command in a client whose guard did not see it."""
    return call(*argv, stdin=stdin, cwd=root, **(environment(root, client) | more))


def reviewer(root: Path, client: str, agent: str, message: str, reads: int = 1) -> None:
    """Record a reviewer that starts, reads and stops."""
    record.append(str(root), client, "agent-start", agent=agent, agent_type=AGENT)
    for _ in range(reads):
        record.append(str(root), client, "agent-call", agent=agent, tool="Read", about="train.log")
    record.append(str(root), client, "agent-stop", agent=agent, agent_type=AGENT, message=message)


def opened(root: Path) -> list[dict[str, Any]]:
    """What the guard is told of open sessions."""
    found = (record.opened(str(root), name) for name in sorted(record.open_names(str(root))))
    return [one.as_data() for one in found if one is not None]
