"""Lines of one shape in a block, as columns, with what was made of them so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trainwarden.metrics.formats.base import Numbers, Places, Row
from trainwarden.metrics.places import Logger

if TYPE_CHECKING:
    from trainwarden.metrics.recorder import Binding


@dataclass(slots=True, eq=False)
class Part:
    """Lines of one shape: their places among all lines, numbers by pair, times, byte offsets."""

    row: Row
    key: Any
    rank: int | None
    at: Places
    columns: Sequence[Numbers]
    times: Numbers | None
    offsets: Places
    binding: Binding = field(init=False)
    logger: Logger | None = None
    """None where the lines are copies by another process than the one that counts."""
    x: Numbers = field(init=False)
    """Their steps on the axis of the series."""
    moved: NDArray[np.bool_] | None = None
    """Of a bar, which of them are no mere redraws; None where all are."""

    def __len__(self) -> int:
        return len(self.at)

    def between(self, begin: int, end: int) -> Part:
        """Those of the lines from one to another."""
        low, high = np.searchsorted(self.at, (begin, end))
        some = slice(low, high)
        if high - low == len(self.at):
            return self
        moved = None if self.moved is None else self.moved[some]
        part = Part(
            self.row,
            self.key,
            self.rank,
            self.at[some],
            [column[some] for column in self.columns],
            None if self.times is None else self.times[some],
            self.offsets[some],
            logger=self.logger,
            moved=moved,
        )
        if hasattr(self, "x"):
            part.binding, part.x = self.binding, self.x[some]
        return part

    def ends(self) -> list[tuple[int, float]]:
        """The first and the last time told, with their lines."""
        if self.times is None:
            return []
        told = np.flatnonzero(~np.isnan(self.times))
        return [(int(self.at[i]), float(self.times[i])) for i in (*told[:1], *told[-1:])]

    def fresh(self, values: Any) -> Any:
        """Of values of the lines, those of lines that say something new."""
        return values if self.moved is None else values[self.moved]

    def get(self, role: str) -> Numbers | None:
        """The numbers of a position, where the lines have it."""
        index = dict(self.binding.places).get(role)
        return None if index is None else self.columns[index]


def by_logger(parts: Iterable[Part]) -> list[tuple[Logger, list[Part]]]:
    """The parts whose lines count, by what counts them."""
    groups: dict[int, tuple[Logger, list[Part]]] = {}
    for part in parts:
        if part.logger is not None:
            groups.setdefault(id(part.logger), (part.logger, []))[1].append(part)
    return list(groups.values())


def joined(parts: Sequence[Part], values: Sequence[Any]) -> Any:
    """Values of several parts in the order of their lines."""
    if len(parts) == 1:
        return values[0]
    at = np.concatenate([part.at for part in parts])
    return np.concatenate(values)[np.argsort(at, kind="stable")]


def as_of(part: Part, movers: Sequence[Part], start: float) -> Numbers:
    """How far the highest `x` of other parts was at each line of a part."""
    if not movers:
        return np.full(len(part.at), start)
    at = np.sort(np.concatenate([mover.at for mover in movers]))
    x = np.maximum.accumulate([start, *joined(movers, [mover.x for mover in movers])])
    return x[np.searchsorted(at, part.at)]


def gaps(steps: Numbers, before: float) -> Numbers:
    """How far each step is from the one before it."""
    far = np.empty(len(steps))
    far[0] = steps[0] - before
    np.subtract(steps[1:], steps[:-1], out=far[1:])
    return far
