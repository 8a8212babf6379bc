"""Text evidence: lines of a log against the signatures of `signatures.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any

from trainwarden.diagnosis.base import View, event_time, whole
from trainwarden.metrics.reading import Reading
from trainwarden.records.finding import Finding, Role, Severity
from trainwarden.records.hostile import clean

ENDING = 8
"""Lines that are the last of a log."""
LONGEST = 2_000
"""Characters of a line that are looked at."""
SURVIVED_POINTS = 3
"""Points logged after a line that show that it did not end the run. A crashed process still
flushes a line or two."""


@dataclass(frozen=True)
class Signature:
    """One kind of line that tells of a fault; the fields are told in `signatures.yaml`."""

    name: str
    kind: str
    pattern: re.Pattern[str]
    look_alikes: tuple[re.Pattern[str], ...]
    role: Role
    severity: Severity
    survived: Severity
    min_count: int
    meaning: str
    first_action: str
    alternatives: tuple[str, ...]
    evidence_type: Any
    confidence: float
    tests: dict[str, list[str]]
    error_class: str | None = None
    """The coarse class of the error, where such a line tells one."""
    ending: bool = False
    """Whether such a line counts only among the last ones of a log."""

    def matches(self, line: str) -> bool:
        """Whether the line is of this kind."""
        line = line[:LONGEST]
        return self.pattern.search(line) is not None and not any(
            veto.search(line) for veto in self.look_alikes
        )


@dataclass(frozen=True)
class Match:
    """A line that a signature owns."""

    signature: Signature
    reading: Reading
    text: str
    offset: int
    step: int | None
    time: datetime | None
    rank: int | None
    survived: bool
    """Whether training went on after it."""

    @property
    def severity(self) -> Severity:
        """How bad, given what came after."""
        return self.signature.survived if self.survived else self.signature.severity


def parse(data: list[dict[str, Any]]) -> tuple[Signature, ...]:
    """Signatures from plain data. Raises KeyError, ValueError or re.error on bad entries."""
    return tuple(
        Signature(
            name=entry["name"],
            kind=entry["kind"],
            pattern=re.compile(entry["pattern"], re.IGNORECASE),
            look_alikes=tuple(
                re.compile(veto, re.IGNORECASE) for veto in entry.get("look_alikes", ())
            ),
            role=Role(entry["role"]),
            severity=Severity(entry["severity"]),
            survived=Severity(entry.get("survived", "info")),
            min_count=entry.get("min_count", 1),
            meaning=entry["meaning"],
            first_action=entry["first_action"],
            alternatives=tuple(entry.get("alternatives", ())),
            evidence_type=entry["evidence_type"],
            confidence=entry["confidence"],
            tests=entry["tests"],
            error_class=entry.get("error_class"),
            ending=entry.get("ending", False),
        )
        for entry in data
    )


@lru_cache(maxsize=1)
def signatures() -> tuple[Signature, ...]:
    """Those that come with the package, in order."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (files("trainwarden.diagnosis") / "signatures.yaml").read_text(encoding="utf-8")
    return parse(yaml.load(text, Loader=loader))  # noqa: S506 - both are safe loaders


_FRAME = re.compile(r"\s*(?:\[?rank\s?\d+\]?:\s*)?File \"[^\"]{1,500}\", line \d+")
"""A frame of a traceback: its names are those of code, and code names faults it never had."""


_RAISE = re.compile(r"\braise [A-Za-z_][\w.]{1,80}\(")
"""Code that a traceback shows: what it would say, were it run."""
_PREFIX = re.compile(
    r"(?:\[[^\]]{1,40}\]:?\s{0,4}|\([^)]{1,60}\)\s{0,4}"
    r"|\d{4}-\d\d-\d\d[T ][\d:.,]{5,16}\S{0,6}\s{1,4}|(?:ERROR|CRITICAL|FATAL)\b\W{0,4}"
    r"|\d{1,5}:\s{1,4}|\S{1,40}\s\|\s{0,4}){0,5}"
)
"""What launchers and loggers put before a line: rank, host, time, level."""


