"""Finds the training jobs that run on this machine, and which of them a known job is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from trainwarden.evidence import commands
from trainwarden.evidence.openfiles import LOGGERS, TRACKERS, files_of, is_log
from trainwarden.evidence.proctable import (
    Proc,
    Table,
    ancestors,
    children_of,
    environment,
    mapped_libraries,
    open_for_writing,
    read_table,
    tree,
)
from trainwarden.records.base import isoformat
from trainwarden.records.hostile import clean, mask_command
from trainwarden.records.job import Job

ENOUGH = 3
"""A command's score (see `commands.training_score`) from which it counts as training."""
LIBRARIES = ("libtorch", "jaxlib", "xla_extension", "libtensorflow", "libpaddle", "libmxnet")
_HELPERS = LOGGERS | {"sleep", "cat", "grep", "sed", "awk", "tail", "head", "nvidia-smi", "date"}
RANK_NAMES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
WORLD_NAMES = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")


@dataclass(frozen=True)
class FoundJob:
    """A training job that runs on this machine. Paths are absolute, and as its processes see them.

    `pids` are the roots of its process tree: one, or the ranks that a launcher left behind.
    """

    pids: tuple[int, ...]
    command: str
    """Cleaned, with secrets masked."""
    why: str
    """What made it look like training."""
    launcher: str | None = None
    cwd: str | None = None
    config: str | None = None
    named: str | None = None
    """The config as the command names it, where the folder that is of may not be read."""
    model: str | None = None
    """A path, or a hub's name."""
    logs: tuple[str, ...] = ()
    """Files it (or what its output is piped into) holds open for writing; its output first."""
    trackers: tuple[str, ...] = ()
    gpus: tuple[int, ...] = ()
    processes: int = 1
    started: float = 0.0
    """Unix seconds."""

    @property
    def pid(self) -> int:
        """The root of its tree, or the first of several."""
        return self.pids[0]

    def to_json(self) -> dict[str, Any]:
        """Plain data, safe to show."""
        from datetime import datetime, timezone

        def shown(text: str | None) -> str | None:
            return None if text is None else clean(text, 4096)

        return {
            "pids": list(self.pids),
            "launcher": self.launcher,
            "command": self.command,
            "why": self.why,
            "cwd": shown(self.cwd),
            "config": shown(self.config),
            "model": shown(self.model),
            "logs": [shown(path) for path in self.logs],
            "trackers": [shown(path) for path in self.trackers],
            "gpus": list(self.gpus),
            "processes": self.processes,
            "started": isoformat(datetime.fromtimestamp(self.started, timezone.utc)),
        }


def find_jobs(*, gpus: bool = True, table: Table | None = None) -> list[FoundJob]:
    """All training jobs that run here, oldest first; one for each launcher, not for each worker.

    `gpus` also asks NVML which processes hold a GPU, which may take seconds.
    """
    table = read_table() if table is None else table
    holders = gpu_holders() if gpus else {}
    own = {os.getpid(), *(proc.pid for proc in ancestors(table, os.getpid()))}
    reasons = {
        pid: why
        for pid, proc in table.items()
        if pid not in own and not proc.zombie and (why := _reason(proc, holders))
    }
    jobs = [
        job
        for roots in _groups(table, reasons)
        if (job := _describe(table, roots, reasons, holders))
    ]
    return sorted(jobs, key=lambda job: job.started)


def find_for(root: Path, found: Sequence[FoundJob] | None = None) -> list[FoundJob]:
    """The jobs whose working folder, config, logs or trackers lie under `root`.

    Which processes hold a GPU is only asked where nothing else shows a job there.
    """
    base = _real(str(root))

    def under(jobs: Sequence[FoundJob]) -> list[FoundJob]:
        return [
            job
            for job in jobs
            if any(
                path and _within(_real(path), base)
                for path in (job.cwd, job.config, *job.logs, *job.trackers)
            )
        ]

    if found is not None:
        return under(found)
    return under(find_jobs(gpus=False)) or under(find_jobs())


def match_job(job: Job, found: Sequence[FoundJob]) -> FoundJob | None:
    """The running job that `job` is: by log, config and model; by folder where nothing else tells.

    None where none fits, or where several do and nothing tells which.
    """
    scored = [(score, candidate) for candidate in found if (score := _likeness(job, candidate))]
    if not scored:
        return None
    best = max(score for score, _ in scored)
    winners = [candidate for score, candidate in scored if score == best]
    return winners[0] if len(winners) == 1 else None


