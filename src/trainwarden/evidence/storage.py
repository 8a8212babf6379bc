"""Disks of the run's folders, how long they last, and the checkpoints on them."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from trainwarden.evidence.base import Look, Target, absent
from trainwarden.evidence.checkpoints import Checkpoint, Scan, scan
from trainwarden.evidence.config import training_facts
from trainwarden.evidence.rows import unix_seconds
from trainwarden.records.hostile import clean
from trainwarden.records.observation import Place, SourceReport, Trust

SHORTEST_SPAN = 60.0
"""Seconds of history from which a disk's growth is told."""


class StorageSource:
    """Free space, inodes and time until full; checkpoints with sizes, ages and what is broken."""

    name: ClassVar[str] = "storage"
    trust: ClassVar[Trust] = Trust.PROCESS
    timeout: ClassVar[float] = 10.0

    def read(self, target: Target) -> SourceReport:
        """Look once; a folder that cannot be read is named in the report's message."""
        if not target.live:
            return absent(self, "a replay: the run's disks are not looked at")
        begun = time.perf_counter()
        folders = run_folders(target)
        look = _Look(self.name, self.trust, target.now())
        if not folders:
            look.disks([target.root], Scan(), target.earlier, rotated=False)
            unknown = "no log or checkpoint folder of this run is known: the root's disk was read"
            return SourceReport(
                source=self.name,
                trust=self.trust,
                status="partial" if look.found else "failed",
                message="; ".join([unknown, *look.problems]),
                seconds=time.perf_counter() - begun,
                observations=tuple(look.found),
            )
        now = look.now.timestamp()
        kept = [folder for folder in folders if _is_folder(folder, look.problems)]
        missing = [
            f"{_shown(folder)} does not exist (yet)" for folder in folders if folder not in kept
        ]
        known = bool(target.pids) or any(row.get("pids") for row in target.earlier)
        alive = bool(target.census.living(target)) or not known
        # A log's folder may hold the checkpoints of other runs: it is the second choice.
        saving = [folder for folder in saving_folders(target) if _is_folder(folder, [])]
        found = scan(saving, now, may_be_writing=alive)
        if not found.checkpoints:
            found = scan(kept, now, may_be_writing=alive)
        look.problems += [clean(note, 200) for note in found.notes]
        look.checkpoints(found, kept)
        limited = bool(_last(training_limit(target.config)))
        look.disks(kept or [target.root], found, target.earlier, rotated=limited)
        return SourceReport(
            source=self.name,
            trust=self.trust,
            status="partial" if look.problems else "ok",
            message="; ".join([*look.problems, *missing]),
            seconds=time.perf_counter() - begun,
            observations=tuple(look.found),
        )

    @staticmethod
    def sample_row(report: SourceReport) -> dict[str, Any]:
        """What a later session needs: free bytes and on which folder's disk, newest checkpoint."""
        row: dict[str, Any] = {}
        for seen in report.observations:
            if seen.quantity == "disk.free" and "disk_free" not in row:
                row["disk_free"] = seen.value
                row["disk_folder"] = seen.subject
            elif seen.quantity in ("checkpoint.step", "checkpoint.count", "checkpoint.size"):
                row[seen.quantity.replace(".", "_")] = seen.value
        return row


def saving_folders(target: Target) -> list[Path]:
    """Where the run saves: the folders given, else the config's output folder."""
    if target.checkpoint_dirs:
        return [_absolute(folder, target) for folder in target.checkpoint_dirs]
    output = training_facts(target.config).output_dir
    return [_absolute(Path(output), target)] if output else []


def run_folders(target: Target) -> tuple[Path, ...]:
    """Where the run saves, then the logs' folders; one within another is left out."""
    folders = saving_folders(target)
    folders += [_absolute(log, target).parent for log in target.logs]
    unique = list(dict.fromkeys(folders))
    return tuple(
        folder
        for folder in unique
        if not any(other in folder.parents for other in unique if other != folder)
    )


def training_limit(config: Mapping[str, Any]) -> tuple[Any, ...]:
    """Settings that let a trainer delete old checkpoints, as it may then never fill the disk."""
    from trainwarden.evidence.config_facts import flatten

    names = {"save_total_limit", "keep_latest_k", "max_to_keep", "save_top_k", "keep_last",
             "keep_checkpoint_max", "max_keep_ckpts", "save_num_checkpoints_to_keep",
             "max_ckpt_to_keep", "checkpoint_history"}  # fmt: skip
    return tuple(
        value
        for key, value in flatten(config).items()
        if key.rpartition(".")[2].replace("-", "_").lower() in names
    )


def _last(values: Sequence[Any]) -> bool:
    return any(
        isinstance(value, int) and not isinstance(value, bool) and value > 0 for value in values
    )


def _absolute(path: Path, target: Target) -> Path:
    """A relative path is of the root, or of the config's folder where only that has it."""
    with contextlib.suppress(RuntimeError):
        path = path.expanduser()
    if path.is_absolute():
        return path
    inside = target.root / path
    if not _is_folder(inside, []) and target.job.config:
        beside = Path(target.job.config).parent / path
        if _is_folder(beside, []):
            return beside
    return inside.resolve()


