"""The log reader: bytes in, in pieces of any size; a `Reading` out. Pure, bounded, resumable."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from trainwarden.metrics.formats import LineFormat, builtin_formats
from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.markers import mark
from trainwarden.metrics.formats.tables import boxed
from trainwarden.metrics.lines import ESCAPES, moment, strip
from trainwarden.metrics.reading import Ending, Event, Reading
from trainwarden.metrics.templates import MAX_TEMPLATES, Template, compile_template
from trainwarden.metrics.tracker import Tracker
from trainwarden.metrics.values import to_float

STATE_VERSION = 1
LINE_CAP = 1 << 20
"""Longer lines are skipped and noted."""
TAIL_LINES = 40
TAIL_WIDTH = 400
EVENTS = 200
_SETTLED = 3
"""Rows after an error that show that the run went on."""
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SECTION = re.compile(
    r"^\W*(?:>\s*|-+>\s*)*(?:(?P<train>TRAINING|Training)|(?P<eval>EVALUATION|EVAL PERFORMANCE|"
    r"Running Evaluation|Running Prediction|Running evaluation|Evaluating|Validating))\b"
)
_LAST_NUMBER = re.compile(r"[\d.eE+\-]\s*\Z")


class LogReader:
    """Reads one log incrementally; the outcome does not depend on how the bytes were cut."""

    def __init__(self, file: str, formats: Sequence[LineFormat] | None = None) -> None:
        self.file = file
        self.formats: tuple[LineFormat, ...] = tuple(formats or builtin_formats())
        self.use_templates = True
        self.tracker = Tracker()
        self.memory: dict[str, object] = {}
        self._offset = 0
        self._lines = 0
        self._held = b""
        self._skipping = False
        self._section: str | None = None
        self._in_traceback = False
        self._block: list[Any] = []
        self._first_events: list[Event] = []
        self._last_events: list[Event] = []
        self._tail: list[tuple[int, str]] = []
        self._notes: dict[str, int] = {}
        self._formats_seen: dict[str, int] = {}
        self._first_time: float | None = None
        self._last_time: float | None = None
        self._fatal: list[Any] | None = None
        self._finish: list[Any] | None = None
        self._templates: list[Template] = []
        self._last_template: Template | None = None
        self._compiled = self._hits = 0
        self._snapshot: LogReader | None = None

    # Reading -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file."""
        self._snapshot = None
        if not data:
            return
        self._held += data
        cut = max(self._held.rfind(b"\n"), self._held.rfind(b"\r")) + 1
        if cut:
            block, self._held = self._held[:cut], self._held[cut:]
            self._take(block)
        if len(self._held) > LINE_CAP:
            # The line is already too long: forget what came of it, keep counting.
            if not self._skipping:
                self.note("lines longer than 1 MiB skipped")
                self._skipping = True
            self._offset += len(self._held)
            self._held = b""

    def finish(self, complete: bool = False) -> None:
        """Look at a last line without an end as well, for `reading` only: more may come.

        Its last number may be cut short and is left out unless the file is `complete`.
        """
        held = self._held
        other = self._copy()
        if held and not self._skipping:
            text = held.decode("latin-1")
            if not complete and _LAST_NUMBER.search(text):
                text = re.sub(r"[^\s,;|:=\t]*\Z", "", text)
                text = text[:-1] if text.endswith(",") else text
            other._line(text, other._offset, last=True)
        other._held = held
        other._flush_block()
        other.tracker.columns.fold()
        self._snapshot = other

    @property
    def reading(self) -> Reading:
        """What was read so far, with the last line after `finish`."""
        return (self._snapshot or self)._reading()

    @property
    def position(self) -> int:
        """How many bytes were taken, those of an incomplete last line included."""
        return self._offset + len(self._held)

    def next_file(self) -> None:
        """Go on in another file (after rotation): the earlier one has ended where it ended."""
        self._snapshot = None
        if self._held and not self._skipping:
            self._line(self._held.decode("latin-1"), self._offset)
        self._held, self._skipping = b"", False
        self._offset = self._lines = 0
        self.memory.pop("json", None)
        self.tracker.columns.forget_offsets()
        for event in (*self._first_events, *self._last_events):
            event.offset = -1
        self._tail = []

    def note(self, text: str) -> None:
        """Remember something that the reader came upon."""
        if text in self._notes or len(self._notes) < 50:
            self._notes[text] = self._notes.get(text, 0) + 1

    def _take(self, block: bytes) -> None:
        text = block.decode("latin-1")
        returns = "\r" in text
        pieces = (text.replace("\r", "\n") if returns else text).split("\n")
        pieces.pop()
        offset = self._offset
        if self._skipping:
            # The rest of a line that was too long.
            first = pieces.pop(0)
            offset += len(first) + 1
            if block[len(first) : len(first) + 1] == b"\n":
                self._lines += 1
            self._skipping = False
        base = self._offset
        line = self._line
        if not returns:
            for piece in pieces:
                if piece:
                    line(piece, offset)
                offset += len(piece) + 1
                self._lines += 1
        else:
            for piece in pieces:
                if piece:
                    line(piece, offset)
                offset += len(piece) + 1
                if text[offset - base - 1] == "\n":
                    self._lines += 1
        self._offset = offset
        self.tracker.columns.fold()

    # One line ----------------------------------------------------------------------------------

    def _line(self, text: str, offset: int, last: bool = False) -> None:
        if len(text) > LINE_CAP:
            self.note("lines longer than 1 MiB skipped")
            return
        tail = self._tail
        tail.append((offset, text[:TAIL_WIDTH]))
        if len(tail) > 8 * TAIL_LINES:
            del tail[:-TAIL_LINES]
        if "\x1b" in text:
            text = ESCAPES.sub("", text)
        if not self._block and self._fast(text, offset):
            return
        if _BINARY.search(text):
            if text.count("\x00") * 4 > len(text) or len(_BINARY.findall(text)) * 8 > len(text):
                self.note("binary data skipped")
                return
            text = _BINARY.sub("", text)
        if not text.strip():
            self._in_traceback = False
            return
        self._parse(text, offset, 0, last)

    def _fast(self, text: str, offset: int) -> bool:
        previous = self._last_template
        if previous is None:
            return False
        successor = previous.successor
        if successor is not None and (match := successor.pattern.fullmatch(text)):
            self._hit(successor, match, offset)
            return True
        for template in self._templates:
            if template is not successor and (match := template.pattern.fullmatch(text)):
                previous.successor = template
                self._hit(template, match, offset)
                return True
        return False

    def _hit(self, template: Template, match: re.Match[str], offset: int) -> None:
        self._hits += 1
        self._last_template = template
        self._in_traceback = False
        groups = match.groups()
        time = None
        if template.timed:
            time = moment(groups[0])
            groups = groups[1:]
            if time is not None:
                if self._first_time is None:
                    self._first_time = time
                self._last_time = time
        row = template.row
        try:
            numbers = [float(group) for group in groups]
        except ValueError:
            numbers = [to_float(group) for group in groups]
        binding = template.bindings.get(self._section)
        if binding is None:
            binding = template.bindings[self._section] = self._bind(row)
        places_at, values_at, phased, shape = binding
        places = {
            role: numbers[index] for role, index in places_at if numbers[index] == numbers[index]
        }
        tracker = self.tracker
        x = tracker.locate(places, phased, shape, template.rank)
        if x is None:
            return
        for index, pending, factor in values_at:
            pending.append((x, numbers[index] * factor, offset))
        self._after_row(phased, x, time, offset)

    def _bind(self, row: Row) -> tuple[list[tuple[str, int]], list[Any], Row, str]:
        phased = self._phased(row)
        places, values = self.tracker.positions(phased)
        index_of = {id(pair): index for index, pair in enumerate(phased.pairs)}
        by_role: list[tuple[str, int]] = []
        for role in places:
            index = self._role_index(phased, role)
            by_role.append((role, index))
        at: list[Any] = []
        for pair in values:
            column = self.tracker.columns.get(pair.name, phased.phase, pair.unit)
            if column is not None:
                factor = self.tracker.columns.factor(column, pair.unit)
                at.append((index_of[id(pair)], column.pending, factor))
        return by_role, at, phased, self._shape(phased)

    def _role_index(self, row: Row, role: str) -> int:
        from trainwarden.metrics.names import canonical

        best, rank = -1, 99
        for index, pair in enumerate(row.pairs):
            meaning = canonical(pair.name)[0]
            if meaning.known and meaning.name == role and meaning.rank < rank:
                best, rank = index, meaning.rank
        return best

    def _parse(self, text: str, offset: int, start: int, last: bool = False) -> None:
        prefix = strip(text[start:] if start else text)
        begin = start + prefix.start
        if prefix.time is not None:
            if self._first_time is None:
                self._first_time = prefix.time
            self._last_time = prefix.time
        line = Line(text, begin, offset, self._lines + 1, prefix.time, prefix.rank)
        row = self._row(line)
        if row is not None:
            self._accept(row, line, prefix.time_span if not start else None, whole=not start)
            if row.rest is not None:
                self._parse(text, offset, row.rest, last)
                return
        elif self._section_of(text[begin:]):
            return
        self._mark(line)

    def _row(self, line: Line) -> Row | None:
        text = line.text
        if self._in_traceback:
            if text[line.start : line.start + 1] in {" ", "\t"}:
                return None
            if text.startswith("File ", line.start):
                return None
        for format_ in self.formats:
            row = format_.parse(line, self.memory)
            if row is not None:
                return row
        return None

    def _section_of(self, body: str) -> bool:
        found = _SECTION.match(body) if len(body) < 200 else None
        if found is None:
            return False
        self._section = "eval" if found["eval"] else None
        return False

    def _phased(self, row: Row) -> Row:
        if row.phase is None and self._section == "eval":
            return replace(row, phase="eval")
        return row

    def _shape(self, row: Row) -> str:
        for pair in row.pairs:
            from trainwarden.metrics.names import canonical

            meaning = canonical(pair.name)[0]
            if meaning.known and meaning.name == "step":
                return f"{row.format}:{pair.name}:{row.phase or ''}"
        return f"{row.format}:{row.pairs[0].name if row.pairs else ''}:{row.phase or ''}"

    # Rows --------------------------------------------------------------------------------------

    def _accept(
        self, row: Row, line: Line, time_span: tuple[int, int] | None, whole: bool = True
    ) -> None:
        self._in_traceback = False
        if row.kind == "totals":
            for pair in row.pairs:
                if pair.name in {"total_steps", "max_steps"} and pair.value > 0:
                    self.tracker.stated_total = pair.value
            return
        if row.kind == "partial":
            if len(self._block) < 500:
                self._block.append((row, line.offset, line.time, line.rank))
            return
        if row.kind == "end":
            self._flush_block()
            return
        self._flush_block()
        self._formats_seen[row.format] = self._formats_seen.get(row.format, 0) + 1
        if row.kind == "bar":
            self._bar(row, line)
            return
        self._add(row, line.offset, line.time, line.rank)
        if whole and row.repeatable and self.use_templates and row.rest is None:
            self._remember(row, line, time_span)

    def _remember(self, row: Row, line: Line, time_span: tuple[int, int] | None) -> None:
        if self._compiled > 64 and self._hits < 4 * self._compiled:
            return
        template = compile_template(line, row, time_span)
        if template is None or template.pattern.fullmatch(line.text) is None:
            return
        self._compiled += 1
        self._templates.insert(0, template)
        del self._templates[MAX_TEMPLATES:]
        if self._last_template is not None:
            self._last_template.successor = template
        self._last_template = template

    def _flush_block(self) -> None:
        if not self._block:
            return
        block, self._block = self._block, []
        pairs = [pair for row, *_ in block for pair in row.pairs]
        if boxed(pairs):
            _row, offset, time, rank = block[0]
            format_ = block[0][0].format
            self._formats_seen[format_] = self._formats_seen.get(format_, 0) + 1
            self._add(Row(format_, pairs), offset, time, rank)

    def _bar(self, row: Row, line: Line) -> None:
        places, values = self.tracker.positions(row)
        x = self.tracker.bar(places, row.label)
        if x is None or not values:
            return
        self.tracker.measured(row, values, x, line.offset)
        self._went_on(x)

    def _add(self, row: Row, offset: int, time: float | None, rank: int | None) -> None:
        row = self._phased(row)
        places, values = self.tracker.positions(row)
        if row.phase == "summary":
            if self.tracker.rows:
                self._finish = self._finish or [offset, 0]
                self._settle_soft()
            self.tracker.measured(row, values, max(self.tracker.current, 0.0), offset)
            return
        x = self.tracker.locate(places, row, self._shape(row), rank)
        if x is None:
            return
        self.tracker.measured(row, values, x, offset)
        if row.format == "csv":
            named = {pair.name for pair in values}
            self.tracker.test_rows = int(bool(named) and all(n.startswith("test") for n in named))
        self._after_row(row, x, time, offset)

    def _after_row(self, row: Row, x: float, time: float | None, offset: int) -> None:
        tracker = self.tracker
        if tracker.restarted_at is not None:
            self._event(
                Event(
                    "resume",
                    "the step fell back: the run was restarted",
                    offset,
                    self._lines + 1,
                    x,
                    time,
                )
            )
            tracker.restarted_at = None
        if row.phase == "eval":
            return
        tracker.rows += 1
        if time is not None:
            tracker.timed(time, x, offset)
        self._went_on(x)

    def _went_on(self, x: float) -> None:
        if self._fatal is not None and x != self._fatal[2]:
            self._fatal[1] += 1
            self._fatal[2] = x
            if self._fatal[1] >= _SETTLED:
                self._fatal = None
        if self._finish is not None:
            self._finish[1] += 1
            if self._finish[1] >= _SETTLED:
                self._finish = None

    # Events ------------------------------------------------------------------------------------

    def _mark(self, line: Line) -> None:
        body = line.text[line.start :]
        found = mark(body if len(body) < 20_000 else body[:10_000] + body[-10_000:])
        if found is None:
            return
        if found.kind == "traceback":
            self._in_traceback = True
        elif self._in_traceback and found.kind in {"exception", "error", "exit_code"}:
            if body[:1] in " \t" and not body.lstrip().startswith(("torch", "Runtime")):
                return
            self._in_traceback = False
        if found.fatal:
            self.tracker.resuming = True
            if self._fatal is None:
                self._fatal = [found.kind, 0, self.tracker.current]
        elif found.kind == "resume":
            self.tracker.resuming = True
        elif found.kind == "finished" and (
            self.tracker.rows or self.tracker.current >= 0 or len(self.tracker.columns)
        ):
            self._finish = [line.offset, 0]
            self._settle_soft()
        text = body if len(body) < 2000 else body[:1000] + " … " + body[-900:]
        step = self.tracker.current
        self._event(
            Event(
                found.kind,
                text.encode("latin-1", "replace").decode("utf-8", "replace"),
                line.offset,
                line.number,
                step if step >= 0 else None,
                line.time,
                line.rank,
            )
        )

    def _settle_soft(self) -> None:
        if self._fatal is not None and self._fatal[0] in {"exception", "error"}:
            self._fatal = None

    def _event(self, event: Event) -> None:
        if len(self._first_events) < EVENTS:
            self._first_events.append(event)
            return
        self._last_events.append(event)
        if len(self._last_events) > 2 * EVENTS:
            del self._last_events[:-EVENTS]

    # Outcome -----------------------------------------------------------------------------------

    @property
    def _format(self) -> str:
        seen = {k: v for k, v in self._formats_seen.items() if k != "tqdm"} or self._formats_seen
        return max(seen, key=lambda name: seen[name]) if seen else "unknown"

    def _ended(self) -> Ending:
        tracker = self.tracker
        if self._fatal is not None:
            return "interrupted" if self._fatal[0] == "interrupted" else "crashed"
        if self._finish is not None:
            return "finished"
        total, step = tracker.total_steps, tracker.last_step
        if total is not None and step is not None and step >= total > 0:
            return "finished"
        format_ = self._format
        if format_ in {"csv", "table"}:
            return "finished" if tracker.test_rows else "unknown"
        return "running" if tracker.rows or tracker.current >= 0 else "unknown"

    def _reading(self) -> Reading:
        tracker = self.tracker
        tracker.columns.fold()
        notes = [text if n == 1 else f"{text} ({n} times)" for text, n in self._notes.items()]
        if tracker.counted and not tracker.explicit and not tracker.main_bar:
            notes.append("no step is printed: lines are counted")
        if tracker.relative:
            notes.append("steps are printed per epoch: the series count on over epochs")
        return Reading(
            file=self.file,
            format=self._format,
            bytes=self.position,
            lines=self._lines,
            series=tracker.columns.named(),
            last_step=tracker.last_step,
            total_steps=tracker.total_steps,
            ended=self._ended(),
            runs=tracker.runs,
            events=self._first_events + self._last_events[-EVENTS:],
            tail=[
                (offset, text.encode("latin-1", "replace").decode("utf-8", "replace"))
                for offset, text in self._tail[-TAIL_LINES:]
            ],
            first_time=self._first_time,
            last_time=self._last_time,
            notes=notes,
        )

    # State -------------------------------------------------------------------------------------

    _PLAIN = (
        "_offset",
        "_lines",
        "_skipping",
        "_section",
        "_in_traceback",
        "_first_time",
        "_last_time",
        "_fatal",
        "_finish",
    )

    def _copy(self) -> LogReader:
        other = LogReader(self.file, self.formats)
        for name in self._PLAIN:
            value = getattr(self, name)
            setattr(other, name, list(value) if isinstance(value, list) else value)
        other.use_templates = self.use_templates
        other.tracker = self.tracker.copy()
        other.memory = {
            key: list(value) if isinstance(value, list) else value
            for key, value in self.memory.items()
        }
        other._block = list(self._block)
        other._first_events = list(self._first_events)
        other._last_events = list(self._last_events)
        other._tail = list(self._tail)
        other._notes = dict(self._notes)
        other._formats_seen = dict(self._formats_seen)
        return other

    def to_state(self) -> dict[str, Any]:
        """Everything as plain JSON-able data; `from_state` goes on exactly there."""
        return {
            "version": STATE_VERSION,
            "file": self.file,
            "plain": {name: getattr(self, name) for name in self._PLAIN},
            "held": base64.b64encode(self._held).decode("ascii"),
            "tracker": self.tracker.to_state(),
            "memory": self.memory,
            "block": [
                [row.format, [list(pair[:3]) for pair in row.pairs], offset, time, rank]
                for row, offset, time, rank in self._block
            ],
            "first_events": [asdict(event) for event in self._first_events],
            "last_events": [asdict(event) for event in self._last_events[-EVENTS:]],
            "tail": [list(item) for item in self._tail[-TAIL_LINES:]],
            "notes": self._notes,
            "formats_seen": self._formats_seen,
        }

    @classmethod
    def from_state(
        cls, state: dict[str, Any], formats: Sequence[LineFormat] | None = None
    ) -> LogReader:
        """Rebuild what `to_state` gave. Raises KeyError, TypeError or ValueError on other data."""
        if state["version"] != STATE_VERSION:
            raise ValueError(f"reading state of version {state['version']!r}")
        reader = cls(str(state["file"]), formats)
        for name in cls._PLAIN:
            setattr(reader, name, state["plain"][name])
        reader._held = base64.b64decode(state["held"])
        reader.tracker = Tracker.from_state(state["tracker"])
        reader.memory = dict(state["memory"])
        reader._block = [
            (Row(format_, [Pair(*pair) for pair in pairs], kind="partial"), offset, time, rank)
            for format_, pairs, offset, time, rank in state["block"]
        ]
        reader._first_events = [Event(**event) for event in state["first_events"]]
        reader._last_events = [Event(**event) for event in state["last_events"]]
        reader._tail = [(int(offset), str(text)) for offset, text in state["tail"]]
        reader._notes = dict(state["notes"])
        reader._formats_seen = dict(state["formats_seen"])
        return reader
