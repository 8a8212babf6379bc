"""SQLite files that others write, read without a trace: no lock that is held, no file beside them.

A file with a rollback journal is opened read-only, and each query holds its lock for
milliseconds. With a write-ahead log even a reader makes files and keeps the writer from folding the
log in, so such a file is read as if it could not change, and again where it did. What a writer
has not folded in, or left when it was killed, is read from a private copy.
"""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

MAGIC = b"SQLite format 3\0"
LARGEST_COPY = 4 << 30
_BUSY = 0.5
"""Seconds to wait for a writer's lock."""
_TRIES = 8
_TICK = 20_000_000
_WAL = 2
_SALTS = slice(16, 24)


class TimeUp(Exception):
    """The time that there was for reading is over."""


def is_sqlite(path: Path) -> bool:
    """Whether a file is of SQLite."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def besides(path: Path) -> tuple[Path, Path]:
    """The write-ahead log and the journal that a SQLite file may have beside it."""
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal")


class Database:
    """One SQLite file for reading. `deadline` is of `time.monotonic`."""

    def __init__(self, path: Path, deadline: float | None = None) -> None:
        self.path = path
        self.behind = False
        """Whether it is too large to be copied, so that what its write-ahead log has is missing."""
        self._deadline = deadline
        self._connection: sqlite3.Connection | None = None
        self._from_copy = False
        self._stamp: object = None
        self._fixed = False

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """What a query gives, from one state of the file; bound its number.

        Raises OSError where the file is damaged or stays locked, and `TimeUp`.
        """
        for attempt in range(_TRIES):
            self._in_time()
            try:
                found = self._connected(copied=attempt > 1).execute(query, values)
                rows: list[tuple[Any, ...]] = found.fetchall()
            except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
                self._in_time()
                if self._unchanged() and not self._may_be_mended(error):
                    raise OSError(errno.EIO, _said(error), str(self.path)) from error
            else:
                if self._unchanged():
                    return rows
            self._close()
            time.sleep(0.01 * attempt)
        raise OSError(errno.EBUSY, "it is written to all the time: try again", str(self.path))

    def columns(self, table: str) -> frozenset[str]:
        """The names of a table's columns, empty where there is no such table."""
        return frozenset(str(name) for (name,) in self.rows(_COLUMNS, (table,)))

    @property
    def size(self) -> int:
        """Bytes of the file and of its write-ahead log."""
        return _size(self.path) + _size(besides(self.path)[0])

    def _in_time(self) -> None:
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise TimeUp

    def _connected(self, copied: bool) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open(copied)
            self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            if self._deadline is not None:
                late = self._deadline
                self._connection.set_progress_handler(lambda: time.monotonic() > late, 10_000)
        return self._connection

    def _open(self, copied: bool) -> sqlite3.Connection:
        with self.path.open("rb") as file:
            log_ahead = _WAL in file.read(20)[18:]
        wal, journal = besides(self.path)
        pending = _size(wal) if log_ahead else 0
        self._fixed = False
        if pending or copied:
            size = _size(self.path) + pending + _size(journal)
            if size <= LARGEST_COPY and 2 * size < shutil.disk_usage(tempfile.gettempdir()).free:
                return self._copied()
            self.behind = log_ahead
        self._fixed = log_ahead
        self._stamp = _settled_stamp(self.path) if self._fixed else None
        options = "mode=ro&immutable=1" if self._fixed else "mode=ro"
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?{options}", timeout=_BUSY, uri=True
        )

    def _copied(self) -> sqlite3.Connection:
        """A connection to a private copy, made while nothing was folded in or rolled back."""
        self._from_copy = True
        sources = (self.path, *besides(self.path))
        with _copies.lock:
            now = (self.path, *map(_stamp, sources))
            if _copies.of != now:
                _copies.of = None
                self._copy_to(_copies.fresh(), sources)
                _copies.of = now
            connection = sqlite3.connect(_copies.file, timeout=_BUSY)
            connection.execute("SELECT count(*) FROM sqlite_master")  # opens it, mends it
            return connection

    def _copy_to(self, copy: Path, sources: tuple[Path, ...]) -> None:
        for attempt in range(_TRIES):
            before = _stamp(self.path), _head(sources[1]), _stamp(sources[2])
            for source, target in zip(sources, (copy, *besides(copy)), strict=True):
                target.unlink(missing_ok=True)
                try:
                    shutil.copyfile(source, target)
                except FileNotFoundError:
                    if source is self.path:
                        raise
            if before == (_stamp(self.path), _head(sources[1]), _stamp(sources[2])):
                return
            self._in_time()
            time.sleep(0.01 * attempt)
        raise OSError(errno.EBUSY, "it is written to all the time: try again", str(self.path))

    def _unchanged(self) -> bool:
        return not self._fixed or self._stamp == _stamp(self.path)

    def _may_be_mended(self, error: Exception) -> bool:
        """Whether a copy may show what the file itself does not: locked, or left in a commit."""
        refused = ("locked", "readonly", "unable to open", "busy", "disk i/o")
        return not self._from_copy and any(word in str(error).lower() for word in refused)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._from_copy = None, False


class _Copies:
    """The last copy that was made: places of one state of a file are read one after another."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.of: object = None
        """Of what, in which state."""
        self._folder: Path | None = None

    @property
    def file(self) -> Path:
        """The copy."""
        return (self._folder or Path()) / "copy"

    def fresh(self) -> Path:
        """Where a new copy is to lie; the one before is gone then."""
        self.drop()
        self._folder = Path(tempfile.mkdtemp(prefix="trainwarden-"))
        return self.file

    def drop(self) -> None:
        """Leave nothing behind."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None


_copies = _Copies()
atexit.register(_copies.drop)


_COLUMNS = "SELECT substr(name, 1, 100) FROM pragma_table_info(?) LIMIT 200"


def _said(error: Exception) -> str:
    told = str(error)
    if "malformed" in told or "not a database" in told or "corrupt" in told:
        return f"a damaged SQLite file ({told})"
    return f"SQLite says: {told}"


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What tells that a file was changed; None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _settled_stamp(path: Path) -> tuple[int, int, int] | None:
    """A stamp that any later change changes: clocks of file systems tick every few milliseconds."""
    stamp = _stamp(path)
    while stamp and 0 <= time.time_ns() - stamp[2] < _TICK:
        time.sleep(_TICK / 1e9)
        stamp = _stamp(path)
    return stamp


def _size(path: Path) -> int:
    stamp = _stamp(path)
    return stamp[1] if stamp else 0


def _head(wal: Path) -> bytes:
    """What changes where a write-ahead log is begun anew; frames are appended to it otherwise."""
    try:
        with wal.open("rb") as file:
            return file.read(32)[_SALTS]
    except OSError:
        return b""