def _is_folder(path: Path, problems: list[str]) -> bool:
    """Whether it is there; one that is there but can't be reached is a problem (a stale mount)."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        problems.append(f"{_shown(path)}: {getattr(error, 'strerror', None) or error}")
        return False


def time_until_full(
    free: float, now: float, earlier: Iterable[tuple[float, float]]
) -> float | None:
    """Seconds until `free` bytes are used up at the pace of the (Unix seconds, free) before.

    The pace is the median slope between all pairs (Theil-Sen) of the last 20 samples; None where
    they span less than a minute or the disk does not fill.
    """
    samples = sorted({*earlier, (now, free)})[-20:]
    if len(samples) < 2 or samples[-1][0] - samples[0][0] < SHORTEST_SPAN:
        return None
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(samples, 2) if b[0] > a[0]]
    pace = median(slopes) if slopes else 0.0
    return free / -pace if pace < 0 else None


class _Look(Look):
    def add(
        self,
        quantity: str,
        value: float | int | bool,
        unit: str | None,
        subject: Path,
        *,
        stat: str = "last",
        text: str | None = None,
        file: Path | None = None,
        api: str | None = None,
        step: int | None = None,
    ) -> None:
        place = Place(file=str(file) if file else None, api=api)
        about = _shown(subject)
        self.saw(quantity, value, unit, place, stat=stat, text=text, subject=about, step=step)

    def disks(
        self,
        folders: Sequence[Path],
        found: Scan,
        earlier: Sequence[Mapping[str, Any]],
        *,
        rotated: bool,
    ) -> None:
        """One set of observations for each file system that holds a folder of the run."""
        seen: set[int] = set()
        for folder in folders:
            try:
                device = folder.stat().st_dev
                if device in seen:
                    continue
                space = os.statvfs(folder)
            except OSError as error:
                self.problems.append(f"{_shown(folder)}: {error.strerror}")
                continue
            seen.add(device)
            free = space.f_bavail * space.f_frsize
            self.add("disk.free", free, "bytes", folder, api="statvfs")
            self.add("disk.total", space.f_blocks * space.f_frsize, "bytes", folder, api="statvfs")
            if space.f_files:  # some file systems have no fixed number
                self.add("disk.inodes_free", space.f_favail, None, folder, api="statvfs")
            if space.f_flag & os.ST_RDONLY:
                text = "mounted read-only: nothing can be saved there"
                self.add("disk.read_only", True, None, folder, api="statvfs", text=text)
            self._full_in(folder, free, found, earlier, rotated=rotated)

    def _full_in(
        self,
        folder: Path,
        free: int,
        found: Scan,
        earlier: Sequence[Mapping[str, Any]],
        *,
        rotated: bool,
    ) -> None:
        past = [
            (moment, float(row["disk_free"]))
            for row in earlier
            if isinstance(row.get("disk_free"), (int, float))
            and row.get("disk_folder", _shown(folder)) == _shown(folder)
            and (moment := unix_seconds(row.get("time"))) is not None
        ]
        measured = time_until_full(free, self.now.timestamp(), past)
        if measured is not None:
            text = f"at the pace of {len(past)} earlier sessions"
            self.add("disk.full_in", round(measured, 1), "s", folder, stat="growth", text=text)
            return
        interval, newest = found.interval(), found.whole[-1:]
        if past or rotated or interval is None or not newest or len(found.checkpoints) < 3:
            return
        if folder not in (newest[0].path, *newest[0].path.parents) or newest[0].size == 0:
            return
        if interval < 1.0:
            return  # files that were copied here, not saved
        seconds = free / newest[0].size * interval
        text = f"if a checkpoint of {newest[0].size} bytes every {interval:.0f} s is kept each time"
        self.add("disk.full_in", round(seconds, 1), "s", folder, stat="growth", text=text)

    def checkpoints(self, found: Scan, folders: Sequence[Path]) -> None:
        """Count, newest, interval and what is broken."""
        saved = [one for one in found.checkpoints if not one.leftover]
        if not folders:
            return
        newest = saved[-1] if saved else None
        subject = newest.path.parent if newest else folders[0]
        sure = not any("stopped" in note for note in found.notes)
        if saved or sure:
            self.add("checkpoint.count", len(saved), None, subject, api="scandir")
        if newest:
            name = clean(newest.path.name, 120)
            now = " (being written)" if newest.writing else ""
            self.add(
                "checkpoint.age", round(max(0.0, self.now.timestamp() - newest.modified), 1), "s",
                subject, file=newest.path, text=f"{name}{now}", step=newest.step,
            )  # fmt: skip
            self.add(
                "checkpoint.size", newest.size, "bytes", subject, file=newest.path,
                text=f"{name}{now}", step=newest.step,
            )  # fmt: skip
            if newest.step is not None:
                self.add(
                    "checkpoint.step", newest.step, None, subject, file=newest.path, text=name,
                    step=newest.step,
                )  # fmt: skip
        interval = found.interval()
        if interval is not None:
            steps = found.step_interval()
            text = f"every {steps} steps" if steps else None
            self.add(
                "checkpoint.interval", round(interval, 1), "s", subject, stat="median", text=text,
                api="st_mtime",
            )  # fmt: skip
        if found.checkpoints:
            self._incomplete(found, saved, subject)

    def _incomplete(self, found: Scan, saved: Sequence[Checkpoint], subject: Path) -> None:
        broken = found.incomplete[::-1]
        told = "; ".join(
            f"{clean(one.path.name, 80)}: {clean(', '.join(one.problems[:2]), 160)}"
            for one in broken[:5]
        )
        more = f"; and {len(broken) - 5} more" if len(broken) > 5 else ""
        self.add(
            "checkpoint.incomplete", len(broken), None, subject, text=(told + more) or None,
            file=broken[0].path if broken else None, step=broken[0].step if broken else None,
        )  # fmt: skip
        whole = found.whole
        if saved and saved[-1].problems and whole:
            last = whole[-1]
            self.add(
                "checkpoint.whole_age", round(max(0.0, self.now.timestamp() - last.modified), 1),
                "s", subject, file=last.path, step=last.step,
                text=f"{clean(last.path.name, 120)} is the newest that is whole",
            )  # fmt: skip


def _shown(path: Path) -> str:
    return clean(str(path), 200)
