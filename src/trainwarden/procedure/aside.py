"""Setting an open session aside: for a later one, or because somebody says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from trainwarden.errors import Refusal
from trainwarden.files import sweep
from trainwarden.procedure import holding
from trainwarden.procedure.ledger import Ledger, next_step
from trainwarden.procedure.seals import load_session, verify
from trainwarden.procedure.state import StateStore
from trainwarden.records.job import Job
from trainwarden.records.session import STEPS, SessionRecord
from trainwarden.records.state import JobState

TakeOver = Literal["no", "own", "any"]
"""Whose open session may be set aside: nobody's, one of the same analyst, anybody's."""


def set_aside(store: StateStore, job: Job, now: datetime, why: str | None = None) -> JobState:
    """Close the session that the job's state has as open, keeping its gates as they are.

    The job must be held. Nothing of the session itself is read, so one that was damaged can be
    set aside like any other. Raises Trouble.
    """
    gone: list[str] = []

    def close(state: JobState) -> None:
        current = state.monitor.open_session
        if current is not None:
            gone.append(current.session)
            state.monitor.abandoned.append(current.model_copy(update={"why": why}))
            state.monitor.open_session = None

    state = store.update(job, now, close, "monitor")
    for session in gone:
        sweep(store.logs / session)
        holding.release(store.logs.parent, session)
    return state


def settle_open(
    store: StateStore,
    job: Job,
    state: JobState,
    analyst: str,
    take_over: TakeOver,
    now: datetime,
    complete: Callable[[Path], JobState],
) -> tuple[JobState, list[str]]:
    """Deal with a session that is still open: `complete` its last write, or set it aside.

    Raises Refusal where it may not be set aside.
    """
    current = state.monitor.open_session
    if current is None:
        return state, []
    folder = store.logs / current.session
    checked = verify(folder, current.head)
    if checked.broken is None:
        earlier = Ledger(store, folder, load_session(folder))
        if next_step(earlier.record)[0] > len(STEPS):
            return complete(folder), []
        whose, where = earlier.header.analyst, earlier.next_line()
    else:
        whose, where = "", f"its record is broken at {checked.broken}: {checked.problem}"
    own = whose in ("", analyst)
    if take_over == "no" or (take_over == "own" and not own):
        raise Refusal(
            f"session {current.session} of this job is still open: {where}. "
            "Go on with it, or set it aside with --take-over"
        )
    note = f"session {current.session} was left unfinished and is set aside: {where}"
    return set_aside(store, job, now, note), [note]


def collected_before(store: StateStore, job: Job, sessions: Iterable[str]) -> list[str]:
    """What these sessions had read of a job before it was predicted, in words.

    A session that came to its end is history, unless its log has nothing new to tell since.
    """
    told = []
    for name in sessions:
        try:
            record = load_session(store.logs / name)
        except Refusal:
            continue
        header, what = record.header, f"what session {name} collected"
        if header.job.id != job.id:
            if set(header.job.logs) & set(job.logs):
                told.append(f"{what} from the same log for job {header.job.id}")
        elif next_step(record)[0] <= len(STEPS):
            told.append(f"{what}, which was set aside unfinished")
        elif _says_no_more(record):
            told.append(f"{what}, and the log has not grown since")
    return told


def _says_no_more(record: SessionRecord) -> bool:
    """Whether the logs that a session read end where it had read them."""
    found = [gate.content.get("positions") for gate in record.gates if gate.name == "collect"]
    read: dict[str, Any] = (found[-1] if found else None) or {}
    try:
        return bool(read) and all(
            Path(log).stat().st_size <= position["offset"] for log, position in read.items()
        )
    except (OSError, KeyError, TypeError):
        return False
