"""The machine: memory, swap, load, shared memory, uptime, and what its control groups allow."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from trainwarden.evidence.base import Look, Target, absent
from trainwarden.records.observation import Place, SourceReport, Trust

UNLIMITED = 1 << 60
"""Bytes from which a version 1 memory limit stands for none."""


class HostSource:
    """Memory, swap, load per core, /dev/shm, uptime, and the job's memory control group."""

    name: ClassVar[str] = "host"
    trust: ClassVar[Trust] = Trust.HARDWARE
    timeout: ClassVar[float] = 5.0

    def __init__(self, proc: Path = Path("/proc"), shm: Path = Path("/dev/shm")) -> None:  # noqa: S108
        self.proc = proc
        self.shm = shm

    def read(self, target: Target) -> SourceReport:
        """Look once; what cannot be read is named in the report's message."""
        if not target.live:
            return absent(self, "a replay: this machine is not the run's")
        begun = time.perf_counter()
        look = _Look(self.name, self.trust, target.now())
        self._memory(look)
        self._load(look)
        self._shm(look)
        self._groups(look, target)
        found = tuple(look.found)
        return SourceReport(
            source=self.name,
            trust=self.trust,
            status="failed" if not found else ("partial" if look.problems else "ok"),
            message="; ".join(look.problems),
            seconds=time.perf_counter() - begun,
            observations=found,
        )

    @staticmethod
    def sample_row(report: SourceReport) -> dict[str, Any]:
        """What a later session needs: memory still free (bytes) and OOM kills counted so far."""
        kept = {
            "host.memory_available": "host_memory_available",
            "host.swap_used": "host_swap_used",
            "host.cgroup_oom_kills": "cgroup_oom_kills",
        }
        row: dict[str, Any] = {}
        for seen in report.observations:
            if seen.quantity in kept and seen.stat == "last":
                row[kept[seen.quantity]] = seen.value
                if seen.quantity == "host.cgroup_oom_kills":
                    row["cgroup"] = seen.place.api
        return row

    def _memory(self, look: _Look) -> None:
        path = self.proc / "meminfo"
        sizes: dict[str, int] = {}
        try:
            for line in path.read_text().splitlines():
                name, _, rest = line.partition(":")
                parts = rest.split()
                if parts and parts[0].isdigit():
                    sizes[name] = int(parts[0]) * (1024 if parts[-1] == "kB" else 1)
        except OSError as error:
            look.problems.append(f"{path}: {error.strerror}")
            return
        total = sizes.get("MemTotal")
        available = sizes.get("MemAvailable")
        if total is not None:
            look.add("host.memory_total", total, "bytes", str(path))
        if available is not None:
            look.add("host.memory_available", available, "bytes", str(path))
        if "SwapTotal" in sizes:
            used = sizes["SwapTotal"] - sizes.get("SwapFree", 0)
            look.add(
                "host.swap_used", used, "bytes", str(path), text=f"of {sizes['SwapTotal']} bytes"
            )

    def _load(self, look: _Look) -> None:
        cores = os.cpu_count() or 1
        look.add("host.cores", cores, None, "os.cpu_count")
        try:
            usable = len(os.sched_getaffinity(0))
        except (AttributeError, OSError):
            usable = cores
        if usable < cores:
            look.add("host.cores_usable", usable, None, "sched_getaffinity")
        try:
            load = float((self.proc / "loadavg").read_text().split()[0])
            uptime = float((self.proc / "uptime").read_text().split()[0])
        except (OSError, ValueError, IndexError) as error:
            look.problems.append(f"{self.proc}/loadavg: {error}")
            return
        look.add(
            "host.load1",
            round(load / cores, 4),
            "per core",
            str(self.proc / "loadavg"),
            text=f"{load:g} over {cores} cores",
        )
        look.add("host.uptime", uptime, "s", str(self.proc / "uptime"))

    def _shm(self, look: _Look) -> None:
        try:
            space = os.statvfs(self.shm)
        except OSError as error:
            look.problems.append(f"{self.shm}: {error.strerror}")
            return
        look.add("host.shm_total", space.f_blocks * space.f_frsize, "bytes", str(self.shm))
        look.add("host.shm_free", space.f_bavail * space.f_frsize, "bytes", str(self.shm))

    def _groups(self, look: _Look, target: Target) -> None:
        """The job's memory control group, or this process's own where no job process is left."""
        pids = dict.fromkeys((*target.pids, *list(target.census.living(target))[:8]))
        for pid in (*map(str, pids), "self"):
            group = memory_group(self.proc, pid)
            if group is None:
                continue
            whose = "this process's group" if pid == "self" else f"group of the job's pid {pid}"
            where = str(group.folder)
            if group.limit is not None:
                look.add("host.cgroup_memory_limit", group.limit, "bytes", where, text=whose)
                if group.used is not None:
                    look.add("host.cgroup_memory_used", group.used, "bytes", where, text=whose)
            if group.oom_kills is not None:
                kills = group.oom_kills
                look.add("host.cgroup_oom_kills", kills, None, where, text=whose)
                before = next(
                    (
                        row["cgroup_oom_kills"]
                        for row in reversed(target.earlier)
                        if isinstance(row.get("cgroup_oom_kills"), int)
                        and row.get("cgroup", where) == where
                    ),
                    None,
                )
                if before is not None and kills >= before:
                    look.add(
                        "host.cgroup_oom_kills",
                        kills - before,
                        None,
                        where,
                        stat="growth",
                        text=f"{whose}, since the last session",
                    )
            return


