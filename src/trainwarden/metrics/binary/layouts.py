"""The fast path for event files: records alike but for time, step and values, decoded together.

A run logs the same tags over and over, so most records of one length differ from another only in
the bytes of their time, step and numbers. What those bytes are is learnt from one record, and the
others are compared with it and decoded as columns; their sums are all checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trainwarden.metrics.binary.crc32c import BLOCK, U8, crc32c, crc_of_rows, masked, unmasked
from trainwarden.metrics.binary.event import Event, Scalar, read_event
from trainwarden.metrics.binary.lookup import U64, Ints, Lookup
from trainwarden.metrics.binary.scalars import Points
from trainwarden.metrics.binary.tfrecord import HEAD, TAIL, Batch

MAX_LAYOUTS = 256
"""Layouts that are known of one length; records of further ones are decoded one by one."""
FEW = 3
"""Of so few records a layout is not worth its while."""


@dataclass
class Decoded:
    """What a batch of records says."""

    points: list[Points]
    """Each tag once, in the order in which they came up."""
    events: list[tuple[int, Event]]
    """Records that are more than scalars, by offset, in order."""
    records: int = 0
    damaged: int = 0


@dataclass
class _Layout:
    """Where time, step and values stand in records of one length."""

    wall_at: int
    step_at: int
    step_end: int
    scalars: list[Scalar]


class _Kind:
    """Layouts whose records have time, step and values at the same places."""

    def __init__(self, mask: U64, varying: list[int]) -> None:
        self.mask = mask
        """Bits that all records of a layout have in common."""
        self.varying = varying
        """The other bytes."""
        self.layouts: list[_Layout] = []
        self._words = np.flatnonzero(mask).tolist()
        self._known = Lookup(len(self._words))

    def find(self, words: U64) -> Ints:
        """Which of the layouts each record has; -1 where it has none."""
        return self._known.find([words[:, k] & self.mask[k] for k in self._words])

    def add(self, layout: _Layout, words: U64) -> bool:
        """Take a layout by one of its records; not where it cannot be told from another one."""
        told = self._known.add((words & self.mask)[self._words])
        self.layouts += [layout] * told
        return told


class Layouts:
    """Decodes batches of records; what was learnt of one helps with the next. Holds no results."""

    def __init__(self) -> None:
        self._known: dict[int, list[_Kind]] = {}

    def decode(self, batch: Batch) -> Decoded:
        """Every whole record of a batch whose sum is right."""
        found = Decoded([], [], len(batch.starts))
        pieces: dict[str, list[Points]] = {}
        starts, sizes = batch.starts, batch.sizes
        left: list[int] = []
        lengths, counts = np.unique(sizes, return_counts=True)
        for length, count in zip(lengths.tolist(), counts.tolist(), strict=True):
            same = starts[sizes == length]
            if length > BLOCK or (count <= FEW and length not in self._known):
                left += same.tolist()
                continue
            left += self._alike(batch, same, length, pieces, found)
        for start in sorted(left):
            size = int(sizes[np.searchsorted(starts, start)])
            _one(batch, start, size, pieces, found)
        found.points = [_joined(parts) for parts in pieces.values()]
        found.points.sort(key=lambda points: (int(points.offsets[0]), points.rank))
        return found

    def _alike(
        self,
        batch: Batch,
        starts: Ints,
        length: int,
        pieces: dict[str, list[Points]],
        found: Decoded,
    ) -> list[int]:
        """Decode records of one length by layout; the starts of those that have none."""
        rows = _rows(batch.bytes, starts, length)
        left: list[int] = []
        kinds = self._known.setdefault(length, [])
        for kind in kinds:
            if not len(starts):
                return left
            rows, starts = _taken(kind, batch, rows, starts, length, pieces, found)
        room = MAX_LAYOUTS - sum(len(kind.layouts) for kind in kinds)
        tries = MAX_LAYOUTS
        while len(starts) > FEW and room > 0 and tries > 0:
            kind_of = _learn(rows[0], length, kinds)
            tries -= 1
            if kind_of is None:
                left.append(int(starts[0]))
                rows, starts = rows[1:], starts[1:]
                continue
            room -= 1
            rows, starts = _taken(kind_of, batch, rows, starts, length, pieces, found)
        return left + [int(start) for start in starts]


def _taken(
    kind: _Kind,
    batch: Batch,
    rows: U8,
    starts: Ints,
    length: int,
    pieces: dict[str, list[Points]],
    found: Decoded,
) -> tuple[U8, Ints]:
    """Decode the records of a kind's layouts; the rows and starts of the others."""
    numbers = kind.find(rows.view(np.uint64))
    order = np.argsort(numbers.astype(np.int16), kind="stable")
    cuts = np.searchsorted(numbers[order], np.arange(len(kind.layouts) + 1))
    for number, layout in enumerate(kind.layouts):
        same = order[cuts[number] : cuts[number + 1]]
        if len(same):
            _columns(batch, rows[same], starts[same], length, layout, kind.varying, pieces, found)
    rest = order[: cuts[0]]
    return rows[rest], starts[rest]


