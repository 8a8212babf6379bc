"""Which client holds which open session: the files by which the guard knows.

An open session has its file before the state says that it is open, and keeps it until the state
says that it is not: a kill in between leaves the guard too strict, never blind, and whoever comes
next puts it right (`leftovers.tidy`).
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from trainwarden.files import make_folder, write_atomically
from trainwarden.guard import record
from trainwarden.guard.record import NOBODY, Open
from trainwarden.procedure import whereabouts
from trainwarden.procedure.client import Client
from trainwarden.procedure.gates import COMMANDS
from trainwarden.records.session import STEPS, SessionHeader

__all__ = [
    "NOBODY", "files", "folder", "holder", "name_of", "names", "read", "release", "session_of",
    "write",
]  # fmt: skip


def name_of(client: Client | None) -> str:
    """How a client's files are named; nobody's outside of Claude Code."""
    return record.plain(client.session) if client else NOBODY


def folder(root: Path) -> Path:
    """The folder of all open sessions' files."""
    return Path(record.folder(str(root))) / "open"


def files(root: Path, session: str) -> list[Path]:
    """The files of one session, also what a killed writer left."""
    return [path for path in _all(root) if session_of(path) == session]


def names(root: Path) -> list[str]:
    """The sessions that have a file."""
    return [session_of(path) for path in _all(root)]


def _all(root: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(folder(root).iterdir())
    return []


def session_of(path: Path) -> str:
    """The session that a file speaks of: clients' names and sessions' have no dots."""
    parts = path.name.removesuffix(".new").removesuffix(".json").rsplit(".", 1)
    return parts[-1]


def holder(root: Path, session: str) -> str | None:
    """Who holds a session (`-`: nobody in particular), None where no file says."""
    for path in files(root, session):
        if path.suffix == ".json":
            return path.name.removesuffix(".json").rpartition(".")[0]
    return None


def read(path: Path) -> Open | None:
    """What a file says; None where it says nothing."""
    try:
        return Open(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(
    root: Path, header: SessionHeader, step: int, revision: int, client: str | None = None
) -> None:
    """Say that a session is open and which step is next; with `client`, who holds it from now on
    (as `name_of` names it).

    Raises Trouble.
    """
    held = holder(root, header.session)
    client = client if client is not None else held or NOBODY
    path = Path(record.open_path(str(root), client, header.session))
    known = read(path)
    said = Open(
        {
            "session": header.session,
            "job": header.job.id,
            "client": client,
            "root": str(root),
            "authority": header.authority,
            "next": step,
            "revision": revision,
            "command": f"trainwarden {COMMANDS[STEPS[step - 1]]}",
            "evidence": known.evidence if known else whereabouts.evidence(header.job, root),
            "config": known.config if known else whereabouts.readable(header.job),
        }
    )
    if known is None or known.as_data() != said.as_data():
        make_folder(path.parent)
        write_atomically(path, json.dumps(said.as_data()))
    for other in files(root, header.session):
        if other != path:
            with contextlib.suppress(OSError):
                other.unlink()


def release(root: Path, session: str) -> None:
    """Say that a session is open no more."""
    for path in files(root, session):
        with contextlib.suppress(OSError):
            path.unlink()
