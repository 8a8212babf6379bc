"""A block of many lines at once: which are of a known shape, and the numbers of those in columns.

Pure and without memory of its own, so that another process can do it for a later block while an
earlier one is taken in. A line that is not found here is read by itself: what is found changes
the speed alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from trainwarden.metrics.formats.base import (
    FEWEST,
    Kind,
    LineFormat,
    Numbers,
    Places,
    Row,
    Span,
    SpannedFormat,
)
from trainwarden.metrics.lines import ESCAPES, moments
from trainwarden.metrics.tokens import Tokens, Told

_HUGE = 1e300
"""Lines with numbers from here on are read one by one: of some formats they are none."""


class Sketch(NamedTuple):
    """The pattern of a template, to find its lines in a block."""

    pattern: str
    """Of a whole line without its end."""
    groups: Sequence[tuple[Kind, str]]
    """Kind and pattern of each of its groups, as a `Span` has them."""


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
    sketches: Sequence[Sketch],
    names: Sequence[str],
    memory: dict[str, object],
    formats: Iterable[LineFormat],
) -> Survey:
    """Find the lines of known shapes in a block, and those of the exclusive formats of `names`."""
    starts = inner = bounds(block)
    if not sketches and not names:
        return Survey(starts, [])
    if b"\x1b" in block:
        texts = re.split(r"[\r\n]", block.decode("latin-1"))
        texts = [ESCAPES.sub("", text) if "\x1b" in text else text for text in texts]
        block = "\n".join(texts).encode("latin-1")
        inner = bounds(block)
    elif b"\r" in block:
        block = block.replace(b"\r", b"\n")
    tokens = Tokens(np.frombuffer(block, np.uint8), inner)
    spanned = [one for one in formats if one.name in names and isinstance(one, SpannedFormat)]
    groups: list[_Group] = []
    for lines in tokens.alike(FEWEST):
        text = tokens.text(int(inner[lines[0]]), int(inner[lines[0] + 1]) - 1)
        told = _told(text, spanned, memory) or _matched(text, sketches)
        if told is not None and (group := _group(tokens, told[0], lines, told[1])) is not None:
            groups.append(group)
    return Survey(starts, _joined(tokens, groups))


def _told(
    text: str, formats: Iterable[SpannedFormat], memory: dict[str, object]
) -> tuple[Row, Sequence[Span]] | None:
    return next((told for one in formats if (told := one.spans(text, memory))), None)


def _matched(text: str, sketches: Sequence[Sketch]) -> tuple[int, Sequence[Span]] | None:
    for index, sketch in enumerate(sketches):
        if match := _compiled(sketch.pattern).fullmatch(text):
            return index, [
                Span(*match.span(group), kind, pattern)
                for group, (kind, pattern) in enumerate(sketch.groups, 1)
            ]
    return None


@dataclass(slots=True)
class _Group:
    """Lines that are alike but for their numbers."""

    shape: int | Row
    at: Places
    good: Told
    """Which of the lines can be taken."""
    columns: list[tuple[Places, int] | float] = field(default_factory=list)
    """For each pair the tokens that are its numbers, or what stands there on every line."""
    strict: list[bool] = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)
    times: Numbers | None = None


def _group(tokens: Tokens, shape: int | Row, at: Places, spans: Sequence[Span]) -> _Group | None:
    """What can be told of lines that are alike; `spans` are those of the first of them."""
    group = _Group(shape, at, np.ones(len(at), bool))
    first, start = tokens.first[at], tokens.starts[at[0]]
    here = slice(tokens.first[at[0]], tokens.first[at[0] + 1])
    begins = (tokens.begins[here] - start).tolist()
    ends = (tokens.ends[here] - start).tolist()
    one = 0

    def alike(stop: int) -> None:
        # What stands outside of spans is text that happens to hold digits.
        nonlocal one
        while one < len(ends) and ends[one] <= stop:
            group.good &= tokens.same(first + one)
            one += 1

    for span in spans:
        alike(span.begin)
        low = one
        while one < len(ends) and ends[one] <= span.end:
            one += 1
        lead, tail = 0, 0
        if one > low:
            lead, tail = begins[low] - span.begin, span.end - ends[one - 1]
        if lead < 0 or (one < len(ends) and begins[one] < span.end):
            return None  # part of what looks like a number
        whole = (tokens.begins[first + low] - lead, tokens.ends[first + one - 1] + tail)
        if span.kind in {"time", "text"}:
            if one > low:
                group.good &= tokens.fits(*whole, span.pattern)
            if span.kind == "time":
                group.times = _times(tokens, *whole)
            continue
        if one > low:
            between = span.end - span.begin - sum(ends[low:one]) + sum(begins[low:one])
            if lead or tail or one > low + 1:
                # 1,234 or 3.: whatever else it may be is not read here.
                literal = tokens.text(start + span.begin, start + span.end)
                if lead or between != literal.count(",") + literal.endswith("."):
                    return None
                group.good &= tokens.fits(*whole, span.pattern)
            group.columns.append((first + low, one - low))
        else:
            group.columns.append(float(tokens.text(start + span.begin, start + span.end)))
        group.strict.append(span.kind == "strict")
        group.kept.append(span.kind != "spare")
    alike(1 << 62)
    return group


def _times(tokens: Tokens, begins: Places, ends: Places) -> Numbers:
    times = np.full(len(begins), np.nan)
    for width in np.unique(ends - begins).tolist():
        those = ends - begins == width
        times[those] = moments(tokens.table(begins[those], width))
    return times


def _joined(tokens: Tokens, groups: Sequence[_Group]) -> list[Found]:
    """The numbers of all lines, those of one shape together and in their order."""
    columns = [column for one in groups for column in one.columns if isinstance(column, tuple)]
    values = iter(tokens.numbers(columns))
    shapes: dict[object, list[Found]] = {}
    for one in groups:
        found = Found(one.shape, one.at, [], one.times)
        for column, strict, kept in zip(one.columns, one.strict, one.kept, strict=True):
            if isinstance(column, tuple):
                numbers, proper = next(values)
                one.good &= np.abs(numbers) < _HUGE  # NaN too is no number here
                if strict:
                    one.good &= proper
            else:
                numbers = np.full(len(one.at), column)
            if kept:
                found.columns.append(numbers)
        if not one.good.all():
            found = _chosen(found, np.flatnonzero(one.good))
        key = one.shape if isinstance(one.shape, int) else (one.shape.format, one.shape.key)
        shapes.setdefault(key, []).append(found)
    return [joined for some in shapes.values() if len((joined := _together(some)).at) >= FEWEST]


def _chosen(found: Found, which: Places) -> Found:
    return Found(
        found.shape,
        found.at[which],
        [column[which] for column in found.columns],
        None if found.times is None else found.times[which],
    )


def _together(some: Sequence[Found]) -> Found:
    if len(some) == 1:
        return some[0]
    columns = [np.concatenate(each) for each in zip(*(one.columns for one in some), strict=True)]
    timed = [one.times for one in some if one.times is not None]
    at = np.concatenate([one.at for one in some])
    found = Found(some[0].shape, at, columns, np.concatenate(timed) if timed else None)
    return _chosen(found, np.argsort(at))


_compiled = lru_cache(maxsize=64)(re.compile)
