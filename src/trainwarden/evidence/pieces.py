"""The files that one log lies in: rotated and packed ones, and those of a launcher's attempts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from trainwarden.evidence.packed import SUFFIXES, open_log
from trainwarden.evidence.run_files import is_run_file
from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.reading import Reading

MAX_PIECES = 200
"""Files of one log that are read, the newest of them."""
SUCCESSORS = 3
"""Files in which is looked for what stood in a newer one."""
MAX_NAMES = 20_000
HEAD = 64 << 10
"""Bytes from which is told whether a file goes on where another ended."""
SLACK = 60.0
"""Seconds by which times of files may be off: they are copied one after another."""
_DATE = (
    r"(?:19|20)\d\d-?[01]\d-?[0-3]\d"
    r"(?:[-_.T ]?[0-2]\d(?:[-:_h]?[0-5]\d(?:[-:_m]?[0-5]\d(?:[._-]\d{1,6})?)?)?|-\d{10})?"
)
_AGE = rf"[._-](?:(?P<date>{_DATE}|\d{{10}})|(?<=[.])(?P<number>\d{{1,4}})|(?P<old>old|prev|bak))"
_AFTER = re.compile(rf"(?P<stem>.+?){_AGE}")
_INSIDE = re.compile(rf"(?P<stem>.+?){_AGE}(?P<end>\.[A-Za-z]\w{{0,9}})")
_ATTEMPT = re.compile(r"(attempt_)(\d+)")


class Age(NamedTuple):
    """Of which log a file is a piece, by its name, and how old a piece: greater is newer."""

    log: str
    rank: tuple[int, int | str]
    dated: bool


@lru_cache(maxsize=4096)
def ages_of(name: str) -> tuple[Age, ...]:
    """What a name may mean, beside a log of its own: `train.log.2.gz`, `train-20260101.log`."""
    packed = name.endswith(SUFFIXES)
    if packed:
        name = name[: name.rindex(".")]
    found = [Age(name, (2, 0), False)] if packed else []
    for pattern in (_AFTER, _INSIDE):
        match = pattern.fullmatch(name)
        if match is None:
            continue
        log = match["stem"] + (match["end"] if pattern is _INSIDE else "")
        if match["date"]:
            found.append(Age(log, (0, re.sub(r"\D", "", match["date"]).ljust(20, "0")), True))
        else:
            found.append(Age(log, (1, -int(match["number"] or 0)), False))
    return tuple(found)


def pieces_of(path: Path) -> list[Path]:
    """The files that a log lies in, oldest first, `path` itself last where it exists."""
    own = [path] if path.exists() else []
    if is_run_file(path.name) or (own and not path.is_file()):
        return own
    if earlier := _earlier_attempts(path):
        return [*(piece for log in earlier for piece in _rotated(log)), *_rotated(path)]
    return _rotated(path)


def successors(path: Path) -> list[Path]:
    """Where the text of a log's file may lie now, if the log was rotated or packed since."""
    found: dict[Path, None] = {}
    for log in (path, *(path.with_name(age.log) for age in ages_of(path.name))):
        pieces = pieces_of(log)
        older = pieces[: pieces.index(path)] if path in pieces else pieces
        found |= dict.fromkeys(older[::-1][:SUCCESSORS])
    return [piece for piece in found if piece != path]


def attempt_of(path: Path) -> int | None:
    """Which attempt of its launcher wrote a log, where its folders say so."""
    match = next((m for folder in path.parents[:3] if (m := _ATTEMPT.fullmatch(folder.name))), None)
    return int(match[2]) if match else None


def logs_among(paths: Iterable[Path]) -> list[Path]:
    """The logs that some files are of, in order: pieces of a log that is among them are left out.

    Pieces of a log that is not there any more (all are packed, say) stand for it.
    """
    listed = list(dict.fromkeys(paths))
    pieces = {piece for path in listed for piece in pieces_of(path) if piece != path}
    return [path for path in listed if path not in pieces]


