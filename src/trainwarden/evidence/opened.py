"""The files of a log, opened at once, and how each is known again later."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from trainwarden.evidence.packed import Unpacked, open_log
from trainwarden.evidence.pieces import pieces_of
from trainwarden.metrics.reading import Piece

CHUNK = 1 << 20
FINGERPRINT = 4096
BEFORE = 256
"""Bytes before the place where reading stood by which it is known again, as by the beginning."""
MAX_HOLE = 1 << 34


@dataclass(frozen=True)
class Position:
    """Where reading stood: offset, the file it stood in, and how that file begins."""

    offset: int
    """In the whole log, earlier pieces included."""
    inode: int
    device: int
    fingerprint: str
    """SHA-256 of the first `fingerprint_length` bytes of the file's text."""
    fingerprint_length: int
    before: str = ""
    """SHA-256 of the bytes of the file before the place; empty where it is packed."""
    packed: str = ""
    """SHA-256 of size, first and last bytes of a packed file as it is."""


@dataclass(frozen=True)
class Kept:
    """A piece of the log that was read, and how it is known again."""

    piece: Piece
    fingerprint: str
    fingerprint_length: int


@dataclass
class Source:
    """A file of the log, opened."""

    file: Path
    stream: io.BufferedIOBase
    status: os.stat_result
    skipped: int = 0
    head: bytes = b""

    @property
    def packed(self) -> bool:
        """Whether its text is unpacked as it is read."""
        return isinstance(self.stream, Unpacked)

    def begins_as(self, kept: Kept | Position) -> bool:
        """Whether it is that file, as far as its beginning tells."""
        length = kept.fingerprint_length
        known = digest(self.head[:length]) == kept.fingerprint
        return 0 < length <= len(self.head) and known

    def holds(self, position: Position, local: int) -> bool:
        """Whether it is the file that reading stood in, as far as can be told without unpacking."""
        if not self.begins_as(position):
            return False
        if self.packed:
            return True
        return self.status.st_size >= self.skipped + local and (
            not position.before or self.before(local) == position.before
        )

    def before(self, local: int) -> str:
        """A digest of the bytes before a place in a file that is not packed."""
        self.stream.seek(self.skipped + max(0, local - BEFORE))
        return digest(self.stream.read(min(local, BEFORE)))

    def as_it_is(self) -> str:
        """A digest of a packed file, of which the last bytes are a checksum."""
        handle, size = self.stream.fileno(), self.status.st_size
        ends = os.pread(handle, 64, 0) + os.pread(handle, 64, max(0, size - 64))
        return digest(b"%d " % size + ends)


def open_all(
    path: Path, opened: ExitStack, deadline: float | None
) -> tuple[list[Source], list[str]]:
    """The files of a log, oldest first, and what is wrong with those that cannot be read."""
    files = pieces_of(path) or [path]
    sources: list[Source] = []
    problems: list[str] = []
    for file in files:
        try:
            stream = opened.enter_context(open_log(file))
            source = Source(file, stream, os.fstat(stream.fileno()))
            source.skipped, source.head = _begin(stream, deadline)
            if isinstance(stream, Unpacked) and not source.head and (stream.cut or stream.damage):
                why = stream.damage or "ends within packed data before any text"
                problems.append(f"{file}: damaged: {why}")
            sources.append(source)
        except OSError as error:
            if file == files[-1] and not sources:
                raise
            if error.errno != errno.ENOENT:
                problems.append(f"{file}: cannot be read: {error.strerror or error}")
    return sources, problems


def moved_since(path: Path, sources: list[Source]) -> bool:
    """Whether the log was rotated while its files were opened."""
    try:
        return any(
            (now := source.file.stat()).st_ino != source.status.st_ino
            or now.st_dev != source.status.st_dev
            for source in sources
        ) or bool({source.file for source in sources} ^ set(pieces_of(path) or [path]))
    except OSError:
        return True


def _begin(stream: io.BufferedIOBase, deadline: float | None) -> tuple[int, bytes]:
    """Where a file's text begins, and its first bytes.

    Who goes on to write where they stood leaves a hole where the file was truncated.
    """
    head = stream.read(FINGERPRINT)
    skipped = 0
    if head.startswith(b"\0"):
        if not isinstance(stream, Unpacked) and hasattr(os, "SEEK_DATA"):
            try:
                stream.seek(os.lseek(stream.fileno(), 0, os.SEEK_DATA))
            except OSError:  # a hole alone
                stream.seek(0, io.SEEK_END)
        else:
            stream.seek(0)
        skipped = stream.tell()
        while (data := stream.read(CHUNK)) and skipped < MAX_HOLE and not late(deadline):
            text = data.lstrip(b"\0")
            skipped += len(data) - len(text)
            if text:
                break
        stream.seek(skipped)
        head = stream.read(FINGERPRINT)
    stream.seek(skipped)
    return skipped, head


def late(deadline: float | None) -> bool:
    """Whether a moment of `time.monotonic` is over."""
    return deadline is not None and time.monotonic() > deadline


def digest(data: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
