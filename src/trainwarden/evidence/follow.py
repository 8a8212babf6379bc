"""Follow a growing file from where it last stood, through rotation, truncation and replacement."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import tempfile
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

from trainwarden.evidence import ahead, stores
from trainwarden.evidence.run_files import phase_of
from trainwarden.metrics.formats import LineFormat
from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.readers import HEAD, Reader, RunReader, reader_for, reader_from
from trainwarden.metrics.reading import Reading

CHUNK = 1 << 20
FINGERPRINT = 4096
CACHE_VERSION = 2
PACKED = frozenset({".gz", ".bz2", ".xz", ".zst", ".zip"})


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

    reader: Reader
    position: Position
    complete: bool = True
    """False where the time ran out before the end."""
    settled: bool = False
    """Whether the file had rested long enough for its last line to be taken as whole."""
    over: bool = False
    """Whether it had rested so long that nothing more is to be expected."""

    def reading(self) -> Reading:
        """What was read, a last line without an end included."""
        self.reader.finish(complete=self.settled, over=self.over)
        return self.reader.reading


def follow(
    path: Path,
    cached: Followed | None = None,
    formats: Sequence[LineFormat] | None = None,
    deadline: float | None = None,
) -> Followed:
    """Read what is new in `path` since `cached`; all of it without one. Raises OSError.

    `deadline` is of `time.monotonic`. A file rotated away (packed with gzip or not) is read to
    its end first where it is still there; one truncated or replaced by other content is read from
    its beginning. What is done with the file while it is read does not matter: it is opened once.
    """
    if stores.is_store(path):
        stored, whole = stores.follow(path, cached and cached.reader, deadline)
        return Followed(stored, Position(stored.position, 0, 0, "", 0), whole)
    if path.suffix in PACKED:
        raise OSError(errno.EINVAL, "a packed log: unpack it first", str(path))
    with path.open("rb") as stream:
        status = os.fstat(stream.fileno())
        start = 0
        head = stream.read(HEAD)
        reader = reader_for(str(path), head, formats, phase_of(path))
        if cached is not None and type(cached.reader) is type(reader):
            known, position = cached.reader, cached.position
            same_file = (status.st_ino, status.st_dev) == (position.inode, position.device)
            if status.st_size >= position.offset and _begins_alike(stream, position):
                reader, start = known, position.offset
                if not same_file:
                    reader.note("the file was replaced by a copy that goes on")
            elif (earlier := _rotated(path, position)) is not None:
                reader = known
                with _open(earlier) as old:
                    if not _read(old, reader, position.offset, deadline):
                        return Followed(
                            reader, replace(position, offset=reader.position), complete=False
                        )
                reader.next_file()
                reader.note(f"rotated: {earlier.name} was read to its end, then the new file")
            else:
                kind = "truncated" if same_file else "replaced"
                reader.note(f"the file was {kind}: it was read from its beginning")
        complete = _read(stream, reader, start, deadline)
        length = min(FINGERPRINT, stream.tell())
        digest = _fingerprint(stream, length)
    return Followed(
        reader,
        Position(reader.position, status.st_ino, status.st_dev, digest, length),
        complete,
    )


def _fingerprint(stream: IO[bytes], length: int) -> str:
    stream.seek(0)
    return hashlib.sha256(stream.read(length)).hexdigest()


def _begins_alike(stream: IO[bytes], position: Position) -> bool:
    return _fingerprint(stream, position.fingerprint_length) == position.fingerprint


def _open(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _rotated(path: Path, position: Position) -> Path | None:
    """The file that `path` was before it was rotated: renamed, copied, or packed."""
    if position.fingerprint_length == 0:
        return None
    try:
        siblings = sorted(path.parent.glob(f"{_escape(path.name)}?*"))
    except OSError:
        return None
    for other in siblings[:200]:
        try:
            if not other.is_file() or (
                other.suffix not in PACKED and other.stat().st_size < position.offset
            ):
                continue
            with _open(other) as stream:
                if _begins_alike(stream, position):
                    return other
        except (OSError, EOFError, zlib.error):
            continue
    return None


def _escape(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _read(stream: IO[bytes], reader: RunReader, start: int, deadline: float | None) -> bool:
    """Feed a file from `start` to its end; whether the end was reached."""
    stream.seek(start)
    if isinstance(reader, LogReader) and ahead.pays(stream, start):
        return ahead.read_ahead(stream, reader, deadline)
    while data := stream.read(CHUNK):
        reader.feed(data)
        if deadline is not None and time.monotonic() > deadline:
            return False
    return True


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
        "over": followed.over,
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
            reader_from(data["reader"], formats),
            Position(**data["position"]),
            settled=bool(data["settled"]),
            over=bool(data.get("over")),
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
