"""What stands at a place of a log: a line of text, or a record of a binary file as one."""

from __future__ import annotations

import re
from pathlib import Path

from trainwarden.evidence import stores
from trainwarden.metrics.readers import HEAD, kind_of

WINDOW = 64 * 1024
"""Bytes of text read from a place on."""


def line_at(path: Path, offset: int) -> bytes:
    """The line that begins at a byte offset; a binary record as text. Raises OSError."""
    return re.split(rb"[\r\n]", text_at(path, offset, WINDOW).lstrip(b"\r\n"), maxsplit=1)[0]


def text_at(path: Path, offset: int, size: int) -> bytes:
    """The text from a byte offset on, at most `size` bytes; a binary record in one line.

    Of a SQLite store the offset is a row's id. Empty where a binary file has no whole record there.
    Raises OSError.
    """
    if stores.is_store(path):
        shown = stores.row_text(path, offset)
        return _line(shown, size)
    with path.open("rb") as file:
        kind = kind_of(str(path), file.read(HEAD))
        file.seek(offset)
        if kind == "text":
            return file.read(size)
        from trainwarden.metrics.binary.shown import WINDOW as RECORD
        from trainwarden.metrics.binary.shown import record_text

        shown = record_text(kind, file.read(RECORD), offset)
    return _line(shown, size)


def _line(shown: str | None, size: int) -> bytes:
    if shown is None:
        return b""
    return shown.replace("\r", " ").replace("\n", " ").encode("utf-8", "replace")[:size]
