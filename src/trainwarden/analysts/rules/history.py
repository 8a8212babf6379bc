"""What earlier sessions left of a job, as predictions need it."""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass, field

from trainwarden.evidence.rows import unix_seconds
from trainwarden.metrics.forecast import Interval
from trainwarden.metrics.pace import Rate, forecast_step
from trainwarden.metrics.reading import Reading, planned_length
from trainwarden.metrics.series import Point, Series
from trainwarden.procedure.roles import Briefing
from trainwarden.records.facts import TrainingFacts


def spacing(series: Series) -> float:
    """Median steps between the series' points, at least a tiny positive number."""
    recent = [point.step for point in series.recent]
    gaps = [b - a for a, b in itertools.pairwise(recent) if b > a]
    return statistics.median(gaps) if gaps else 1.0


@dataclass
class History:
    """Readings frozen at the last session's end, and one look per session."""

    readings: tuple[Reading, ...]
    facts: TrainingFacts
    looks: list[tuple[float, float]] = field(default_factory=list)
    """(unix seconds, step) of each session that saw a step, in order of time."""
    resident: list[tuple[float, float]] = field(default_factory=list)
    """(unix seconds, bytes of the job's processes)."""
    available: list[float] = field(default_factory=list)
    """Free memory of the host in bytes, at each session that saw it."""
    has_gpu: bool = False
    """Whether the latest session that looked at the machine saw a GPU."""

    @classmethod
    def of(cls, briefing: Briefing) -> History | None:
        """The job's history; None in a first session."""
        readings = briefing.past
        if not any(reading.bytes for reading in readings):
            return None
        history = cls(readings, briefing.facts)
        for row in briefing.samples:
            when = unix_seconds(row.get("time"))
            free = row.get("host.memory_available")
            if isinstance(free, (int, float)) and 0 < free < math.inf:
                history.available.append(float(free))
                # A session that saw the host saw its GPUs, too.
                history.has_gpu = any(key.startswith("gpu.") for key in row)
            for key, rows in (("step", history.looks), ("rss", history.resident)):
                value = row.get(key)
                if when is None or isinstance(value, bool) or not isinstance(value, (int, float)):
                    continue
                if 0 <= value < math.inf and (not rows or when > rows[-1][0]):
                    rows.append((when, float(value)))
        return history

    @property
    def ended(self) -> str:
        """How the main log had ended; `running` where it says finished well before its plan."""
        ended, total = self.main.ended, self.total
        if ended == "finished" and total and 0 < self.last_step < 0.9 * total:
            return "running"
        return ended

    @property
    def complete(self) -> bool:
        """Whether the run had come to its planned end."""
        return bool(self.total) and self.last_step >= 0.9 * (self.total or 0)

    @property
    def main(self) -> Reading:
        """The job's main log."""
        return self.readings[0]

    @property
    def total(self) -> int | None:
        """Planned steps."""
        return planned_length(self.readings, self.facts)

    @property
    def last_step(self) -> float:
        """How far the run was."""
        steps = [reading.last_step for reading in self.readings if reading.last_step is not None]
        return float(max(steps)) if steps else 0.0

    @property
    def cadence(self) -> float:
        """Steps between lines of the metric logged most often."""
        counted = [s for s in self.main.series.values() if len(s.recent) > 1]
        return spacing(max(counted, key=lambda s: s.count)) if counted else 1.0

    def series(self, name: str) -> Series | None:
        """The metric as the first log that has it gives it."""
        for reading in self.readings:
            found = reading.series.get(name)
            if found is not None and found.count:
                return found
        return None

    def points(self, name: str) -> list[Point]:
        """The metric's finite points."""
        series = self.series(name)
        return series.finite() if series else []

    def printed_rate(self) -> Rate | None:
        """Steps a second as the log itself tells; only for a run whose process was seen alive.

        The wall clock of a log fed from a file need not be that of the run, and the process's
        presence is what shows that it is.
        """
        if not self.resident:
            return None
        center = 0.0
        if paces := [p.value for p in self.points("step_time")[-64:] if p.value > 0]:
            center = 1 / statistics.fmean(paces)
        elif rates := [p.value for p in self.points("steps_per_second")[-64:] if p.value > 0]:
            center = statistics.median(rates)
        elif self.main.first_time is not None and self.main.last_time is not None:
            seconds = self.main.last_time - self.main.first_time
            center = self.last_step / seconds if seconds > 0 else 0.0
        if center <= 0:
            return None
        # Printed step times leave pauses out, so the run is rather slower than faster.
        return Rate(0.6 * center, 1.15 * center, center, 0)

    def step_at(self, now: float) -> tuple[Interval, bool]:
        """Where the step should be at `now`, and whether that is known from the run's pace.

        Where it is not, the run is taken to be up to twice as far as when last seen.
        """
        total, last = self.total, self.last_step
        looks = self.looks
        if looks and looks[-1][1] < last:
            looks = [*looks[:-1], (looks[-1][0], last)]
        found = forecast_step(looks, now, total, self.cadence, self.printed_rate())
        if found is not None:
            return found, True
        far = 2 * last + self.cadence
        if total is not None and total >= last:
            far = min(far, float(total))
        basis = f"step {last:g} when last seen; the pace is not known from one look"
        return Interval(last, max(far, last), max((last + far) / 2, last), basis), False
