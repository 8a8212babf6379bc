"""Records of binary run files as text, for whoever is to see what stands at a place."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from trainwarden.metrics.binary.event import read_event
from trainwarden.metrics.binary.items import items_in
from trainwarden.metrics.binary.leveldb import BLOCK, Chunks
from trainwarden.metrics.binary.records import (
    CONFIG,
    EXIT,
    HISTORY,
    OUTPUT,
    OUTPUT_RAW,
    STATS,
    SUMMARY,
    kind_of,
)
from trainwarden.metrics.binary.tfrecord import TFRecords
from trainwarden.metrics.binary.wire import fields, signed, text

MOST = 400
"""Values of one record that are shown."""
_ITEMS = {
    HISTORY: ("history", 1),
    SUMMARY: ("summary", 1),
    CONFIG: ("config", 1),
    STATS: ("stats", 3),
}


def record_text(kind: str, data: bytes, offset: int) -> str | None:
    """The record that begins at `offset` of a file of a kind, from the file's bytes from there on.

    One line of names and values, raw: clean it before it is shown. None where there is no whole
    record.
    """
    try:
        return _event(data) if kind == "tfevents" else _record(data, offset)
    except (ValueError, IndexError, OverflowError):
        return None


def _event(data: bytes) -> str | None:
    batch = TFRecords().feed(data)
    if not len(batch.starts) or batch.starts[0] != 12:
        return None
    event = read_event(memoryview(data)[12 : 12 + batch.sizes[0]])
    told = []
    if event.started:
        told.append(f"training starts at step {event.step}")
    elif event.version:
        told.append(f"file version {event.version}")
    told += [_pair(one.tag, one.value, one.dtype) for one in event.scalars[:MOST]]
    when = ""
    if 0 < event.wall_time < 4e9:
        moment = datetime.fromtimestamp(event.wall_time, timezone.utc)
        when = f" at {moment.isoformat(timespec='milliseconds')}"
    return f"step {event.step}: {', '.join(told) or 'no scalar'}{when}"


def _pair(tag: str, value: float, dtype: str) -> str:
    # Nine digits tell a single-precision number.
    return f"{tag} = {value:.9g}" if dtype == "<f4" else f"{tag} = {value!r}"


def _record(data: bytes, offset: int) -> str | None:
    chunks = Chunks()
    chunks.offset = offset
    batch = chunks.feed(data)
    if not len(batch.offsets) or batch.offsets[0] != offset:
        return None
    record = memoryview(batch.data)[int(batch.begins[0]) : int(batch.ends[0])]
    number, begin, end = kind_of(record)
    body = record[begin:end]
    if number in _ITEMS:
        what, field = _ITEMS[number]
        return f"{what}: {', '.join(_items(body, field))}"
    if number in {OUTPUT, OUTPUT_RAW}:
        return "".join(text(raw) for n, _kind, raw in fields(body) if n == 3).rstrip("\n")
    if number == EXIT:
        code = next((raw for n, _kind, raw in fields(body) if n == 1 and isinstance(raw, int)), 0)
        return f"exit code {signed(code)}"
    return f"record of kind {number}, {len(body)} bytes"


def _items(body: memoryview, field: int) -> Iterator[str]:
    for count, (name, value) in enumerate(items_in(body, field)):
        if count >= MOST:
            return
        yield f"{name} = {value!r}"


WINDOW = 4 * BLOCK
"""Bytes of a file that hold most records whole."""