def gpu_holders() -> dict[int, tuple[int, ...]]:
    """Pid to the GPUs it computes on; empty where there is none or NVML cannot be asked."""
    try:
        from trainwarden.evidence.gpu_probe import probe_gpus

        devices = probe_gpus()["gpus"]
    except Exception:
        return {}
    holders: dict[int, set[int]] = {}

    def gather(node: Any, index: int) -> None:
        if isinstance(node, Mapping):
            pid = node.get("pid")
            if isinstance(pid, int):
                holders.setdefault(pid, set()).add(index)
            for item in node.values():
                gather(item, index)
        elif isinstance(node, (list, tuple)):
            for item in node:
                gather(item, index)

    for device in devices if isinstance(devices, list) else []:
        if isinstance(device, Mapping) and isinstance(device.get("index"), int):
            gather(device, device["index"])
    return {pid: tuple(sorted(indices)) for pid, indices in holders.items()}


def _reason(proc: Proc, holders: Mapping[int, tuple[int, ...]]) -> str:
    """Why a process counts as training; empty where it does not."""
    if not proc.argv:
        return ""
    launcher = commands.launcher_of(proc.argv)
    if launcher:
        return f"started by {launcher}"
    if commands.is_excluded(proc.argv):
        kernel = commands.parse(proc.argv).program.startswith("ipykernel")
        return "a notebook that holds a GPU" if kernel and proc.pid in holders else ""
    score = commands.training_score(proc.argv)
    if score >= ENOUGH:
        return "its command line is that of a training"
    python = commands.is_python(proc.argv)
    if proc.pid in holders and (python or _runs_python(proc.pid)):
        return "a Python process that holds a GPU"
    if not python:
        return ""
    if score:
        libraries = mapped_libraries(proc.pid, LIBRARIES)
        if libraries:
            return f"trains with {', '.join(sorted(libraries))}"
        if score >= 2 and any(is_log(path) for _, path in open_for_writing(proc.pid) or ()):
            return "takes training options and writes a log"
    return ""


def _runs_python(pid: int) -> bool:
    """Whether a process is an interpreter, whatever it calls itself (setproctitle)."""
    try:
        program = os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115
    except OSError:
        return False
    return commands.is_python([program.removesuffix(" (deleted)")])


def _groups(table: Table, reasons: Mapping[int, str]) -> list[list[int]]:
    """Roots of the trees of training processes; ranks of one world that were orphaned together."""
    roots: dict[int, None] = {}
    for pid in reasons:
        above = [proc.pid for proc in ancestors(table, pid) if proc.pid in reasons]
        roots[_climb(table, above[-1] if above else pid, reasons)] = None
    worlds: dict[tuple[str, ...], list[int]] = {}
    for pid in roots:
        world = environment(pid, WORLD_NAMES) if pid in reasons else None
        joint = world and len(world) > 2 and world.get("WORLD_SIZE", "1") != "1"
        key = tuple(f"{name}={world[name]}" for name in sorted(world)) if joint and world else ()
        worlds.setdefault(key or (str(pid),), []).append(pid)
    return list(worlds.values())


def _climb(table: Table, pid: int, reasons: Mapping[int, str]) -> int:
    """Up through what only serves to start this job: mpirun, srun, timeout, a shell's script."""
    children = children_of(table)
    while True:
        parent = table.get(table[pid].ppid)
        if parent is None or not parent.argv:
            return pid
        if commands.launcher_of(parent.argv, general=True) in (None, "ray"):
            if not commands.is_wrapper(parent.argv):
                return pid
            for sibling in children.get(parent.pid, ()):
                other = table[sibling]
                helper = not other.argv or PurePath(other.argv[0]).name in _HELPERS
                if sibling != pid and sibling not in reasons and not helper:
                    return pid
        pid = parent.pid


