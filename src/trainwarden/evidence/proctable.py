"""What this machine tells of its processes: one table of all, and details of a few.

A process is known by pid and start time, since pids are used again. Nothing here raises for a
process that vanished or may not be looked at: the answer is empty or None.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
        return self.status in ("zombie", "dead")


Table = Mapping[int, Proc]


def read_table() -> dict[int, Proc]:
    """All processes of this machine, by pid; kernel threads left out."""
    table = {}
    if sys.platform == "linux":
        # By hand: thousands of processes cost psutil seconds.
        booted = boot()[1]
        for name in os.listdir("/proc"):  # noqa: PTH208
            if name.isdigit() and (proc := _read_linux(name, booted)):
                table[proc.pid] = proc
        return table
    import psutil

    for process in psutil.process_iter():
        if proc := read_proc(process):
            table[proc.pid] = proc
    return table


_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_KERNEL_THREAD = 0x00200000
_STATUS = {
    "R": "running",
    "S": "sleeping",
    "D": "disk-sleep",
    "T": "stopped",
    "t": "tracing-stop",
    "Z": "zombie",
    "X": "dead",
    "x": "dead",
    "I": "idle",
}
"""As psutil names them, which itself is only imported where something lives."""


def _read_linux(pid: str, booted: float) -> Proc | None:
    """A row from `stat` and `cmdline` (proc(5)); None for one that is gone or the kernel's own."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            head, _, rest = file.read().rpartition(b")")
        fields = rest.split()
        if int(fields[6]) & _KERNEL_THREAD:
            return None
        name = head.partition(b"(")[2].decode("utf-8", "replace")
        argv = _arguments(pid)
        if len(name) >= 15 and argv:
            # The kernel cuts names there; the command line may have the whole.
            whole = argv[0].rpartition("/")[2]
            name = whole if whole.startswith(name) else name
        return Proc(
            pid=int(pid),
            ppid=int(fields[1]),
            name=name,
            argv=argv,
            created=booted + int(fields[19]) / _TICKS,
            status=_STATUS.get(chr(fields[0][0]), ""),
        )
    except (OSError, ValueError, IndexError):
        return None


def _arguments(pid: str) -> tuple[str, ...]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            raw = file.read(MAX_ARGUMENT * 64)
    except OSError:
        return ()
    text = raw.decode("utf-8", "replace")
    if not text:
        return ()
    # A process that set its own title may end it without the mark, or with spaces within.
    words = text[:-1].split("\0") if text.endswith("\0") else text.split(" ")
    if len(words) == 1 and " " in words[0]:
        words = words[0].split(" ")
    return tuple(word[:MAX_ARGUMENT] for word in words[:MAX_ARGUMENTS])


def read_proc(process: psutil.Process) -> Proc | None:
    """The row of one process, or None where it is gone or a kernel thread."""
    import psutil

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
    import psutil

    try:
        files = psutil.Process(pid).open_files()
    except (psutil.Error, OSError, ValueError):
        return None
    return [(file.fd, file.path) for file in files if getattr(file, "mode", "w") not in ("r", "rb")]


def writes_to(pid: int, wanted: Container[tuple[int, int]]) -> bool:
    """Whether a process holds one of the files (device, inode) open for writing.

    Also where it sees it under another path, as in a container.
    """
    if sys.platform != "linux":
        for _, name in open_for_writing(pid) or ():
            try:
                info = Path(name).stat()
            except OSError:
                continue
            if (info.st_dev, info.st_ino) in wanted:
                return True
        return False
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
    except OSError:
        return False
    for descriptor in descriptors[:4096]:
        try:
            info = os.stat(f"/proc/{pid}/fd/{descriptor}")  # noqa: PTH116
            if (info.st_dev, info.st_ino) not in wanted:
                continue
            with open(f"/proc/{pid}/fdinfo/{descriptor}") as file:  # noqa: PTH123
                flags = next((line for line in file if line.startswith("flags:")), "flags: 1")
            if int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY:
                return True
        except (OSError, ValueError, IndexError):
            continue
    return False


def environment(pid: int, names: Iterable[str]) -> dict[str, str] | None:
    """The named variables a process was started with, and no others; None where not told."""
    import psutil

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
    if sys.platform == "linux":
        try:
            lines = Path("/proc/stat").read_text().splitlines()
            return identity, float(next(line for line in lines if line.startswith("btime"))[6:])
        except (OSError, ValueError, StopIteration):
            return identity, 0.0
    import psutil

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
