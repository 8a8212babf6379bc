"""W&B's summary of a run: what it says that its history does not, as results set once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainwarden.metrics.binary.items import item_of, numbers_of, plain
from trainwarden.metrics.binary.leveldb import Batch
from trainwarden.metrics.binary.records import HISTORY, SUMMARY
from trainwarden.metrics.binary.rowsplit import Names
from trainwarden.metrics.binary.wire import BYTES, fields

ENOUGH = 1 << 20
"""Bytes of records after which they are folded."""
MAX_NAMES = 200
_MORE = 12
"""Bytes at most that a row is longer than the summary which repeats it: its own step."""


@dataclass
class Summary:
    """The last numbers of each name that a run's summary tells."""

    values: dict[str, tuple[int, dict[str, float]]] = field(default_factory=dict)
    """By name of an item, in order of coming up: offset of the record, numbers by full name."""
    held: tuple[int, bytes] | None = None
    """Offset and content of the last record: whether it only repeats the next row will be seen."""
    _taken: list[tuple[int, bytes]] = field(default_factory=list, repr=False)
    _size: int = 0
    _names: Names = field(default_factory=Names, repr=False)

    def follow(self, batch: Batch, kinds: Any) -> None:
        """Take the summary records of a batch, but for those that repeat the row that comes next.

        The recorder writes what a row changes before the row: the same items in another order, so
        of the same length.
        """
        data, offsets, begins, ends = batch
        chosen = np.flatnonzero((kinds == HISTORY) | (kinds == SUMMARY))
        if not len(chosen):
            return
        is_summary, sizes = kinds[chosen] == SUMMARY, (ends - begins)[chosen]
        if self.held is not None:
            if is_summary[0] or not 0 <= int(sizes[0]) - len(self.held[1]) <= _MORE:
                self._take(*self.held)
            self.held = None
        more = np.diff(sizes)
        repeats = ~is_summary[1:] & (more >= 0) & (more <= _MORE)
        apart = np.flatnonzero(is_summary[:-1] & ~repeats)
        for at, begin, end in zip(
            offsets[chosen[apart]].tolist(),
            begins[chosen[apart]].tolist(),
            ends[chosen[apart]].tolist(),
            strict=True,
        ):
            self._take(at, data[begin:end])
        if is_summary[-1]:
            last = int(chosen[-1])
            self.held = int(offsets[last]), data[int(begins[last]) : int(ends[last])]

    def _take(self, offset: int, body: bytes) -> None:
        if self._taken and self._taken[-1][1] == body:
            self._taken[-1] = offset, body
            return
        self._taken.append((offset, body))
        self._size += len(body)
        if self._size >= ENOUGH:
            self.fold()

    def fold(self) -> None:
        """Look at what was taken."""
        if not self._taken:
            return
        bodies = [body for _offset, body in self._taken]
        data = b"".join(bodies)
        items = self._names.split(data, np.cumsum([len(body) for body in bodies]))
        # A name may have two numbers: as a key, and as a path of one part. So by place.
        firsts: dict[str, tuple[int, int]] = {}
        lasts: dict[str, tuple[int, Any]] = {}
        _, places = np.unique(items.names, return_index=True)
        for index in sorted(places.tolist(), reverse=True):
            firsts[self._names.names[items.names[index]]] = int(items.rows[index]), index
        _, places = np.unique(items.names[::-1], return_index=True)
        for index in sorted((len(items.names) - 1 - places).tolist()):
            begin = int(items.at[index])
            value = plain(data[begin : begin + int(items.sizes[index])].decode("utf-8", "replace"))
            lasts[self._names.names[items.names[index]]] = int(items.rows[index]), value
        for row in items.broken.tolist():
            for index, (name, value) in enumerate(_changes(bodies[row])):
                firsts[name] = min((row, index), firsts.get(name, (row, index)))
                if row >= lasts.get(name, (-1, None))[0]:
                    lasts[name] = row, value
        for name in sorted(firsts, key=firsts.__getitem__):
            if name[:1] != "_" and (name in self.values or len(self.values) < MAX_NAMES):
                row, value = lasts[name]
                self.values[name] = self._taken[row][0], dict(numbers_of(name, value))
        self._taken.clear()
        self._size = 0

    def results(self) -> list[tuple[str, float, int]]:
        """Name, value and offset of each number that is known by now."""
        told = (
            (name, value, offset)
            for offset, numbers in self.values.values()
            for name, value in numbers.items()
        )
        return list(told)[:MAX_NAMES]


def _changes(body: bytes) -> list[tuple[str, Any]]:
    """Names and values of a record; None for what it removes. As far as it can be read."""
    found: list[tuple[str, Any]] = []
    try:
        for number, kind, raw in fields(memoryview(body)):
            if kind == BYTES and isinstance(raw, memoryview) and number in {1, 2}:
                name, value = item_of(raw)
                found.append((name, value if number == 1 else None))
    except ValueError:
        pass
    return found
