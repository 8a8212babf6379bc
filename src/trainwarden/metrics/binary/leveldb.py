"""LevelDB's log framing as W&B uses it: blocks of 32 KiB, records in one or more chunks.

Unlike LevelDB's own the file has a header, and the sums are plain CRC-32, those of zlib.
"""

from __future__ import annotations

import zlib
from struct import Struct

FILE_HEAD, BLOCK, HEAD = 7, 32768, 7
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
LARGEST = 16 << 20
"""Longer records are passed over."""
_CHUNK = Struct("<IHB").unpack_from
_SEEDS = [zlib.crc32(bytes([kind])) for kind in range(5)]


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

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Take the next bytes: offset and data of each record that is now whole."""
        passed = min(self.to_skip, len(data))
        if passed:
            self.to_skip -= passed
            self.offset += passed
            data = data[passed:]
        data = self.held + data if self.held else data
        at, end, base = 0, len(data), self.offset
        found: list[tuple[int, bytes]] = []
        if base == 0:
            if end < FILE_HEAD:
                self.held = data
                return found
            at = FILE_HEAD
        whole, crc32, seeds, chunk = memoryview(data), zlib.crc32, _SEEDS, _CHUNK
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
                if crc32(whole[at + HEAD : after], seeds[kind]) == stored:
                    if kind == FULL and not self.parts:
                        found.append((base + at, data[at + HEAD : after]))
                    else:
                        self._part(kind, base + at, data[at + HEAD : after], found)
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
        return found

    def _broken(self) -> None:
        if self.parts:
            self.skipped += 1
            self.parts = []

    def _part(self, kind: int, offset: int, data: bytes, found: list[tuple[int, bytes]]) -> None:
        if kind in {FULL, FIRST}:
            self._broken()
            if kind == FULL:
                found.append((offset, data))
            else:
                self.parts, self.begun = [data], offset
            return
        if not self.parts:
            self.skipped += kind == LAST  # its beginning is missing
            return
        self.parts.append(data)
        if kind == LAST:
            parts, self.parts = self.parts, []
            found.append((self.begun, b"".join(parts)))
        elif len(self.parts) * BLOCK > LARGEST:
            self._broken()
