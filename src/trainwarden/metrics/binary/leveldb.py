"""LevelDB's log framing as W&B uses it: blocks of 32 KiB, records in one or more chunks.

Unlike LevelDB's own the file has a header, and the sums are plain CRC-32, those of zlib.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import NamedTuple

import numpy as np

from trainwarden.metrics.binary.lookup import Ints

FILE_HEAD, BLOCK, HEAD = 7, 32768, 7
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
LARGEST = 16 << 20
"""Longer records are passed over."""
_CHUNK = Struct("<IHB").unpack_from


class Batch(NamedTuple):
    """Whole records in order: where they begin in the file, and where in `data` each one lies."""

    data: bytes
    offsets: Ints
    begins: Ints
    ends: Ints


_Joined = tuple[int, int, bytes]
"""How many records in one piece come before it, its offset in the file, its bytes."""


class Chunks:
    """Splits a file into records, from bytes in pieces of any size. Sums are checked."""

    def __init__(self) -> None:
        self.offset = 0
        """Offset in the file of the bytes held."""
        self.held = b""
        self.parts: list[bytes] = []
        """The chunks of a record that is not whole yet."""
        self.begun = 0
        """Offset in the file of the first of them."""
        self.to_skip = 0
        self.damaged = 0
        """Chunks whose sum or length was wrong; the rest of their block was passed over."""
        self.skipped = 0
        """Records passed over for their length, or because a chunk of them is missing."""

    @property
    def position(self) -> int:
        """How many bytes were taken."""
        return self.offset + len(self.held)

    @property
    def pending(self) -> bool:
        """Whether there is a beginning of a record without its end."""
        return bool(self.parts) or any(self.held)

    def feed(self, data: bytes) -> Batch:
        """Take the next bytes: the records that are now whole."""
        passed = min(self.to_skip, len(data))
        if passed:
            self.to_skip -= passed
            self.offset += passed
            data = data[passed:]
        data = self.held + data if self.held else data
        at, end, base = 0, len(data), self.offset
        if base == 0:
            if end < FILE_HEAD:
                self.held = data
                return _batch(data, base, [], [], [])
            at = FILE_HEAD
        starts: list[int] = []
        stops: list[int] = []
        joined: list[_Joined] = []
        whole, crc32, chunk = memoryview(data), zlib.crc32, _CHUNK
        block_end = BLOCK - base % BLOCK
        while True:
            if at > block_end - HEAD:  # what is left of a block is padding
                at = max(at, block_end)
                block_end += BLOCK
                continue
            if at + HEAD > end:
                break
            stored, size, kind = chunk(data, at)
            after = at + HEAD + size
            if after <= block_end and FULL <= kind <= LAST:
                if after > end:
                    break
                # The sum is that of the kind and the data, which stand beside each other.
                if crc32(whole[at + HEAD - 1 : after]) == stored:
                    if kind == FULL and not self.parts:
                        starts.append(at)
                        stops.append(after)
                    else:
                        joined += self._part(kind, base + at, data[at + HEAD : after], len(starts))
                    at = after
                    continue
            self.damaged += bool(stored or size or kind)  # zeros: room made beforehand
            self._broken()
            at = block_end
            if at > end:
                break
        # Where the rest of a damaged block is still to come, it is passed over then.
        self.to_skip += max(0, at - end)
        self.held = data[at:]
        self.offset = base + min(at, end)
        return _batch(data, base, starts, stops, joined)

    def _broken(self) -> None:
        if self.parts:
            self.skipped += 1
            self.parts = []

    def _part(self, kind: int, offset: int, data: bytes, before: int) -> list[_Joined]:
        """Take a chunk of a record: the record where it is whole now; `before` others were."""
        if kind in {FULL, FIRST}:
            self._broken()
            if kind == FULL:
                return [(before, offset, data)]
            self.parts, self.begun = [data], offset
        elif not self.parts:
            self.skipped += kind == LAST  # its beginning is missing
        else:
            self.parts.append(data)
            if kind == LAST:
                parts, self.parts = self.parts, []
                return [(before, self.begun, b"".join(parts))]
            if len(self.parts) * BLOCK > LARGEST:
                self._broken()
        return []


def _batch(
    data: bytes,
    base: int,
    starts: list[int],
    stops: list[int],
    joined: list[_Joined],
) -> Batch:
    """Records of one chunk by place, and those of several, each before one of the others."""
    begins = np.array(starts, dtype=np.int64)
    offsets, begins, ends = begins + base, begins + HEAD, np.array(stops, dtype=np.int64)
    if not joined:
        return Batch(data, offsets, begins, ends)
    before = [at for at, _offset, _record in joined]
    sizes = np.array([len(record) for _at, _offset, record in joined])
    behind = len(data) + np.cumsum(sizes)
    return Batch(
        b"".join([data, *(record for _at, _offset, record in joined)]),
        np.insert(offsets, before, [offset for _at, offset, _record in joined]),
        np.insert(begins, before, behind - sizes),
        np.insert(ends, before, behind),
    )
