"""Many numbers at once, from their JSON text to doubles."""

from __future__ import annotations

import numpy as np
import orjson
from numpy.typing import NDArray

from trainwarden.metrics.binary.lookup import U64, Ints

_WIDTH = 32
"""Bytes of the longest text read so: `-1.2345678901234567e-308` has 24."""
_SPACE = 0x2020202020202020
MASKS = np.ascontiguousarray(np.tril(np.full((65, 64), 0xFF, dtype=np.uint8), -1).view(np.uint64).T)
"""[k, n]: all bits of the k-th word that the first n bytes have; shape (8, 65)."""


def words(data: bytes) -> U64:
    """The eight bytes from each place on; those behind the end are 0."""
    return np.ndarray((len(data) + 72,), "<u8", data + bytes(80), strides=(1,))


def numbers(data: bytes, at: Ints, sizes: Ints) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers by place and length of their text, and which of them are read; others are NaN.

    Text that is not a number alone, or longer than any that is written, is not read.
    """
    values = np.full(len(at), np.nan)
    every = words(data)
    first, second = every[at] & 0xFF, (every[at] >> 8) & 0xFF
    told = np.where(first == ord("-"), second, first)
    read = (told - ord("0") < 10) & (sizes <= _WIDTH) & (sizes > 0)
    at, sizes = at[read], sizes[read]
    if not len(at):
        return values, read
    # One list of them all: each padded with spaces, and a comma behind it.
    width = -(-int(sizes.max()) // 8)
    rows = np.empty((len(at), 8 * width + 1), dtype=np.uint8)
    for k in range(width):
        mask = MASKS[k][sizes]
        word = (every[at + 8 * k] & mask) | (~mask & np.uint64(_SPACE))
        rows[:, 8 * k : 8 * k + 8] = word.view(np.uint8).reshape(-1, 8)
    rows[:, -1] = ord(",")
    rows[-1, -1] = ord("]")
    try:
        found = orjson.loads(b"[" + rows.tobytes())
        values[read] = np.fromiter(found, np.float64, count=len(found))
    except (ValueError, TypeError, OverflowError):  # something else begins like a number
        read[:] = False
    return values, read
