"""The wire format of protocol buffers: the fields of a message, without its description."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Value = int | memoryview
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_U32, _U64 = struct.Struct("<I").unpack_from, struct.Struct("<Q").unpack_from
_F64 = struct.Struct("<d").unpack


def varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A number and the place behind it. Raises ValueError where it is cut or too long."""
    value = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, at
            shift += 7
            if shift >= 70:
                raise ValueError("a number of more than ten bytes")
    except IndexError:
        raise ValueError("a number is cut short") from None


def places(data: memoryview) -> Iterator[tuple[int, int, int, int, int]]:
    """Each field: its number, wire type, value where it is a varint, begin and end in `data`.

    Begin and end are those of the value. Raises ValueError where the data is no message.
    """
    at, size = 0, len(data)
    while at < size:
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        begin, value = at, 0
        if kind == VARINT:
            value, at = varint(data, at)
        elif kind == BYTES:
            length, begin = varint(data, at)
            at = begin + length
        elif kind == FIXED64:
            at += 8
        elif kind == FIXED32:
            at += 4
        else:
            raise ValueError(f"a field of wire type {kind}")
        if at > size or number == 0:
            raise ValueError("a field is cut short")
        yield number, kind, value, begin, at


def fields(data: memoryview) -> Iterator[tuple[int, int, Value]]:
    """Each field: its number, wire type and value; fixed ones as unsigned. Raises ValueError."""
    for number, kind, value, begin, end in places(data):
        if kind == VARINT:
            yield number, kind, value
        elif kind == BYTES:
            yield number, kind, data[begin:end]
        elif kind == FIXED64:
            yield number, kind, _U64(data, begin)[0]
        else:
            yield number, kind, _U32(data, begin)[0]


def numbers(data: memoryview, kind: int) -> list[int]:
    """A packed list of varints or fixed numbers. Raises ValueError."""
    if kind == VARINT:
        found, at = [], 0
        while at < len(data):
            value, at = varint(data, at)
            found.append(value)
        return found
    width = 8 if kind == FIXED64 else 4
    if len(data) % width:
        raise ValueError("a packed list is cut short")
    read = _U64 if width == 8 else _U32
    return [read(data, at)[0] for at in range(0, len(data), width)]


def signed(value: int) -> int:
    """An int64 (or int32) from its varint."""
    return value - (1 << 64) if value >> 63 else value


def zigzag(value: int) -> int:
    """A sint64 from its varint."""
    return (value >> 1) ^ -(value & 1)


def float64(value: int) -> float:
    """A double from its eight bytes as a number."""
    return float(_F64(value.to_bytes(8, "little"))[0])


def text(value: Value) -> str:
    """A string field, whatever its bytes."""
    return bytes(value).decode("utf-8", "replace") if isinstance(value, memoryview) else ""
