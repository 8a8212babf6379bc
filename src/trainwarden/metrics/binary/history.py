"""W&B's history: rows of items to points, each on the step that the run itself counts.

A row is `item* step`, an item is a name and its value in JSON. Names come in any order, for the
recorder keeps them in a hash table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwarden.metrics.binary.axes import Axes
from trainwarden.metrics.binary.items import item_of, numbers_of, plain
from trainwarden.metrics.binary.lookup import Ints
from trainwarden.metrics.binary.numbers import numbers
from trainwarden.metrics.binary.rowsplit import Items, Names
from trainwarden.metrics.binary.scalars import Floats, Points
from trainwarden.metrics.binary.wire import BYTES, fields
from trainwarden.metrics.reading import Event

ENOUGH = 4 << 20
"""Bytes of rows after which they are folded."""
MAX_LOOSE = 4000
"""Names of numbers that are decoded one by one."""
_SLOW = frozenset(b"tfn[")
"""How values begin that are no numbers whatever follows: true, false, null, lists."""

_NONE = np.zeros(0, dtype=np.int64)
Loose = dict[str, tuple[list[int], list[float]]]
"""Numbers decoded one by one: by name, rows and values."""


class History:
    """Collects rows and folds them into points."""

    def __init__(self) -> None:
        self.axes = Axes()
        self.rows = 0
        """Rows taken so far."""
        self.waiting = 0
        """Those that are not folded yet."""
        self._names = Names()
        self._taken: list[tuple[bytes, Ints, Ints]] = []
        """Bytes of rows, each one's size, and where its record begins in the file."""
        self._size = 0
        self._beside: list[tuple[str, int, float, int]] = []
        """Numbers that stand between rows: name, rows before, value, offset."""
        self._events: list[tuple[int, Event]] = []
        """What happened between rows, and how many were before."""

    @property
    def full(self) -> bool:
        """Whether enough was collected to be folded."""
        return self._size >= ENOUGH or len(self._beside) > 100_000

    def take(self, rows: bytes, sizes: Ints, offsets: Ints) -> None:
        """Take the contents of history records, one behind the other."""
        self._taken.append((rows, sizes, offsets))
        self._size += len(rows) + 64 * len(sizes)
        self.waiting += len(sizes)
        self.rows += len(sizes)

    def beside(self, name: str, value: float, offset: int, before: int) -> None:
        """Take a number that is of the machine: it belongs to the row before.

        `before` is how many of the rows waiting come before it, here and below.
        """
        self._beside.append((name, before, value, offset))

    def happened(self, event: Event, before: int) -> None:
        """Take an event: its step is that of the row before."""
        self._events.append((before, event))

    def fold(self) -> list[Points]:
        """The points of all rows taken since, by name, in the order in which the names came up."""
        n = self.waiting
        before = self.axes.last if self.rows > n else None
        none = [_NONE]
        offsets = np.concatenate(none + [offsets for _rows, _sizes, offsets in self._taken])
        columns = self._columns() if n else {}
        steps, times = self.axes.place(n, columns)
        points = []
        for name, (rows, values) in columns.items():
            if not name.startswith("_"):
                axis = self.axes.declared(name, steps, columns)[rows]
                points.append(Points(name, offsets[rows], axis, values, times[rows]))
        points += self._machine(steps, before or 0.0)
        # By name where a row brings up several: the recorder writes them in no order.
        points.sort(key=lambda one: (int(one.offsets[0]), one.tag))
        self.axes.done(columns)
        for rows_before, event in self._events:
            event.step = float(steps[rows_before - 1]) if rows_before else before
        self._taken.clear()
        self._beside.clear()
        self._events.clear()
        self._size = self.waiting = 0
        return points

    def _columns(self) -> dict[str, tuple[Ints, Floats]]:
        """Rows and values by name."""
        data = b"".join([rows for rows, _sizes, _offsets in self._taken])
        ends = np.cumsum(np.concatenate([sizes for _rows, sizes, _offsets in self._taken]))
        items = self._names.split(data, ends)
        values, read = numbers(data, items.at, items.sizes)
        loose: Loose = {}
        self._texts(data, items, ~read, loose)
        for index in items.broken.tolist():
            _decode(data[int(ends[index - 1]) if index else 0 : int(ends[index])], index, loose)
        columns: dict[str, tuple[Ints, Floats]] = {}
        order = np.argsort(items.names.astype(np.uint16), kind="stable")
        order = order[read[order]]
        cuts = np.searchsorted(items.names[order], np.arange(len(self._names.names) + 1))
        for number, name in enumerate(self._names.names):
            chosen = order[cuts[number] : cuts[number + 1]]
            if len(chosen):
                _merge(columns, name, items.rows[chosen], values[chosen])
        for name, (rows, found) in loose.items():
            _merge(columns, name, np.array(rows, np.int64), np.array(found, np.float64))
        self._stepless(items, columns)
        return columns

    def _stepless(self, items: Items, columns: dict[str, tuple[Ints, Floats]]) -> None:
        """The steps of rows that tell them beside their items alone."""
        told = items.steps >= 0
        told[items.broken] = False
        if "_step" in self._names.names:
            told[items.rows[items.names == self._names.names.index("_step")]] = False
        rows = np.flatnonzero(told)
        if len(rows):
            _merge(columns, "_step", rows, items.steps[rows].astype(np.float64))

    def _texts(self, data: bytes, items: Items, left: NDArray[np.bool_], loose: Loose) -> None:
        """Values that are no plain numbers."""
        for row, name, at, size in zip(
            items.rows[left].tolist(),
            items.names[left].tolist(),
            items.at[left].tolist(),
            items.sizes[left].tolist(),
            strict=True,
        ):
            if data[at] not in _SLOW:
                value = plain(data[at : at + size].decode("utf-8", "replace"))
                _add(loose, self._names.names[name], row, value)

    def _machine(self, steps: Floats, before: float) -> Iterable[Points]:
        by_name: dict[str, list[tuple[int, float, float]]] = {}
        for name, rows, value, offset in self._beside:
            step = float(steps[rows - 1]) if rows else before
            by_name.setdefault(name, []).append((offset, step, value))
        for name, found in by_name.items():
            places, at, values = zip(*found, strict=True)
            yield Points(
                name,
                np.array(places, np.int64),
                np.array(at, np.float64),
                np.array(values, np.float64),
                np.full(len(found), np.nan),
            )


