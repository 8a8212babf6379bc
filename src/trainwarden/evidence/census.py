"""The process table and the job's part of it, read once for all sources of a look."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainwarden.evidence.base import Target
    from trainwarden.evidence.lineage import Past
    from trainwarden.evidence.proctable import Proc, Table

PATIENCE = 4.0
"""Seconds that a source waits: reading /proc can hang where a process hangs in the kernel."""


@dataclass(frozen=True)
class Family:
    """All processes of the machine, and those of the job among them."""

    table: Table
    past: Past
    """What earlier sessions saw of them."""
    procs: tuple[Proc, ...] = ()
    """The job's, parents first, the dead among them too; this process and its own left out."""
    notes: tuple[str, ...] = ()
    """How they were found."""

    @property
    def living(self) -> Mapping[int, float]:
        """Pid and start (Unix seconds) of the job's processes that live."""
        return {proc.pid: proc.created for proc in self.procs if not proc.zombie}


@dataclass
class Census:
    """Reads the table at the first question; whoever asks meanwhile waits for that reading."""

    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _done: threading.Event = field(default_factory=threading.Event, repr=False)
    _begun: bool = False
    _family: Family | None = None
    _error: Exception | None = None

    def family(self, target: Target, patience: float = PATIENCE) -> Family:
        """The job's processes. Raises TimeoutError after `patience` seconds, and what went wrong.

        A live target's only: in a replay no process of this machine belongs to the run.
        """
        with self._lock:
            begin, self._begun = not self._begun, True
        if begin:
            threading.Thread(target=self._read, args=(target,), name="census", daemon=True).start()
        if not self._done.wait(patience):
            raise TimeoutError(f"the process table could not be read within {patience:g} s")
        if self._family is None:
            raise self._error or RuntimeError("the process table could not be read")
        return self._family

    def living(self, target: Target) -> Mapping[int, float]:
        """Pid and start of the job's living processes; empty where that cannot be told."""
        if not target.live:
            return {}
        try:
            return self.family(target).living
        except Exception:
            # Whose a process is must not cost a source what it has read itself.
            return {}

    def _read(self, target: Target) -> None:
        try:
            from trainwarden.evidence.lineage import Past
            from trainwarden.evidence.processes import find_roots
            from trainwarden.evidence.proctable import read_table, tree

            table, past = read_table(), Past.of(target.earlier)
            roots, notes = find_roots(target, table, past)
            procs = tree(table, roots, leave_out=[os.getpid()])
            self._family = Family(table, past, tuple(procs), tuple(notes))
        except Exception as error:
            self._error = error
        finally:
            self._done.set()
