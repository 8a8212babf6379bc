"""Criteria to judge by, derived from the run's own artefacts before anything is read of it."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import PurePath

from trainwarden.records.assessment import Criterion
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.hostile import clean
from trainwarden.records.job import Job
from trainwarden.records.state import JobState


def derive(job: Job, facts: TrainingFacts, state: JobState | None) -> tuple[Criterion, ...]:
    """Numbered criteria from the config, from what follows of it, and from earlier sessions."""
    found = [*_from_config(job, facts), *_from_state(state)]
    if job.guidance:
        found.append(
            Criterion(name="guidance", value=clean(job.guidance, 2_000), source="the user")
        )
    return tuple(
        criterion.model_copy(update={"id": f"C{number}"})
        for number, criterion in enumerate(found, 1)
    )


def _from_config(job: Job, facts: TrainingFacts) -> list[Criterion]:
    config = PurePath(job.config).name if job.config else "config"
    found = []
    for field in fields(facts):
        value = getattr(facts, field.name)
        if field.name == "keys" or value is None:
            continue
        key = facts.keys.get(field.name, field.name)
        shown = clean(value) if isinstance(value, str) else value
        found.append(Criterion(name=field.name, value=shown, source=clean(f"{config}: {key}")))
    for name in ("vocab_size", "num_classes"):
        size = getattr(facts, name)
        if size and size > 1:
            found.append(
                Criterion(
                    name="baseline_loss",
                    value=math.log(size),
                    unit="nats",
                    source=f"ln({name}): the cross-entropy of a uniform guess",
                )
            )
            break
    return found


def _from_state(state: JobState | None) -> list[Criterion]:
    if state is None or not state.monitor.status_history:
        return []
    last = state.monitor.status_history[-1]
    source = f"session {last.session}"
    found = [Criterion(name="previous_status", value=last.status.value, source=source)]
    if last.step is not None:
        found.append(Criterion(name="previous_step", value=last.step, source=source))
    if last.indicator is not None and last.value is not None and math.isfinite(last.value):
        name = clean(f"previous_{last.indicator.quantity}", 80)
        found.append(Criterion(name=name, value=last.value, source=source))
    return found
