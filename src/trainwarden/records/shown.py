"""Values as people read them: numbers, amounts with a unit, moments."""

from __future__ import annotations

import math
import re
from typing import Any

from trainwarden.records.base import to_json_number

_SIZES = ("KiB", "MiB", "GiB", "TiB", "PiB")


def show_value(value: Any) -> str:
    """A value as people read it: six significant digits, shares and counts alike."""
    value = to_json_number(value)
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def show_amount(value: Any, unit: str | None) -> str:
    """A value with its unit; bytes in the unit that people would say them in."""
    if unit in ("bytes", "B") and isinstance(value, (int, float)) and abs(value) >= 1024:
        power = min(int(math.log2(abs(value)) / 10), len(_SIZES))
        return f"{value / 1024**power:.4g} {_SIZES[power - 1]}"
    return f"{show_value(value)} {unit}" if unit else show_value(value)


def show_moment(moment: str) -> str:
    """An ISO time without the fraction of a second."""
    return re.sub(r"\.\d+(?=Z|[+-]|$)", "", moment)
