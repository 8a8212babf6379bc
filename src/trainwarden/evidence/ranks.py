"""Which process of a run a log is of, as its name or the folders of its launcher say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from trainwarden.evidence.packed import SUFFIXES
from trainwarden.metrics.reading import Reading

_WORD = r"(?:rank|worker|proc|process|gpu|task|local|node)"
_NAMED = re.compile(rf"(?i)(?:^|[^a-z]){_WORD}[_.-]?(\d+)(?!\d)")
_ALONE = re.compile(r"(\d{1,5})")
_TASK = re.compile(r"(?!slurm-)(.*\d{3,}[_.-])(\d{1,4})")
"""Slurm's `%j_%t`. Its own name for tasks of an array, a run each, is `slurm-%A_%a`."""
_ATTEMPT = re.compile(r"attempt_\d+")
ALIKE = 0.02
"""By how much of it values of two ranks may differ that are averaged over both."""


class Process(NamedTuple):
    """A process of a run: those of one run have the same `run`."""

    run: str
    rank: int
    sure: bool = True
    """Whether the name leaves no doubt; else the logs must tell the same."""


def process_of(path: Path) -> Process | None:
    """The process that a log is of; None where nothing says that it is one of several."""
    folder, name = path.parent, path.name
    if name.endswith(SUFFIXES):
        name = name[: name.rindex(".")]
    stem = re.sub(r"\.(?:log|out|err|txt|jsonl)$", "", name)
    if match := _NAMED.search(stem):
        return Process(f"{folder}/{stem[: match.start(1)]}*{stem[match.end(1) :]}", int(match[1]))
    if _ALONE.fullmatch(folder.name) and _ATTEMPT.fullmatch(folder.parent.name):
        return Process(f"{folder.parent.parent}/", int(folder.name))
    if match := _NAMED.search(folder.name):
        start, end = match.span(1)
        return Process(f"{folder.parent}/{folder.name[:start]}*{folder.name[end:]}/", int(match[1]))
    if _ALONE.fullmatch(folder.name):
        return Process(f"{folder.parent}/*/", int(folder.name), sure=False)
    if match := _ALONE.fullmatch(stem):
        return Process(f"{folder}/*", int(match[1]), sure=False)
    if match := _TASK.fullmatch(stem):
        return Process(f"{folder}/{match[1]}*", int(match[2]), sure=False)
    return None


def rank_of(path: Path) -> int | None:
    """The number of the process of a run that a log is of, where its name says so for sure."""
    process = process_of(path)
    return process.rank if process and process.sure else None


def launched(path: Path) -> bool:
    """Whether a log lies where a launcher puts those of its processes: torchrun, Open MPI."""
    return _ATTEMPT.fullmatch(path.parent.parent.name) is not None or (
        path.parent.name.startswith("rank.") and path.name.startswith("std")
    )


def distinct(paths: Sequence[Path]) -> dict[Path, str]:
    """The shortest ends of paths that tell them apart: names, where those do."""
    found: dict[Path, str] = {}
    for path in paths:
        same = [other for other in paths if other.name == path.name and other != path]
        depth = 1
        while depth < len(path.parts) and any(
            other.parts[-depth:] == path.parts[-depth:] for other in same
        ):
            depth += 1
        found[path] = "/".join(path.parts[-depth:])
    return found


def beside(main: Reading, others: Iterable[Reading]) -> list[Reading]:
    """Those of some readings that are of other processes of the run that a reading is of."""
    own = process_of(Path(main.file))
    if own is None:
        return []
    found = []
    for other in others:
        process = process_of(Path(other.file))
        if process is not None and process.run == own.run and (own.sure or tell_alike(main, other)):
            found.append(other)
    return found


def tell_alike(one: Reading, other: Reading) -> bool:
    """Whether two logs may be of one run: the same losses at the same steps, or none in one."""
    if "loss" not in one.series or "loss" not in other.series:
        return True
    values = {point.step: point.value for point in one.series["loss"].points()}
    pairs = [
        (values[point.step], point.value)
        for point in other.series["loss"].points()
        if point.step in values
    ]
    near = sum(abs(a - b) <= ALIKE * max(abs(a), abs(b)) for a, b in pairs)
    return bool(pairs) and near >= 0.9 * len(pairs)
