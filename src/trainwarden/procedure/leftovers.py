"""The guard's files of open sessions, put right after a kill."""

from __future__ import annotations

import contextlib

from trainwarden.errors import TrainwardenError
from trainwarden.procedure import holding
from trainwarden.procedure.ledger import next_step
from trainwarden.procedure.seals import load_session
from trainwarden.procedure.state import StateStore
from trainwarden.records.session import STEPS


def tidy(store: StateStore) -> None:
    """Remove the files of sessions that are open no more, and renew those that lag behind.

    A job at which another command is at work is left to that command. Never raises.
    """
    root = store.logs.parent
    for session in set(holding.names(root)):
        with contextlib.suppress(TrainwardenError, OSError):
            _put_right(store, session)


def _put_right(store: StateStore, session: str) -> None:
    root = store.logs.parent
    job = _job_of(store, session)
    if job is None:
        holding.release(root, session)
        return
    store.path(job)
    with store.hold(job, wait=0, purpose="tidy"):
        state = store.peek(job)
        current = state.monitor.open_session if state else None
        if current is None or current.session != session:
            holding.release(root, session)
            return
        record = load_session(store.logs / session)
        step, revision = next_step(record)
        if step <= len(STEPS):
            holding.write(root, record.header, step, revision)


def _job_of(store: StateStore, session: str) -> str | None:
    """The job of a session, by its record, by the file itself, or by a state that knows it."""
    with contextlib.suppress(TrainwardenError):
        return load_session(store.logs / session).header.job.id
    for path in holding.files(store.logs.parent, session):
        if said := holding.read(path):
            return said.job
    for job in store.known():
        state = store.peek(job)
        if state and state.monitor.open_session and state.monitor.open_session.session == session:
            return job
    return None
