"""What this machine tells of its processes: one table of all, and details of a few.

A process is known by pid and start time, since pids are used again. Nothing here raises for a
process that vanished or may not be looked at: the answer is empty or None.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

MAX_ARGUMENTS = 512
MAX_ARGUMENT = 4096


@dataclass(frozen=True)
class Proc:
    """One row of the process table."""

    pid: int
    ppid: int
    name: str
    argv: tuple[str, ...]
    created: float
    """Unix seconds; with the pid it identifies the process."""
    status: str = ""

    @property
    def zombie(self) -> bool:
        """Ended, but not yet waited for by its parent."""
        return self.status in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


Table = Mapping[int, Proc]


def read_table() -> dict[int, Proc]:
    """All processes of this machine, by pid; kernel threads left out."""
    table = {}
    for process in psutil.process_iter():
        if proc := read_proc(process):
            table[proc.pid] = proc
    return table


def read_proc(process: psutil.Process) -> Proc | None:
    """The row of one process, or None where it is gone or a kernel thread."""
    try:
        with process.oneshot():
            status, ppid = process.status(), process.ppid()
            try:
                argv = process.cmdline()
            except psutil.Error:
                argv = []
            if not argv and (ppid == 2 or process.pid == 2) and sys.platform == "linux":
                return None
            return Proc(
                pid=process.pid,
                ppid=ppid,
                name=process.name(),
                argv=tuple(argument[:MAX_ARGUMENT] for argument in argv[:MAX_ARGUMENTS]),
                created=process.create_time(),
                status=status,
            )
    except (psutil.Error, OSError, ValueError):
        return None


def children_of(table: Table) -> dict[int, list[int]]:
    """Pid to the pids of its children."""
    children: dict[int, list[int]] = {}
    for proc in table.values():
        children.setdefault(proc.ppid, []).append(proc.pid)
    return children


def tree(table: Table, roots: Iterable[int], leave_out: Iterable[int] = ()) -> list[Proc]:
    """The roots and all that descend from them, parents first; `leave_out` with its own tree."""
    children = children_of(table)
    queue, seen, found = list(roots), set(leave_out), []
    while queue:
        pid = queue.pop(0)
        if pid in seen or pid not in table:
            continue
        seen.add(pid)
        found.append(table[pid])
        queue += sorted(children.get(pid, ()))
    return found


def ancestors(table: Table, pid: int) -> list[Proc]:
    """Parent, grandparent, … up to the first process."""
    found: list[Proc] = []
    current = table.get(pid)
    while current and current.ppid in table and len(found) < 64:
        current = table[current.ppid]
        if current in found:
            break
        found.append(current)
    return found


def open_for_writing(pid: int) -> list[tuple[int, str]] | None:
    """File descriptors and paths of the regular files a process writes; None where not told."""
    try:
        files = psutil.Process(pid).open_files()
    except (psutil.Error, OSError, ValueError):
        return None
    return [(file.fd, file.path) for file in files if getattr(file, "mode", "w") not in ("r", "rb")]


def environment(pid: int, names: Iterable[str]) -> dict[str, str] | None:
    """The named variables a process was started with, and no others; None where not told."""
    try:
        environ = psutil.Process(pid).environ()
    except (psutil.Error, OSError, ValueError):
        return None
    return {name: environ[name][:256] for name in names if name in environ}


def pipe_of(pid: int, descriptor: int) -> str | None:
    """The pipe a descriptor is connected to, as the kernel names it (`pipe:[123]`)."""
    try:
        link = str(Path(f"/proc/{pid}/fd/{descriptor}").readlink())
    except OSError:
        return None
    return link if link.startswith("pipe:") else None


def exit_of(pid: int) -> str | None:
    """How a zombie ended: `0`, `1`, … or `signal 9`. None where the kernel does not say.

    Field 52 of `/proc/<pid>/stat` (proc(5)): the status as waitpid(2) reports it; it reads 0 to
    those who may not trace the process.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        owner = Path(f"/proc/{pid}").stat().st_uid
        status = int(text.rpartition(")")[2].split()[49])
    except (OSError, ValueError, IndexError):
        return None
    if status == 0 and os.geteuid() not in (0, owner):
        return None
    return f"signal {status & 0x7F}" if status & 0x7F else str(status >> 8 & 0xFF)


def boot() -> tuple[str, float]:
    """This boot's identity (empty where unknown) and its moment in Unix seconds."""
    try:
        identity = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        identity = ""
    try:
        return identity, psutil.boot_time()
    except (psutil.Error, OSError, RuntimeError):
        return identity, 0.0


def mapped_libraries(pid: int, wanted: Iterable[str]) -> set[str]:
    """Which of the wanted name parts occur among a process's mapped files (Linux only)."""
    wanted = tuple(wanted)
    found: set[str] = set()
    try:
        with Path(f"/proc/{pid}/maps").open(errors="replace") as lines:
            for line in lines:
                name = line.rstrip().rpartition("/")[2]
                found.update(part for part in wanted if part in name)
                if len(found) == len(wanted):
                    break
    except OSError:
        pass
    return found
