"""The log reader: bytes in, in pieces of any size; a `Reading` out. Pure, bounded, resumable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from trainwarden.metrics.cadence import cadence
from trainwarden.metrics.ending import CHANCE, by_chance
from trainwarden.metrics.formats import LineFormat, builtin_formats
from trainwarden.metrics.formats.base import Line, Row
from trainwarden.metrics.formats.markers import mark
from trainwarden.metrics.journal import Journal
from trainwarden.metrics.lines import ESCAPES, moment, strip
from trainwarden.metrics.names import canonical
from trainwarden.metrics.reading import Ending, Event, Reading
from trainwarden.metrics.recorder import SECTION_WORDS, Recorder
from trainwarden.metrics.saved import PLAIN, STATE_VERSION, Memory, dump, restore
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
_LAST_NUMBER = re.compile(r"[\d.eE+\-]\s*\Z")
_MARK = "\xef\xbb\xbf"
"""What some programs begin UTF-8 files with."""
_CELL = frozenset("0123456789-.,\t")
_ZEROS = str.maketrans("123456789", "000000000")
_TELLING = (*SECTION_WORDS, "step", "iter", "round", "exit", "signal", "return", "code", "cancel")
"""Words of lines that may matter though one like them did not, for their digits."""
MAX_IGNORED = 5000
SELF_CLOSING = frozenset({"hf-dict"})
"""Formats that print a summary where the run ends as it should."""
MAX_PARTS = 20_000
"""Records that may stand on one line, as bars without carriage returns do."""
LONG, SHORT = 100_000, 4096
"""So far a line, and what further stands on it, is searched for words."""
_STREAK = 8
"""Lines of one shape in a row after which more are looked for at once."""
_BATCH = 512


class LogReader:
    """Reads one log incrementally; the outcome does not depend on how the bytes were cut.

    `formats` are tried in order on each line that is not like an earlier one. `use_templates`
    off parses every line by itself: slower, with the same outcome.
    """

    def __init__(
        self,
        file: str,
        formats: Sequence[LineFormat] | None = None,
        use_templates: bool = True,
    ) -> None:
        self.file = file
        self.formats: tuple[LineFormat, ...] = tuple(formats or builtin_formats())
        self.use_templates = use_templates
        self._tries = [(format_.parse, tuple(format_.hints)) for format_ in self.formats]
        self._runs = {
            format_.parse: run for format_ in self.formats if (run := getattr(format_, "run", None))
        }
        self._exclusive = [format_.parse for format_ in self.formats if format_.exclusive]
        self._sticky: Any = None
        """The format that a next line of its kind is offered first."""
        self._recorder = Recorder()
        self._memory = Memory()
        self._ignored: set[str] = set()
        """Lines that say nothing, digits made 0, as far as the memory is what it is now."""
        self._offset = 0
        self._lines = 0
        self._held = b""
        self._skipping = False
        self._in_traceback = False
        self._journal = Journal()
        self._shapes = Shapes()
        self._last: Any = None
        """What the last line had in common with others of its shape."""
        self._suspicious = True
        self._over = False
        self._snapshot: LogReader | None = None

    # Reading -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file."""
        self._snapshot = None
        if not data:
            return
        data = self._held + data
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        self._held = data[cut:]
        if cut:
            self._take(data[:cut])
        if len(self._held) > LINE_CAP:
            # Already too long: forget what came of it, keep counting.
            if not self._skipping:
                self.note("lines longer than 1 MiB skipped")
                self._skipping = True
            self._offset += len(self._held)
            self._held = b""

    def finish(self, complete: bool = False, over: bool = False) -> None:
        """Look at a last line without an end as well, for `reading` only: more may come.

        Its last number may be cut short and is left out unless the file is `complete`. Where it
        is `over`, nothing having been written for long, a run that stopped where runs end is
        taken as finished though nothing says so.
        """
        other = self._copy()
        other._over = over
        if self._held and not self._skipping:
            text = self._held.decode("latin-1")
            other._journal.lines([text], other._offset + len(text) + 1)
            if not complete and _LAST_NUMBER.search(text):
                text = re.sub(r"[^\s,;|:=\t]*\Z", "", text)
                text = text[:-1] if text.endswith(",") else text
            other._line(text, other._offset)
        other._held = self._held
        other._recorder.end_block()
        self._snapshot = other

    def next_file(self) -> None:
        """Go on in another file (after rotation): the earlier one has ended where it ended."""
        self._snapshot = None
        if self._held and not self._skipping:
            self._suspicious = True
            self._line(self._held.decode("latin-1"), self._offset)
        self._held, self._skipping = b"", False
        self._offset = self._lines = 0
        self._memory.pop("json", None)
        self._recorder.tracker.columns.forget_offsets()
        self._journal.forget_offsets()

    @property
    def reading(self) -> Reading:
        """What was read so far, with the last line after `finish`."""
        return (self._snapshot or self)._reading()

    @property
    def position(self) -> int:
        """How many bytes were taken, those of an incomplete last line included."""
        return self._offset + len(self._held)

    def note(self, text: str) -> None:
        """Remember something that was come upon."""
        self._snapshot = None
        self._journal.note(text)

    def _take(self, block: bytes) -> None:
        text = block.decode("latin-1")
        returns = "\r" in text
        pieces = (text.replace("\r", "\n") if returns else text).split("\n")
        pieces.pop()
        base = offset = self._offset
        done = 0
        if self._skipping:
            # The rest of a line that was too long.
            offset += len(pieces[0]) + 1
            self._lines += block[offset - base - 1] == 10
            self._skipping, done = False, 1
        self._suspicious = _BINARY.search(text) is not None
        line, fast = self._line, self._fast if self.use_templates else None
        index, streak, last = done, 0, self
        while index < len(pieces):
            piece = pieces[index]
            if piece:
                if fast is None:
                    line(piece, offset)
                elif fast(piece, offset):
                    streak = streak + 1 if self._last == last else 0
                    last = self._last
                else:
                    streak = 0
                    line(piece, offset)
            offset += len(piece) + 1
            index += 1
            if not returns or block[offset - base - 1] == 10:
                self._lines += 1
            if streak >= _STREAK:
                taken, length = self._batch(pieces, index, offset)
                if not returns:
                    self._lines += taken
                else:
                    self._lines += block.count(b"\n", offset - base, offset - base + length)
                index, offset = index + taken, offset + length
                streak = 0 if taken else -_BATCH
        self._offset = offset
        self._journal.lines(pieces[done:], offset)
        self._recorder.tracker.columns.fold()

    def _batch(self, pieces: list[str], index: int, offset: int) -> tuple[int, int]:
        """Take a run of lines of the last shape at once: how many, and how many bytes."""
        raw = pieces[index : index + _BATCH]
        if not raw:
            return 0, 0
        times: list[float | None] = []
        rank = None
        if self._sticky is not None:
            run = self._runs.get(self._sticky)
            found = run(raw, self._memory) if run is not None else None
            if found is None:
                return 0, 0
            row, columns = found
            key: Any = (row.format, row.key)
        else:
            template = self._shapes.last
            texts = [ESCAPES.sub("", t) if "\x1b" in t else t for t in raw]
            groups = self._shapes.run(texts)
            if template is None or len(groups) < _STREAK:
                return 0, 0
            columns = list(zip(*groups, strict=True))
            if template.timed:
                times = list(map(moment, columns.pop(0)))
            row, rank, key = template.row, template.rank, template.key
        if not columns or len(columns[0]) < _STREAK:
            return 0, 0
        taken = len(columns[0])
        ends = list(accumulate([len(piece) + 1 for piece in raw[:taken]], initial=offset))
        if not self._recorder.batch(columns, ends[:-1], times, rank, key):
            return 0, 0
        for time in times:
            self._journal.at(time)
        self._journal.saw(row.format, taken)
        return taken, ends[-1] - offset

    # One line ----------------------------------------------------------------------------------

    def _fast(self, text: str, offset: int) -> bool:
        """Take a line of a shape that was parsed before."""
        if self._recorder.block or self._in_traceback:
            return False
        if self._sticky is not None and (
            text[-1] == "}" if text[0] == "{" else text[0] in _CELL and ":" not in text
        ):
            line = Line(text, 0, offset, self._lines + 1)
            row = self._sticky(line, self._memory)
            if row is not None and row.kind == "metrics" and row.key is not None:
                self._accept(row, line)
                self._last = row.key
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
        self._last, self._sticky = found, None
        self._journal.saw(found.row.format)
        self._recorder.numbers(found.row, numbers, offset, time, found.rank, found.key)
        if self._recorder.restarts:
            self._tell_restarts()
        return True

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
            return
        told = self._parse(text, offset)
        if memory.touched:
            self._ignored.clear()
            memory.touched = False
        elif not told and len(text) < 1000 and not {"json", "dict"} & memory.keys():
            if len(self._ignored) >= MAX_IGNORED:
                self._ignored.clear()
            self._ignored.add(shape)

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
                self._accept(one, line)
            if row.rest is not None and row.rest > begin:
                return [(text, row.rest)]
        elif _has(low, SECTION_WORDS):
            self._recorder.heading(text[begin:])
        if row is None or row.key is None:
            marked = self._mark(line, low)
        if row is not None and not marked and not start and row.repeatable and self.use_templates:
            self._shapes.learn(row, line, prefix.time_span)
        told = row is not None or marked or prefix.time is not None or _has(low, _TELLING)
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
                _readable(text),
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

    # Outcome -----------------------------------------------------------------------------------

    def _ended(self) -> Ending:
        tracker, ending = self._recorder.tracker, self._recorder.ending
        if ending.fatal is not None:
            return "interrupted" if ending.fatal == "interrupted" else "crashed"
        if ending.finish:
            return "finished"
        if tracker.arrived or (self._over and self._stopped_where_runs_end()):
            return "finished"
        points = max((column.series.count for column in tracker.columns.every()), default=0)
        if self._lines + bool(self._held) <= 1 and tracker.rows <= 1 and points <= 1:
            return "unknown"  # one line tells of no course
        if self._journal.format in {"csv", "table"}:
            tested = tracker.rows == tracker.test_rows > 0
            return "finished" if tested else "unknown"
        return "running" if tracker.rows or tracker.current >= 0 else "unknown"

    def _stopped_where_runs_end(self) -> bool:
        tracker = self._recorder.tracker
        if self._journal.format in SELF_CLOSING or self._memory.get("headerless"):
            return False
        rate = tracker.columns.named().get("learning_rate")
        rates = None
        if rate is not None and rate.maximum is not None and rate.last is not None:
            rates = (rate.maximum.value, rate.last.value)
        rows, stride = tracker.rows, tracker.stride
        return by_chance(self._recorder.ending, rows, tracker.printed, stride, rates) <= CHANCE

    def _reading(self) -> Reading:
        tracker = self._recorder.tracker
        tracker.columns.fold()
        notes = self._journal.remarks()
        counted = tracker.counted and not tracker.explicit and not tracker.main_bar
        if counted:
            notes.append("no step is printed: lines are counted")
        if tracker.relative:
            notes.append("steps are printed per epoch: the series count on over epochs")
        reading = Reading(
            file=self.file,
            format=self._journal.format,
            bytes=self.position,
            lines=self._lines,
            series=tracker.columns.named(),
            last_step=tracker.last_step,
            total_steps=tracker.total_steps,
            ended=self._ended(),
            runs=tracker.runs,
            events=self._journal.events,
            tail=[(offset, _readable(text)) for offset, text in self._journal.tail],
            first_time=self._journal.first_time,
            last_time=self._journal.last_time,
            notes=notes,
            counted=counted,
        )
        return reading.stretched(cadence(tracker), reading.total_steps)

    # State -------------------------------------------------------------------------------------

    def _copy(self) -> LogReader:
        other = LogReader(self.file, self.formats, self.use_templates)
        for name in PLAIN:
            setattr(other, name, getattr(self, name))
        other._recorder = self._recorder.copy()
        other._memory = Memory(
            (key, list(value) if isinstance(value, list) else value)
            for key, value in self._memory.items()
        )
        other._journal = self._journal.copy()
        return other

    def to_state(self) -> dict[str, Any]:
        """Everything as plain JSON-able data; `from_state` goes on exactly there."""
        return dump(self)

    @classmethod
    def from_state(
        cls, state: dict[str, Any], formats: Sequence[LineFormat] | None = None
    ) -> LogReader:
        """Rebuild what `to_state` gave. Raises KeyError, TypeError or ValueError on other data."""
        if state["version"] != STATE_VERSION:
            raise ValueError(f"reading state of version {state['version']!r}")
        reader = cls(str(state["file"]), formats)
        restore(reader, state)
        return reader


def _stepped(row: Row) -> bool:
    return any(canonical(pair.name)[0].name in {"step", "epoch_step"} for pair in row.pairs)


def _has(low: str, words: Sequence[str]) -> bool:
    for word in words:  # noqa: SIM110 (twice as fast as any() of a generator)
        if word in low:
            return True
    return False


def _readable(text: str) -> str:
    return text.encode("latin-1", "replace").decode("utf-8", "replace")
