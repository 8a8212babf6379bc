"""A job's processes over time: which were seen earlier, which are gone, who started them."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainwarden.evidence import commands
from trainwarden.evidence.discovery import RANK_NAMES, WORLD_NAMES
from trainwarden.evidence.proctable import Proc, Table, ancestors, boot, environment
from trainwarden.records.base import isoformat
from trainwarden.records.observation import SourceReport

_ITEM = re.compile(r"(\d+)@(\d+\.\d+)([^;]*)")
_JOB_LAUNCHERS = ("mpirun", "srun", "ray")
"""Of those that start anything, the ones that a job's workers hang on."""
_SURE_SIGNS = ("TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK", "CROSS_RANK")
"""Variables that torchrun, mpirun and deepspeed set, and people do not."""
_USUAL_SIGNS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR")


@dataclass(frozen=True)
class Sighting:
    """A process as an earlier session saw it."""

    pid: int
    created: float
    seen: str
    """When, as written in that session's row."""
    role: str = ""
    notable: bool = True
    """False for helpers, which come and go."""
    fate: str = "is gone"

    @property
    def told(self) -> str:
        """One sentence on it."""
        role = f" ({self.role})" if self.role else ""
        return f"process {self.pid}{role}, seen {self.seen}, {self.fate}"


@dataclass
class Past:
    """What earlier sessions on this host saw of the job's processes."""

    sightings: dict[int, Sighting] = field(default_factory=dict)
    """Those of the last row that has any, by pid."""
    rows: list[tuple[datetime, float, dict[int, float]]] = field(default_factory=list)
    """Time, resident bytes, and start time by pid on this boot's clock, of every usable row."""
    launcher: Sighting | None = None
    rebooted: bool = False
    shift: float = 0.0

    @classmethod
    def of(cls, earlier: Iterable[Mapping[str, Any]]) -> Past:
        """Read earlier rows; what is not as expected in them is passed over."""
        past = cls()
        host, (boot_id, booted) = socket.gethostname(), boot()
        for row in earlier:
            where = row.get("boot")
            where = where if isinstance(where, Mapping) else {}
            if where.get("host", host) != host:
                continue
            same_boot = not where.get("id") or not boot_id or where["id"] == boot_id
            # The wall clock may have been set since; seconds after boot have not.
            clock = where.get("time")
            shift = booted - float(clock) if isinstance(clock, (int, float)) and same_boot else 0.0
            pids = _start_times(row.get("pids"), shift)
            seen = str(row.get("time", ""))
            if not pids:
                continue
            past.rebooted = not same_boot
            past.sightings = _sightings(row, pids, seen)
            past.launcher = _launcher_of(row, pids, seen) or past.launcher
            try:
                moment = datetime.fromisoformat(seen.replace("Z", "+00:00"))
                rss = float(row["rss"])
            except (KeyError, TypeError, ValueError):
                continue
            if same_boot and moment.tzinfo is not None:
                past.rows.append((moment, rss, pids))
        return past

    @staticmethod
    def row(report: SourceReport) -> dict[str, Any]:
        """The row that `of` reads, from what one look gave; empty where nothing lived."""
        jobs = {
            o.quantity: o for o in report.observations if o.subject == "job" and o.stat == "last"
        }
        tree = jobs.get("process.tree")
        if tree is None or tree.time is None:
            return {}
        pids, roots, ranks, launcher = {}, [], {}, None
        for pid, created, marks in _ITEM.findall(str(tree.value)):
            pids[pid] = float(created)
            words = dict(word.partition("=")[::2] for word in marks.split())
            if "root" in words:
                roots.append(int(pid))
            if "rank" in words:
                ranks[pid] = words["rank"]
            if "launcher" in words and launcher is None:
                launcher = {"pid": int(pid), "created": float(created), "name": words["launcher"]}
        identity, booted = boot()
        row = {
            "time": isoformat(tree.time),
            "pids": pids,
            "roots": roots,
            "ranks": ranks,
            "launcher": launcher,
            "boot": {"host": socket.gethostname(), "id": identity, "time": booted},
        }
        rss = jobs.get("process.rss")
        return {**row, "rss": rss.value} if rss else row

    def knows(self, proc: Proc) -> bool:
        """Whether this very process was seen earlier."""
        seen = self.sightings.get(proc.pid)
        return seen is not None and not self.rebooted and _same(proc, seen.created)

    def replaced(self, proc: Proc) -> bool:
        """Whether its pid was another process's when it was seen earlier."""
        return proc.pid in self.sightings and not self.knows(proc)

    def gone(self, table: Table) -> list[Sighting]:
        """Those seen last that live no more, the notable ones first."""
        found = []
        for seen in self.sightings.values():
            proc = table.get(seen.pid)
            if proc and self.knows(proc):
                continue
            fate = "is gone"
            if self.rebooted:
                fate = "is gone: the machine was started anew since"
            elif proc:
                fate = "is gone; its pid is another process's now"
            found.append(Sighting(seen.pid, seen.created, seen.seen, seen.role, seen.notable, fate))
        return sorted(found, key=lambda sight: not sight.notable)

    def memory(self, living: Sequence[Proc], now: datetime) -> list[tuple[float, float]]:
        """Unix seconds and resident bytes of the rows in which one of the living had its part."""
        return [
            (moment.timestamp(), rss)
            for moment, rss, pids in self.rows
            if (now - moment).total_seconds() >= 1.0
            and any(proc.pid in pids and _same(proc, pids[proc.pid]) for proc in living)
        ]


