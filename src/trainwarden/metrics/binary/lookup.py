"""Which of the known rows each of many rows is: rows of words, told apart by hash and compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
U64 = NDArray[np.uint64]
_FACTOR = 0x9E3779B97F4A7C15


class Lookup:
    """Known rows of up to `width` words; words that are not given are 0."""

    def __init__(self, width: int) -> None:
        self._words: U64 = np.zeros((width, 0), dtype=np.uint64)
        """One known row a column."""
        self._hashes: U64 = np.zeros(0, dtype=np.uint64)
        """In order."""
        self._numbers: Ints = np.zeros(0, dtype=np.int64)
        """Of the known row with each hash."""
        self._factors = np.arange(1, 2 * width, 2, dtype=np.uint64) * np.uint64(_FACTOR)

    def find(self, columns: Sequence[U64]) -> Ints:
        """The number of each row, its first word in the first column and so on; -1 of none."""
        n = len(columns[0])
        if not len(self._hashes):
            return np.full(n, -1, dtype=np.int64)
        hashes = self._hash(columns)
        near = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        numbers = self._numbers[near]
        same = np.ones(n, dtype=bool)
        for known, column in zip(self._words, columns, strict=False):
            same &= known[numbers] == column
        for known in self._words[len(columns) :]:
            same &= known[numbers] == 0
        return np.where(same, numbers, -1)

    def add(self, row: U64) -> bool:
        """Give a row that is not known the next number; not where a known one has its hash."""
        found = self._hash(row[:, None])
        at = int(np.searchsorted(self._hashes, found[0]))
        if at < len(self._hashes) and self._hashes[at] == found[0]:
            return False
        padded = np.zeros((len(self._words), 1), dtype=np.uint64)
        padded[: len(row), 0] = row
        self._numbers = np.insert(self._numbers, at, self._words.shape[1])
        self._hashes = np.insert(self._hashes, at, found[0])
        self._words = np.concatenate([self._words, padded], axis=1)
        return True

    def _hash(self, columns: Sequence[U64] | U64) -> U64:
        hashes: U64 = columns[0] * self._factors[0]
        for column, factor in zip(columns[1:], self._factors[1:], strict=False):
            hashes += column * factor
        return hashes
