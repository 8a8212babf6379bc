"""Run files made to take long: the time must grow with their size alone."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import pytest

from support.growth import ALLOWED, growth
from trainwarden.metrics.binary.crc32c import crc32c, masked
from trainwarden.metrics.readers import reader_for


def record(data: bytes) -> bytes:
    """A TFRecord."""
    head = struct.pack("<Q", len(data))
    sums = [struct.pack("<I", masked(crc32c(part))) for part in (head, data)]
    return head + sums[0] + data + sums[1]


def varint(value: int) -> bytes:
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


def scalar(tag: str, step: int) -> bytes:
    """An event with one number."""
    value = field(1, tag.encode()) + b"\x15" + struct.pack("<f", 0.5)
    return b"\x09" + struct.pack("<d", 1e9 + step) + field(2, step) + field(5, field(1, value))


def start(step: int) -> bytes:
    """An event that tells that training starts again."""
    return field(2, step) + field(7, field(1, 1))


VERSION = record(b"\x09" + struct.pack("<d", 1e9) + field(3, b"brain.Event:2"))


def chunked(records: list[bytes]) -> bytes:
    """A run file of W&B."""
    out = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    for data in records:
        kind, rest = 1, data
        while True:
            room = 32768 - len(out) % 32768
            if room < 7:
                out += bytes(room)
                continue
            part, rest = rest[: room - 7], rest[room - 7 :]
            first = kind in {1, 2}
            kind = (2 if first else 3) if rest else (1 if first else 4)
            out += struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            kind = 3
            if not rest:
                break
    return bytes(out)


def item(name: str, value: str) -> bytes:
    return field(1, field(2, name.encode()) + field(16, value.encode()))


def wandb(number: int, bodies: list[bytes]) -> bytes:
    """A run file of records of one kind."""
    return chunked([field(1, i + 1) + field(number, body) for i, body in enumerate(bodies)])


HOSTILE: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "damaged between records": ("tfevents", lambda n: VERSION + (record(b"") + b"x") * n),
    "empty records": ("tfevents", lambda n: VERSION + record(b"") * n),
    "zeros": ("tfevents", lambda n: VERSION + bytes(n)),
    "a tag each": (
        "tfevents",
        lambda n: VERSION + b"".join(record(scalar(f"t{i}", i)) for i in range(n)),
    ),
    "starts among tags": (
        "tfevents",
        lambda n: (
            VERSION
            + b"".join(record(scalar(f"t{i % 500}", i)) + record(start(i)) for i in range(n))
        ),
    ),
    "starts that fall back": (
        "tfevents",
        lambda n: (
            VERSION
            + b"".join(record(scalar("loss", n - i)) + record(start(n - i)) for i in range(n))
        ),
    ),
    "many values in an event": (
        "tfevents",
        lambda n: (
            VERSION
            + record(field(2, 1) + b"".join(scalar(f"t{i}", 1)[11:] for i in range(min(n, 90_000))))
        ),
    ),
    "a name each": (
        "wandb",
        lambda n: wandb(2, [item(f"n{i}", "0.5") for i in range(n)]),
    ),
    "many names in a row": (
        "wandb",
        lambda n: wandb(2, [b"".join(item(f"n{i}", "0.5") for i in range(n))]),
    ),
    "nested values": (
        "wandb",
        lambda n: wandb(2, [item("a", '{"a":' * n + "1" + "}" * n)]),
    ),
    "brackets": ("wandb", lambda n: wandb(2, [item("a", "[" * n)])),
    "long numbers": ("wandb", lambda n: wandb(2, [item("a", "1" * n)])),
    "steps that fall": (
        "wandb",
        lambda n: wandb(2, [item("step", str(n - i)) + item("loss", "1") for i in range(n)]),
    ),
    "metrics declared": (
        "wandb",
        lambda n: wandb(12, [field(2, b"n%d/*" % i) + field(4, b"step") for i in range(n)]),
    ),
    "output without an end": (
        "wandb",
        lambda n: wandb(13, [field(1, 1) + field(3, b"loss 1 ") for _ in range(n)]),
    ),
    "summaries": ("wandb", lambda n: wandb(3, [item(f"n{i}", "0.5") for i in range(n)])),
    "settings": ("wandb", lambda n: wandb(5, [item(f"n{i}", "0.5") for i in range(n)])),
    "middles without an end": (
        "wandb",
        lambda n: (
            chunked([])
            + (struct.pack("<IHB", zlib.crc32(b"\x02aaa"), 3, 2) + b"aaa")
            + (struct.pack("<IHB", zlib.crc32(b"\x03aaa"), 3, 3) + b"aaa") * n
        ),
    ),
}


class Made(dict[int, bytes]):
    """Inputs by size, made once."""

    def __init__(self, make: Callable[[int], bytes]) -> None:
        self.make = make

    def __missing__(self, size: int) -> bytes:
        self[size] = self.make(size)
        return self[size]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_time_grows_with_the_size_alone(name: str) -> None:
    kind, make = HOSTILE[name]
    made = Made(make)

    def work(size: int) -> None:
        reader = reader_for("run", made[size][:64])
        reader.feed(made[size])
        reader.finish(complete=True)
        assert reader.reading.format == kind

    assert growth(work, 1000, 200_000) < ALLOWED
