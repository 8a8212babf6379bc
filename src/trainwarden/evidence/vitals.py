"""Processes watched over a short window: memory, CPU, I/O and state."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil

from trainwarden.evidence.proctable import Proc

_STATES = {
    psutil.STATUS_TRACING_STOP: "stopped",
    psutil.STATUS_WAKING: "running",
    "wake-kill": "running",
    psutil.STATUS_IDLE: "sleeping",
    psutil.STATUS_PARKED: "sleeping",
    psutil.STATUS_LOCKED: "sleeping",
    psutil.STATUS_WAITING: "sleeping",
}


@dataclass
class Vitals:
    """What one process did during the window."""

    alive: bool = True
    """False when it ended meanwhile."""
    rss: list[tuple[float, int]] = field(default_factory=list)
    """Seconds and resident bytes of each sample."""
    cpu: float | None = None
    """Cores kept busy."""
    threads: int = 0
    io: tuple[tuple[int, int], tuple[int, int]] | None = None
    """Bytes read and bytes written, each at the window's begin and end; None if not permitted."""
    seconds: float = 0.0
    states: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        """What it was in most of the samples; a stop that still holds goes before."""
        if not self.states:
            return "running" if self.alive else "dead"
        if self.states[-1] == "stopped":
            return "stopped"
        return Counter(reversed(self.states)).most_common(1)[0][0]

    @property
    def state_share(self) -> str:
        """In how many of the samples it was in that state."""
        return f"{self.states.count(self.state)} of {len(self.states)} samples"


def sample(procs: Sequence[Proc], window: float, samples: int) -> dict[int, Vitals]:
    """Look at the processes `samples` times (at least twice), evenly over `window` seconds."""
    handles: dict[int, psutil.Process] = {}
    vitals = {proc.pid: Vitals() for proc in procs}
    for proc in procs:
        try:
            handle = psutil.Process(proc.pid)
            # Start times are told in hundredths; a pid that was used again differs by far more.
            if abs(handle.create_time() - proc.created) > 1.0:
                raise psutil.NoSuchProcess(proc.pid)
            handles[proc.pid] = handle
        except psutil.AccessDenied:
            continue
        except (psutil.Error, OSError):
            vitals[proc.pid].alive = False
    samples = max(samples, 2)
    begin = time.monotonic()
    used: dict[int, list[tuple[float, float]]] = {pid: [] for pid in vitals}
    first_io: dict[int, tuple[int, int]] = {}
    for turn in range(samples):
        time.sleep(max(0.0, begin + window * turn / (samples - 1) - time.monotonic()))
        now = time.monotonic() - begin
        for pid, handle in handles.items():
            vital = vitals[pid]
            if vital.alive:
                _look(handle, vital, used[pid], now)
                if turn == 0 and vital.alive and (io := _io(handle)):
                    first_io[pid] = io
    for pid, handle in handles.items():
        vital, times = vitals[pid], used[pid]
        if len(times) > 1 and times[-1][0] > times[0][0]:
            vital.seconds = times[-1][0] - times[0][0]
            vital.cpu = max(0.0, (times[-1][1] - times[0][1]) / vital.seconds)
        if vital.alive and pid in first_io and (last := _io(handle)):
            begun = first_io[pid]
            vital.io = ((begun[0], last[0]), (begun[1], last[1]))
    return vitals


def _look(
    handle: psutil.Process, vital: Vitals, used: list[tuple[float, float]], now: float
) -> None:
    try:
        with handle.oneshot():
            state = handle.status()
            if state in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                vital.alive = False
                return
            vital.states.append(_STATES.get(state, state))
            vital.rss.append((now, handle.memory_info().rss))
            times = handle.cpu_times()
            used.append((now, times.user + times.system))
            vital.threads = handle.num_threads()
    except psutil.AccessDenied:
        pass
    except (psutil.Error, OSError):
        vital.alive = False


def _io(handle: psutil.Process) -> tuple[int, int] | None:
    try:
        counters = handle.io_counters()
    except (psutil.Error, OSError, AttributeError, NotImplementedError):
        return None
    return counters.read_bytes, counters.write_bytes


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between all pairs of points (Theil-Sen, at most 64 points)."""
    points = points[:: -(-len(points) // 64)] if len(points) > 64 else points
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for at, earlier in enumerate(points)
        for later in points[at + 1 :]
        if later[0] > earlier[0]
    ]
    return statistics.median(slopes) if slopes else 0.0
