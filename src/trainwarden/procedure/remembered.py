"""Sessions against what the jobs' states remember of them: what is gone is noticed as well."""

from __future__ import annotations

from pathlib import Path

from trainwarden.errors import Refusal
from trainwarden.procedure.seals import Verification, verify
from trainwarden.procedure.state import StateStore


def heads(store: StateStore) -> dict[str, str]:
    """The last seal of each session that any job's state remembers."""
    known: dict[str, str] = {}
    for job in store.known():
        state = store.peek(job)
        if state is None:
            continue
        monitor = state.monitor
        known |= {entry.session: entry.head for entry in monitor.status_history}
        known |= {one.session: one.head for one in monitor.abandoned}
        if monitor.open_session is not None:
            known[monitor.open_session.session] = monitor.open_session.head
    return known


def check(store: StateStore, name: str) -> Verification:
    """Verify a session by its name or its folder's path. Raises Refusal for an unknown one."""
    known = heads(store)
    folder = store.logs / name
    if name not in known and not folder.is_dir():
        folder = Path(name).absolute()
    if name not in known and not folder.is_dir():
        raise Refusal(f"no session {name} in {store.logs}")
    if folder.parent != store.logs:
        known = heads(StateStore(folder.parent.parent))
    return _checked(folder, known)


def check_all(store: StateStore) -> list[Verification]:
    """Verify all sessions that are here or that a state remembers, in the order of their names."""
    known = heads(store)
    # A folder whose record is gone still has its gates.
    files = [*store.logs.glob("*/session.json"), *store.logs.glob("*/[1-9]-*.md")]
    return [
        _checked(store.logs / name, known)
        for name in sorted({f.parent.name for f in files} | known.keys())
    ]


def _checked(folder: Path, known: dict[str, str]) -> Verification:
    if not folder.is_dir():
        problem = "a job's state remembers this session, but its folder is gone"
        return Verification(folder.name, 0, "", folder.name, problem)
    return verify(folder, known.get(folder.name))