def classify(line: str) -> Signature | None:
    """The first signature that owns the line, as it stands or without what stands before it."""
    if _FRAME.match(line) or _RAISE.search(line[:LONGEST]):
        return None
    bare = bare_line(line)
    return next(
        (one for one in signatures() if one.matches(line) or (bare != line and one.matches(bare))),
        None,
    )


def bare_line(line: str) -> str:
    """The line without what launchers and loggers put before it."""
    before = _PREFIX.match(line)
    return line[before.end() :] if before else line


def kept_lines(reading: Reading) -> Iterator[tuple[int, str, Any]]:
    """Every line kept of a reading, once, in order: (offset, text, its event or None)."""
    events = {event.offset: event for event in reading.events}
    texts: dict[int, tuple[str, Any]] = {o: (e.text, e) for o, e in events.items()}
    for offset, text in reading.tail:
        known = texts.get(offset)
        if known is None or len(known[0]) < len(text):
            texts[offset] = (text, events.get(offset))
    for offset in sorted(texts):
        text, event = texts[offset]
        for part in text.splitlines():
            yield offset, part, event


def counts(signature: Signature, reading: Reading, offset: int) -> bool:
    """Whether such a line says anything at that place."""
    if not signature.ending:
        return True
    last = [place for place, text in reading.tail if text.strip()][-ENDING:]
    return bool(last) and offset >= last[0]


def went_on(reading: Reading, offset: int) -> bool:
    """Whether the run logged enough after that byte to have survived what stands there."""
    longest = max(reading.series.values(), key=lambda one: one.count, default=None)
    if longest is None:
        return False
    after = [point.step for point in longest.recent if point.offset > offset]
    if len(set(after)) >= SURVIVED_POINTS:
        return True
    # A log with few, rare points survived as well if it then came to its end.
    return reading.ended == "finished" and len(after) >= 1


def _shape(text: str) -> str:
    return re.sub(r"\d+", "0", text[:LONGEST])


def habitual(survived: Iterable[str]) -> set[str]:
    """Shapes (digits aside) of lines that a run survived at least twice."""
    counts: dict[str, int] = {}
    for text in survived:
        counts[_shape(text)] = counts.get(_shape(text), 0) + 1
    return {shape for shape, count in counts.items() if count >= 2}


def is_habit(text: str, habits: set[str]) -> bool:
    """Whether the line is one of those."""
    return _shape(text) in habits


def matches(view: View) -> list[Match]:
    """All lines that signatures own, in order of the logs and their offsets."""
    found = []
    for reading in view.readings:
        for offset, text, event in kept_lines(reading):
            signature = classify(text)
            if signature is not None and counts(signature, reading, offset):
                found.append(
                    Match(
                        signature,
                        reading,
                        text,
                        offset,
                        whole(event.step) if event else None,
                        event_time(event) if event else None,
                        event.rank if event else None,
                        went_on(reading, offset),
                    )
                )
    return found


def detect_text(view: View) -> Iterator[Finding]:
    """One finding a kind and cause: the first line of each, quoted."""
    groups: dict[tuple[str, str], list[Match]] = {}
    for match in matches(view):
        if match.signature.role is not Role.ADVICE:
            groups.setdefault((match.reading.file, match.signature.name), []).append(match)
    for found in groups.values():
        signature = found[0].signature
        if len(found) < signature.min_count:
            continue
        # What ended the run matters more than what it had survived before; but what it survived
        # time and again is a habit, and did not end it either when it came last.
        habits = habitual(match.text for match in found if match.survived)
        first = next(
            (m for m in found if not m.survived and not is_habit(m.text, habits)), found[0]
        )
        cited = view.cite_event(first.reading, first.offset)
        if not cited:
            continue
        quoted = clean(first.text, 200)
        times = f" ({len(found)} such lines)" if len(found) > 1 else ""
        went = " Training went on after it." if first.survived else ""
        yield Finding(
            kind=signature.kind,  # type: ignore[arg-type]
            severity=first.severity,
            role=signature.role,
            observations=cited,
            since_step=first.step,
            since_time=first.time,
            summary=f"The log says: “{quoted}”{times}.{went}",
            meaning=signature.meaning,
            alternatives=signature.alternatives,
            first_action=signature.first_action,
            evidence_type=signature.evidence_type,
            confidence=signature.confidence,
        )
