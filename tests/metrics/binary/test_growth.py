"""Run files made to take long: the time must grow with their size alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.growth import ALLOWED, growth
from support.run_files import (
    chunk,
    chunked,
    events,
    field,
    item,
    numbered,
    record,
    scalar,
    start,
    value,
)
from trainwarden.metrics.readers import reader_for


def wandb(number: int, bodies: list[bytes]) -> bytes:
    """A run file of records of one kind."""
    return chunked(numbered(number, bodies))


HOSTILE: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "damaged between records": ("tfevents", lambda n: events([]) + (record(b"") + b"x") * n),
    "empty records": ("tfevents", lambda n: events([b""] * n)),
    "zeros": ("tfevents", lambda n: events([]) + bytes(n)),
    "a tag each": ("tfevents", lambda n: events(scalar(f"t{i}", i) for i in range(n))),
    "starts among tags": (
        "tfevents",
        lambda n: events(scalar(f"t{i // 2 % 500}", i) if i % 2 else start(i) for i in range(n)),
    ),
    "starts that fall back": (
        "tfevents",
        lambda n: events(scalar("loss", n - i) if i % 2 else start(n - i) for i in range(n)),
    ),
    "many values in an event": (
        "tfevents",
        lambda n: events([field(2, 1) + b"".join(value(f"t{i}") for i in range(min(n, 90_000)))]),
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
        lambda n: chunked([]) + chunk(2, b"aaa") + chunk(3, b"aaa") * n,
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
