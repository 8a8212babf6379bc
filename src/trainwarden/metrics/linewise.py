"""One line of a log after another: recognised as like an earlier one, or parsed by the formats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from trainwarden.metrics.formats import LineFormat
from trainwarden.metrics.formats.base import CELL, Line, Row
from trainwarden.metrics.formats.markers import mark
from trainwarden.metrics.journal import Journal
from trainwarden.metrics.lines import ESCAPES, moment, strip
from trainwarden.metrics.names import canonical
from trainwarden.metrics.reading import Event
from trainwarden.metrics.recorder import SECTION_WORDS, Recorder
from trainwarden.metrics.saved import Memory
from trainwarden.metrics.templates import Shapes
from trainwarden.metrics.values import to_float

LINE_CAP = 1 << 20
"""Longer lines are skipped and noted."""
_BINARY = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f]")
_GLUED = re.compile(
    r"slurmstepd: error|srun: error|Traceback \(most recent call last\)|mpirun (?:has|noticed)"
    r"|terminate called"
)
_GLUED_WORDS = ("error", "traceback", "mpirun", "terminate")
_MARK = "\xef\xbb\xbf"
"""What some programs begin UTF-8 files with."""
_ZEROS = str.maketrans("123456789", "000000000")
_TELLING = (*SECTION_WORDS, "step", "iter", "round", "exit", "signal", "return", "code", "cancel")
"""Words of lines that may matter though one like them did not, for their digits."""
MAX_IGNORED = 5000
MAX_PARTS = 20_000
"""Records that may stand on one line, as bars without carriage returns do."""
LONG, SHORT = 100_000, 4096
"""So far a line, and what further stands on it, is searched for words."""


class LineByLine:
    """What of a log reader takes one line at a time."""

    def __init__(self, formats: Sequence[LineFormat], use_templates: bool) -> None:
        self.formats = tuple(formats)
        self.use_templates = use_templates
        self._tries = [(format_.parse, tuple(format_.hints)) for format_ in self.formats]
        self._exclusive = {
            format_.parse: format_.name for format_ in self.formats if format_.exclusive
        }
        self._sticky: Any = None
        """The format that a next line of its kind is offered first."""
        self._seen: dict[str, None] = {}
        """Exclusive formats that had lines, by name."""
        self._recorder = Recorder()
        self._memory = Memory()
        self._ignored: dict[str, tuple[int, int] | None] = {}
        """Lines that say nothing but the time at a place, digits made 0.

        As far as the memory is what it is now.
        """
        self._stamp: tuple[int, int] | None = None
        """Where the line that was parsed last has its time."""
        self._lines = 0
        self._in_traceback = False
        self._journal = Journal()
        self._shapes = Shapes()
        self._suspicious = True

    def note(self, text: str) -> None:
        """Remember something that was come upon."""
        self._journal.note(text)

    # One line ----------------------------------------------------------------------------------

    def _fast(self, text: str, offset: int) -> bool:
        """Take a line of a shape that was parsed before."""
        if self._recorder.block or self._in_traceback:
            return False
        if self._sticky is not None and (
            text[-1] == "}" if text[0] == "{" else text[0] in CELL and ":" not in text
        ):
            line = Line(text, 0, offset, self._lines + 1)
            row = self._sticky(line, self._memory)
            if row is not None and row.kind == "metrics" and row.key is not None:
                self._accept(row, line)
                return True
            self._sticky = None
        if "\x1b" in text:
            text = ESCAPES.sub("", text)
        shaped = self._shapes.match(text)
        if shaped is None:
            return False
        found, match = shaped
        groups = match.groups()
        time = None
        if found.timed:
            time = moment(groups[0])
            groups = groups[1:]
            self._journal.at(time)
        try:
            numbers = list(map(float, groups))
        except ValueError:
            numbers = list(map(to_float, groups))
        self._sticky = None
        self._journal.saw(found.row.format)
        self._recorder.numbers(found.row, numbers, offset, time, found.rank, found.key)
        if self._recorder.restarts:
            self._tell_restarts()
        return True

    def _silent(self, text: str) -> tuple[bool, float | None]:
        """Whether a line is one that says nothing, as is known of it; the time that it tells."""
        if self._recorder.block or self._in_traceback or self._suspicious or "\x1b" in text:
            return False, None
        if (shape := text.translate(_ZEROS)) in self._ignored:
            return True, _time_at(text, self._ignored[shape])
        return text.isspace(), None

    def _line(self, text: str, offset: int) -> None:
        if len(text) > LINE_CAP:
            self.note("lines longer than 1 MiB skipped")
            return
        if offset == 0 and text.startswith(_MARK):
            text = text.replace(_MARK, "   ", 1)
        if "\x1b" in text:
            text = ESCAPES.sub("", text)
        if self._suspicious and _BINARY.search(text):
            if len(_BINARY.findall(text)) * 8 > len(text):
                self.note("binary data skipped")
                return
            text = _BINARY.sub("", text)
        if not text.strip():
            self._in_traceback = False
            self._recorder.end_block()
            return
        memory = self._memory
        if not self.use_templates or self._recorder.block or self._in_traceback:
            self._parse(text, offset)
            if memory.touched:
                self._ignored.clear()
                memory.touched = False
            return
        if (shape := text.translate(_ZEROS)) in self._ignored:
            self._journal.at(_time_at(text, self._ignored[shape]))
            return
        told = self._parse(text, offset)
        if memory.touched:
            self._ignored.clear()
            memory.touched = False
        elif not told and len(text) < 1000 and not {"json", "dict"} & memory.keys():
            if len(self._ignored) >= MAX_IGNORED:
                self._ignored.clear()
            self._ignored[shape] = self._stamp

    def _parse(self, text: str, offset: int) -> bool:
        """Take a line, however many records run together on it; whether it may say anything."""
        parts: list[tuple[str, int]] = [(text, 0)]
        told, taken = False, 0
        while parts:
            taken += 1
            if taken > MAX_PARTS:
                self.note(f"more than {MAX_PARTS} records on a line")
                break
            part, start = parts.pop()
            more = self._part(part, start, offset)
            told = told or more is None or bool(more)
            parts += more or ()
        return told

    def _part(self, text: str, start: int, offset: int) -> list[tuple[str, int]] | None:
        """Take a line from `start` on, up to where another record begins.

        What is then to be taken, the first one last; None where that is nothing, but the line
        says something.
        """
        reach = start + (SHORT if start else LONG)
        low = text[start:reach].lower()
        tries = [parse for parse, hints in self._tries if not hints or _has(low, hints)]
        prefix = strip(text[start:reach] if start else text)
        begin = start + prefix.start
        self._journal.at(prefix.time)
        if (
            _has(low, _GLUED_WORDS)
            and (glued := _GLUED.search(text, begin + 1, max(begin + 1, reach)))
            and text[begin : glued.start()].strip(" |")
        ):
            return [(text, glued.start()), (text[: glued.start()], start)]
        line = Line(text, begin, offset, self._lines + 1, prefix.time, prefix.rank)
        marked = False
        row = self._row(line, tries)
        if row is not None:
            for one in (row, *row.more):
                one.bare = one.format == "text" and not text[start:begin].strip()
                self._accept(one, line)
            if row.rest is not None and row.rest > begin:
                return [(text, row.rest)]
        elif _has(low, SECTION_WORDS):
            self._recorder.heading(text[begin:])
        if row is None or row.key is None:
            marked = self._mark(line, low)
        if row is not None and not marked and not start and row.repeatable and self.use_templates:
            self._shapes.learn(row, line, prefix.time_span)
        if not start:
            self._stamp = prefix.time_span
        told = row is not None or marked or _has(low, _TELLING)
        return None if told else []

    def _row(self, line: Line, tries: list[Any]) -> Row | None:
        text, start = line.text, line.start
        code = False
        if self._in_traceback:
            code = text[start : start + 1] in {" ", "\t"} or text.startswith("File ", start)
            self._in_traceback = code
        for parse in tries:
            row: Row | None = parse(line, self._memory)
            if row is not None:
                if code and not _stepped(row):
                    return None  # a line of code in a traceback
                self._sticky = parse if parse in self._exclusive else None
                if self._sticky is not None:
                    self._seen[self._exclusive[parse]] = None
                return row
        return None

    def _accept(self, row: Row, line: Line) -> None:
        if row.kind in {"metrics", "bar"} or (row.kind == "partial" and not self._recorder.block):
            self._journal.saw(row.format)
        self._recorder.row(row, line.offset, line.time, line.rank)
        if self._recorder.restarts:
            self._tell_restarts()

    # Events ------------------------------------------------------------------------------------

    def _mark(self, line: Line, low: str) -> bool:
        body = line.text[line.start :]
        long = len(body) > 20_000
        found = mark(body[:10_000] + body[-10_000:]) if long else mark(body, low)
        if found is None:
            return False
        recorder, step = self._recorder, self._recorder.tracker.current
        if found.kind == "traceback":
            self._in_traceback = True
        elif self._in_traceback and found.kind in {"exception", "error", "exit_code"}:
            if body[:1] in {" ", "\t"}:
                return True  # a line of code in the traceback
            self._in_traceback = False
        if found.fatal:
            recorder.tracker.resuming = True
            recorder.ending.failed(found.kind, step)
        elif found.kind == "resume":
            recorder.tracker.resuming = True
        elif found.kind == "finished" and (step >= 0 or len(recorder.tracker.columns)):
            recorder.ending.finished(step, found.sure)
        elif found.kind == "checkpoint_saved":
            recorder.ending.pause()
        text = body if len(body) < 2000 else body[:1000] + " … " + body[-900:]
        self._journal.event(
            Event(
                found.kind,
                readable(text),
                line.offset,
                line.number,
                step if step >= 0 else None,
                line.time,
                line.rank,
            )
        )
        return True

    def _tell_restarts(self) -> None:
        for step, time, offset in self._recorder.restarts:
            text = "the step fell back: the run was restarted"
            self._journal.event(Event("resume", text, offset, self._lines + 1, step, time))
        self._recorder.restarts.clear()


def _stepped(row: Row) -> bool:
    return any(canonical(pair.name)[0].name in {"step", "epoch_step"} for pair in row.pairs)


def _has(low: str, words: Sequence[str]) -> bool:
    for word in words:  # noqa: SIM110 (twice as fast as any() of a generator)
        if word in low:
            return True
    return False


def _time_at(text: str, span: tuple[int, int] | None) -> float | None:
    return None if span is None else moment(text[slice(*span)])


def readable(text: str) -> str:
    """The UTF-8 text of what was taken byte by byte."""
    return text.encode("latin-1", "replace").decode("utf-8", "replace")
