"""Cited observations, read again from their sources: for reviewers, and for whoever doubts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainwarden.errors import Refusal
from trainwarden.evidence.excerpts import text_at
from trainwarden.faces import tables
from trainwarden.faces.clients import shows_evidence
from trainwarden.faces.common import latest_session, session_folder, store_at
from trainwarden.faces.streams import emit_json, json_option, root_option, say
from trainwarden.records.hostile import clean, fence

if TYPE_CHECKING:
    from trainwarden.procedure.session import Session
    from trainwarden.records.observation import Observation
    from trainwarden.records.review import Reread

MOST = 20
"""Observations of one call."""
SHOWN = 200
"""Characters of a file from a place on."""
NEAR = 80
"""Characters of a long line that are shown around the name of what was read there."""
ROWS = 8
"""Lines that are searched for that name, where values stand one a line."""


@click.command()
@shows_evidence
@click.argument("ids", nargs=-1, required=True)
@click.option("--session", "session_name", help="Session; default: the newest.")
@root_option
@json_option
def reread(ids: tuple[str, ...], session_name: str | None, root: Path, as_json: bool) -> None:
    """Read observations again from their sources: what is found there, whether it agrees.

    IDS are ids of gate 2, e.g. E5 E12. A number of a log is looked for in the bytes where it
    stood, a gauge is asked anew, what was worked out of a log is worked out again.
    """
    from trainwarden.procedure.session import Session

    store = store_at(root)
    session = Session.resume(store, session_folder(store, session_name or latest_session(store)))
    if session.latest("collect") is None:
        raise Refusal(f"reread: nothing was collected yet. {session.next_line()}")
    observations = session.observations
    names = list(dict.fromkeys(re.findall(r"[A-Z]\w*", " ".join(ids))))
    unknown = [name for name in names if name not in observations]
    if unknown or not names:
        raise Refusal(
            f"reread: {', '.join(unknown) or 'that'} is no observation of session "
            f"{session.header.session}; ids are those that `collect` gave, e.g. E5"
        )
    if len(names) > MOST:
        raise Refusal(f"reread: {len(names)} at once are too many; name at most {MOST}")
    items = [observations[name] for name in names]
    found = _again(session, items)
    if as_json:
        emit_json({"reread": [_data(item, found.get(item.id)) for item in items]})
        return
    shown: set[str] = set()
    for item in items:
        say("\n".join(_lines(item, found.get(item.id), shown)))


def _again(session: Session, items: list[Observation]) -> dict[str, Reread]:
    from trainwarden.analysts.rereading import reread as read_again

    found = {item.id: result for item in items if (result := read_again(item)) is not None}
    left = [item for item in items if item.id not in found]
    if left:
        from trainwarden.analysts.anew import ask_anew

        positions = session.content("collect")["positions"]
        ends = {file: int(position["offset"]) for file, position in positions.items()}
        found |= ask_anew(left, session.target(), ends, session.facts, session.indicator())
    return found


def _raw(item: Observation) -> str:
    """What stands in the file at an observation's place, cleaned and cut."""
    where = item.place
    if not where.file or where.offset is None or where.api == "derived":
        return ""
    try:
        window = text_at(Path(where.file), where.offset, 20 * SHOWN)
    except OSError:
        return ""
    name = re.compile(rf"(?<![\w./]){re.escape(where.api or item.quantity)}(?![\w/])")
    rows: list[str] = []
    for row in window.decode("utf-8", "replace").splitlines()[:ROWS]:
        shown = clean(row, 20 * SHOWN)
        rows.append(_near(shown, name))
        if name.search(shown) or len("\n".join(rows)) > SHOWN:
            break
    return "\n".join(rows).strip("\n")


def _near(row: str, name: re.Pattern[str]) -> str:
    """The beginning of a line, and what stands around a name in it."""
    found = name.search(row)
    if len(row) <= SHOWN or not found or found.start() < NEAR:
        return clean(row, SHOWN)
    around = row[found.start() - NEAR // 4 : found.end() + NEAR // 2]
    return clean(f"{row[: NEAR // 2]} … {around} …", SHOWN)


def _lines(item: Observation, found: Reread | None, shown: set[str]) -> list[str]:
    head = tables.observation(item)
    if found is None:
        return [f"{head}: there is no way to read it again; it stays unverified"]
    value = tables.amount(found.found, item.unit) if found.found is not None else "nothing"
    agrees = "agrees" if found.agrees else "does NOT agree"
    line = f"{head}: found {value}, {agrees} ({found.how})"
    raw = _raw(item)
    if not raw or raw in shown:
        return [line]
    shown.add(raw)
    return [line, fence(raw)]


def _data(item: Observation, found: Reread | None) -> dict[str, Any]:
    told = found.model_dump(mode="json") if found else None
    return {"observation": item.model_dump(mode="json"), "again": told, "raw": _raw(item)}
