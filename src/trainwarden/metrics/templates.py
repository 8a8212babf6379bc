"""Shapes of lines: a line like an earlier one but for its numbers is read by one pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from trainwarden.metrics.formats.base import Line, Row, key_of
from trainwarden.metrics.values import NUMBER, PLAIN

_SPACES = re.compile(r"(?:\\ )+")
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(NUMBER)
_LETTERS = re.compile(r"[^\W\d]")
MAX_TEMPLATES = 24
FEW = 12
LARGEST = 500
"""Numbers of a line beyond which a pattern would be too dear to make."""


@dataclass(slots=True, eq=False)
class Template:
    """A pattern whose groups are the digits of a row's pairs in order, and the time before them."""

    pattern: re.Pattern[str]
    head: str
    """What every such line begins with."""
    row: Row
    timed: bool
    rank: int | None
    key: Any
    """Rows of one key mean the same."""
    successor: Template | None = None
    lines: re.Pattern[str] | None = None
    """The pattern for whole lines of a longer text, made when it is first needed."""


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
        self.last = found
        return found, match

    def run(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The groups of the first lines that are all of the last template."""
        last = self.last
        if last is None:
            return []
        head, n = last.head, 0
        for text in texts:
            if not text.startswith(head):
                break
            n += 1
        # No part of a pattern matches an end of line: as many matches as lines means each one.
        if last.lines is None:
            last.lines = re.compile(f"^{last.pattern.pattern}$", re.MULTILINE)
        found = last.lines.findall("\n".join(texts[:n]))
        if len(found) == n:
            return found if last.pattern.groups > 1 else [(text,) for text in found]
        groups: list[tuple[str, ...]] = []
        for text in texts[:n]:
            match = last.pattern.fullmatch(text)
            if match is None:
                break
            groups.append(match.groups())
        return groups

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
    spans: list[tuple[int, int, str]] = []
    for pair in row.pairs:
        if pair.span is None:
            return None
        digits = line.text[pair.span[0] : pair.span[1]]
        spans.append((*pair.span, f"({NUMBER if ',' in digits else PLAIN})"))
    if any(a[0] >= b[0] for a, b in pairwise(spans)):
        return None
    spans += [(*span, _loose(line.text[slice(*span)])) for span in row.loose]
    spans += row.free
    if time_span is not None:
        stamp = _DIGITS.sub(r"\\d+", re.escape(line.text[time_span[0] : time_span[1]]))
        spans.append((*time_span, f"({stamp})"))
    spans.sort()
    groups = sum(pattern.startswith("(") and not pattern.startswith("(?") for *_, pattern in spans)
    group = 0
    parts: list[str] = []
    position = 0
    head = line.text[: spans[0][0]] if spans else ""
    for begin, end, pattern in spans:
        if begin < position:
            return None
        parts.append(_literal(line.text[position:begin]))
        if pattern.startswith("(") and not pattern.startswith("(?"):
            group += 1
            if groups > FEW:
                # As an atomic group does: without it a long line that differs costs dearly.
                pattern = f"(?={pattern})(?:\\{group})"
        parts.append(pattern)
        position = end
    parts.append(_literal(line.text[position:]))
    try:
        compiled = re.compile("".join(parts))
    except re.error:
        return None
    rank = line.rank if row.rank is None else row.rank
    return Template(compiled, head.split("  ")[0], row, time_span is not None, rank, key_of(row))


def _loose(digits: str) -> str:
    """A pattern for digits that mean nothing, with one way alone to match each text.

    It matches no number that would mean something where this one does not.
    """
    if _NUMBER.fullmatch(digits):
        return NUMBER if "," in digits else PLAIN
    if not _LETTERS.search(digits):
        return _DIGITS.sub(r"\\d+", re.escape(digits))
    signs = re.escape("".join(sorted({c for c in digits if not c.isalnum() and c != " "})))
    word = rf"(?!{PLAIN}(?!\w))(?=[\w{signs}]*\d)[\w{signs}]+"
    return " +".join(word for _ in digits.split())


def _literal(text: str) -> str:
    return _SPACES.sub(" +", re.escape(text))
