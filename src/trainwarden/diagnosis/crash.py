"""Exceptions that ended a run and that no signature names more closely."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwarden.diagnosis.base import View, event_time, whole
from trainwarden.diagnosis.signatures import bare_line, classify, habitual, is_habit, went_on
from trainwarden.metrics.reading import Event, Reading
from trainwarden.records.finding import Finding, Role, Severity
from trainwarden.records.hostile import clean

_FINAL = re.compile(
    r"(?!Warning|DeprecationWarning|UserWarning)"
    r"([A-Za-z_][\w.]{0,120}(?:Error|Exception|Exit|Failure|Interrupt|Abort|Unknown))\b(?::|\s*$)"
)
_TRACEBACK = "Traceback (most recent call last)"


def exception_lines(reading: Reading) -> list[tuple[int, str, Event | None]]:
    """Final lines of tracebacks (offset, text, event), in order of their place in the log."""
    seen: dict[int, tuple[str, Event | None]] = {}
    for event in reading.events:
        for part in event.text.splitlines():
            if _FINAL.match(bare_line(part)):
                seen[event.offset] = (part, event)
    in_tail = False
    for offset, text in reading.tail:
        in_tail = in_tail or _TRACEBACK in text
        if in_tail and offset not in seen and _FINAL.match(bare_line(text)):
            seen[offset] = (text, None)
    return [(offset, *seen[offset]) for offset in sorted(seen)]


def detect_crash(view: View) -> Iterator[Finding]:
    """The first exception that the run did not survive, unless a signature owns it."""
    for reading in view.readings:
        tracebacks = any(
            event.kind == "traceback" or _TRACEBACK in event.text for event in reading.events
        ) or any(_TRACEBACK in text for _, text in reading.tail)
        if not tracebacks and reading.ended != "crashed":
            continue
        lines = exception_lines(reading)
        habits = habitual(text for offset, text, _ in lines if went_on(reading, offset))
        for offset, text, event in lines:
            if went_on(reading, offset) or is_habit(text, habits):
                continue
            owner = classify(text)
            if owner is not None:
                if owner.role is Role.INITIATING:
                    break  # named more closely, and what follows it follows from it
                continue
            cited = view.cite_event(reading, offset)
            if not cited:
                break
            yield Finding(
                kind="crash_user_code",
                severity=Severity.CRITICAL,
                observations=cited,
                since_step=whole(event.step) if event and event.step is not None else view.step,
                since_time=event_time(event) if event else None,
                summary=f"The run ended with an exception: “{clean(text, 240)}”.",
                meaning="An error in the program, its config or its data ended the process; "
                "running it again as it is will most likely end the same way.",
                alternatives=(
                    "The exception only passes on an earlier error of another rank",
                    "Data or files changed under the run",
                ),
                first_action="Read the whole first traceback of the earliest rank, from its last "
                "line up to the first frame of your own code.",
                evidence_type="observation",
                confidence=0.9,
            )
            break
