"""Run files byte by byte, for records that no writer would write."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

from trainwarden.metrics.binary.crc32c import crc32c, masked

BLOCK = 32768
"""Of W&B's framing."""


def varint(value: int) -> bytes:
    """A protobuf number."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, content: bytes | int) -> bytes:
    """A field of a protobuf message."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


# TensorBoard ----------------------------------------------------------------------------------


def record(data: bytes) -> bytes:
    """A TFRecord."""
    head = struct.pack("<Q", len(data))
    sums = [struct.pack("<I", masked(crc32c(part))) for part in (head, data)]
    return head + sums[0] + data + sums[1]


def value(tag: str) -> bytes:
    """A number in a summary."""
    return field(5, field(1, field(1, tag.encode()) + b"\x15" + struct.pack("<f", 0.5)))


def scalar(tag: str, step: int) -> bytes:
    """An event with one number."""
    return b"\x09" + struct.pack("<d", 1e9 + step) + field(2, step) + value(tag)


def start(step: int) -> bytes:
    """An event that tells that training starts again."""
    return field(2, step) + field(7, field(1, 1))


VERSION = b"\x09" + struct.pack("<d", 1e9) + field(3, b"brain.Event:2")


def events(records: Iterable[bytes]) -> bytes:
    """An event file."""
    return b"".join(record(data) for data in (VERSION, *records))


# W&B ------------------------------------------------------------------------------------------


def chunked(records: Iterable[bytes]) -> bytes:
    """A run file of W&B: records in chunks."""
    out = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    for data in records:
        begun, rest = False, data
        while True:
            room = BLOCK - len(out) % BLOCK
            if room < 7:
                out += bytes(room)
                continue
            part, rest = rest[: room - 7], rest[room - 7 :]
            kind = (3 if rest else 4) if begun else (2 if rest else 1)
            out += chunk(kind, part)
            begun = True
            if not rest:
                break
    return bytes(out)


def chunk(kind: int, data: bytes) -> bytes:
    """One of them: whole (1), or a record's first, middle or last part."""
    return struct.pack("<IHB", zlib.crc32(bytes([kind]) + data), len(data), kind) + data


def item(name: str, value_json: str) -> bytes:
    """A named value, as rows, summaries and configs hold them."""
    return field(1, field(2, name.encode()) + field(16, value_json.encode()))


def numbered(number: int, bodies: Iterable[bytes]) -> list[bytes]:
    """Records of one kind."""
    return [field(1, at + 1) + field(number, body) for at, body in enumerate(bodies)]
