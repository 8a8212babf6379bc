"""Numbers as logs print them: nan, inf, thousands separators, suffixes and units."""

from __future__ import annotations

import re

NUMBER = (
    r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d.])"
    r"|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
    r"|(?:[nN][aA][nN]|[iI]nf(?:inity)?|INF)(?![A-Za-z]))"
)
"""Pattern of one number, without groups."""

PLAIN = (
    r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?"
    r"|(?:[nN][aA][nN]|[iI]nf(?:inity)?|INF)(?![A-Za-z]))"
)
"""Like `NUMBER`, without thousands separators: cheaper to match."""

_WRAPPED = re.compile(
    r"(?:(?:np|numpy|torch|jnp|jax)\.)?(?:float\d*|u?int\d*|bfloat16|tensor|[aA]rray|Decimal)"
    rf"\(\s*(?:\[\s*)?({NUMBER})"
)
_SUFFIX = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
_SUFFIXED = re.compile(rf"({NUMBER})([kKMGBT])")

UNITS: dict[str, tuple[str, float]] = {
    "ns": ("s", 1e-9),
    "us": ("s", 1e-6),
    "µs": ("s", 1e-6),
    "ms": ("s", 1e-3),
    "s": ("s", 1.0),
    "sec": ("s", 1.0),
    "secs": ("s", 1.0),
    "second": ("s", 1.0),
    "seconds": ("s", 1.0),
    "min": ("s", 60.0),
    "mins": ("s", 60.0),
    "h": ("s", 3600.0),
    "hrs": ("s", 3600.0),
    "b": ("bytes", 1.0),
    "kb": ("bytes", 1024.0),
    "mb": ("bytes", 1024.0**2),
    "gb": ("bytes", 1024.0**3),
    "tb": ("bytes", 1024.0**4),
    "kib": ("bytes", 1024.0),
    "mib": ("bytes", 1024.0**2),
    "gib": ("bytes", 1024.0**3),
    "tib": ("bytes", 1024.0**4),
    "%": ("ratio", 0.01),
}
"""Lower-case unit as printed to base unit and factor. Loggers say GB and mean GiB."""


def to_float(text: str) -> float:
    """One number as printed: `1,234.5`, `17.9k`, `nan`, `-Inf`. Raises ValueError."""
    try:
        return float(text)
    except ValueError:
        plain = text.strip().replace(",", "")
        if match := _SUFFIXED.fullmatch(plain):
            return float(match[1]) * _SUFFIX[match[2]]
        return float(plain)


def number_in(text: str) -> float | None:
    """The number that a value stands for: plain, quoted, wrapped as `np.float64(x)`; else None."""
    text = text.strip().strip("'\"").strip()
    if match := _WRAPPED.match(text):
        text = match[1]
    if not text or "_" in text:
        return None
    try:
        return to_float(text)
    except ValueError:
        return None