def _add(loose: Loose, name: str, row: int, value: Any) -> None:
    for inner, one in numbers_of(name, value):
        if inner in loose or len(loose) < MAX_LOOSE:
            rows, values = loose.setdefault(inner, ([], []))
            rows.append(row)
            values.append(one)


def _decode(body: bytes, row: int, loose: Loose) -> None:
    """A row by itself; what cannot be read of it is left out."""
    step: int | None = None
    stepped = False
    try:
        for number, kind, raw in fields(memoryview(body)):
            if kind != BYTES or not isinstance(raw, memoryview):
                continue
            if number == 2:
                told = [value for n, _kind, value in fields(raw) if n == 1]
                step = told[0] if told and isinstance(told[0], int) else 0
            elif number == 1:
                name, value = item_of(raw)
                stepped = stepped or name == "_step"
                _add(loose, name, row, value)
    except ValueError:
        pass
    if step is not None and not stepped:
        _add(loose, "_step", row, step)


def _merge(columns: dict[str, tuple[Ints, Floats]], name: str, rows: Ints, values: Floats) -> None:
    if name in columns:
        rows = np.concatenate([columns[name][0], rows])
        values = np.concatenate([columns[name][1], values])
    if len(rows) > 1 and (np.diff(rows) < 0).any():
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], values[order]
    columns[name] = rows, values
