"""Whose processes hold a GPU: the job's own, or strangers'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from trainwarden.evidence.base import Target
from trainwarden.records.hostile import clean

if TYPE_CHECKING:
    from trainwarden.evidence.proctable import Table

GIB = 2**30


class Described(NamedTuple):
    """A process on a GPU: whether it is the job's, and how it is written in short and in full."""

    of_job: bool | None
    """None where that cannot be told."""
    brief: str
    full: str


class Owners:
    """The job's process tree, and what can be told of processes outside it."""

    def __init__(self, target: Target) -> None:
        """Take for the job what the process source takes for it."""
        self._table: Table = {}
        self.job: set[int] = set()
        """Every pid of the job that lives; empty where that is not known."""
        # Not to know whose a process is must not cost what the devices told.
        with suppress(Exception):
            family = target.census.family(target)
            self._table, self.job = family.table, set(family.living)

    def _name(self, pid: int) -> str:
        proc = self._table.get(pid)
        if proc is None:
            return "not visible from here (another container, or just ended)"
        return clean(proc.name, 40)

    def describe(self, process: Mapping[str, Any]) -> Described:
        """Name a process as NVML tells of it (`pid`, and `memory` in bytes or None)."""
        pid, memory = process["pid"], process["memory"]
        size = f"{memory / GIB:.1f} GiB" if memory is not None else "memory not told"
        of_job = pid in self.job
        # NVML tells the host's pids: from within a container they name nothing that is seen here.
        known = bool(self.job) and pid in self._table
        whose = "the job's" if of_job else ("not the job's" if known else "owner unknown")
        brief = f"pid {pid} ({'job' if of_job else 'stranger' if known else 'unknown'}) {size}"
        full = f"pid {pid} {self._name(pid)}, {whose}, {size}"
        return Described(None if not known else of_job, brief, full)


def assignments(job: Iterable[int]) -> list[tuple[str, list[int]]]:
    """Each CUDA_VISIBLE_DEVICES that the job's processes carry, with the pids that do.

    Processes whose environment may not be read, or that do not set it, are left out.
    """
    from trainwarden.evidence.proctable import environment

    found: dict[str, list[int]] = {}
    for pid in sorted(job):
        told = environment(pid, ["CUDA_VISIBLE_DEVICES"]) or {}
        for value in told.values():
            found.setdefault(clean(value, 120), []).append(pid)
    return sorted(found.items())
