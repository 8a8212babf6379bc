"""Logs of trainers for tests: made as their sources print them, read, and compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.reading import Reading

Point = tuple[float, float]
Log = tuple[str, dict[str, Any], dict[str, tuple[int, Point, Point]]]
"""A log's text; fields of its reading; by metric how many points, and the first and last one."""
EVERY = range(1, 41)


def read(text: str, name: str = "log") -> Reading:
    """What is read of a whole file."""
    reader = LogReader(name)
    reader.feed(text.encode())
    reader.finish(complete=True)
    return reader.reading


def loss(i: float) -> float:
    """A loss that falls."""
    return round(3 - i / 50, 4)


def lines(template: str, numbers: Iterable[int] = EVERY, **more: Any) -> str:
    """One line for each number: `{i}` is it, `{l}` its loss, `{e}` its evaluation loss."""
    return "".join(
        template.format(i=i, l=loss(i), e=round(loss(i) + 0.1, 4), c=f"{i:,}", **more) + "\n"
        for i in numbers
    )


def bar(n: int, total: int, post: str = "", label: str = "") -> str:
    """One redraw of a tqdm bar."""
    full = 10 * n // total
    return (
        f"\r{label}{100 * n // total:3d}%|{'█' * full}{' ' * (10 - full)}| {n}/{total} "
        f"[00:{n % 60:02d}<01:00,  2.1{n % 10}it/s{post}]"
    )


def check(log: Log) -> None:
    """Compare what is read of a log with what it says."""
    text, fields, metrics = log
    reading = read(text)
    for field, wanted in fields.items():
        assert getattr(reading, field) == wanted, field
    for metric, (count, first, last) in metrics.items():
        assert metric in reading.series, (metric, sorted(reading.series))
        series = reading.series[metric]
        assert series.first is not None
        assert series.last is not None
        found = (series.count, *series.first[:2], *series.last[:2])
        assert found == pytest.approx((count, *first, *last), nan_ok=True), metric
