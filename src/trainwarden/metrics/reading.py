"""What the log reader makes of one run: its series, how far it is, how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from trainwarden.metrics.series import Series
from trainwarden.records.facts import TrainingFacts, planned_steps

Ending = Literal["finished", "crashed", "interrupted", "running", "unknown"]


@dataclass
class Event:
    """A line that is no metric but matters: an error, a signal, a checkpoint saved, an ending.

    `kind` is the line's class as the reader tells it without judging the run: `traceback`,
    `exception`, `error`, `killed`, `signal`, `exit_code`, `checkpoint_saved`, `finished`,
    `interrupted`, `overflow`, `resume`, `warning`. `text` is raw: clean it before it is shown.
    """

    kind: str
    text: str
    offset: int
    line: int
    step: float | None = None
    time: float | None = None
    """Unix seconds, where the line carries a timestamp."""
    rank: int | None = None


class Piece(NamedTuple):
    """One of the files that a log lies in."""

    file: str
    """Where it lies now; empty where it is gone."""
    begin: int
    """Where it begins in the whole log, in bytes of text."""
    skipped: int = 0
    """Bytes at its own beginning that are no text: the hole that truncation leaves."""


@dataclass
class Reading:
    """One log (or the files of one run) read so far. Bounded in memory.

    Offsets are those in the log's text: of all its pieces, unpacked, one after another.
    """

    file: str
    format: str = "unknown"
    bytes: int = 0
    lines: int = 0
    series: dict[str, Series] = field(default_factory=dict)
    """By canonical name."""
    last_step: int | None = None
    total_steps: int | None = None
    ended: Ending = "unknown"
    runs: int = 0
    """Runs the file holds: 1, or more where it was appended to by a restarted run."""
    events: list[Event] = field(default_factory=list)
    """The first 200 and the last 200."""
    tail: list[tuple[int, str]] = field(default_factory=list)
    """Byte offset and raw text (cut) of the last 40 lines."""
    first_time: float | None = None
    last_time: float | None = None
    """Unix seconds of the first and last timestamp printed, if any."""
    notes: list[str] = field(default_factory=list)
    """What the reader came upon: binary parts, lines too long, rotation, truncation."""
    counted: bool = False
    """The log prints no steps: its metric lines are counted instead."""
    begins_at: float | None = None
    """Where the file says so: the step from which on what earlier files tell holds no more."""
    config: dict[str, Any] = field(default_factory=dict)
    """The run's settings, where the file holds them. Raw: clean it before it is shown."""

    pieces: tuple[Piece, ...] = ()
    """Of a log that lies in other files than its own, rotated or packed ones: these, in order."""

    def place(self, offset: int) -> tuple[str, int | None]:
        """The file that an offset of the log lies in, and the offset in that file's text.

        None where it lies nowhere any more.
        """
        if offset < 0:
            return self.file, None
        for piece in reversed(self.pieces):
            if offset >= piece.begin:
                if not piece.file:
                    return self.file, None
                return piece.file, offset - piece.begin + piece.skipped
        return self.file, None if self.pieces else offset

    def stretched(self, log_every: int | None, total: int | None) -> Reading:
        """With steps of the run instead of counted lines, where the run logs every so many steps.

        Left as it is where steps are printed, or where the run would be longer than its `total`.
        """
        if not self.counted or not log_every or log_every < 2 or self.last_step is None:
            return self
        if total is not None and self.last_step * log_every > total:
            return self
        notes = [*self.notes, f"no step is printed: lines are taken as {log_every} steps each"]
        return replace(
            self,
            series={name: series.stretched(log_every) for name, series in self.series.items()},
            last_step=self.last_step * log_every,
            notes=notes,
            counted=False,
        )

    def to_json(self) -> dict[str, Any]:
        """The fixed shape of `read --json`."""
        from trainwarden.records.base import to_json_number

        return {
            "format": self.format,
            "bytes": self.bytes,
            "last_step": self.last_step,
            "total_steps": self.total_steps,
            "ended": self.ended,
            "runs": self.runs,
            "metrics": {
                name: {
                    "points": series.count,
                    "first": [to_json_number(x) for x in series.first[:2]],
                    "last": [to_json_number(x) for x in series.last[:2]],
                    "original": series.original,
                }
                for name, series in self.series.items()
                if series.first and series.last
            },
        }


def planned_length(readings: Iterable[Reading], facts: TrainingFacts) -> int | None:
    """How many steps the run is to take: as one of its logs says, else as its config does."""
    said = (reading.total_steps for reading in readings if reading.total_steps)
    return next(said, None) or planned_steps(facts)