def _same(proc: Proc, created: float) -> bool:
    return abs(proc.created - created) < 1.5


def _start_times(pids: Any, shift: float) -> dict[int, float]:
    found = {}
    for pid, created in pids.items() if isinstance(pids, Mapping) else ():
        try:
            found[int(pid)] = float(created) + shift
        except (TypeError, ValueError):
            continue
    return found


def _sightings(row: Mapping[str, Any], pids: Mapping[int, float], seen: str) -> dict[int, Sighting]:
    roots = row.get("roots")
    ranks = row.get("ranks")
    roles = (
        {str(pid): f"rank {rank}" for pid, rank in ranks.items()}
        if isinstance(ranks, Mapping)
        else {}
    )
    launcher = row.get("launcher")
    if isinstance(launcher, Mapping):
        roles[str(launcher.get("pid"))] = f"launcher {launcher.get('name', '')}".strip()
    return {
        pid: Sighting(
            pid,
            created,
            seen,
            roles.get(str(pid), ""),
            notable=not isinstance(roots, (list, tuple)) or pid in roots or str(pid) in roles,
        )
        for pid, created in pids.items()
    }


def _launcher_of(row: Mapping[str, Any], pids: Mapping[int, float], seen: str) -> Sighting | None:
    launcher = row.get("launcher")
    if not isinstance(launcher, Mapping):
        return None
    pid = launcher.get("pid")
    if not isinstance(pid, int) or pid not in pids:
        return None
    return Sighting(pid, pids[pid], seen, str(launcher.get("name", "launcher")))


def rank_of(variables: Mapping[str, str]) -> str | None:
    """The rank that a process's variables give it."""
    return next((variables[n] for n in RANK_NAMES if variables.get(n, "").isdigit()), None)


def ranks_in(family: Sequence[Proc]) -> dict[int, str]:
    """Pid to rank of the processes that are one; helpers inherit the variable and are none."""
    told = {
        proc.pid: rank_of(environment(proc.pid, RANK_NAMES) or {})
        for proc in family[:256]
        if not proc.zombie and not commands.is_shell(proc.argv)
    }
    return {
        proc.pid: rank
        for proc in family
        if (rank := told.get(proc.pid)) is not None and told.get(proc.ppid) != rank
    }


def launcher_state(
    table: Table, living: Sequence[Proc], past: Past
) -> tuple[bool, str, int | None] | None:
    """Whether the job's launcher lives, in words, and its pid; None where there is none to expect.

    It is expected where an earlier session saw one, or where the workers' variables say that one
    started them.
    """
    if not living:
        return None
    pids = {proc.pid for proc in living}
    above = [
        proc for root in living if root.ppid not in pids for proc in ancestors(table, root.pid)
    ]
    seen = past.launcher
    if seen is not None and not past.rebooted and any(past.knows(proc) for proc in living):
        proc = table.get(seen.pid)
        if proc is None or proc.zombie or not _same(proc, seen.created):
            fate = "has ended" if proc is not None and proc.zombie else "is gone"
            text = f"launcher {seen.role} (pid {seen.pid}), seen {seen.seen}, {fate}"
            return False, f"{text}, while {len(living)} of the processes it started live", seen.pid
    for proc in [*living, *above]:
        kind = commands.launcher_of(proc.argv, general=True)
        if kind and (commands.launcher_of(proc.argv) or kind in _JOB_LAUNCHERS):
            return True, f"launcher {kind} lives", proc.pid
    for proc in living:
        if proc.ppid in pids or commands.is_shell(proc.argv):
            continue
        signs = _signs(proc)
        parent = _starter(table, proc)
        if signs and (parent is None or not commands.is_python(parent.argv)):
            now = (
                f"its parent is {parent.name} (pid {parent.pid})" if parent else "it has no parent"
            )
            text = f"process {proc.pid} was started by a launcher ({', '.join(signs)}) that is gone"
            return False, f"{text}: {now}, while {len(living)} processes live", proc.pid
    first = living[0]
    if commands.is_wrapper(first.argv):
        return True, "the shell that started it lives", first.pid
    return None


def _starter(table: Table, proc: Proc) -> Proc | None:
    """The nearest ancestor that is no shell."""
    return next(
        (one for one in ancestors(table, proc.pid) if not commands.is_shell(one.argv)), None
    )


def _signs(proc: Proc) -> list[str]:
    told = environment(proc.pid, (*_SURE_SIGNS, *_USUAL_SIGNS, *WORLD_NAMES)) or {}
    sure = [name for name in _SURE_SIGNS if name in told]
    if sure:
        return sure
    usual = all(name in told for name in _USUAL_SIGNS) and told["WORLD_SIZE"] != "1"
    return list(_USUAL_SIGNS) if usual else []
