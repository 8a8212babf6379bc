"""Observations asked for or worked out once more, where no single place in a file holds them.

Gauges are asked of their source again and have moved on since; what was worked out of a log is
worked out again from the bytes that the session had read of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from trainwarden.diagnosis.derived import derived_observations
from trainwarden.evidence.base import Target
from trainwarden.evidence.collect import collect
from trainwarden.evidence.log_observations import observe
from trainwarden.evidence.log_readings import read_as_far
from trainwarden.evidence.sources import builtin_sources
from trainwarden.evidence.stores import is_store
from trainwarden.procedure.auditing import could_agree
from trainwarden.records.assessment import KeyIndicator
from trainwarden.records.facts import TrainingFacts, planned_steps
from trainwarden.records.observation import Observation
from trainwarden.records.review import Reread


def ask_anew(
    items: Iterable[Observation],
    target: Target,
    ends: Mapping[str, int],
    facts: TrainingFacts,
    indicator: KeyIndicator | None,
) -> dict[str, Reread]:
    """Each observation as it is now, by id; what its source no longer gives is left out.

    `ends` says how many bytes of each log the session had read.
    """
    wanted: dict[tuple[str, str], list[Observation]] = {}
    for item in items:
        file = item.place.file if item.source == "log" else None
        wanted.setdefault((item.source, file or ""), []).append(item)
    found: dict[str, Reread] = {}
    asked = {source for source, _ in wanted} - {"log"}
    sources = [source for source in builtin_sources() if source.name in asked]
    reports = collect(replace(target, readings={}), sources)
    for (source, file), some in wanted.items():
        if file:
            end = ends.get(file)
            fresh = _worked_out(Path(file), ends, some, target, facts, indicator)
            until = "the end" if end is None else str(end)
            how = f"worked out anew from bytes 0 to {until} of {Path(file).name}"
            if is_store(Path(file)):
                how = f"worked out anew from what had been read of {Path(file).name}"
        else:
            fresh = [o for r in reports if r.source == source for o in r.observations]
            how = f"{source} asked anew"
        now = {(one.quantity, one.stat, one.subject): one.value for one in fresh}
        for item in some:
            value = now.get((item.quantity, item.stat, item.subject))
            if value is not None:
                found[item.id] = Reread(
                    observation=item.id, found=value, agrees=could_agree(item, value), how=how
                )
    return found


def _worked_out(
    path: Path,
    ends: Mapping[str, int],
    items: Iterable[Observation],
    target: Target,
    facts: TrainingFacts,
    indicator: KeyIndicator | None,
) -> list[Observation]:
    try:
        reading = read_as_far(path, ends)
    except OSError:
        return []
    reading = reading.stretched(facts.log_every, planned_steps(facts))
    fresh = list(derived_observations([reading], [], indicator))
    for subject in {item.subject for item in items}:
        fresh += observe(path, reading, target, subject)
    return fresh
