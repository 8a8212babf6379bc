"""Lines that say again what the line before said: of each process, or of a second logger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainwarden.metrics.formats.base import Row
from trainwarden.metrics.names import canonical

_LOSS = 1e-3
"""Relative: one logger rounds to four decimals, another to four digits."""
_EPOCH = 0.0051
"""One logger rounds to two decimals."""


def said(row: Row, numbers: Sequence[float], bar: float) -> dict[str, Any]:
    """What to remember of a line that tells no step: plain data. `bar` is where a bar stood."""
    known: dict[str, float] = {}
    for pair, number in zip(row.pairs, numbers, strict=True):
        meaning = canonical(pair.name)[0]
        if meaning.known and meaning.name in {"loss", "epoch"}:
            known.setdefault(meaning.name, number)
    names = [pair.name for pair in row.pairs]
    return {"names": names, "numbers": list(numbers), "bar": bar, **known}


def repeats(now: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether two lines in a row tell of one step.

    The same numbers under the same names, an epoch or at least three of them; or other names with
    the same loss at the same epoch. A loss of 0 may well be that of several steps.
    """
    if not before or now["bar"] != before["bar"] or not now.get("loss"):
        return False
    if now["names"] == before["names"]:
        telling = "epoch" in now or len(now["names"]) > 2
        return telling and bool(now["numbers"] == before["numbers"])
    if not {"loss", "epoch"} <= now.keys() & before.keys():
        return False
    if abs(now["loss"] - before["loss"]) > _LOSS * abs(now["loss"]):
        return False
    return bool(abs(now["epoch"] - before["epoch"]) <= _EPOCH)
