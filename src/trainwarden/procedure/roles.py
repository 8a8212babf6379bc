"""Who takes part in a session, and what each is given to work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from trainwarden.metrics.reading import Reading
from trainwarden.records.assessment import Assessment, Troubleshooting
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.finding import Finding
from trainwarden.records.hypothesis import Hypothesis, Strategy
from trainwarden.records.observation import Disagreement, Observation, SourceReport
from trainwarden.records.prediction import Comparison, Prediction
from trainwarden.records.review import Review
from trainwarden.records.session import SessionHeader, SessionRecord
from trainwarden.records.state import JobState


@dataclass
class Briefing:
    """All that an analyst may know at the step it is asked for.

    Before gate 1 only the header, the state, the config's facts and `past` are filled: `past` is
    what earlier sessions of this job had read of its logs, frozen at the last one's end.
    """

    header: SessionHeader
    facts: TrainingFacts
    now: datetime
    state: JobState | None = None
    due: tuple[Hypothesis, ...] = ()
    past: tuple[Reading, ...] = ()
    samples: tuple[Mapping[str, Any], ...] = ()
    """What earlier sessions of this run left that no log keeps, oldest first."""
    predictions: tuple[Prediction, ...] = ()
    reports: tuple[SourceReport, ...] = ()
    observations: Mapping[str, Observation] = field(default_factory=dict)
    """By id, in order."""
    disagreements: tuple[Disagreement, ...] = ()
    readings: tuple[Reading, ...] = ()
    """The job's logs as read in this session, the main one first."""
    comparisons: tuple[Comparison, ...] = ()
    findings: tuple[Finding, ...] = ()
    assessment: Assessment | None = None
    review: Review | None = None
    troubleshooting: Troubleshooting | None = None


class Analyst(Protocol):
    """Whoever predicts and reasons. Each method answers one step."""

    name: str

    def predict(self, briefing: Briefing) -> tuple[Prediction, ...]:
        """Step 1, before anything of this session's evidence was read."""
        ...

    def assess(self, briefing: Briefing) -> Assessment:
        """Step 4: the status and what it owes."""
        ...

    def resources(self, briefing: Briefing) -> str:
        """Step 5: reasoning on hardware, processes and disks; every number cites."""
        ...

    def troubleshoot(self, briefing: Briefing) -> Troubleshooting:
        """Step 7: root causes in causal order."""
        ...

    def strategize(self, briefing: Briefing) -> Strategy:
        """Step 8: due hypotheses scored, new ones, a plan, the next moment to look."""
        ...


class Reviewer(Protocol):
    """Whoever audits steps 1 to 5; never the analyst, and given only what was sealed."""

    name: str

    def review(self, session: SessionRecord, root: Path) -> Review:
        """Judge the latest revision of gates 1 to 5, re-reading one load-bearing claim."""
        ...
