"""What kind each record of W&B's run files is, and where its content lies."""

from __future__ import annotations

import numpy as np

from trainwarden.metrics.binary.lookup import Ints
from trainwarden.metrics.binary.wire import BYTES, places

HISTORY, SUMMARY, OUTPUT, CONFIG, STATS, TENSORBOARD, METRIC = 2, 3, 4, 5, 7, 9, 12
OUTPUT_RAW, RUN, EXIT, PREEMPTING = 13, 17, 18, 23
_BESIDE = frozenset({16, 19, 200})
"""Fields of a record that say something about it: control, uuid, info."""
_COMMON = np.zeros(256, dtype=np.int64)
"""By its key the number of a field that is a kind of record and told by one byte."""
for _number in (HISTORY, SUMMARY, OUTPUT, STATS, OUTPUT_RAW):
    _COMMON[_number << 3 | BYTES] = _number


def kind_of(data: memoryview) -> tuple[int, int, int]:
    """The kind of a record, by field number, and where its content begins and ends.

    0 where it is of no kind. Raises ValueError where it is no record.
    """
    for number, kind, _value, begin, end in places(data):
        if kind == BYTES and number not in _BESIDE:
            return number, begin, end
    return 0, 0, 0


def kinds_of(data: bytes, begins: Ints, ends: Ints) -> tuple[Ints, Ints, Ints]:
    """As `kind_of`, of many records by place in `data`; kind -1 where it is no record."""
    # Nearly all begin with their number, then what they are.
    padded = np.frombuffer(data + bytes(16), dtype=np.uint8)
    at = begins + 1
    for _ in range(4):
        at = at + (padded[at] > 127)
    kinds = _COMMON[padded[at + 1]]
    first, second, third = (padded[at + k].astype(np.int64) for k in (2, 3, 4))
    more, most = first > 127, (first > 127) & (second > 127)
    sizes = (first & 0x7F) + (second & 0x7F) * 128 * more + third * 16384 * most
    starts = at + 3 + more + most
    stops = starts + sizes
    plain = (padded[begins] == 8) & (padded[at] < 128) & (kinds > 0) & (third * most < 128)
    plain &= stops <= ends
    for index in np.flatnonzero(~plain).tolist():
        begin = int(begins[index])
        try:
            kind, low, high = kind_of(memoryview(data)[begin : int(ends[index])])
        except ValueError:
            kind, low, high = -1, 0, 0
        kinds[index], starts[index], stops[index] = kind, begin + low, begin + high
    return kinds, starts, stops
