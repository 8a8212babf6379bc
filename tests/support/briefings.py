"""Briefings for analysts, made of a simulated run as a session would fill them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from support.views import NOW, view
from trainwarden.diagnosis import diagnose
from trainwarden.metrics.reading import Reading
from trainwarden.procedure.criteria import derive
from trainwarden.procedure.roles import Briefing
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.job import Job
from trainwarden.records.observation import Observation, SourceReport, Trust
from trainwarden.records.session import SessionHeader


def briefing(
    *readings: Reading,
    facts: TrainingFacts | None = None,
    more: Iterable[Observation] = (),
    reports: Iterable[SourceReport] = (),
    now: datetime = NOW,
    **rest: Any,
) -> Briefing:
    facts = facts or TrainingFacts()
    job = Job(id="job", config="/runs/job/config.yaml", logs=("/runs/job/train.log",))
    one = view(*readings, more=more, facts=facts, now=now)
    header = SessionHeader(
        session="2026-03-01_120000",
        number=1,
        job=job,
        analyst="rules",
        begun_at=now,
        criteria=derive(job, facts, None),
    )
    reports = tuple(reports) or (SourceReport(source="log", trust=Trust.LOG, status="ok"),)
    return Briefing(
        header=header,
        facts=facts,
        now=now,
        observations=one.observations,
        readings=one.readings,
        reports=reports,
        findings=tuple(diagnose(one)),
        **rest,
    )
