"""What finished logs tell, without a session: findings in causal order, and a status."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from trainwarden.analysts.rules.assess import assess
from trainwarden.analysts.rules.excerpt import of_excerpt
from trainwarden.analysts.rules.words import choose_indicator
from trainwarden.diagnosis import View, diagnose
from trainwarden.diagnosis.derived import derived_observations
from trainwarden.diagnosis.error_class import error_class_of
from trainwarden.evidence.base import Target, utc_now
from trainwarden.evidence.collect import collect
from trainwarden.evidence.config import training_facts
from trainwarden.evidence.logs import LogSource
from trainwarden.evidence.ranks import rank_of
from trainwarden.metrics.reading import Reading
from trainwarden.procedure.criteria import derive
from trainwarden.procedure.roles import Briefing
from trainwarden.records.assessment import Assessment
from trainwarden.records.finding import Finding
from trainwarden.records.job import Job
from trainwarden.records.observation import Observation, SourceReport
from trainwarden.records.session import SessionHeader


@dataclass(frozen=True)
class Examination:
    """What an examination came to, with the evidence it rests on."""

    assessment: Assessment
    findings: tuple[Finding, ...]
    observations: Mapping[str, Observation]
    """By id, in order."""
    report: SourceReport
    """Of the log source: what could not be read."""
    readings: tuple[Reading, ...]

    @property
    def error_class(self) -> str | None:
        """The class of the error that ended the run, as `diagnosis.error_class` tells them."""
        return error_class_of(self.readings)

    def rank_of(self, finding: Finding) -> int | None:
        """Which rank printed the first line that shows a finding, where its log or the line says.

        A log's name tells a rank only where it stands beside others.
        """
        for name in finding.observations:
            place = self.observations[name].place
            for reading in self.readings:
                files = {reading.file, *(piece.file for piece in reading.pieces)}
                if place.file not in files or place.offset is None:
                    continue
                for event in reading.events:
                    if (
                        reading.place(event.offset) == (place.file, place.offset)
                        and event.rank is not None
                    ):
                        return event.rank
                return rank_of(Path(reading.file)) if len(self.readings) > 1 else None
        return None


def examine(
    logs: Sequence[Path],
    context: Mapping[str, Any] | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> Examination:
    """Read logs that nothing more is written to, and judge them by the built-in rules.

    Several logs are those of one run (its ranks). `context` is what is known of the job, free in
    form: settings in it count as those of a config. Never raises for what cannot be read.
    """
    now = clock()
    raw = dict(context or {})
    job = Job(id="examined", logs=tuple(map(str, logs)))
    facts = training_facts(raw)
    target = Target(job, Path(), raw, tuple(logs), now=clock, live=False)
    report = collect(target, [LogSource()])[0]
    readings = tuple(target.readings.values())
    briefing = Briefing(
        header=SessionHeader(
            session="examination",
            number=1,
            job=job,
            analyst="rules",
            begun_at=now,
            criteria=derive(job, facts, None),
        ),
        facts=facts,
        now=now,
        reports=(report,),
        readings=readings,
    )
    indicator = choose_indicator(briefing)
    seen = [*report.observations, *derived_observations(readings, report.observations, indicator)]
    briefing.observations = {
        f"E{number}": item.model_copy(update={"id": f"E{number}"})
        for number, item in enumerate(seen, 1)
    }
    view = View(
        observations=briefing.observations,
        readings=readings,
        facts=facts,
        reports=(report,),
        indicator=indicator,
        now=now,
        live=False,
    )
    briefing.findings = tuple(diagnose(view))
    return Examination(
        assessment=of_excerpt(briefing, assess(briefing)),
        findings=briefing.findings,
        observations=briefing.observations,
        report=report,
        readings=readings,
    )