def _rows(data: bytes, starts: Ints, length: int) -> U8:
    """Records with their sums, one a row, padded to whole words."""
    width = -(-(length + TAIL) // 8) * 8
    if len(data) < int(starts[-1]) + width:
        data += bytes(width)
    windows = np.ndarray((len(data) - width + 1,), f"V{width}", data, strides=(1,))
    return windows[starts].view(np.uint8).reshape(len(starts), width)


def _learn(row: U8, length: int, kinds: list[_Kind]) -> _Kind | None:
    """The kind of a record's layout, now known; None where it is not made of scalars alone."""
    data = row[:length].tobytes()
    stored = int.from_bytes(row[length : length + TAIL].tobytes(), "little")
    if masked(crc32c(data)) != stored:
        return None
    try:
        event = read_event(memoryview(data))
    except ValueError:
        return None
    scalars = event.scalars
    if not event.plain or event.others or not scalars or event.wall_at < 0:
        return None
    tags = {scalar.tag for scalar in scalars}
    if len(tags) < len(scalars) or any(scalar.at < 0 for scalar in scalars):
        return None
    mask = np.zeros(len(row), dtype=np.uint8)
    mask[:length] = 0xFF
    varying = list(range(event.wall_at, event.wall_at + 8))
    for scalar in scalars:
        varying += range(scalar.at, scalar.at + np.dtype(scalar.dtype).itemsize)
    mask[varying] = 0
    if event.step_at >= 0:
        if event.step_end - event.step_at > 9:
            return None  # a negative step
        # That the number goes on, or ends, is part of the layout.
        mask[event.step_at : event.step_end] = 0x80
        varying += range(event.step_at, event.step_end)
    masked_bits = mask.view(np.uint64)
    kind = next((one for one in kinds if (one.mask == masked_bits).all()), None)
    if kind is None:
        kind = _Kind(masked_bits, varying)
        kinds.append(kind)
    layout = _Layout(event.wall_at, event.step_at, event.step_end, scalars)
    return kind if kind.add(layout, row.view(np.uint64)) else None


def _columns(
    batch: Batch,
    rows: U8,
    starts: Ints,
    length: int,
    layout: _Layout,
    varying: list[int],
    pieces: dict[str, list[Points]],
    found: Decoded,
) -> None:
    stored = _column(rows, length, "<u4")
    right = unmasked(stored) == crc_of_rows(rows, length, varying)
    if not right.all():
        found.damaged += int(len(right) - right.sum())
        rows, starts = rows[right], starts[right]
        if not len(rows):
            return
    times = _column(rows, layout.wall_at, "<f8")
    steps = np.zeros(len(rows), dtype=np.int64)
    if layout.step_at >= 0:
        for shift, at in enumerate(range(layout.step_at, layout.step_end)):
            steps |= (rows[:, at].astype(np.int64) & 0x7F) << (7 * shift)
    offsets = starts + (batch.base - HEAD)
    for rank, scalar in enumerate(layout.scalars):
        values = _column(rows, scalar.at, scalar.dtype).astype(np.float64)
        points = Points(scalar.tag, offsets, steps.astype(np.float64), values, times, rank)
        pieces.setdefault(scalar.tag, []).append(points)


def _column(rows: U8, at: int, dtype: str) -> Any:
    width = np.dtype(dtype).itemsize
    return np.ascontiguousarray(rows[:, at : at + width]).view(dtype)[:, 0]


def _one(
    batch: Batch, start: int, size: int, pieces: dict[str, list[Points]], found: Decoded
) -> None:
    """Decode a record by itself."""
    data = memoryview(batch.bytes)[start : start + size]
    stored = int.from_bytes(batch.bytes[start + size : start + size + TAIL], "little")
    if masked(crc32c(data)) != stored:
        found.damaged += 1
        return
    try:
        event = read_event(data)
    except ValueError:
        found.damaged += 1
        return
    offset = batch.base + start - HEAD
    if not event.plain or event.others:
        found.events.append((offset, event))
    for rank, scalar in enumerate(event.scalars):
        pieces.setdefault(scalar.tag, []).append(
            Points(
                scalar.tag,
                np.array([offset], np.int64),
                np.array([event.step], np.float64),
                np.array([scalar.value], np.float64),
                np.array([event.wall_time], np.float64),
                rank,
            )
        )


def _joined(parts: list[Points]) -> Points:
    """The points of one tag in order of arrival."""
    if len(parts) == 1:
        return parts[0]
    offsets = np.concatenate([part.offsets for part in parts])
    order = np.argsort(offsets, kind="stable")
    return Points(
        parts[0].tag,
        offsets[order],
        np.concatenate([part.steps for part in parts])[order],
        np.concatenate([part.values for part in parts])[order],
        np.concatenate([part.times for part in parts])[order],
        min((int(part.offsets[0]), part.rank) for part in parts)[1],
    )
