"""Figures in words."""

from __future__ import annotations

import math


def figure(value: object) -> str:
    """A number with enough digits to be found again in what is cited; other values as they are."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if float(value).is_integer() and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.6g}"


def share(value: float) -> str:
    """A ratio as a percentage."""
    return f"{100 * value:.3g}%"


def duration(seconds: float) -> str:
    """Seconds in the unit that people would use."""
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if abs(seconds) < limit:
            return f"{seconds / unit:.3g} {name}"
    return f"{figure(float(f'{seconds / 86_400:.3g}'))} d"


def size(count: float) -> str:
    """Bytes in binary units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"
