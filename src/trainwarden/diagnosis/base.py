"""What a detector is given, and how it says what it found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from trainwarden.metrics.reading import Event, Reading, planned_length
from trainwarden.metrics.series import Series
from trainwarden.records.assessment import KeyIndicator
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.finding import Finding
from trainwarden.records.observation import Disagreement, Observation, SourceReport
from trainwarden.records.prediction import Comparison


@dataclass
class View:
    """All that diagnosis may look at: what was observed, never a source itself.

    `earlier` holds one row per past session (`monitor.samples` of the job's state). `live` is
    False in a replay, where nothing of this machine belongs to the run.
    """

    observations: Mapping[str, Observation]
    """By id, in order."""
    now: datetime
    readings: tuple[Reading, ...] = ()
    facts: TrainingFacts = field(default_factory=TrainingFacts)
    indicator: KeyIndicator | None = None
    comparisons: tuple[Comparison, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    reports: tuple[SourceReport, ...] = ()
    earlier: tuple[Mapping[str, Any], ...] = ()
    live: bool = True

    def find(self, quantity: str, stat: str | None = None) -> list[Observation]:
        """Observations of a quantity, of every subject, in order."""
        return [
            seen
            for seen in self.observations.values()
            if seen.quantity == quantity and stat in (None, seen.stat)
        ]

    def one(
        self, quantity: str, stat: str = "last", subject: str | None = None
    ) -> Observation | None:
        """The latest observation of that name, or None: the run's own where others have one too.

        Of what a machine's source tells only as a median or a growth, that is given.
        """
        found = [s for s in self.find(quantity, stat) if subject in (None, s.subject)]
        if not found and stat == "last" and "." in quantity:
            found = [
                s
                for s in self.find(quantity)
                if s.stat in ("median", "growth") and subject in (None, s.subject)
            ]
        found = [s for s in found if s.subject == subject] or found
        return found[-1] if found else None

    def number(self, quantity: str, stat: str = "last", subject: str | None = None) -> float | None:
        """The finite number observed, or None."""
        seen = self.one(quantity, stat, subject)
        return as_number(seen.value) if seen else None

    def says(self, quantity: str, value: object) -> Observation | None:
        """The latest observation of the quantity, if it has this value."""
        seen = self.one(quantity)
        return seen if seen is not None and seen.value == value else None

    @property
    def main(self) -> Reading | None:
        """The job's main log, if any was read."""
        return self.readings[0] if self.readings else None

    def series(self, name: str) -> Series | None:
        """The metric as the first log that has it gives it."""
        for reading in self.readings:
            if name in reading.series and reading.series[name].count:
                return reading.series[name]
        return None

    def series_like(self, *fragments: str) -> Series | None:
        """The first metric whose name holds one of the fragments."""
        for fragment in fragments:
            for reading in self.readings:
                for name, series in reading.series.items():
                    if fragment in name and series.count:
                        return series
        return None

    @property
    def step(self) -> int | None:
        """How far the run is, as its log says."""
        seen = self.number("step")
        if seen is not None:
            return int(seen)
        return next((r.last_step for r in self.readings if r.last_step is not None), None)

    @property
    def total_steps(self) -> int | None:
        """How far the run is to go, from its log or its config."""
        return planned_length(self.readings, self.facts)

    @property
    def ended(self) -> str:
        """How the log ended: finished, crashed, interrupted, running or unknown."""
        seen = self.one("log.ended")
        if seen is not None:
            return str(seen.value)
        return self.main.ended if self.main else "unknown"

    @property
    def alive(self) -> bool | None:
        """Whether the job's process lives; None where that is not known or not live."""
        seen = self.one("process.alive") if self.live else None
        return bool(seen.value) if seen is not None else None

    def before_run(self, moment: datetime | None) -> bool:
        """Whether something happened before this run began, as far as that is known."""
        begun = [r.first_time for r in self.readings if r.first_time is not None]
        started = [
            t.timestamp()
            for seen in self.find("process.started")
            if (t := as_moment(seen.value)) is not None
        ]
        known = [*begun, *started]
        return moment is not None and bool(known) and moment.timestamp() < min(known) - 60

    def cite(self, quantity: str, *stats: str) -> tuple[str, ...]:
        """Ids of observations of the quantity: these stats where seen, else any of it."""
        chosen = [s.id for stat in stats for s in self.find(quantity, stat)]
        return tuple(chosen or [s.id for s in self.find(quantity)][-1:])

    def cite_log(self) -> tuple[str, ...]:
        """What to cite of a log when no closer observation was made."""
        for quantity in ("log.ended", "step", "log.size", "log.age"):
            if seen := self.one(quantity):
                return (seen.id,)
        return ()

    def cite_event(self, reading: Reading, offset: int) -> tuple[str, ...]:
        """The observation made of that line, else one of its log."""
        place = reading.place(offset)
        for seen in self.find("log.event"):
            if (seen.place.file, seen.place.offset) == place:
                return (seen.id,)
        return self.cite_log()


Detector = Callable[[View], Iterable[Finding]]
"""Looks at a view and yields findings; pure, and silent on a healthy run."""


def as_number(value: object) -> float | None:
    """A finite float, or None for anything else (booleans included)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def as_moment(value: object) -> datetime | None:
    """A time from Unix seconds or ISO text (UTC where it has no zone), or None."""
    number = as_number(value)
    try:
        if number is not None:
            return datetime.fromtimestamp(number, timezone.utc)
        found = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except (ValueError, OverflowError, OSError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def event_time(event: Event) -> datetime | None:
    """When a line was written, where it says so."""
    try:
        return None if event.time is None else datetime.fromtimestamp(event.time, timezone.utc)
    except (OverflowError, OSError, ValueError):
        return None


def whole(step: float | None) -> int | None:
    """A step as an integer, where it is a finite number."""
    return int(step) if step is not None and math.isfinite(step) else None
