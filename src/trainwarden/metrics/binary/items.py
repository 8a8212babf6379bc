"""The key-value items of W&B's records: history, summary, config and statistics alike."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from trainwarden.metrics.binary.wire import (
    BYTES,
    FIXED64,
    VARINT,
    fields,
    float64,
    text,
    zigzag,
)

MAX_DEPTH = 4
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def item_of(data: memoryview) -> tuple[str, Any]:
    """Name and value of one item; a nested name's parts joined by dots. Raises ValueError.

    The value is plain data; None where there is none or it is no JSON.
    """
    name, nested = "", []
    value: Any = None
    for number, kind, raw in fields(data):
        if number == 1 and kind == BYTES:
            name = text(raw)
        elif number == 2 and kind == BYTES:
            nested.append(text(raw))
        elif number == 4 and kind == VARINT:
            value = bool(raw)
        elif number == 5 and kind == VARINT and isinstance(raw, int):
            value = zigzag(raw)
        elif number == 6 and kind == FIXED64 and isinstance(raw, int):
            value = float64(raw)
        elif number == 7 and kind == BYTES:
            value = text(raw)
        elif number in {8, 16} and kind == BYTES:
            value = plain(text(raw))
    return name or ".".join(nested), value


def plain(encoded: str) -> Any:
    """What JSON says, None where it is none."""
    try:
        return json.loads(encoded)
    except (ValueError, RecursionError):
        return None


def items_in(data: memoryview, field: int) -> Iterator[tuple[str, Any]]:
    """The items in a field of a record. Raises ValueError."""
    for number, kind, raw in fields(data):
        if number == field and kind == BYTES and isinstance(raw, memoryview):
            yield item_of(raw)


def numbers_of(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, float]]:
    """The numbers of a value by name: one, those of a dictionary, or none. Media have none."""
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        try:
            yield name, float(value)
        except OverflowError:
            return
    elif isinstance(value, str):
        if value in _WORDS:
            yield name, _WORDS[value]
    elif isinstance(value, dict) and depth < MAX_DEPTH and "_type" not in value:
        for key, inner in value.items():
            yield from numbers_of(f"{name}.{key}", inner, depth + 1)
