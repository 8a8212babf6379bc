"""What stands at a place of a log: a line of text, or a record of a binary file as one."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from trainwarden.evidence import stores
from trainwarden.evidence.packed import Unpacked, open_log
from trainwarden.metrics.readers import HEAD, kind_of

WINDOW = 64 * 1024
"""Bytes of text read from a place on."""
_LINE = 8 * 1024
_CHUNK = 1 << 20
_REACH = 4 << 20
"""Bytes of a file that are searched for ends of lines, to tell a line's number."""


def line_at(path: Path, offset: int) -> bytes:
    """The line that begins at a byte offset; a binary record as text. Raises OSError."""
    return _first_line(text_at(path, offset, WINDOW))


def _first_line(text: bytes) -> bytes:
    return re.split(rb"[\r\n]", text.lstrip(b"\r\n"), maxsplit=1)[0]


def text_at(path: Path, offset: int, size: int) -> bytes:
    """The text from a byte offset on, at most `size` bytes; a binary record in one line.

    Of a packed file the offset is that in its text, of a SQLite store it is a row's id. Empty where
    a binary file has no whole record there. Raises OSError.
    """
    if stores.is_store(path):
        shown = stores.row_text(path, offset)
        return _line(shown, size)
    with open_log(path) as file:
        if isinstance(file, Unpacked):
            status = os.fstat(file.fileno())
            return _unpacked(path, offset, status.st_ino, status.st_size, status.st_mtime_ns)[:size]
        kind = kind_of(str(path), file.read(HEAD))
        file.seek(offset)
        if kind == "text":
            return file.read(size)
        from trainwarden.metrics.binary.shown import WINDOW as RECORD
        from trainwarden.metrics.binary.shown import record_text

        shown = record_text(kind, file.read(RECORD), offset)
    return _line(shown, size)


@lru_cache(maxsize=64)
def _unpacked(path: Path, offset: int, *_as_it_is: int) -> bytes:
    """A window of a packed file's text: what is read there once is mostly read twice."""
    with open_log(path) as file:
        return file.read(WINDOW) if file.seek(offset) == offset else b""


def numbered(
    path: Path, offsets: Iterable[int], end: tuple[int, int] | None = None, seconds: float = 10.0
) -> Iterator[tuple[int, int | None, bytes]]:
    """Offsets in a file's text with the line that begins there, and its number where that is cheap.

    A packed file is gone through once, for `seconds` at most. `end` is an offset further on, and
    how many ends of lines stand before it. Raises OSError.
    """
    with open_log(path) as file:
        if isinstance(file, Unpacked):
            yield from _passed(file, sorted(offsets), time.monotonic() + seconds)
            return
        for offset in offsets:
            number = None
            if offset < _REACH:
                file.seek(0)
                number = file.read(offset).count(b"\n") + 1
            elif end is not None and 0 <= end[0] - offset < _REACH:
                file.seek(offset)
                number = end[1] - file.read(end[0] - offset).count(b"\n") + 1
            file.seek(offset)
            yield offset, number, _first_line(file.read(WINDOW))


def _passed(
    file: Unpacked, offsets: list[int], deadline: float
) -> Iterator[tuple[int, int | None, bytes]]:
    held, at, number = b"", 0, 1
    for offset in offsets:
        while at < offset:
            held = held or file.read(_CHUNK)
            if not held or time.monotonic() > deadline:
                return
            passed = held[: offset - at]
            held = held[len(passed) :]
            at += len(passed)
            number += passed.count(b"\n")
        while len(held) < _LINE and (more := file.read(_LINE)):
            held += more
        yield offset, number, _first_line(held[:_LINE])


def _line(shown: str | None, size: int) -> bytes:
    if shown is None:
        return b""
    return shown.replace("\r", " ").replace("\n", " ").encode("utf-8", "replace")[:size]
