"""What a log format is: a reader of single lines that says which numbers stand there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
Phase = Literal["train", "eval", "summary"]
Kind = Literal["number", "strict", "spare", "time", "text"]
PHASES: dict[str, Phase] = {
    "train": "train",
    "training": "train",
    "val": "eval",
    "valid": "eval",
    "eval": "eval",
    "validation": "eval",
    "test": "eval",
}
SPLITS = ("split", "mode", "phase", "stage", "subset", "type")
"""Keys whose value names the phase."""
CELL = frozenset("0123456789-.,\t")
"""What a row of a table begins with."""
FEWEST = 8
"""Lines of one shape from which on it pays to take them together."""
PART = "part"
"""Unit of an epoch that is a share of the way, also where it happens to be whole: 0.0 of 3.0."""


class Pair(NamedTuple):
    """A named number. `span` is where its digits stand in the line, where that is known.

    Positions are pairs too: `step`, `total_steps`, `epoch`, `total_epochs`, and `epoch_step` with
    `epoch_steps` where a line counts within its epoch.
    """

    name: str
    value: float
    unit: str = ""
    span: tuple[int, int] | None = None


@dataclass(slots=True)
class Row:
    """What one line said.

    `loose` are spans of digits that mean nothing and may differ from line to line: with the spans
    of the pairs they let the reader recognise the next line of this shape without parsing it.
    `kind` is `metrics`; `partial` (belongs to one record with its neighbours), `end` (such a
    record ends), `bar` (a progress bar), `totals` (says only how long the run will be), `head`
    (says only which epoch begins).
    """

    format: str
    pairs: list[Pair]
    phase: Phase | None = None
    kind: Literal["metrics", "partial", "end", "bar", "totals", "head"] = "metrics"
    label: str = ""
    """For a bar: what it says of itself."""
    loose: list[tuple[int, int]] = field(default_factory=list)
    free: list[tuple[int, int, str]] = field(default_factory=list)
    """Like `loose`, for other text that may differ, with the pattern that it always matches."""
    repeatable: bool = False
    """Whether a line that differs only in those digits would mean the same."""
    numbers: list[float] | None = None
    """The values, where `pairs` are those of an earlier row of the same `key`."""
    key: object = None
    rest: int | None = None
    """Where text begins that does not belong to the record and is to be read by itself."""
    rank: int | None = None
    """Which process printed it, where the record itself says so."""
    more: tuple[Row, ...] = ()
    """Further records of the same line, taken after this one."""
    final: bool = False
    """Whether the record says that the run is over as it should be."""
    bare: bool = False
    """Whether it is plain text with nothing before it: a print, not a logger's line."""


def key_of(row: Row) -> tuple[object, ...]:
    """What rows that mean the same have in common: everything but the values."""
    names = tuple([(pair.name, pair.unit) for pair in row.pairs])
    return (row.format, row.kind, row.phase, row.label, row.bare, names)


class Span(NamedTuple):
    """A part of a line in which others of its shape may differ, and the pattern that it matches.

    Its kind: `number`, the next pair's; `strict`, one too, as JSON writes numbers; `spare`, a
    number that means nothing; `time`; `text`, whose pattern does not ask which digits stand there.
    """

    begin: int
    end: int
    kind: Kind
    pattern: str


class Line(NamedTuple):
    """A line without escapes. `text[start:]` is what is left when a logger's prefix is taken off.

    The text holds one character per byte (latin-1), so that positions are byte positions.
    """

    text: str
    start: int
    offset: int
    number: int
    time: float | None = None
    rank: int | None = None


@runtime_checkable
class LineFormat(Protocol):
    """A way of printing metrics on a line.

    A format keeps no state of its own but what `memory` holds, plain data of one log that is
    saved and restored with the reader (a table's header).

    Lines of an exclusive one that is also a `SpannedFormat` are taken many at once.
    """

    name: ClassVar[str]
    hints: ClassVar[tuple[str, ...]]
    """Lower-case words one of which every line of this kind holds; empty where there is none."""

    exclusive: ClassVar[bool]
    """Whether a line that this format reads can be nothing else: it is then tried first."""

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The line's numbers, or None for a line of another kind. Never raises."""
        ...


@runtime_checkable
class SpannedFormat(LineFormat, Protocol):
    """An exclusive format that can tell where on a line its numbers stand."""

    def spans(self, text: str, memory: dict[str, object]) -> tuple[Row, list[Span]] | None:
        """The row of a line, and in what others that say the same may differ; None if in doubt."""
        ...
