"""What a source is, and what it is pointed at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar, Protocol

from trainwarden.evidence.census import Census
from trainwarden.metrics.reading import Reading
from trainwarden.records.base import Scalar
from trainwarden.records.job import Job
from trainwarden.records.observation import Observation, Place, SourceReport, Trust


def utc_now() -> datetime:
    """The clock of live sessions."""
    return datetime.now(timezone.utc)


@dataclass
class Target:
    """What a session's sources look at.

    `readings` is filled by the log source (by path) and is what diagnosis works on; sources run
    in parallel, so only the log source may write there. `earlier` holds the samples that past
    sessions of this job left (`monitor.samples` of its state), for growth over hours.
    """

    job: Job
    root: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    """The training config as plain data, keys as written."""
    logs: tuple[Path, ...] = ()
    checkpoint_dirs: tuple[Path, ...] = ()
    pids: tuple[int, ...] = ()
    """Processes known to belong to the job (roots of its tree)."""
    cache_dir: Path | None = None
    """Where the log source keeps its reading cache; None reads whole files."""
    earlier: tuple[Mapping[str, Any], ...] = ()
    now: Callable[[], datetime] = utc_now
    live: bool = True
    """False in a replay: nothing of this machine belongs to the run."""
    readings: dict[Path, Reading] = field(default_factory=dict)
    census: Census = field(default_factory=Census, repr=False, compare=False)
    """Which processes are the job's: asked for by sources, read once for all of them."""


class Source(Protocol):
    """Evidence is read from sources. A source never raises for what it cannot read: it reports."""

    name: ClassVar[str]
    trust: ClassVar[Trust]
    timeout: ClassVar[float]
    """Seconds after which the collector goes on without it."""

    def read(self, target: Target) -> SourceReport:
        """Look once. Observations carry no ids yet; the collector numbers them."""
        ...


def absent(source: Source, why: str) -> SourceReport:
    """The report of a source that has nothing to look at."""
    return SourceReport(source=source.name, trust=source.trust, status="absent", message=why)


@dataclass
class Look:
    """One look of a source: what it saw, and what it could not see."""

    source: str
    trust: Trust
    now: datetime
    found: list[Observation] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def saw(
        self, quantity: str, value: Scalar, unit: str | None, place: Place, **more: Any
    ) -> None:
        """Note an observation made now; `more` are further fields of `Observation`."""
        self.found.append(
            Observation(
                quantity=quantity,
                value=value,
                unit=unit,
                time=self.now,
                source=self.source,
                trust=self.trust,
                place=place,
                **more,
            )
        )
