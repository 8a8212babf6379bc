"""Follow a growing file from where it last stood, through rotation, truncation and replacement."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainwarden.metrics.formats import LineFormat
from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.reading import Reading

CHUNK = 1 << 20
FINGERPRINT = 4096
CACHE_VERSION = 1


@dataclass(frozen=True)
class Position:
    """Where reading stood: offset, the file it stood in, and how that file begins."""

    offset: int
    inode: int
    device: int
    fingerprint: str
    """SHA-256 of the first `fingerprint_length` bytes."""
    fingerprint_length: int


@dataclass
class Followed:
    """A reader brought up to the present, and where it stands now."""

    reader: LogReader
    position: Position
    complete: bool = True
    """False where the time ran out before the end."""
    settled: bool = False
    """Whether the file had rested long enough for its last line to be taken as whole."""

    def reading(self) -> Reading:
        """What was read, a last line without an end included."""
        self.reader.finish(complete=self.settled)
        return self.reader.reading


def fingerprint(path: Path, length: int) -> str:
    """SHA-256 of a file's first `length` bytes. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.sha256(stream.read(length)).hexdigest()


def follow(
    path: Path,
    cached: Followed | None = None,
    formats: Sequence[LineFormat] | None = None,
    deadline: float | None = None,
) -> Followed:
    """Read what is new in `path` since `cached`; all of it without one. Raises OSError.

    `deadline` is of `time.monotonic`. A file rotated away is read to its end first where it is
    still there; one truncated or replaced by other content is read from its beginning.
    """
    status = path.stat()
    start = 0
    reader = LogReader(str(path), formats)
    if cached is not None:
        known, position = cached.reader, cached.position
        same_file = (status.st_ino, status.st_dev) == (position.inode, position.device)
        if status.st_size >= position.offset and _begins_alike(path, position):
            reader, start = known, position.offset
            if not same_file:
                reader.note("the file was replaced by a copy that goes on")
        elif (earlier := _rotated(path, position)) is not None:
            reader = known
            if not _read(earlier, reader, position.offset, deadline)[0]:
                return Followed(reader, _replaced_offset(position, reader), complete=False)
            reader.next_file()
            reader.note(f"rotated: {earlier.name} was read to its end, then the new file")
        else:
            kind = "truncated" if same_file else "replaced"
            reader.note(f"the file was {kind}: it was read from its beginning")
    complete, length = _read(path, reader, start, deadline)
    length = min(FINGERPRINT, length)
    return Followed(
        reader,
        Position(reader.position, status.st_ino, status.st_dev, fingerprint(path, length), length),
        complete,
    )


def _replaced_offset(position: Position, reader: LogReader) -> Position:
    return Position(
        reader.position,
        position.inode,
        position.device,
        position.fingerprint,
        position.fingerprint_length,
    )


def _begins_alike(path: Path, position: Position) -> bool:
    return fingerprint(path, position.fingerprint_length) == position.fingerprint


def _rotated(path: Path, position: Position) -> Path | None:
    """The file that `path` was before it was rotated: renamed (same inode) or copied."""
    if position.fingerprint_length == 0:
        return None
    try:
        siblings = sorted(path.parent.glob(f"{_escape(path.name)}?*"))
    except OSError:
        return None
    for other in siblings[:200]:
        try:
            status = other.stat()
            if not other.is_file() or status.st_size < position.offset:
                continue
            if _begins_alike(other, position):
                return other
        except OSError:
            continue
    return None


def _escape(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _read(path: Path, reader: LogReader, start: int, deadline: float | None) -> tuple[bool, int]:
    """Feed a file from `start` to its end; whether the end was reached, and its length."""
    with path.open("rb") as stream:
        stream.seek(start)
        while data := stream.read(CHUNK):
            reader.feed(data)
            if deadline is not None and time.monotonic() > deadline:
                return False, stream.tell()
        return True, stream.tell()


# The cache ---------------------------------------------------------------------------------------


def cache_file(cache_dir: Path, job: str, path: Path) -> Path:
    """Where the reading of one log of a job is kept."""
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return cache_dir / f"{job}.{digest}.reading.json"


def save(file: Path, followed: Followed) -> None:
    """Write a reading atomically. Raises OSError."""
    data = {
        "version": CACHE_VERSION,
        "position": vars(followed.position),
        "settled": followed.settled,
        "reader": followed.reader.to_state(),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(data, stream, separators=(",", ":"))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load(file: Path, formats: Sequence[LineFormat] | None = None) -> Followed | None:
    """What `save` wrote, or None where there is nothing. Raises ValueError where it is damaged."""
    try:
        data: dict[str, Any] = json.loads(file.read_bytes())
        if data["version"] != CACHE_VERSION:
            raise ValueError(f"reading cache of version {data['version']!r}")
        return Followed(
            LogReader.from_state(data["reader"], formats),
            Position(**data["position"]),
            settled=bool(data["settled"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"{file}: {type(error).__name__}: {error}") from error


def set_aside(file: Path) -> None:
    """Keep a damaged cache beside its name, out of the way."""
    try:
        file.replace(file.with_suffix(f".corrupt-{int(time.time())}"))
    except OSError:
        return
