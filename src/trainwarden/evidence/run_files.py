"""Finds the binary files that runs leave: TensorBoard's event files, W&B's `run-*.wandb`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from trainwarden.metrics.names import canonical
from trainwarden.metrics.reading import Reading
from trainwarden.metrics.runs import join

BINARY = frozenset({"tfevents", "wandb"})
"""Formats of readings whose places are records, not lines."""
MAX_DEPTH = 5
MAX_ENTRIES = 20_000
MAX_FILES = 64
"""Files of one run: a restart each, times a few folders."""
_STAMP = re.compile(r"\d{10}\.\d+\Z")
"""A folder that `add_hparams` makes beside the run's event file."""
_HELD_OUT = frozenset({"val", "valid", "validation", "eval", "evaluation"})
"""What a copy is named by; not `test`, which is what runs that are tried out are called."""
_PASSED = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", "site-packages"})


def is_events(name: str) -> bool:
    """Whether a file is named like TensorBoard's."""
    return ".tfevents." in name and not name.endswith((".profile-empty", ".tmp"))


def is_run_file(name: str) -> bool:
    """Whether a file is named like a binary one of a run."""
    return is_events(name) or name.endswith(".wandb")


def newest_run(folder: Path) -> list[Path]:
    """Files of the run that was last written below a folder, of each tracker; oldest first."""
    groups: dict[str, list[Path]] = {}
    for path in _walk(folder):
        groups.setdefault(run_of(path), []).append(path)
    chosen: list[Path] = []
    for events in (True, False):
        some = [files for files in groups.values() if is_events(files[0].name) is events]
        if some:
            chosen += sorted(max(some, key=lambda files: max(map(_written, files))), key=_order)
    return chosen[-MAX_FILES:]


def phase_in(name: str) -> str | None:
    """The phase that a folder's name tells: `validation`, `eval_news`, `loss_train`."""
    return canonical(f"{name}/x")[1] or canonical(f"x/{name}")[1]


def _walk(folder: Path) -> Iterator[Path]:
    seen = 0
    top = len(folder.parts)
    for base, folders, files in os.walk(folder):
        here = Path(base)
        if len(here.parts) - top >= MAX_DEPTH:
            folders.clear()
        folders[:] = sorted(name for name in folders if name not in _PASSED)
        seen += len(files) + len(folders)
        if seen > MAX_ENTRIES:
            return
        yield from (here / name for name in files if is_run_file(name))


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # gone since it was listed
        return 0.0


def _order(path: Path) -> tuple[str, str]:
    """Event files carry the time in their name, W&B's in their folder's."""
    return str(path.parent), path.name


def run_of(path: Path) -> str:
    """A name for the run that a file belongs to: files of one run have the same."""
    if path.name.endswith(".wandb"):
        # wandb/run-<time>-<id>/run-<id>.wandb: resumed, the run has the same id.
        return f"{path.parent.parent}/{path.name}"
    folder = path.parent
    return f"{folder.parent if _is_part(str(folder)) else folder}/"


def phase_of(path: Path) -> str | None:
    """`eval` where a file's folder holds what its run evaluates: `validation` beside `train`.

    A copy may be named by it: `run7-validation.tfevents`. Writers begin a name with `events.out`.
    """
    folder = path.parent
    name, events, _ = path.name.partition(".tfevents")
    if events:
        words = re.split(r"[._-]", name.lower())
        if _HELD_OUT & {words[0], words[-1]}:
            return "eval"
    if is_events(path.name) and phase_in(folder.name) == "eval" and _is_part(str(folder)):
        return "eval"
    return None


@lru_cache(maxsize=1024)
def _is_part(folder: str) -> bool:
    """Whether a folder holds a part of the run of the folder around it."""
    here = Path(folder)
    around = here.parent
    if _STAMP.match(here.name):
        return _has_events(around)
    if phase_in(here.name) is not None:
        return _has_events(around) or any(
            _has_events(around / name)
            for name in _names(around)
            if name != here.name and phase_in(name) is not None
        )
    return "_" in here.name and _has_events(around) and here.name.startswith(_head(here))


def _head(folder: Path) -> str:
    """How `add_scalars` begins the name of a folder for what it writes there: as the tag."""
    from trainwarden.metrics.binary.tfevents import first_tag

    for name in _names(folder):
        if is_events(name):
            try:
                with (folder / name).open("rb") as file:
                    tag = first_tag(file.read(4096))
            except OSError:
                continue
            if tag:
                return tag.replace("/", "_") + "_"
    return "\0"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:MAX_ENTRIES]  # noqa: PTH208
    except OSError:
        return []


def _has_events(folder: Path) -> bool:
    return any(is_events(name) for name in _names(folder))


def joined(readings: Sequence[tuple[Path, Reading]]) -> list[tuple[Path, Reading]]:
    """Readings of files, those of one run as one, under the path of the file that it is named by.

    Files that are no binary ones each stay by themselves.
    """
    runs: dict[str, list[tuple[Path, Reading]]] = {}
    for path, reading in readings:
        key = run_of(path) if reading.format in BINARY else str(path)
        runs.setdefault(key, []).append((path, reading))
    found: list[tuple[Path, Reading]] = []
    for group in runs.values():
        group.sort(key=lambda item: _order(item[0]))
        whole = join([reading for _path, reading in group])
        named = next((path for path, _reading in group if str(path) == whole.file), group[-1][0])
        found.append((named, whole))
    return found


def companions(file: Path, others: Iterable[str]) -> list[str]:
    """Which of `others` are files of the same run as `file`, itself included; oldest first."""
    if not is_run_file(file.name):
        return [str(file)]
    run = run_of(file)
    same = {Path(other) for other in others if is_run_file(other) and run_of(Path(other)) == run}
    return [str(path) for path in sorted({*same, file}, key=_order)]
