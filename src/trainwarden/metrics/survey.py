"""A block of many lines at once: which are of a known shape, and the numbers of those in columns.

Pure and without memory of its own, so that another process can do it for a later block while an
earlier one is taken in. A line that is not found here is read by itself: what is found changes
the speed alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from operator import not_
from typing import NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from trainwarden.metrics.formats.base import FEWEST, LineFormat, Numbers, Places, Row
from trainwarden.metrics.lines import ESCAPES, moments
from trainwarden.metrics.values import NUMBER, PLAIN

_REST = 0.02
"""Part of the lines that may be left over: they are read one by one."""
_FINE = re.compile(PLAIN)
_GROUPED = re.compile(rf"(?:{NUMBER}\n)*")
_COMMA = re.compile(NUMBER)
_SIGNED_ZERO = re.compile(r"-0(?:,|\Z)")
"""JSON has it as an integer without a sign."""
_DIGITS = "-+.0123456789eE"
_WORDS = f"{_DIGITS}naifNAIFty"
"""Those of infinities too, which no letter may follow."""


class Sketch(NamedTuple):
    """The pattern of a template, to find its lines in a longer text."""

    pattern: str
    """Of a whole line without its end."""
    kinds: str
    """A letter for each group: `t` a time, `n` a number, `c` one that may have thousands."""


@dataclass(slots=True)
class Found:
    """Lines of one shape in a block."""

    shape: int | Row
    """Which of the sketches they are of; or the row of the first one, for an exclusive format."""
    at: Places
    """Which lines of the block."""
    columns: list[Numbers]
    """The numbers of each pair of the row, one a line."""
    times: Numbers | None = None
    """Unix seconds, NaN where what is printed is none."""


@dataclass(slots=True)
class Survey:
    """What was found in a block, which must begin with a line and end with a line's end."""

    starts: Places
    """Where each line begins, and where the last one ends; by bytes."""
    found: list[Found]


def bounds(block: bytes) -> Places:
    """Where each line of a block begins, and where the last one ends."""
    raw = np.frombuffer(block, np.uint8)
    ends = raw == 10
    if b"\r" in block:
        ends |= raw == 13
    return np.concatenate(([0], np.flatnonzero(ends) + 1))


def survey(
    block: bytes,
    sketches: Sequence[tuple[str, str]],
    names: Sequence[str],
    memory: dict[str, object],
    formats: Iterable[LineFormat],
) -> Survey:
    """Find the lines of known shapes in a block, and those of the exclusive formats of `names`."""
    text = block.decode("latin-1")
    if "\r" in text:
        text = text.replace("\r", "\n")
    if "\x1b" in text:
        lines = [ESCAPES.sub("", line) if "\x1b" in line else line for line in text.split("\n")]
        text = "\n".join(lines)
    starts = bounds(block)
    n = len(starts) - 1
    found: list[Found] = []
    places: Places = np.arange(n)
    for format_ in formats:
        if format_.name not in names or len(places) < FEWEST:
            continue
        bulk = getattr(format_, "bulk", None)
        rows = bulk(text, memory) if bulk is not None else []
        if rows:
            left = np.ones(len(places), bool)
            for row, at, columns in rows:
                found.append(Found(row, places[at], columns))
                left[at] = False
            places = places[left]
            text = "\n".join([*compress(text.split("\n"), left), ""])
    for index, (pattern, kinds) in enumerate(sketches):
        if len(places) < max(FEWEST, _REST * n):
            break
        text, places = _of_shape(index, Sketch(pattern, kinds), text, places, found)
    return Survey(starts, found)


def _of_shape(
    index: int, sketch: Sketch, text: str, places: Places, found: list[Found]
) -> tuple[str, Places]:
    """Find the lines of one sketch; the text and the places of the others."""
    every = _line_pattern(sketch.pattern).findall(text)
    hits = [row[0] for row in every]
    if all(hits):
        rows, at, places, text = every, places, places[:0], ""
    else:
        is_hit = np.fromiter(map(bool, hits), bool, len(hits))
        if not is_hit.any():
            return text, places
        rows, at = list(compress(every, hits)), places[is_hit]
        text = "\n".join([row[-1] for row in compress(every, map(not_, hits))] + [""])
        places = places[~is_hit]
    groups = list(zip(*rows, strict=True))[:-1]
    good = np.ones(len(rows), bool)
    times = None
    columns: list[Numbers] = []
    for kind, digits in zip(sketch.kinds, groups, strict=True):
        if kind == "t":
            times = moments(digits)
        else:
            column, fine = _numbers(digits, kind)
            columns.append(column)
            if fine is not None:
                good &= fine
    if not good.all():
        at, columns = at[good], [column[good] for column in columns]
        times = times if times is None else times[good]
    if len(at) >= FEWEST:
        found.append(Found(index, at, columns, times))
    return text, places


@lru_cache(maxsize=64)
def _line_pattern(pattern: str) -> re.Pattern[str]:
    # The other lines are matched too, each as a whole: so every line gives one row of groups.
    return re.compile(rf"(?:{pattern}|(.*))\n")


def _numbers(digits: Sequence[str], kind: str) -> tuple[Numbers, NDArray[np.bool_] | None]:
    """The values, and which of them are numbers as the pattern of a template has them."""
    text = ",".join(digits)
    if kind == "c":
        lines = "\n".join(digits) + "\n"
        if not _GROUPED.fullmatch(lines):
            return _checked(digits, _COMMA)
        text = lines.replace(",", "").replace("\n", ",")[:-1]
    try:
        if not _SIGNED_ZERO.search(text):
            return np.array(orjson.loads(f"[{text}]"), np.float64), None
    except (ValueError, OverflowError):
        pass  # what JSON has not: nan, +1, 1., 007
    return _checked(text.split(","), _FINE)


def _checked(
    digits: Sequence[str], pattern: re.Pattern[str]
) -> tuple[Numbers, NDArray[np.bool_] | None]:
    fine = np.fromiter((pattern.fullmatch(one) is not None for one in digits), bool, len(digits))
    plain = [one.replace(",", "") if ok else "nan" for one, ok in zip(digits, fine, strict=True)]
    return np.array(list(map(float, plain))), fine


def group_of(kind: str, pattern: str, after: str) -> str:
    """The group for a number in a sketch, where `after` follows it; `pattern` is its grammar.

    Where what follows cannot belong to a number, the digits are taken by a set of characters, which
    is far cheaper than the grammar; whether they are a number is then seen from their value.
    """
    chars = _DIGITS if after.isalpha() else _WORDS
    if kind == "c":
        chars = f"{_DIGITS},"
    if after and after not in chars:
        return f"([{re.escape(chars)}]+)"
    return f"({pattern})"
