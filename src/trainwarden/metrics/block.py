"""Whole lines of a log as they come: where they lie, and what was found among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trainwarden.metrics.formats.base import LineFormat, Places
from trainwarden.metrics.journal import TAIL_LINES
from trainwarden.metrics.parts import Part
from trainwarden.metrics.survey import Sketch, Survey, bounds, survey
from trainwarden.metrics.templates import Template


@dataclass(slots=True)
class Plan:
    """What to look for in a block: templates, exclusive formats by name, what they remember."""

    templates: Sequence[Template]
    formats: Sequence[str]
    memory: Mapping[str, object]

    def look(self, data: bytes, formats: Iterable[LineFormat]) -> Survey:
        """Look for it; `formats` are those of the reader."""
        return survey(data, *self.order(), formats)

    def order(self) -> tuple[list[Sketch], list[str], dict[str, object]]:
        """What to look for as plain data."""
        sketches = [one.sketch for one in self.templates if one.sketch]
        return sketches, list(self.formats), dict(self.memory)

    def counts(self, seen: Survey) -> dict[Template, int]:
        """How many lines of each template were found."""
        return {
            self.templates[found.shape]: len(found.at)
            for found in seen.found
            if isinstance(found.shape, int)
        }


class Block:
    """Whole lines: by byte in the file (`offset`) and line number where the first one stands."""

    def __init__(self, data: bytes, offset: int, lines: int) -> None:
        self.data = data
        self._offset, self._lines = offset, lines
        self.starts: Places = bounds(data)
        self._returns = b"\r" in data

    def __len__(self) -> int:
        return len(self.starts) - 1

    def offset(self, index: int) -> int:
        """Where a line begins in the file."""
        return self._offset + int(self.starts[index])

    def line(self, index: int) -> str:
        """A line's text without its end, one character a byte."""
        return self.data[self.starts[index] : self.starts[index + 1] - 1].decode("latin-1")

    @cached_property
    def _feeds(self) -> Places:
        ends = np.frombuffer(self.data, np.uint8)[self.starts[1:] - 1]
        return np.concatenate(([0], np.cumsum(ends == 10)))

    def line_number(self, index: int) -> int:
        """How many lines of the file end before a line; carriage returns end none."""
        return self._lines + (int(self._feeds[index]) if self._returns else index)

    def parts(self, plan: Plan, seen: Survey, begin: int) -> list[Part]:
        """What was found from a line on, as parts of the whole block."""
        parts: list[Part] = []
        for found in seen.found:
            at = found.at + begin
            offsets = self.starts[at] + self._offset
            if isinstance(found.shape, int):
                template = plan.templates[found.shape]
                row, key, rank = template.row, template.key, template.rank
            else:
                row, key, rank = found.shape, (found.shape.format, found.shape.key), None
            parts.append(Part(row, key, rank, at, found.columns, found.times, offsets))
        return parts

    def others(self, parts: Sequence[Part], begin: int) -> list[int]:
        """The lines from one on that are in no part, and hold anything."""
        left = np.diff(self.starts) > 1
        left[:begin] = False
        for part in parts:
            left[part.at] = False
        return np.flatnonzero(left).tolist()

    def last_lines(self) -> list[str]:
        """The last lines, as many as are kept of a log."""
        pieces: list[str] = []
        wanted = TAIL_LINES
        for index in range(len(self) - 1, -1, -1):
            pieces.append(self.line(index))
            wanted -= bool(pieces[-1])
            if not wanted:
                break
        return pieces[::-1]
