"""Sentences that cite: what the rules say is checked against the evidence before it is said."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainwarden.diagnosis.base import as_number
from trainwarden.diagnosis.text import figure, size
from trainwarden.metrics.reading import Reading
from trainwarden.metrics.series import Series
from trainwarden.procedure.grounding import Citable
from trainwarden.procedure.roles import Briefing
from trainwarden.records.assessment import Criterion, KeyIndicator
from trainwarden.records.finding import Finding, Severity
from trainwarden.records.observation import Observation


class Writer:
    """Finds what a briefing holds and collects sentences, none with a number it cannot cite."""

    def __init__(self, briefing: Briefing) -> None:
        self.briefing = briefing
        self.citable = Citable(
            briefing.observations.values(),
            briefing.header.criteria,
            briefing.predictions,
            briefing.comparisons,
            briefing.findings,
        )
        self.sentences: list[str] = []

    @property
    def text(self) -> str:
        """All that was said."""
        return " ".join(self.sentences)

    def say(self, sentence: str, otherwise: str = "") -> None:
        """Add a sentence; one with a number that its citations do not have gives way to
        `otherwise`."""
        for candidate in (sentence, otherwise):
            if candidate and not self.citable.complaints("", candidate):
                self.sentences.append(candidate)
                return

    def grounded(self, sentence: str, otherwise: str) -> str:
        """The sentence if its numbers are those of what it cites, else the other one."""
        return otherwise if self.citable.complaints("", sentence) else sentence

    def find(self, quantity: str, stat: str | None = "last") -> list[Observation]:
        """Observations of a quantity, in order."""
        return [
            seen
            for seen in self.briefing.observations.values()
            if seen.quantity == quantity and stat in (None, seen.stat)
        ]

    def one(
        self, quantity: str, stat: str | None = "last", subject: str | None = None
    ) -> Observation | None:
        """The latest of them, or None."""
        found = [s for s in self.find(quantity, stat) if subject in (None, s.subject)]
        return found[-1] if found else None

    def number(self, quantity: str, stat: str = "last", subject: str | None = None) -> float | None:
        """Its finite number, or None."""
        seen = self.one(quantity, stat, subject)
        return as_number(seen.value) if seen else None

    def criterion(self, name: str) -> Criterion | None:
        """The criterion of that name, or None."""
        return next((c for c in self.briefing.header.criteria if c.name == name), None)

    def series(self, name: str) -> tuple[Reading, Series] | None:
        """The first log that has the metric, with it."""
        for reading in self.briefing.readings:
            if name in reading.series and reading.series[name].count:
                return reading, reading.series[name]
        return None

    @property
    def loud(self) -> list[Finding]:
        """Findings above info, in causal order."""
        return [f for f in self.briefing.findings if f.severity is not Severity.INFO]

    @property
    def step(self) -> int | None:
        """How far the run is."""
        seen = self.number("step")
        if seen is not None:
            return int(seen)
        steps = [r.last_step for r in self.briefing.readings if r.last_step is not None]
        return max(steps, default=None)

    @property
    def total_steps(self) -> int | None:
        """How far it is to go."""
        said = next((r.total_steps for r in self.briefing.readings if r.total_steps), None)
        return said or self.briefing.facts.max_steps

    @property
    def ended(self) -> str:
        """How the log ended."""
        seen = self.one("log.ended")
        if seen is not None:
            return str(seen.value)
        return self.briefing.readings[0].ended if self.briefing.readings else "unknown"


def cited(seen: Observation | Criterion, unit: str | None = None) -> str:
    """A value with its citation, in a unit that people read: `1.33 [E5]`, `41 GiB [E50]`."""
    number = as_number(seen.value)
    unit = seen.unit if unit is None else unit
    if number is not None and unit in ("bytes", "B"):
        return f"{size(number)} [{seen.id}]"
    shown = {"celsius": " °C", "s": " s", "W": " W", "watts": " W", "nats": " nats"}.get(
        unit or "", ""
    )
    return f"{figure(seen.value)}{shown} [{seen.id}]"


def one_sentence(finding: Finding) -> str:
    """A finding's summary as one sentence that ends in its citation."""
    quoted = "“" in finding.summary

    def joined(match: re.Match[str]) -> str:
        # What is quoted keeps its letters; our own next sentence becomes a part of this one.
        return ", " + (match[1] if quoted else match[1].lower())

    flat = re.sub(r"(?:[.!?;]+\s+|\s*\n+\s*)(\S?)", joined, finding.summary.strip())
    flat = flat.rstrip(" .!?;,-")
    flat = flat.replace("[", "(").replace("]", ")")
    return f"{flat} [{finding.id}]."


def choose_indicator(briefing: Briefing) -> KeyIndicator | None:
    """The key indicator by what the logs hold, the config and the user's guidance."""
    from trainwarden.metrics.indicator import key_indicator

    said = briefing.state.monitor.user_guidance if briefing.state else []
    guidance = briefing.header.job.guidance or (said[-1] if said else None)
    series: dict[str, Series] = {}
    for reading in briefing.readings:
        for name, one in reading.series.items():
            if one.count:
                series.setdefault(name, one)
    if not series:
        return None
    choice = key_indicator(series, briefing.facts, guidance)
    if choice.quantity not in series:
        return None
    return KeyIndicator(quantity=choice.quantity, direction=choice.direction, why=choice.why)


def listed(items: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    parts = list(items)
    return " and ".join(
        part for part in (", ".join(parts[:-1]), parts[-1] if parts else "") if part
    )
