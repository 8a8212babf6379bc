"""A finished log fed to successive sessions, as if watched live at those moments."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from trainwarden.errors import Refusal
from trainwarden.files import trouble
from trainwarden.procedure.roles import Analyst, Reviewer
from trainwarden.procedure.session import Session
from trainwarden.procedure.state import StateStore
from trainwarden.procedure.walk import walk
from trainwarden.records.base import to_json_number
from trainwarden.records.job import Job, job_id
from trainwarden.records.session import Gate

PART = 2**20
UNTIMED = timedelta(hours=1)
"""How long a run is taken to have lasted when its log prints no times."""


@dataclass
class Clock:
    """A clock that is set by hand."""

    moment: datetime

    def __call__(self) -> datetime:
        """The moment it was set to."""
        return self.moment


def replay(
    log: Path,
    sessions: int,
    analyst: Analyst,
    reviewer: Reviewer,
    folder: Path,
    *,
    config: Path | None = None,
    guidance: str | None = None,
    on_session: Callable[[Session, Gate], None] | None = None,
) -> dict[str, Any]:
    """Cut `log` into `sessions` parts of about equal bytes and watch it after each.

    `folder` is the root of the replay's own sessions. The clock is simulated: at each cut it is
    the last time printed by then, or proportional to the bytes where the log prints no times.
    Returns the shape of `replay --json`. Raises Refusal for a log that cannot be cut so.
    """
    try:
        ends = cut_points(log, sessions)
        times = _moments(log, ends)
    except OSError as error:
        raise Refusal(f"cannot read {log}: {error.strerror}") from error
    if len(ends) < sessions:
        raise Refusal(f"{log} has too few lines to be cut into {sessions} sessions")
    # The name stays, since readers go by it too; the suffix tells formats apart.
    growing = folder / "log" / log.name
    growing.parent.mkdir(parents=True, exist_ok=True)
    store = StateStore(folder)
    job = Job(
        id=job_id(str(config) if config else None, None, str(log)),
        config=str(config) if config else None,
        logs=(str(growing),),
        guidance=guidance,
    )
    clock = Clock(datetime.now(timezone.utc))
    start = clock.moment
    cuts, written = [], 0
    for end, moment in zip(ends, times, strict=True):
        try:
            with growing.open("ab") as file:
                for part in _parts(log, written, end):
                    file.write(part)
        except OSError as error:
            raise trouble("copy the log to", growing, error) from error
        written = end
        clock.moment = start + moment
        os.utime(growing, (clock.moment.timestamp(),) * 2)
        session = Session.begin(
            store, job, analyst=analyst.name, clock=clock, live=False, take_over="any"
        )
        last = walk(session, analyst, reviewer)
        cuts.append(cut_summary(session))
        if on_session:
            on_session(session, last)
    return {"cuts": cuts, "coverage": coverage(cuts)}


def _parts(log: Path, start: int, end: int) -> Iterator[bytes]:
    """The bytes from `start` to `end`, a mebibyte at a time."""
    with log.open("rb") as file:
        file.seek(start)
        while start < end and (part := file.read(min(PART, end - start))):
            yield part
            start += len(part)


def cut_points(log: Path, parts: int) -> list[int]:
    """Byte offsets after the ends of lines nearest behind k/parts of a log, the last its end.

    Raises OSError where the log cannot be read.
    """
    size = log.stat().st_size
    ends: list[int] = []
    for number in range(1, parts):
        end = _line_end(log, size * number // parts, size)
        if end < size and end > (ends[-1] if ends else 0):
            ends.append(end)
    return [*ends, size] if size else []


def _line_end(log: Path, start: int, size: int) -> int:
    for part in _parts(log, start, size):
        found = re.search(rb"[\r\n]", part)
        if found:
            return start + found.end()
        start += len(part)
    return size


def _moments(log: Path, ends: list[int]) -> list[timedelta]:
    """How long after the run's beginning each cut is."""
    from trainwarden.metrics.readers import HEAD, reader_for

    with log.open("rb") as file:
        reader = reader_for(str(log), file.read(HEAD))
    printed, fed = [], 0
    for end in ends:
        for part in _parts(log, fed, end):
            reader.feed(part)
        fed = end
        printed.append(reader.reading.last_time)
    first, last = reader.reading.first_time, reader.reading.last_time
    if first is not None and last is not None and last > first:
        seconds = [first if moment is None else moment for moment in printed]
        # Equal or backward stamps must still be successive moments.
        passed, moments = timedelta(0), []
        for second in seconds:
            passed = max(passed + timedelta(seconds=1), timedelta(seconds=second - first))
            moments.append(passed)
        return moments
    return [UNTIMED * (end / ends[-1]) for end in ends]


def cut_summary(session: Session) -> dict[str, Any]:
    """What a user would have been told at this moment, and how the predictions did."""
    summary = session.content("summary")
    held = {item.prediction: item for item in session.comparisons}
    predictions = []
    for prediction in session.predictions:
        outcome = held[prediction.id]
        row = {
            "quantity": prediction.quantity,
            "level": prediction.level,
            "low": to_json_number(prediction.low),
            "high": to_json_number(prediction.high),
            "actual": to_json_number(outcome.actual),
            "held": None if outcome.outcome == "unobserved" else outcome.outcome == "held",
        }
        if prediction.one_of is not None:
            row["one_of"] = [to_json_number(option) for option in prediction.one_of]
        predictions.append(row)
    return {
        "at_step": summary["step"],
        "status": summary["status"],
        "findings": summary["findings"],
        "predictions": predictions,
    }


def coverage(cuts: list[dict[str, Any]]) -> dict[str, float]:
    """Per level, the share of the observed predictions that held."""
    by_level: dict[str, list[bool]] = {}
    for cut in cuts:
        for row in cut["predictions"]:
            if row["held"] is not None:
                by_level.setdefault(f"{row['level']:g}", []).append(row["held"])
    return {level: round(sum(held) / len(held), 4) for level, held in sorted(by_level.items())}
