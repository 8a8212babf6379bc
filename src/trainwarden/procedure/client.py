"""Who runs us: a Claude Code session, or nobody in particular."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ANALYST = "claude-code"
"""The analyst of a session that is opened in Claude Code and names none."""


@dataclass(frozen=True)
class Client:
    """A Claude Code session, as its Bash tool's environment names it."""

    session: str
    """Its id; empty where the client does not tell."""
    project: Path | None = None
    """The folder that the guard watches, where the guard has told."""


def present(environment: Mapping[str, str] = os.environ) -> Client | None:
    """The Claude Code session that runs this process; None outside of one."""
    session = environment.get("CLAUDE_CODE_SESSION_ID", "").strip()
    if not session and environment.get("CLAUDECODE") != "1":
        return None
    project = environment.get("TRAINWARDEN_ROOT", "").strip()
    return Client(session, Path(project).absolute() if project else None)
