"""Open sessions: going on with one in another client, giving one up."""

from __future__ import annotations

from pathlib import Path

import click

from trainwarden.errors import Refusal
from trainwarden.evidence.base import utc_now
from trainwarden.faces.clients import unguarded_note
from trainwarden.faces.common import (
    only_open,
    session_folder,
    session_option,
    sessions_open,
    store_at,
    wait_option,
)
from trainwarden.faces.streams import emit_json, json_option, root_option, say
from trainwarden.procedure import client, holding
from trainwarden.procedure.leftovers import tidy
from trainwarden.procedure.state import StateStore
from trainwarden.procedure.witness import Witness
from trainwarden.records.hostile import clean
from trainwarden.records.job import Job

MOST_WHY = 2_000


@click.command()
@session_option
@root_option
@wait_option
@json_option
def resume(session_name: str | None, root: Path, wait: float, as_json: bool) -> None:
    """Go on with an open session here: take it over, and tell how it stands."""
    from trainwarden.faces.recap import recap
    from trainwarden.procedure.seals import verify
    from trainwarden.procedure.session import Session

    store = store_at(root)
    runs_us = client.present()
    witness = Witness.of(store.logs.parent, runs_us, "resume") if runs_us else None
    tidy(store)
    name = session_name if session_name is not None else only_open(store)
    session = Session.resume(store, session_folder(store, name))
    with store.hold(session.job.id, wait=wait, purpose="resume"):
        session = Session.resume(store, session.folder)
        current = session.state.monitor.open_session if session.state else None
        if current is None or current.session != session.header.session:
            raise Refusal(f"session {name} is not open; `trainwarden begin` starts another")
        checked = verify(session.folder, current.head)
        if checked.broken is not None:
            raise Refusal(
                f"session {name} was changed after sealing and cannot go on: {checked.broken}: "
                f"{checked.problem}. Give it up with `trainwarden abandon --why TEXT`"
            )
        session.witness = witness
        session.say_open(holding.name_of(runs_us))
        if witness is not None:
            witness.opened(session.header.session)
    note = unguarded_note(witness) if witness is not None else ""
    if as_json:
        emit_json(
            {
                "header": session.header.model_dump(mode="json"),
                "folder": str(session.folder),
                "steps": session.steps(),
                "next": session.next_line(),
                **({"note": note} if note else {}),
            }
        )
        return
    say("\n".join([*recap(session), *([f"note: {note}"] if note else [])]))


@click.command()
@click.option("--why", required=True, help="Why it is given up; kept in the job's state.")
@session_option
@root_option
@wait_option
@json_option
def abandon(why: str, session_name: str | None, root: Path, wait: float, as_json: bool) -> None:
    """Give an open session up, whatever state it is in. What it has sealed stays."""
    from trainwarden.procedure.aside import set_aside

    reason = clean(why, MOST_WHY).strip()
    if not reason:
        raise Refusal("--why: say in a few words why the session is given up")
    store = store_at(root)
    before = set(holding.names(store.logs.parent))
    tidy(store)
    swept = before - set(holding.names(store.logs.parent))
    job = _open_job(store, session_name)
    if job is None:
        _say_swept(swept, session_name, store, as_json)
        return
    with store.hold(job, wait=wait, purpose="abandon"):
        state = store.peek(job)
        current = state.monitor.open_session if state else None
        name = current.session if current else ""
        if current is None or (session_name is not None and name != Path(session_name).name):
            raise Refusal(f"job {job} has no such session open any more")
        set_aside(store, Job(id=job), utc_now(), reason)
    if as_json:
        emit_json({"abandoned": name, "job": job, "why": reason})
        return
    say(f"session {name} of job {job} is set aside: {reason}")
    say("`trainwarden begin` starts another")


def _open_job(store: StateStore, session_name: str | None) -> str | None:
    """The job of the session that is meant; None where there is none. Raises Refusal."""
    if session_name is not None:
        wanted = Path(session_name).name
        every = sessions_open(store, every=True)
        return next((job for session, job in every if session == wanted), None)
    found = sessions_open(store)
    if not found:
        return None
    wanted = only_open(store)
    return dict(found)[wanted]


def _say_swept(swept: set[str], name: str | None, store: StateStore, as_json: bool) -> None:
    """There was no such session, but perhaps what one had left. Raises Refusal if not that."""
    if not swept:
        named = f"no session {name} is open" if name is not None else "no session is open"
        raise Refusal(f"{named} in {store.logs}: there is nothing to give up")
    if as_json:
        emit_json({"abandoned": None, "swept": sorted(swept)})
        return
    say(f"no session was open; what {', '.join(sorted(swept))} had left is removed")
