"""One record of a TensorBoard event file: protobuf messages Event, Summary and TensorProto."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from trainwarden.metrics.binary.wire import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    fields,
    numbers,
    places,
    signed,
    text,
    varint,
)

_FLOAT, _DOUBLE, _HALF, _BFLOAT16 = 1, 2, 19, 14
_PACKED = {
    _FLOAT: "<f4",
    _DOUBLE: "<f8",
    3: "<i4",
    4: "<u1",
    5: "<i2",
    6: "<i1",
    9: "<i8",
    10: "<u1",
    17: "<u2",
    _HALF: "<f2",
    22: "<u4",
    23: "<u8",
}
"""By data type, how numpy calls what `tensor_content` holds."""
_LISTS = {5: FIXED32, 6: FIXED64, 7: VARINT, 10: VARINT, 11: VARINT, 13: VARINT}
_LISTS |= {16: VARINT, 17: VARINT}
"""By field number, the lists of a tensor that hold numbers."""
_SCALAR_PLUGINS = ("", "scalars")
START = 1
"""Of a session log: training begins (again) at the event's step."""


class Scalar(NamedTuple):
    """One number of an event, and where it stands in the record's data."""

    tag: str
    value: float
    at: int
    """-1 where it is not simply stored in the bytes from there on."""
    dtype: str
    """How numpy calls what stands there."""


@dataclass
class Event:
    """What an event says. `wall_at` and `step_at` are places in its data, -1 where absent."""

    wall_time: float = 0.0
    step: int = 0
    wall_at: int = -1
    step_at: int = -1
    step_end: int = -1
    scalars: list[Scalar] = field(default_factory=list)
    others: int = 0
    """Values that are no scalars: histograms, images, texts."""
    version: str = ""
    started: bool = False
    """Whether it tells that training starts (again) at `step`."""
    plain: bool = True
    """Whether it holds nothing else than time, step and a summary."""


def read_event(data: memoryview) -> Event:
    """Decode the data of one record. Raises ValueError where it is no event."""
    event = Event()
    for number, kind, value, begin, end in places(data):
        if number == 1 and kind == FIXED64:
            event.wall_time = struct.unpack_from("<d", data, begin)[0]
            event.wall_at = begin
        elif number == 2 and kind == VARINT:
            event.step, event.step_at, event.step_end = signed(value), begin, end
        elif number == 5 and kind == BYTES:
            _summary(data, begin, end, event)
        else:
            event.plain = False
            if number == 3 and kind == BYTES:
                event.version = text(data[begin:end])
            elif number == 7 and kind == BYTES:
                event.started = any(
                    n == 1 and value == START for n, _kind, value in fields(data[begin:end])
                )
    return event


def _summary(data: memoryview, begin: int, end: int, event: Event) -> None:
    for number, kind, _value, first, last in places(data[begin:end]):
        if number == 1 and kind == BYTES:
            scalar = _value_of(data, begin + first, begin + last)
            if scalar is None:
                event.others += 1
            else:
                event.scalars.append(scalar)


def _value_of(data: memoryview, begin: int, end: int) -> Scalar | None:
    """A Summary.Value that is a scalar."""
    tag = plugin = ""
    found: tuple[float, int, str] | None = None
    for number, kind, _value, first, last in places(data[begin:end]):
        first, last = begin + first, begin + last
        if number == 1 and kind == BYTES:
            tag = text(data[first:last])
        elif number == 2 and kind == FIXED32:
            found = struct.unpack_from("<f", data, first)[0], first, "<f4"
        elif number == 8 and kind == BYTES:
            found = _tensor(data, first, last)
        elif number == 9 and kind == BYTES:
            plugin = _plugin(data[first:last])
    if found is None or plugin not in _SCALAR_PLUGINS or not tag:
        return None
    return Scalar(tag, *found)


def _plugin(metadata: memoryview) -> str:
    for number, kind, value in fields(metadata):
        if number == 1 and kind == BYTES and isinstance(value, memoryview):
            for inner, _kind, name in fields(value):
                if inner == 1:
                    return text(name)
    return ""


def _tensor(data: memoryview, begin: int, end: int) -> tuple[float, int, str] | None:
    """The number of a tensor that holds one, with its place; None for any other."""
    dtype, elements, packed = 0, 1, (0, 0)
    listed: tuple[float, int, str] | None = None
    for number, kind, value, first, last in places(data[begin:end]):
        first, last = begin + first, begin + last
        if number == 1 and kind == VARINT:
            dtype = value
        elif number == 2 and kind == BYTES:
            for inner, _kind, dim in fields(data[first:last]):
                if inner == 2 and isinstance(dim, memoryview):
                    elements *= next((int(n) for f, k, n in fields(dim) if f == 1 and k == 0), 0)
        elif number == 4 and kind == BYTES:
            packed = first, last
        elif number in _LISTS:
            listed = _listed(data, number, kind, first, last)
    if elements != 1:
        return None
    if packed[1] > packed[0]:
        name = _PACKED.get(dtype)
        if dtype == _BFLOAT16 and packed[1] - packed[0] == 2:
            return _bfloat16(int.from_bytes(data[packed[0] : packed[1]], "little")), -1, ""
        if name is None or packed[1] - packed[0] != np.dtype(name).itemsize:
            return None
        return float(np.frombuffer(data[packed[0] : packed[1]], name)[0]), packed[0], name
    if listed is None:
        return None
    if dtype == _HALF:
        return float(np.array(int(listed[0]) & 0xFFFF, np.uint16).view(np.float16)), -1, ""
    if dtype == _BFLOAT16:
        return _bfloat16(int(listed[0])), -1, ""
    return listed


def _listed(
    data: memoryview, number: int, kind: int, first: int, last: int
) -> tuple[float, int, str] | None:
    """The only number of a `*_val` list, packed or not."""
    wanted = _LISTS[number]
    if wanted == VARINT:
        found = numbers(data[first:last], VARINT) if kind == BYTES else [varint(data, first)[0]]
        if len(found) != 1:
            return None
        return float(found[0] if number == 17 else signed(found[0])), -1, ""
    name = "<f4" if wanted == FIXED32 else "<f8"
    if kind not in {BYTES, wanted} or last - first != np.dtype(name).itemsize:
        return None
    return float(np.frombuffer(data[first:last], name)[0]), first, name


def _bfloat16(bits: int) -> float:
    return float(struct.unpack("<f", ((bits & 0xFFFF) << 16).to_bytes(4, "little"))[0])
