"""Which files the logs of a job are: in folders and by patterns, without their older pieces."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from trainwarden.evidence import stores
from trainwarden.evidence.packed import SUFFIXES
from trainwarden.evidence.pieces import ages_of, logs_among, pieces_of
from trainwarden.evidence.ranks import launched, process_of
from trainwarden.evidence.run_files import newest_run

LOG_SUFFIXES = (".log", ".out", ".txt", ".err", ".jsonl", ".csv", ".tsv", ".json")
MAX_FILES = 16
"""Logs of a folder or a pattern; those of one run's ranks count once."""
MAX_RANKS = 256
"""Logs of one run's ranks."""
_STREAMS = ("files", "logs")
"""Folders of a run of W&B."""
_LAID_OUT = (
    "*",
    "*/*",
    "attempt_*/*/std*.log*",
    "*/attempt_*/*/std*.log*",
    "*/*/attempt_*/*/std*.log*",
    "*/rank.*/std*",
)
"""Where logs lie below a folder: torchrun's and Open MPI's lie deeper than others."""
_CALLED = re.compile(r"(?i)(?:^|[._-])(?:logs?|stdout|stderr)(?:[._-]|$)")


def expand(logs: Iterable[Path]) -> list[Path]:
    """The files behind log paths: a folder's log files (newest first), a pattern's matches.

    What was rotated away is left out where its log is there: it is read with that. Of the binary
    files in a folder (TensorBoard's, W&B's) and of stores of trackers those of the newest run are
    taken, and so are those of what a launcher started.
    """
    files: list[Path] = []
    for path in logs:
        if path.is_dir() and not stores.is_store(path):
            runs = newest_run(path)
            # What W&B keeps of the console beside its own record says nothing more.
            beside = "wandb" if any(run.suffix == ".wandb" for run in runs) else ""
            inside = logs_among(
                child
                for pattern in _LAID_OUT
                for child in path.glob(pattern)
                if _is_log(child)
                and child.is_file()
                and not (beside and {beside, *_STREAMS} & set(child.parts))
            )
            inside.sort(key=modified, reverse=True)
            files += _bounded(inside) + runs + stores.stores_in(path)
        elif not path.exists() and any(char in str(path) for char in "*?["):
            files += _bounded(logs_among(map(Path, sorted(glob.glob(str(path))))))  # noqa: PTH207
        else:
            files.append(path)
    return logs_among(files)


def _bounded(logs: Sequence[Path]) -> list[Path]:
    """As many logs as are read, in order; of what a launcher started the newest run's."""
    groups: dict[str, list[Path]] = {}
    newest = ""
    for log in logs:
        process = process_of(log)
        run = process.run if process else str(log)
        if launched(log):
            newest = newest or run
            if run != newest:
                continue
        groups.setdefault(run, []).append(log)
    found: list[Path] = []
    for group in list(groups.values())[:MAX_FILES]:
        ranked = [(one.rank if (one := process_of(log)) else 0, log) for log in group]
        kept = {log for _, log in sorted(ranked)[:MAX_RANKS]}
        found += [log for log in group if log in kept]
    return found


def modified(path: Path) -> float:
    """When a file, or a store, was last written, in Unix seconds; 0 where it is gone."""
    if stores.is_store(path):
        return stores.written(path)
    try:
        return path.stat().st_mtime
    except OSError:  # rotated away, or gone since it was listed
        return max((modified(piece) for piece in pieces_of(path)), default=0.0)


def _is_log(path: Path) -> bool:
    if path.suffix == ".json":
        return path.name in {"trainer_state.json", "metrics.json"}
    if path.suffix in LOG_SUFFIXES or path.name in {"stdout", "stderr"}:
        return True
    # Data is packed as well, and has numbers; so here only what is named as a log is one.
    names = [path.name, *(age.log for age in ages_of(path.name))]
    if path.suffix in SUFFIXES or len(names) > 1:
        return any(
            name.endswith((".log", ".out", ".err")) or _CALLED.search(name) for name in names
        )
    return _CALLED.search(path.name) is not None and process_of(path) is not None
