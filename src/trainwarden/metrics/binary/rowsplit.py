"""The fast path for W&B's history: the items of many rows found at once, without decoding them.

An item is `0a size name 82 01 size value`. Its value's tag is searched for in all rows together,
and every item must begin where the one before it ended and end where its sizes say; names are told
by their encoded bytes. Rows that are not wholly made so are left to be decoded one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainwarden.metrics.binary.decimals import decimals, windows
from trainwarden.metrics.binary.wire import BYTES, fields, text

Ints = NDArray[np.int64]
U64 = NDArray[np.uint64]
LONGEST = 64
"""Bytes of an encoded name; longer ones are decoded one by one."""
MAX_NAMES = 2000
_MASKS = np.tril(np.full((LONGEST + 1, LONGEST), 0xFF, dtype=np.uint8), -1).view(np.uint64)
"""[n]: all bits of the first n bytes; shape (LONGEST + 1, LONGEST // 8)."""
_MIX = np.array([0x9E3779B97F4A7C15 * (2 * k + 1) % 2**64 for k in range(8)], dtype=np.uint64)


class Items(NamedTuple):
    """Items of rows, in order: number of the row and of the name, value."""

    rows: Ints
    names: Ints
    values: NDArray[np.float64]
    read: NDArray[np.bool_]
    """Whether `values` holds the value; else its text is to be looked at."""
    at: Ints
    sizes: Ints
    """Where the text of each value stands, and its length."""


class Names:
    """The names that were met, by their encoded bytes."""

    def __init__(self) -> None:
        self.names: list[str] = []
        """By number."""
        self._words: U64 = np.zeros((0, LONGEST // 8), dtype=np.uint64)
        self._hashes: U64 = np.zeros(0, dtype=np.uint64)
        self._order: Ints = np.zeros(0, dtype=np.int64)
        self._numbers: dict[bytes, int] = {}
        self._refused: set[bytes] = set()

    def split(self, data: bytes, starts: Ints, ends: Ints) -> tuple[Items, Ints]:
        """The items of rows by place in `data`, and which rows are to be decoded one by one.

        The rows follow upon each other without a gap.
        """
        every = np.frombuffer(data, dtype=np.uint8)
        tags = np.flatnonzero((every[:-1] == 0x82) & (every[1:] == 0x01))
        low = np.searchsorted(tags, starts)
        counts = np.searchsorted(tags, ends) - low
        rows = np.repeat(np.arange(len(starts)), counts)
        if not len(tags):
            return _none(), np.arange(len(starts))
        padded = np.concatenate([every, np.zeros(260, dtype=np.uint8)])
        sizes = padded[tags + 2].astype(np.int64)
        at = tags + 3
        after = at + sizes
        first = np.zeros(len(tags), dtype=bool)
        first[low[counts > 0]] = True
        begins = np.empty_like(after)
        begins[1:] = after[:-1]
        begins[first] = starts[rows[first]]
        lengths = tags - begins - 2
        last = np.empty_like(first)
        last[:-1], last[-1] = first[1:], True
        limit = ends[rows]
        good = (sizes < 128) & (after <= limit) & (lengths > 0) & (lengths <= LONGEST)
        good &= padded[begins] == 10
        good &= begins + 2 + padded[np.minimum(begins + 1, len(every))] == after
        tail = np.minimum(after, len(every))
        step = (padded[tail] == 0x12) & (tail + 2 + padded[tail + 1] == limit)
        good &= ~last | (after == limit) | step
        lengths = np.where(good, lengths, 0)
        words = windows(data, np.where(good, begins + 2, 0), LONGEST).view(np.uint64)
        words &= _MASKS[lengths]
        names = self._find(words, lengths)
        good &= names >= 0
        broken = counts == 0
        broken[rows[~good]] = True
        fine = ~broken[rows]
        rows, names, at, sizes = rows[fine], names[fine], at[fine], sizes[fine]
        values, read = decimals(data, at, sizes)
        return Items(rows, names, values, read, at, sizes), np.flatnonzero(broken)

    def _find(self, words: U64, lengths: Ints) -> Ints:
        """The number of each name, given as masked words; -1 where it has none."""
        with np.errstate(over="ignore"):
            hashes = np.add.reduce(words * _MIX, axis=1)
        while True:
            found = np.full(len(words), -1, dtype=np.int64)
            if len(self._hashes):
                near = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
                same = (self._hashes[near] == hashes) & (lengths > 0)
                numbers = self._order[near]
                same &= (self._words[numbers] == words).all(axis=1)
                found[same] = numbers[same]
            missing = np.flatnonzero((found < 0) & (lengths > 0))
            if not len(missing) or not self._learn(words, lengths, hashes, missing):
                return found

    def _learn(self, words: U64, lengths: Ints, hashes: U64, missing: Ints) -> bool:
        """Give numbers to names that have none; whether there were any."""
        _unique, at = np.unique(hashes[missing], return_index=True)
        fresh = 0
        for index in sorted(missing[at].tolist()):
            encoded = words[index].tobytes()[: int(lengths[index])]
            if encoded in self._numbers or encoded in self._refused:
                continue
            name = name_of(encoded)
            if name is None or len(self.names) >= MAX_NAMES:
                if len(self._refused) < MAX_NAMES:
                    self._refused.add(encoded)
                continue
            if bool(np.isin(hashes[index], self._hashes)):
                continue  # two names of one hash: the second one is decoded each time
            self._numbers[encoded] = len(self.names)
            self.names.append(name)
            self._words = np.concatenate([self._words, words[index : index + 1]])
            self._hashes = np.append(self._hashes, hashes[index])
            self._order = np.append(self._order, len(self.names) - 1)
            fresh += 1
        order = np.argsort(self._hashes, kind="stable")
        self._hashes, self._order = self._hashes[order], self._order[order]
        return fresh > 0


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


def _none() -> Items:
    nothing = np.zeros(0, dtype=np.int64)
    return Items(nothing, nothing, np.zeros(0), np.zeros(0, dtype=bool), nothing, nothing)
