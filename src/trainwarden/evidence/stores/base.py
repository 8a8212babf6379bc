"""What a store of an experiment tracker is: which run of it is meant, and how its rows are read."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from trainwarden.metrics.stored import StoreReader, Tracker


class Store(Protocol):
    """One run in a store."""

    tracker: Tracker
    run: str
    folder: str
    """Where each metric has a file of its own; empty where rows are cited."""

    def reads_on(self, reader: StoreReader) -> bool:
        """Whether what the reader has read is still there, so that it can go on."""

    def read(self, reader: StoreReader, until: int | None = None) -> None:
        """Bring a reader of this run up to the present, or up to an earlier `position` of it.

        Raises OSError, and `TimeUp` with the reader as far as it came.
        """


def number(text: str) -> int | float | str:
    """A setting that was kept as text: the number that it is, or itself."""
    for kind in (int, float):
        try:
            return kind(text) if len(text) < 40 else text
        except ValueError:
            continue
    return text


def missing(path: Path, run: str) -> FileNotFoundError:
    """That a store has no such run."""
    return FileNotFoundError(2, f"no run {run[:100]} in this store", str(path))
