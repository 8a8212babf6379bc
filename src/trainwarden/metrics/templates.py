"""Shapes of lines: a line like an earlier one but for its numbers is read by one pattern."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from trainwarden.metrics.formats.base import Line, Row, Span, key_of
from trainwarden.metrics.survey import Sketch
from trainwarden.metrics.values import NUMBER, PLAIN

_SPACES = re.compile(r"(?:\\ )+")
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(NUMBER)
_LETTERS = re.compile(r"[^\W\d]")
MAX_TEMPLATES = 24
LIKELY = 6
FEW = 12
LARGEST = 500
"""Numbers of a line beyond which a pattern would be too dear to make."""


@dataclass(slots=True, eq=False)
class Template:
    """A pattern whose groups are the digits of a row's pairs in order, and the time before them."""

    pattern: re.Pattern[str]
    sketch: Sketch | None
    """To find its lines in a block; None where they hold no number."""
    row: Row
    timed: bool
    rank: int | None
    key: Any
    """Rows of one key mean the same."""
    successor: Template | None = None
    hits: int = 1
    """How many lines were of it lately."""


class Shapes:
    """The templates of one log, the likeliest tried first: the one that followed last time."""

    def __init__(self) -> None:
        self.last: Template | None = None
        self._templates: list[Template] = []
        self._compiled = self._hits = 0

    def match(self, text: str) -> tuple[Template, re.Match[str]] | None:
        """The template that a line is of, if any."""
        previous = self.last
        if previous is None:
            return None
        found = previous.successor
        match = found.pattern.fullmatch(text) if found is not None else None
        if found is None or match is None:
            for template in self._templates:
                if template is not found and (match := template.pattern.fullmatch(text)):
                    found = previous.successor = template
                    break
        if found is None or match is None:
            return None
        self._hits += 1
        found.hits += 1
        self.last = found
        return found, match

    def likely(self) -> list[Template]:
        """Those that lines of a block may be of, the commonest first."""
        found = [t for t in self._templates if t.hits and t.sketch is not None]
        return sorted(found, key=lambda template: -template.hits)[:LIKELY]

    def seen(self, counts: dict[int, int]) -> None:
        """Take note of how many lines of a block each template had; what is long ago fades."""
        for template in self._templates:
            template.hits = template.hits // 2 + counts.get(id(template), 0)
            self._hits += counts.get(id(template), 0)

    def learn(self, row: Row, line: Line, time_span: tuple[int, int] | None) -> None:
        """Make a template of a parsed line, unless shapes of this log hardly ever come back."""
        size = len(row.pairs) + len(row.loose) + len(row.free)
        spent = self._compiled > 64 and self._hits < 4 * self._compiled
        if row.phase == "summary" or spent or size > LARGEST:
            return
        template = compile_template(line, row, time_span)
        if template is None or template.pattern.fullmatch(line.text) is None:
            return
        self._compiled += 1 + size // 16  # what it cost, roughly
        self._templates.insert(0, template)
        del self._templates[MAX_TEMPLATES:]
        if self.last is not None:
            self.last.successor = template
        self.last = template


def compile_template(line: Line, row: Row, time_span: tuple[int, int] | None) -> Template | None:
    """The template of a parsed line; None where its digits do not stand where they should."""
    text = line.text
    spans: list[Span] = []
    for pair in row.pairs:
        if pair.span is None:
            return None
        number = NUMBER if "," in text[slice(*pair.span)] else PLAIN
        spans.append(Span(*pair.span, "number", number))
    if any(a.begin >= b.begin for a, b in pairwise(spans)):
        return None
    spans += [_loose(text, *span) for span in row.loose]
    spans += [Span(begin, end, "text", pattern) for begin, end, pattern in row.free]
    if time_span is not None:
        stamp = _DIGITS.sub(r"\\d+", re.escape(text[slice(*time_span)]))
        spans.append(Span(*time_span, "time", stamp))
    spans.sort()
    telling = sum(span.kind in {"number", "time"} for span in spans)
    pattern = sketch = ""
    group = position = 0
    for number_of, span in enumerate(spans, 1):
        if span.begin < position:
            return None
        literal = _literal(text[position : span.begin])
        part, whole = span.pattern, f"({span.pattern})"
        if span.kind in {"number", "time"}:
            group += 1
            part = whole
            if telling > FEW:
                # As an atomic group does: without it a long line that differs costs dearly.
                part = rf"(?={part})(?:\{group})"
                whole = rf"(?={whole})(?:\{number_of})"
        pattern += literal + part
        sketch += literal + whole
        position = span.end
    literal = _literal(text[position:])
    try:
        compiled = re.compile(pattern + literal)
    except re.error:
        return None
    rank = line.rank if row.rank is None else row.rank
    groups = [(span.kind, span.pattern) for span in spans]
    return Template(
        compiled,
        Sketch(sketch + literal, groups) if row.pairs else None,
        row,
        time_span is not None,
        rank,
        key_of(row),
    )


def _loose(text: str, begin: int, end: int) -> Span:
    """Digits that mean nothing, with a pattern that has one way alone to match each text.

    It matches no number that would mean something where this one does not.
    """
    digits = text[begin:end]
    if _NUMBER.fullmatch(digits):
        return Span(begin, end, "spare", NUMBER if "," in digits else PLAIN)
    if not _LETTERS.search(digits):
        return Span(begin, end, "text", _DIGITS.sub(r"\\d+", re.escape(digits)))
    signs = re.escape("".join(sorted({c for c in digits if not c.isalnum() and c != " "})))
    word = rf"(?!{PLAIN}(?!\w))(?=[\w{signs}]*\d)[\w{signs}]+"
    return Span(begin, end, "text", " +".join(word for _ in digits.split()))


def _literal(text: str) -> str:
    return _SPACES.sub(" +", re.escape(text))