def _earlier_attempts(path: Path) -> list[Path]:
    """Logs of the same process in earlier attempts of its launcher, oldest first."""
    for depth, folder in enumerate(path.parents[:3]):
        match = _ATTEMPT.fullmatch(folder.name)
        if match and depth:
            rest = path.relative_to(folder)
            earlier = (folder.with_name(f"{match[1]}{n}") / rest for n in range(int(match[2])))
            return [log for log in earlier if log.is_file()][-MAX_PIECES:]
    return []


def _rotated(path: Path) -> list[Path]:
    """A log's own file, and before it those that were rotated away."""
    own = [path] if path.is_file() else []
    found: dict[tuple[int, int | str], list[tuple[Path, Age]]] = {}
    for name in _names(path.parent):
        if name != path.name and name.startswith(path.stem):
            for age in ages_of(name):
                if age.log == path.name:
                    found.setdefault(age.rank, []).append((path.parent / name, age))
    older: list[Path] = []
    newer = own[-1] if own else None
    for rank in sorted(found, reverse=True)[:MAX_PIECES]:
        # While it is packed, a piece is there twice: as it was, and what is packed so far.
        piece, age = min(found[rank], key=lambda item: item[0].name.endswith(SUFFIXES))
        if not piece.is_file():
            continue
        if newer is None or age.dated or _comes_before(piece, newer):
            older.append(piece)
            newer = piece
    if not older and own:
        older = _dated_before(path)
    return [*older[::-1], *own]


def _dated_before(path: Path) -> list[Path]:
    """Logs named by earlier dates that go on in this one, where no log has the plain name.

    Newest first. Runs that each have a log named by their date begin anew in it.
    """
    ages = [age for age in ages_of(path.name) if age.dated]
    if not ages or (path.parent / ages[0].log).exists():
        return []
    log, rank, _ = ages[0]
    found = [
        (age.rank, path.parent / name)
        for name in _names(path.parent)
        for age in ages_of(name)
        if age.dated and age.log == log and age.rank < rank
    ]
    older: list[Path] = []
    newer = path
    for _rank, piece in sorted(found, reverse=True)[:MAX_PIECES]:
        if not _goes_on(piece, newer):
            break
        older.append(piece)
        newer = piece
    return older


def _goes_on(older: Path, newer: Path) -> bool:
    """Whether the steps of one file follow on those of another."""
    before, after = _head(older), _head(newer)
    if before is None or after is None:
        return False
    steps = sorted(point[0] for point in _points(before))
    begun = [point[0] for point in _points(after)]
    return bool(steps and begun) and begun[0] > steps[len(steps) // 2]


def _comes_before(older: Path, newer: Path) -> bool:
    """Whether a file may be an older piece of the log that another one is of, its times say.

    Where a name that is taken gets a number, the file with the number is the newer one.
    """
    before, after = _head(older), _head(newer)
    if before is None or after is None:
        return True  # its name says so, and what is wrong with it is told when it is read
    if after.bytes == 0:
        return True
    if before.first_time is not None and after.first_time is not None:
        return before.first_time <= after.first_time
    if _goes_on(older, newer):
        return True
    try:
        return older.stat().st_mtime <= newer.stat().st_mtime + SLACK
    except OSError:
        return False


def _points(reading: Reading) -> list[tuple[float, float]]:
    longest = max(reading.series.values(), key=lambda one: one.count, default=None)
    return [(point.step, point.value) for point in longest.points()] if longest else []


def _head(path: Path) -> Reading | None:
    """What the beginning of a file tells; None where it cannot be read."""
    try:
        status = path.stat()
        return _read_head(path, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError:
        return None


@lru_cache(maxsize=512)
def _read_head(path: Path, *_as_it_is: int) -> Reading:
    with open_log(path) as stream:
        reader = LogReader(str(path))
        reader.feed(stream.read(HEAD))
        return reader.reading


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry, _ in zip(entries, range(MAX_NAMES), strict=False))
    except OSError:
        return []
