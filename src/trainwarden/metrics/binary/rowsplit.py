"""The items of many rows found at once, without decoding them: W&B's history and summary alike.

An item is `0a size name 82 01 size value`. Its value's tag is searched for in all rows together,
and every item must begin where the one before it ended and end where its sizes say; names are told
by their encoded bytes. Rows that are not wholly made so are left to be decoded one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainwarden.metrics.binary.lookup import U64, Ints, Lookup
from trainwarden.metrics.binary.numbers import MASKS, words
from trainwarden.metrics.binary.wire import BYTES, fields, text

LONGEST = 64
"""Bytes of an encoded name; longer ones are decoded one by one."""
MAX_NAMES = 2000
_LARGE = 1 << 14
"""Items of so many bytes and more are decoded one by one: their size takes three."""
_STEP = 5
"""Bytes at most of a step that is read here."""


class Items(NamedTuple):
    """Items of rows, in order: number of the row and of the name; where the value's text lies."""

    rows: Ints
    names: Ints
    at: Ints
    sizes: Ints
    steps: Ints
    """Of each row, as told beside its items; -1 where none is."""
    broken: Ints
    """The rows that are to be decoded one by one; none of their items is here."""


class Names:
    """The names that were met, by their encoded bytes."""

    def __init__(self) -> None:
        self.names: list[str] = []
        """By number."""
        self._known = Lookup(LONGEST // 8)
        self._refused: set[bytes] = set()

    def split(self, data: bytes, ends: Ints) -> Items:
        """The items of rows that lie in `data` one behind the other, by where each one ends."""
        starts = np.concatenate([[0], ends[:-1]])
        every = np.frombuffer(data + bytes(16), dtype=np.uint8)
        tags = np.flatnonzero((every[:-1] == 0x82) & (every[1:] == 0x01))
        low = np.searchsorted(tags, starts)
        counts = np.searchsorted(tags, ends) - low
        held = counts > 0
        rows = np.repeat(np.arange(len(starts)), counts)
        size, more = _size(every, tags + 2)
        at = tags + 3 + more
        after = np.minimum(at + size, len(data))
        good = at + size == after
        begins = np.empty_like(after)
        begins[1:] = after[:-1]
        begins[low[held]] = starts[held]
        whole, more = _size(every, begins + 1)
        begins += more + 2
        lengths = tags - begins
        good &= (lengths > 0) & (lengths <= LONGEST) & (begins + whole == after)
        good &= (size < _LARGE) & (whole < _LARGE)
        good &= every[begins - more - 2] == 10
        names = self._find(data, np.where(good, begins, 0), np.where(good, lengths, 0))
        good &= names >= 0
        last = (low + counts - 1)[held]
        steps = np.full(len(starts), -1, dtype=np.int64)
        steps[held], fits = _behind(every, after[last], ends[held])
        good[last] &= fits
        broken = ~held
        broken[rows[~good]] = True
        fine = ~broken[rows]
        parts = (rows[fine], names[fine], at[fine], size[fine])
        return Items(*parts, steps, np.flatnonzero(broken))

    def _find(self, data: bytes, at: Ints, lengths: Ints) -> Ints:
        """The number of each name, by place; -1 where it has none."""
        every = words(data)
        width = max(1, -(-int(lengths.max(initial=0)) // 8))
        columns = [every[at + 8 * k] & MASKS[k][lengths] for k in range(width)]
        found = self._known.find(columns)
        while len(missing := np.flatnonzero((found < 0) & (lengths > 0))):
            if not self._learn(
                np.stack([column[missing] for column in columns], 1), missing, lengths
            ):
                break
            found[missing] = self._known.find([column[missing] for column in columns])
        return found

    def _learn(self, rows: U64, missing: Ints, lengths: Ints) -> bool:
        """Give numbers to names that have none, in order; whether there were any."""
        _unique, firsts = np.unique(rows, axis=0, return_index=True)
        fresh = False
        for index in sorted(firsts.tolist()):
            encoded = rows[index].tobytes()[: int(lengths[missing[index]])]
            if encoded in self._refused:
                continue
            name = name_of(encoded) if len(self.names) < MAX_NAMES else None
            if name is not None and self._known.add(rows[index]):
                self.names.append(name)
                fresh = True
            elif len(self._refused) < MAX_NAMES:
                self._refused.add(encoded)
        return fresh


def _size(every: NDArray[np.uint8], at: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The size at each place, in one byte or two, and whether in two; too large if in more."""
    first, second = every[at].astype(np.int64), every[at + 1].astype(np.int64)
    more = first > 127
    return np.where(more, (first & 0x7F) + second * 128, first), more


def _behind(every: NDArray[np.uint8], at: Ints, ends: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The step behind a row's last item, -1 without one; and whether nothing unknown follows."""
    told = every[at] == 0x12
    size = every[at + 1].astype(np.int64)
    steps = np.where(told, 0, -1)
    digits = np.zeros(len(at), dtype=np.int64)
    going = told & (size > 1)
    fine = ~told | (size == 0) | ((every[at + 2] == 8) & (size > 1) & (size <= 1 + _STEP))
    for k in range(_STEP):
        byte = every[np.minimum(at + 3 + k, len(every) - 1)].astype(np.int64)
        steps = np.where(going, steps + ((byte & 0x7F) << (7 * k)), steps)
        digits += going
        going &= byte > 127
    fine &= ~told | (size == 0) | (digits + 1 == size)
    fine &= ~going
    at = np.minimum(np.where(told, at + 2 + size, at), len(every) - 3)
    info = (every[at] == 0xC2) & (every[at + 1] == 0x0C) & (at + 3 + every[at + 2] == ends)
    return steps, fine & ((at == ends) | info)


def name_of(encoded: bytes) -> str | None:
    """The name that an item begins with; None where something else stands before its value."""
    parts: list[str] = []
    try:
        for number, kind, raw in fields(memoryview(encoded)):
            if number not in {1, 2} or kind != BYTES:
                return None
            parts.append(text(raw))
    except ValueError:
        return None
    return ".".join(parts) if parts else None
