"""Which reader reads a run's file: text of any kind, or a binary file known by how it begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Protocol

from trainwarden.metrics.formats import LineFormat
from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.reading import Reading

HEAD = 64
"""Bytes from which a file's kind is told."""
_WANDB = b":W&B"
_VERSION = b"brain.Event:"


class Reader(Protocol):
    """Reads a run: what it takes is told by its kind; a `Reading` out."""

    file: str

    def finish(self, complete: bool = False, over: bool = False) -> None:
        """Look at what has no end yet as well, for `reading` only: more may come."""

    def note(self, text: str) -> None:
        """Remember something that was come upon."""

    @property
    def reading(self) -> Reading:
        """What was read so far."""

    def to_state(self) -> dict[str, Any]:
        """Everything as plain JSON-able data, for `reader_from`."""


class RunReader(Reader, Protocol):
    """Reads one file of a run: bytes in, in pieces of any size."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file."""

    @property
    def position(self) -> int:
        """How many bytes were taken."""


def kind_of(file: str, head: bytes) -> str:
    """`tfevents`, `wandb` or `text`, by the first bytes of a file; by its name before there are."""
    name = PurePath(file).name
    if head.startswith(_WANDB) or (len(head) < len(_WANDB) and name.endswith(".wandb")):
        return "wandb"
    if _VERSION in head[12:HEAD] or ".tfevents." in name:
        return "tfevents"
    return "text"


def reader_for(
    file: str,
    head: bytes,
    formats: Sequence[LineFormat] | None = None,
    phase: str | None = None,
) -> RunReader:
    """The reader of a file that begins with `head`.

    `phase` is that of TensorBoard tags which tell none themselves (`eval`), where the file's
    folder does.
    """
    kind = kind_of(file, head)
    if kind == "tfevents":
        from trainwarden.metrics.binary.tfevents import EventReader

        return EventReader(file, phase)
    if kind == "wandb":
        from trainwarden.metrics.binary.wandb import WandbReader

        return WandbReader(file)
    return LogReader(file, formats)


def reader_from(state: dict[str, Any], formats: Sequence[LineFormat] | None = None) -> Reader:
    """Rebuild what a reader's `to_state` gave. Raises KeyError, TypeError or ValueError."""
    kind = state.get("kind", "text")
    if kind == "tfevents":
        from trainwarden.metrics.binary.tfevents import EventReader

        return EventReader.from_state(state)
    if kind == "wandb":
        from trainwarden.metrics.binary.wandb import WandbReader

        return WandbReader.from_state(state)
    if kind == "store":
        from trainwarden.metrics.stored import StoreReader

        return StoreReader.from_state(state)
    return LogReader.from_state(state, formats)
