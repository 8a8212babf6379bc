"""TFRecord framing: length, its sum, data, its sum; taken from bytes in pieces of any size.

The lengths of a piece are found all at once, by their sums; that each record begins where the one
before it ends is then looked at, so what a record holds is never taken for one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainwarden.metrics.binary.crc32c import crc_of_rows, unmasked

Ints = NDArray[np.int64]
HEAD, TAIL = 12, 4
LARGEST = 4 << 20
"""Longer records hold graphs or images, no scalars: they are passed over unread."""
_MOST = 1 << 32
"""No record is longer: protobuf writes none of more than 2 GiB."""


class Batch(NamedTuple):
    """Whole records in a row: `starts` and `sizes` are those of their data in `bytes`."""

    bytes: bytes
    base: int
    """Offset in the file of `bytes`."""
    starts: Ints
    sizes: Ints


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
        self._wanted = 0
        """Bytes of the record under way; with fewer there is nothing to be seen."""

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
        at, end, base = 0, len(data), self.offset
        runs: list[slice] = []
        if end < max(HEAD, self._wanted):
            self.held = data
            return Batch(data, base, _NONE, _NONE)
        self._wanted = 0
        heads, sizes = _heads(data)
        after = heads + (sizes + HEAD + TAIL)
        # Where a record is whole, of a usual length, and followed by the next one.
        broken = np.flatnonzero(
            (after[:-1] != heads[1:]) | (after[1:] > end) | (sizes[1:] > LARGEST)
        )
        while at + HEAD <= end:
            here = int(np.searchsorted(heads, at))
            if here == len(heads) or heads[here] != at:
                self.damaged += not self.lost
                self.lost = here == len(heads)
                at = end - HEAD + 1 if self.lost else int(heads[here])
                continue
            self.lost = False
            if sizes[here] > LARGEST:
                self.skipped += 1
                self.to_skip = max(0, int(after[here]) - end)
                at = min(int(after[here]), end)
                continue
            if after[here] > end:
                self._wanted = int(after[here]) - at
                break
            turn = int(np.searchsorted(broken, here))
            last = int(broken[turn]) if turn < len(broken) else len(heads) - 1
            runs.append(slice(here, last + 1))
            at = int(after[last])
        self.held = data[at:]
        self.offset = base + at
        starts = np.concatenate([_NONE, *(heads[run] for run in runs)]) + HEAD
        return Batch(data, base, starts, np.concatenate([_NONE, *(sizes[run] for run in runs)]))


_NONE = np.zeros(0, dtype=np.int64)


def _heads(data: bytes) -> tuple[Ints, Ints]:
    """Every place where a length stands with its right sum, and the lengths."""
    every = np.ndarray((len(data) - HEAD + 1,), "<u8", data, strides=(1,))
    at = np.flatnonzero(every < _MOST)
    rows = np.ndarray((len(every), HEAD), np.uint8, data, strides=(1, 1))[at]
    stored = np.ascontiguousarray(rows[:, 8:]).view("<u4")[:, 0]
    at = at[unmasked(stored) == crc_of_rows(rows, 8, range(8))] if len(at) else at
    return at, every[at].astype(np.int64)
