"""Seals: a chain of SHA-256 digests over a session's gates, and the check of a whole chain."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trainwarden.errors import Refusal
from trainwarden.records.session import STEPS, Gate, SessionHeader, SessionRecord

FRONT_MATTER = re.compile(r"\A---\n(?P<front>.*?)\n---\n(?P<body>.*)\Z", re.DOTALL)


def _digest(*parts: str) -> str:
    summary = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        summary.update(len(data).to_bytes(8, "big") + data)
    return summary.hexdigest()


def _canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def genesis(header: SessionHeader) -> str:
    """The seal before the first gate: a digest of what was fixed when the session began."""
    return _digest("session", _canonical(header.model_dump(mode="json")))


def seal(gate: Gate, body: str) -> str:
    """The seal over a gate's data, its rendered text and the seal before it."""
    data = gate.model_dump(mode="json", exclude={"seal"})
    return _digest("gate", _canonical(data), body)


def front_matter(gate: Gate) -> dict[str, Any]:
    """What stands at the head of a gate's file."""
    return {
        "step": gate.step,
        "name": gate.name,
        "job": gate.job,
        "session": gate.session,
        "analyst": gate.analyst,
        "sealed_at": gate.model_dump(mode="json")["sealed_at"],
        "revision": gate.revision,
        **({} if gate.guarded is None else {"guarded": gate.guarded}),
        "seal": gate.seal,
        "previous_seal": gate.previous,
    }


def gate_file(gate: Gate, body: str) -> str:
    """The whole text of a gate's file: front matter (YAML whose values are JSON) and body."""
    lines = [f"{key}: {json.dumps(value)}" for key, value in front_matter(gate).items()]
    return "---\n" + "\n".join(lines) + "\n---\n" + body


@dataclass(frozen=True)
class Verification:
    """What `verify` found. `broken` names the first broken gate, `problem` says how."""

    session: str
    gates: int
    head: str
    broken: str | None = None
    problem: str | None = None
    leftovers: tuple[str, ...] = ()
    """Gate files that no seal covers: a command was stopped before it could seal them."""


def load_session(folder: Path) -> SessionRecord:
    """Read a session's `session.json`. Raises Refusal where it is missing or no such record."""
    path = folder / "session.json"
    try:
        return SessionRecord.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise Refusal(f"{folder} is no session: it has no session.json") from None
    except OSError as error:
        raise Refusal(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Refusal(f"{path} is not a session record: {where}: {first['msg']}") from None


def verify(folder: Path, known_head: str | None = None) -> Verification:
    """Re-compute every seal of a session.

    `known_head` is a seal that the job's state remembers of this session: it must be in the
    chain, so that gates cut off at the end are noticed too. A record that is gone or cannot be
    read is broken as well; so is a folder that does not carry its session's name, a copy or one
    of two that were swapped. Never raises for what it finds.
    """
    try:
        record = load_session(folder)
    except Refusal as refusal:
        return Verification(folder.name, 0, "", "session.json", str(refusal))
    header = record.header
    names = {gate.file for gate in record.gates}
    leftovers = tuple(
        sorted(path.name for path in folder.glob("[1-9]-*.md") if path.name not in names)
    )
    previous, seen = genesis(header), {genesis(header)}

    def result(broken: str | None = None, problem: str | None = None) -> Verification:
        return Verification(header.session, len(record.gates), previous, broken, problem, leftovers)

    if folder.name != header.session:
        return result(
            "session.json",
            f"this is session {header.session}: the folder was renamed, copied or swapped",
        )
    for place, gate in enumerate(record.gates):
        problem = _gate_problem(folder, header, gate, previous, record.gates[:place])
        if problem:
            return result(gate.file, problem)
        previous = gate.seal
        seen.add(gate.seal)
    if known_head is not None and known_head not in seen:
        return result(
            "the end of the chain",
            f"the job's state remembers seal {known_head[:12]}…, which no gate here has: "
            "gates were removed, or the whole session was replaced",
        )
    return result()


def _gate_problem(
    folder: Path, header: SessionHeader, gate: Gate, previous: str, before: tuple[Gate, ...]
) -> str | None:
    if gate.job != header.job.id or gate.session != header.session:
        return "it belongs to another session"
    if gate.previous != previous:
        return "the seal before it is not the one it was sealed after: removed or reordered"
    if STEPS[gate.step - 1] != gate.name or gate.step > len({g.step for g in before}) + 1:
        return f"step {gate.step} ({gate.name}) is out of order"
    try:
        text = (folder / gate.file).read_text(encoding="utf-8")
    except FileNotFoundError:
        return "its file was removed"
    except (OSError, UnicodeDecodeError) as error:
        return f"its file cannot be read: {error}"
    parts = FRONT_MATTER.match(text)
    if not parts:
        return "its front matter is gone"
    if seal(gate, parts["body"]) != gate.seal:
        return "its content does not give its seal: the file or session.json was changed"
    if text != gate_file(gate, parts["body"]):
        return "its front matter was changed"
    return None