def _describe(
    table: Table,
    roots: Sequence[int],
    reasons: Mapping[int, str],
    holders: Mapping[int, tuple[int, ...]],
) -> FoundJob | None:
    family = tree(table, roots, [os.getpid()])
    living = [proc for proc in family if proc.argv and not proc.zombie]
    if not living:
        return None
    launchers = [proc for proc in living if commands.launcher_of(proc.argv)]
    trainers = [proc for proc in living if proc.pid in reasons and proc not in launchers]
    lead = (trainers or launchers or living)[0]
    speaking = [lead, *(proc for proc in living if proc in launchers)]
    cwd = _cwd(lead.pid)
    config = next((path for proc in speaking if (path := _config(proc, cwd))), None)
    model = next((name for proc in speaking if (name := commands.find_model(proc.argv))), None)
    if model is None and config:
        model = _model_in(config)
    if model and cwd and _is_dir(os.path.join(cwd, os.path.expanduser(model))):  # noqa: PTH111, PTH118
        model = _absolute(model, cwd)
    logs, trackers = files_of(table, living[:64])
    if cwd:
        inside = (os.path.join(cwd, name) for name in TRACKERS)  # noqa: PTH118
        trackers = list(dict.fromkeys([*trackers, *(path for path in inside if _is_dir(path))]))
    root = table[roots[0]]
    starter = (launchers or [root])[0]
    return FoundJob(
        pids=tuple(sorted(roots)),
        command=clean(" ".join(mask_command(lead.argv)), 500),
        why=(reasons.get(lead.pid) or reasons.get(root.pid, ""))
        + ("" if cwd else "; its folder and files may not be looked at by this user"),
        launcher=commands.launcher_of(starter.argv, general=True)
        or ("shell" if commands.is_wrapper(starter.argv) else None),
        cwd=cwd,
        config=config,
        named=None if config or cwd else _named_config(speaking),
        model=model,
        logs=tuple(logs),
        trackers=tuple(trackers),
        gpus=tuple(sorted({gpu for proc in family for gpu in holders.get(proc.pid, ())})),
        processes=len(living),
        started=min(proc.created for proc in living),
    )


def _config(proc: Proc, cwd: str | None) -> str | None:
    def is_file(path: str) -> bool:
        try:
            return Path(_absolute(path, cwd)).is_file()
        except (OSError, ValueError):
            return False

    named = commands.find_config(proc.argv, is_file)
    return _absolute(named, cwd) if named else None


def _named_config(procs: Sequence[Proc]) -> str | None:
    named = (commands.find_config(proc.argv, lambda _: True) for proc in procs)
    return next((name for name in named if name), None)


def _model_in(config: str) -> str | None:
    from trainwarden.evidence.config_files import ConfigError, load_config

    try:
        settings = load_config(Path(config))
    except ConfigError:
        return None
    for name in commands.MODEL_OPTIONS:
        value: Any = settings
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, Mapping):
            value = next(
                (
                    value[k]
                    for k in ("name_or_path", "path", "name")
                    if isinstance(value.get(k), str)
                ),
                None,
            )
        if isinstance(value, str) and value:
            return value
    return None


def _cwd(pid: int) -> str | None:
    import psutil

    try:
        return psutil.Process(pid).cwd() or None
    except (psutil.Error, OSError):
        return None


def _absolute(path: str, cwd: str | None) -> str:
    return os.path.normpath(os.path.join(cwd or os.sep, os.path.expanduser(path)))  # noqa: PTH111, PTH118


def _is_dir(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def _within(path: str, base: str) -> bool:
    return PurePath(path).is_relative_to(base)


def _likeness(job: Job, found: FoundJob) -> int:
    """How surely a running job is this one; 0 where it is not or nothing tells."""
    score = 0
    if {_real(path) for path in job.logs} & {_real(path) for path in found.logs}:
        score += 8
    for ours, theirs, weight in ((job.config, found.config, 4), (job.model, found.model, 2)):
        if ours and theirs:
            if ours == theirs or _real(ours) == _real(theirs):
                score += weight
            elif score < 8:
                return 0
    if score:
        return score
    if found.named and job.config:
        # Another user's: all that may be seen of it is what its command calls its config.
        parts = PurePath(os.path.normpath(found.named)).parts
        parts = tuple(part for part in parts if part not in ("..", os.sep))
        return int(bool(parts) and PurePath(_real(job.config)).parts[-len(parts) :] == parts)
    named = [path for path in (job.config, *job.logs) if path]
    nothing_told = (job.config is None or found.config is None) and found.cwd is not None
    if nothing_told and any(_within(_real(path), _real(found.cwd or "")) for path in named):
        return 1
    return 0
