"""Which files the logs of a job are: in folders, by patterns, one a rank."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from pathlib import Path

from trainwarden.evidence import stores
from trainwarden.evidence.run_files import newest_run

LOG_SUFFIXES = (".log", ".out", ".txt", ".err", ".jsonl", ".csv", ".tsv", ".json")
MAX_FILES = 16
_STREAMS = ("files", "logs")
"""Folders of a run of W&B."""
_RANK = re.compile(
    r"(?i)(?:^|[^a-z])(?:rank|worker|proc|process|gpu|task|local|node)[_.-]?(\d+)(?!\d)|^(\d+)$"
)


def expand(logs: Iterable[Path]) -> list[Path]:
    """The files behind log paths: a folder's log files (newest first), a pattern's matches.

    Of the binary files in a folder (TensorBoard's, W&B's) and of stores of trackers those of the
    newest run are taken.
    """
    files: list[Path] = []
    for path in logs:
        if path.is_dir() and not stores.is_store(path):
            runs = newest_run(path)
            # What W&B keeps of the console beside its own record says nothing more.
            beside = "wandb" if any(run.suffix == ".wandb" for run in runs) else ""
            inside = [
                child
                for child in (*path.glob("*"), *path.glob("*/*"))
                if child.suffix in LOG_SUFFIXES
                and child.is_file()
                and _is_log(child)
                and not (beside and {beside, *_STREAMS} & set(child.parts))
            ]
            inside.sort(key=modified, reverse=True)
            files += inside[:MAX_FILES] + runs + stores.stores_in(path)
        elif not path.exists() and any(char in str(path) for char in "*?["):
            files += [Path(name) for name in sorted(glob.glob(str(path)))][:MAX_FILES]  # noqa: PTH207
        else:
            files.append(path)
    return list(dict.fromkeys(files))


def modified(path: Path) -> float:
    """When a file, or a store, was last written, in Unix seconds; 0 where it is gone."""
    if stores.is_store(path):
        return stores.written(path)
    try:
        return path.stat().st_mtime
    except OSError:  # gone since it was listed
        return 0.0


def _is_log(path: Path) -> bool:
    return path.suffix != ".json" or path.name in {"trainer_state.json", "metrics.json"}


def rank_of(path: Path) -> int | None:
    """Which process of a run a log is of, where its name or its folder's says so."""
    found = _RANK.search(path.stem) or _RANK.search(path.parent.name)
    return int(found[1] or found[2]) if found else None
