"""What commands do differently inside of a Claude Code session."""

from __future__ import annotations

import functools
import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainwarden.errors import Refusal
from trainwarden.procedure.client import present

if TYPE_CHECKING:
    from trainwarden.procedure.session import Session
    from trainwarden.procedure.witness import Witness
    from trainwarden.records.review import Review


def shows_evidence(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command that reads of runs: refused while its client has yet to predict."""

    @functools.wraps(function)
    def guarded(*arguments: Any, **options: Any) -> Any:
        refuse_before_gate_1(options.get("root"))
        return function(*arguments, **options)

    return guarded


def refuse_before_gate_1(root: Path | None = None) -> None:
    """Raises Refusal where the client that runs us holds a session without a sealed gate 1."""
    client = present()
    if client is None or not client.session:
        return
    from trainwarden.faces.common import store_at
    from trainwarden.guard import record
    from trainwarden.procedure import holding
    from trainwarden.procedure.leftovers import tidy

    roots = {str(one.absolute()): one for one in (root, client.project, Path()) if one}
    for one in roots.values():
        if not one.is_dir():
            continue
        store = store_at(one)
        tidy(store)
        for path in holding.folder(store.logs.parent).glob(f"{record.plain(client.session)}.*"):
            said = holding.read(path)
            if said and said.next == 1:
                raise Refusal(
                    f"session {said.session} has no sealed gate 1 yet, and before it nothing of a "
                    "run is read: seal your predictions with `trainwarden predict`, or give the "
                    "session up with `trainwarden abandon --why TEXT`"
                )


def unguarded_note(witness: Witness) -> str:
    """Why a session that begins in Claude Code is not guarded; empty where it may be."""
    if witness.live or witness.client is None:
        return ""
    project = witness.client.project
    if project is not None and project.resolve() != witness.root.resolve():
        return f"not guarded: the guard watches {project}, not {witness.root}"
    return "not guarded: the guard saw no call of this command; `trainwarden doctor` tells why"


def refuse_handed_in(source: str) -> None:
    """In Claude Code nobody hands in a verdict: it would be the analyst's. Raises Refusal."""
    if source != "-" or _is_given():
        raise Refusal(
            "review: a verdict that is handed in is not taken in Claude Code. Run `trainwarden "
            "review` alone: it takes the verdict of the sub-agent trainwarden:quality-reviewer "
            "from the guard's record"
        )


def _is_given() -> bool:
    """Whether there is something on standard input; never waits for it."""
    try:
        if sys.stdin is None or sys.stdin.isatty():
            return False
        ready, _, _ = select.select([sys.stdin], [], [], 0)
        return bool(ready) and bool(sys.stdin.buffer.read(1))
    except (OSError, ValueError):
        return False


def verdict_in_client(session: Session, given: Review | None, *, builtin: bool) -> Review | None:
    """The verdict for a session of Claude Code, None where the built-in audit is to give it.

    Raises Refusal.
    """
    from trainwarden.procedure.verdicts import from_reviewer, refuse_builtin
    from trainwarden.procedure.witness import Witness

    witness = session.witness or Witness(session.store.logs.parent, None)
    if given is not None:
        raise Refusal(
            "review: the session was opened in Claude Code, so a verdict that is handed in is not "
            "taken: `trainwarden review --builtin` audits here"
        )
    if not builtin:
        return from_reviewer(session, witness)
    refuse_builtin(session, witness)
    return None
