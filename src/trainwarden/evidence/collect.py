"""All sources read in parallel, each against its own clock, none able to stop the others."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from trainwarden.evidence.base import Source, Target
from trainwarden.records.base import to_json_number
from trainwarden.records.hostile import clean
from trainwarden.records.observation import Observation, SourceReport, Trust

DEFAULT_TIMEOUT = 10.0
SAMPLED = (
    "log.age",
    "log.interval",
    "log.size",
    "process.started",
    "process.rss",
    "process.threads",
    "process.cpu",
    "process.read_bytes",
    "process.write_bytes",
    "gpu.job_memory",
    "gpu.memory_used",
    "gpu.power",
    "gpu.ecc_corrected",
    "gpu.pcie_replays",
    "host.memory_available",
    "host.swap_used",
    "host.shm_free",
    "disk.free",
    "checkpoint.step",
    "checkpoint.size",
)
"""What no log keeps and later sessions need, for growth over hours."""


def collect(
    target: Target,
    sources: Sequence[Source],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> list[SourceReport]:
    """Read every source in a thread of its own; one report each, in the order of `sources`.

    A source that raises is reported as `failed`, one that takes longer than its `timeout` as
    `timed_out`; it is not waited for, and nothing it does later counts, be it in its report or in
    `target.readings`. `clock` gives seconds. Never raises for what a source does.
    """
    answers: queue.SimpleQueue[tuple[int, SourceReport, Target]] = queue.SimpleQueue()
    started = clock()
    reports: list[SourceReport | None] = [None] * len(sources)
    limits = [_timeout(source) for source in sources]
    for index, source in enumerate(sources):
        # Its own readings, so that a late source cannot write into what is already being judged.
        own = replace(target, readings=dict(target.readings))

        def work(index: int = index, source: Source = source, own: Target = own) -> None:
            answers.put((index, _read(source, own, clock), own))

        threading.Thread(target=work, name=f"source {_name(source)}", daemon=True).start()
    waiting = set(range(len(sources)))
    while waiting:
        elapsed = clock() - started
        for index in [index for index in waiting if limits[index] <= elapsed]:
            waiting.discard(index)
            reports[index] = _report(
                sources[index], "timed_out", f"no answer within {limits[index]:g} s", elapsed
            )
        if not waiting:
            break
        try:
            left = min(limits[index] for index in waiting) - elapsed
            index, report, own = answers.get(timeout=max(0.001, left))
        except queue.Empty:
            continue
        if index in waiting:
            waiting.discard(index)
            reports[index] = report
            target.readings.update(own.readings)
    return [report for report in reports if report is not None]


def _name(source: object) -> str:
    return clean(str(getattr(source, "name", None) or type(source).__name__), 80)


def _timeout(source: object) -> float:
    limit = getattr(source, "timeout", DEFAULT_TIMEOUT)
    return float(limit) if isinstance(limit, int | float) and limit > 0 else DEFAULT_TIMEOUT


def _report(source: object, status: Any, message: str, seconds: float) -> SourceReport:
    trust = getattr(source, "trust", None)
    return SourceReport(
        source=_name(source),
        trust=trust if isinstance(trust, Trust) else Trust.TRACKER,
        status=status,
        message=clean(message),
        seconds=round(seconds, 3),
    )


def _read(source: Source, target: Target, clock: Callable[[], float]) -> SourceReport:
    started = clock()
    try:
        report = source.read(target)
        if not isinstance(report, SourceReport):
            raise TypeError(f"read() gave {type(report).__name__}, no SourceReport")
        safe = tuple(_cleaned(observation) for observation in report.observations)
    except BaseException as error:
        what = f"{type(error).__name__}: {error}".removesuffix(": ")
        message = f"the source itself broke ({what}); what it reads is not known"
        return _report(source, "failed", message, clock() - started)
    return report.model_copy(
        update={
            "observations": safe,
            "message": clean(report.message, 2_000),
            "seconds": round(clock() - started, 3),
        }
    )


def _cleaned(observation: Observation) -> Observation:
    """The one door for text from a run, whichever source (a plugin's too) let it in."""
    changes: dict[str, Any] = {}
    for field, limit in (("value", 2_000), ("subject", 300), ("text", 2_000)):
        before = getattr(observation, field)
        if isinstance(before, str) and (after := clean(before, limit)) != before:
            changes[field] = after
    return observation.model_copy(update=changes) if changes else observation


def sample_row(reports: Iterable[SourceReport], now: datetime) -> dict[str, Any]:
    """What later sessions need of this one, as plain data: a row of `monitor.samples`.

    `time` (ISO, UTC), `step` (None where not seen), the quantities of `SAMPLED` by their names,
    `gpu.idle_power` by model name, and what single sources add by a `sample_row` of their own. A
    quantity is a value where it is the job's or no one's (of several logs, the main one's), else a
    mapping from subject to value; single processes are left out, since a pid says nothing once it
    is gone.
    """
    from trainwarden.evidence.sources import own_sample

    reports = list(reports)
    row: dict[str, Any] = {}
    for report in reports:
        row.update(own_sample(report))
    row |= {
        "time": now.astimezone(timezone.utc).isoformat(timespec="seconds"),
        "step": None,
    }
    models: dict[str | None, Any] = {}
    idle: dict[str | None, Any] = {}
    rank = 0
    for seen in (one for report in reports for one in report.observations if one.stat == "last"):
        quantity, subject, value = seen.quantity, seen.subject, to_json_number(seen.value)
        if quantity == "gpu.name":
            models[subject] = value
        elif quantity == "gpu.idle_power":
            idle[subject] = value
        elif quantity == "step" and seen.trust > rank:
            row["step"], rank = value, seen.trust
        elif quantity not in SAMPLED:
            continue
        elif subject in (None, "job") or quantity.startswith("log."):
            row.setdefault(quantity, value)
        elif not quantity.startswith("process."):
            of_subjects = row.setdefault(quantity, {})
            if isinstance(of_subjects, dict):
                of_subjects[subject] = value
    if idle:
        row["gpu.idle_power"] = {models[key]: idle[key] for key in idle if key in models}
    return row