class _Look(Look):
    def add(
        self,
        quantity: str,
        value: float | int,
        unit: str | None,
        api: str,
        *,
        stat: str = "last",
        text: str | None = None,
    ) -> None:
        self.saw(quantity, value, unit, Place(api=api), stat=stat, text=text)


@dataclass(frozen=True)
class MemoryGroup:
    """A process's memory control group: the tightest limit above it, in bytes."""

    folder: Path
    limit: int | None
    used: int | None
    """Bytes in use under that limit, without page cache that can be dropped at once."""
    oom_kills: int | None
    """Processes of the group that were killed for memory, since it was made."""


def memory_group(proc: Path, pid: str) -> MemoryGroup | None:
    """The memory control group (version 2, else 1) of a process; None where it can't be read."""
    try:
        lines = (proc / pid / "cgroup").read_text().splitlines()
        mounts = (proc / "self/mountinfo").read_text().splitlines()
    except OSError:
        return None
    paths: dict[str, str] = {}
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            paths["cgroup2"] = path
        elif "memory" in controllers.split(","):
            paths["cgroup"] = path
    # On a hybrid machine the memory controller is in version 1, and version 2 has none.
    for kind in ("cgroup", "cgroup2"):
        if kind not in paths:
            continue
        for root, point in _mounts(mounts, kind):
            # In a container the mount may show only the container's own part of the tree.
            inner = paths[kind]
            if root != "/" and (inner == root or inner.startswith(root + "/")):
                inner = inner[len(root) :]
            folder = point / inner.lstrip("/")
            if not folder.is_dir():
                folder = point
            group = _limits(folder, point, version=2 if kind == "cgroup2" else 1)
            if group is not None:
                return group
    return None


def _mounts(lines: list[str], kind: str) -> Iterator[tuple[str, Path]]:
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, options = left.split(" "), right.split(" ")
        if len(fields) < 5 or len(options) < 3 or options[0] != kind:
            continue
        if kind == "cgroup2" or "memory" in options[2].split(","):
            yield fields[3], Path(fields[4])


def _limits(folder: Path, top: Path, version: int) -> MemoryGroup | None:
    limit_name, used_name, events, cache = (
        ("memory.max", "memory.current", "memory.events", "inactive_file")
        if version == 2
        else (
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "memory.oom_control",
            "total_inactive_file",
        )
    )
    limit: int | None = None
    used: int | None = None
    level = folder
    for _ in range(32):
        here = _integer(level / limit_name)
        if here is not None and here < UNLIMITED and (limit is None or here < limit):
            limit = here
            total = _integer(level / used_name)
            droppable = _table(level / "memory.stat").get(cache, 0)
            used = None if total is None else max(0, total - droppable)
        if level == top or top not in level.parents:
            break
        level = level.parent
    oom_kills = _table(folder / events).get("oom_kill")
    if limit is None and oom_kills is None:
        return None
    return MemoryGroup(folder, limit, used, oom_kills)


def _integer(path: Path) -> int | None:
    try:
        return int(path.read_text().strip())
    except (OSError, ValueError):
        return None


def _table(path: Path) -> dict[str, int]:
    """Lines of `name number`, as most control-group files have them."""
    found: dict[str, int] = {}
    try:
        for line in path.read_text().splitlines():
            name, _, number = line.partition(" ")
            if number.strip().isdigit():
                found[name] = int(number)
    except OSError:
        pass
    return found
