"""TFRecord framing: length, its sum, data, its sum; taken from bytes in pieces of any size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainwarden.metrics.binary.crc32c import crc32c, crc_of_windows, masked, unmasked

HEAD, TAIL = 12, 4
LARGEST = 4 << 20
"""Longer records hold graphs or images, no scalars: they are passed over unread."""


class Batch(NamedTuple):
    """Whole records in a row: `starts` and `sizes` are those of their data in `bytes`."""

    bytes: bytes
    base: int
    """Offset in the file of `bytes`."""
    starts: list[int]
    sizes: list[int]


class TFRecords:
    """Splits a file into records. The sum of a length is checked here, that of the data is not."""

    def __init__(self) -> None:
        self.offset = 0
        """Offset in the file of the bytes held."""
        self.held = b""
        self.lost = False
        """Whether the place of the next record is not known, for the last length was damaged."""
        self.to_skip = 0
        self.damaged = 0
        """How often a length was damaged."""
        self.skipped = 0
        """Records passed over for their length."""
        self._sizes: dict[bytes, int] = {}

    @property
    def position(self) -> int:
        """How many bytes were taken."""
        return self.offset + len(self.held)

    def feed(self, data: bytes) -> Batch:
        """Take the next bytes: the records that are now whole."""
        passed = min(self.to_skip, len(data))
        if passed:
            self.to_skip -= passed
            self.offset += passed
            data = data[passed:]
        data = self.held + data if self.held else data
        starts: list[int] = []
        sizes: list[int] = []
        at, end, base = 0, len(data), self.offset
        known = self._sizes
        while at + HEAD <= end:
            if self.lost:
                at = self._search(data, at)
                if self.lost:
                    break
            head = data[at : at + HEAD]
            size = known.get(head)
            if size is None:
                size = self._size(head)
                if size < 0:
                    self.lost = True
                    self.damaged += 1
                    at += 1
                    continue
            after = at + HEAD + size + TAIL
            if size > LARGEST:
                self.skipped += 1
                self.to_skip = max(0, after - end)
                at = min(after, end)
                continue
            if after > end:
                break
            starts.append(at + HEAD)
            sizes.append(size)
            at = after
        self.held = data[at:]
        self.offset = base + at
        return Batch(data, base, starts, sizes)

    def _size(self, head: bytes) -> int:
        size = int.from_bytes(head[:8], "little")
        if masked(crc32c(head[:8])) != int.from_bytes(head[8:], "little") or size >> 62:
            return -1
        if len(self._sizes) >= 10_000:
            self._sizes.clear()
        self._sizes[head] = size
        return size

    def _search(self, data: bytes, at: int) -> int:
        """Where the next record's length stands with its right sum; no longer lost if found."""
        window = np.frombuffer(data, np.uint8)[at:]
        if len(window) < HEAD:
            return at
        sums = crc_of_windows(window[:-TAIL], 8)
        stored = _numbers(window[8:])[: len(sums)]
        right = np.nonzero(unmasked(stored) == sums)[0]
        if len(right):
            self.lost = False
            return at + int(right[0])
        return at + len(sums)


def _numbers(window: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """The four bytes from each place on, as a number."""
    wide = window.astype(np.uint32)
    joined = wide[:-3] | (wide[1:-2] << 8) | (wide[2:-1] << 16) | (wide[3:] << 24)
    return np.asarray(joined, dtype=np.uint32)
