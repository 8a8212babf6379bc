"""Which files a job's processes write: logs and trackers, also through a pipe into `tee`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from trainwarden.evidence import commands
from trainwarden.evidence.proctable import (
    Proc,
    Table,
    ancestors,
    open_for_writing,
    pipe_of,
    read_table,
    writes_to,
)
from trainwarden.evidence.run_files import is_run_file
from trainwarden.evidence.stores import holds_runs

LOG_SUFFIXES = (".log", ".out", ".err", ".txt", ".jsonl", ".csv", ".tsv", ".ndjson")
TRACKERS = (
    "wandb",
    "runs",
    "mlruns",
    "lightning_logs",
    "tb_logs",
    "tensorboard",
    ".aim",
    "swanlog",
)
_NEVER_LOGS = (".pt", ".pth", ".bin", ".safetensors", ".ckpt", ".npy", ".npz", ".h5", ".db", ".idx")
LOGGERS = frozenset({"tee", "ts", "rotatelogs", "multilog", "svlogd"})


def writers_of(paths: Iterable[Path], table: Table | None = None) -> list[int]:
    """Processes that hold one of the files open for writing, or whose output is piped into them."""
    wanted = set()
    for path in paths:
        try:
            info = path.stat()
        except OSError:
            continue
        wanted.add((info.st_dev, info.st_ino))
    if not wanted:
        return []
    table = read_table() if table is None else table
    own = {os.getpid(), *(proc.pid for proc in ancestors(table, os.getpid()))}
    writers: set[int] = set()
    for pid, proc in table.items():
        if pid in own or proc.zombie or not proc.argv:
            continue
        if writes_to(pid, wanted):
            writers.add(pid)
    loggers = {pid for pid in writers if PurePath(table[pid].argv[0]).name in LOGGERS}
    pipes = {pipe for pid in loggers if (pipe := pipe_of(pid, 0))}
    if pipes:
        for pid in table:
            if pid not in own and {pipe_of(pid, 1), pipe_of(pid, 2)} & pipes:
                writers.add(pid)
        writers -= loggers
    shells = {pid for pid in writers if commands.is_shell(table[pid].argv)}
    return sorted(writers - shells or writers)


def files_of(table: Table, procs: Sequence[Proc]) -> tuple[list[str], list[str]]:
    """Logs (standard output first) and tracker folders held open by a job's processes."""
    output: list[str] = []
    errors: list[str] = []
    others: list[str] = []
    trackers: list[str] = []
    pipes = {pipe for proc in procs for n in (1, 2) if (pipe := pipe_of(proc.pid, n))}
    loggers = [
        proc
        for proc in table.values()
        if pipes and proc.argv and PurePath(proc.argv[0]).name in LOGGERS
    ]
    piped = [proc for proc in loggers if pipe_of(proc.pid, 0) in pipes]
    # What only the shell around it holds is the terminal's or a batch system's: the last choice.
    around = [proc for proc in procs if commands.is_shell(proc.argv)]
    inner = [proc for proc in procs if proc not in around and proc not in piped]
    for proc in [*inner, *piped, *around]:
        if proc in around and (output or errors):
            continue
        for descriptor, path in open_for_writing(proc.pid) or ():
            tracker = _tracker_of(path)
            if tracker:
                trackers.append(tracker)
            if descriptor in (1, 2) or proc in piped:
                # What `tee` is told to write is the run's; its own output may be anybody's.
                first = descriptor > 2 if proc in piped else descriptor == 1
                (output if first else errors).append(path)
            elif (
                is_run_file(PurePath(path).name)
                or holds_runs(Path(path))
                or (
                    is_log(path) and PurePath(tracker or "").name not in ("wandb", "mlruns", ".aim")
                )
            ):
                others.append(path)
    return list(dict.fromkeys(output + errors + others))[:64], list(dict.fromkeys(trackers))[:16]


def is_log(path: str) -> bool:
    """Whether a file is named like a log."""
    name = PurePath(path).name.lower()
    if name.endswith(_NEVER_LOGS):
        return False
    return name.endswith(LOG_SUFFIXES) or ".log." in name or name.startswith("slurm-")


def _tracker_of(path: str) -> str | None:
    parts = PurePath(path).parts
    for index, part in enumerate(parts[:-1]):
        if part in TRACKERS:
            return str(PurePath(*parts[: index + 1]))
    return str(PurePath(path).parent) if "tfevents" in parts[-1] else None
