"""CRC-32C (Castagnoli), with numpy: of one piece of data, and of many alike at once.

The sum is linear over GF(2): each byte adds what it gives with zeros behind it, whatever the
others are. So a row of a table for each distance from the end replaces the loop over bytes, and
of records that differ in few bytes only those need to be looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
BLOCK = 1024
_POLYNOMIAL = 0x82F63B78


@cache
def _table() -> U32:
    """[k, b]: what byte `b` gives with `k` bytes of zeros behind it; shape (BLOCK, 256)."""
    first = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        first = np.where(first & 1, (first >> 1) ^ np.uint32(_POLYNOMIAL), first >> 1)
    table = np.empty((BLOCK, 256), dtype=np.uint32)
    table[0] = first
    for k in range(1, BLOCK):
        table[k] = (table[k - 1] >> 8) ^ first[table[k - 1] & 0xFF]
    return table


def crc32c(data: bytes | memoryview) -> int:
    """The CRC-32C of `data`."""
    table, crc = _table(), 0xFFFFFFFF
    if len(data) < 32:
        first = table[0]
        for byte in data:
            crc = (crc >> 8) ^ int(first[(crc ^ byte) & 0xFF])
        return crc ^ 0xFFFFFFFF
    for start in range(0, len(data), BLOCK):
        block = np.frombuffer(data[start : start + BLOCK], dtype=np.uint8)
        head = bytes(block[:4])
        mixed = (crc ^ int.from_bytes(head, "little")).to_bytes(4, "little")
        # The state so far goes into the first four bytes; of fewer, what is left of it moves on.
        block = np.concatenate([np.frombuffer(mixed[: len(head)], np.uint8), block[4:]])
        moved = crc >> (8 * len(head)) if len(head) < 4 else 0
        crc = moved ^ int(np.bitwise_xor.reduce(table[len(block) - 1 - _UPTO[: len(block)], block]))
    return crc ^ 0xFFFFFFFF


_UPTO = np.arange(BLOCK)


def masked(crc: int) -> int:
    """As TFRecord files store it: turned and moved, for data that holds sums itself."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def unmasked(stored: U32) -> U32:
    """The sums behind stored ones."""
    turned = stored - np.uint32(0xA282EAD8)
    return (turned >> np.uint32(17)) | (turned << np.uint32(15))


def crc_of_rows(rows: U8, length: int, varying: Sequence[int]) -> U32:
    """The sum of the first `length` (at most `BLOCK`) bytes of each row.

    Rows, of shape (n, at least length), differ from the first one only at the places `varying`.
    """
    table = _table()
    plain = bytearray(rows[0, :length].tobytes())
    for at in varying:
        plain[at] = 0
    sums = np.full(len(rows), crc32c(bytes(plain)), dtype=np.uint32)
    for at in varying:
        sums ^= table[length - 1 - at][rows[:, at]]
    return sums


def crc_of_windows(data: U8, length: int) -> U32:
    """The sum of `length` bytes from each place on; shape (len(data) - length + 1,)."""
    table = _table()
    count = max(0, len(data) - length + 1)
    sums = np.full(count, crc32c(bytes(length)), dtype=np.uint32)
    for at in range(length):
        sums ^= table[length - 1 - at][data[at : at + count]]
    return sums
