"""What rows and bars say of where a run is, and what is remembered of those that came before."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from trainwarden.metrics.formats.base import Row
from trainwarden.metrics.names import POSITIONS, canonical

_NOT_TRAINING = re.compile(
    r"(?i)eval|valid|test|predict|sanity|map\b|download|loading|generat|tokeniz|saving|fetch|upload"
    r"|filter|process|convert|checkpoint|shard|sampl|infer|hellaswag|collect|build|prepar|extract"
    r"|creat|scan|cach|resolv|unpack|pars|warm|images\b|classes|comput|dataset"
)
_TRAINING = re.compile(r"(?i)^[\W#]*$|train|epoch|step|iter|progress|updat|global|loss|episode")


@lru_cache(maxsize=256)
def bar_kind(label: str) -> tuple[str, bool, bool]:
    """A bar's label without its numbers, whether it may be the training's bar, and whether not."""
    other = bool(_NOT_TRAINING.search(label))
    training = bool(_TRAINING.search(label)) and not other
    return re.sub(r"[0-9]+", "#", label)[:60], training, other


@dataclass(slots=True)
class Logger:
    """One way in which this log prints steps: its last step, and what resets it."""

    last: float = -1.0
    stride: float = 0.0
    base: float = 0.0
    epoch: float | None = None
    rank: int | None = None
    rows: int = 0


@dataclass(slots=True)
class Bar:
    """A progress bar by its label and total."""

    n: float = 0.0
    total: float = 0.0
    base: float = 0.0
    epoch: float | None = None
    head: float | None = None
    """The epoch of the last line of its own when it was redrawn."""


def position_indices(row: Row) -> set[int]:
    """Which of a row's pairs are positions."""
    found: set[int] = set()
    for index, pair in enumerate(row.pairs):
        meaning = canonical(pair.name)[0]
        if meaning.known and meaning.name in POSITIONS:
            found.add(index)
    return found


def places_at(row: Row) -> list[tuple[str, int]]:
    """By role, which of a row's pairs gives the position: the one of the best rank."""
    best: dict[str, tuple[int, int]] = {}
    for index, pair in enumerate(row.pairs):
        meaning = canonical(pair.name)[0]
        if meaning.name in POSITIONS and meaning.known:
            rank = best.get(meaning.name, (99, 0))[0]
            if meaning.rank < rank:
                best[meaning.name] = (meaning.rank, index)
    return [(role, index) for role, (_rank, index) in best.items()]
