"""W&B's local run files (`run-*.wandb`): bytes in, in pieces of any size; a `Reading` out.

Read without wandb, an account or a network. Pure, bounded, resumable.
"""

from __future__ import annotations

import base64
import re
from typing import Any, ClassVar

import numpy as np

from trainwarden.metrics.binary.axes import Axes
from trainwarden.metrics.binary.console import Console
from trainwarden.metrics.binary.history import History
from trainwarden.metrics.binary.items import items_in, numbers_of
from trainwarden.metrics.binary.leveldb import Batch, Chunks
from trainwarden.metrics.binary.lookup import Ints
from trainwarden.metrics.binary.records import (
    CONFIG,
    EXIT,
    HISTORY,
    METRIC,
    OUTPUT,
    OUTPUT_RAW,
    PREEMPTING,
    RUN,
    STATS,
    SUMMARY,
    TENSORBOARD,
    kinds_of,
)
from trainwarden.metrics.binary.scalars import Scalars
from trainwarden.metrics.binary.summary import Summary
from trainwarden.metrics.binary.wire import (
    BYTES,
    VARINT,
    Value,
    fields,
    signed,
    text,
)
from trainwarden.metrics.journal import TAIL_LINES, Journal
from trainwarden.metrics.names import canonical
from trainwarden.metrics.reading import Ending, Event, Reading
from trainwarden.records.hostile import clean

STATE_VERSION = 2
_MACHINE = re.compile(
    r"gpu\.\d+\.(?:gpu|memory|memoryAllocated|temp|powerWatts)\Z|cpu\Z|memory(?:_percent)?\Z"
    r"|proc\.memory\.rssMB\Z"
)
"""Statistics of the machine that are kept, of some hundreds."""
PIECE = 1 << 20
MAX_CONFIG, MAX_VALUE = 500, 2000
_INTERRUPTED = 255
"""The exit code that wandb gives a run which Ctrl-C ended."""


class WandbReader:
    """Reads one run file incrementally; the outcome does not depend on how it was cut."""

    kind: ClassVar[str] = "wandb"

    def __init__(self, file: str) -> None:
        self.file = file
        self._chunks = Chunks()
        self._history = History()
        self._scalars = Scalars(stepped=True)
        self._journal = Journal()
        self._console = Console()
        self._count = 0
        self._unread = 0
        self._exit: int | None = None
        self._config: dict[str, Any] = {}
        self._summary = Summary()
        self._about: dict[str, str] = {}
        self._cut = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file."""
        self._cut = False
        for start in range(0, len(data), PIECE):
            self._take(self._chunks.feed(data[start : start + PIECE]))
            if self._history.full:
                self._fold()

    def finish(self, complete: bool = False, over: bool = False) -> None:  # noqa: ARG002
        """Of a file that is `complete` an unfinished last record is noted, for `reading` only."""
        self._cut = complete and self._chunks.pending

    @property
    def position(self) -> int:
        """How many bytes were taken, those of an incomplete last record included."""
        return self._chunks.position

    def note(self, text: str) -> None:
        """Remember something that was come upon."""
        self._journal.note(text)

    # Records -----------------------------------------------------------------------------------

    def _take(self, batch: Batch) -> None:
        """Take whole records: rows and summaries together, the others one by one, in order."""
        self._count += len(batch.offsets)
        kinds, begins, ends = kinds_of(batch.data, batch.begins, batch.ends)
        inner = batch._replace(begins=begins, ends=ends)
        self._unread += int((kinds == -1).sum())
        self._summary.follow(inner, kinds)
        is_row = kinds == HISTORY
        rows, upto = np.flatnonzero(is_row), np.cumsum(is_row)
        taken = 0
        for index in np.flatnonzero(~is_row & (kinds != SUMMARY) & (kinds > 0)).tolist():
            before = int(upto[index])
            if before > taken:
                self._console.went_on()
            if kinds[index] == METRIC and before > taken:
                self._rows(inner, rows[taken:before])
                self._fold()  # what is declared holds from here on
                taken = before
            body = memoryview(batch.data)[int(begins[index]) : int(ends[index])]
            try:
                waiting = self._history.waiting + before - taken
                self._record(int(kinds[index]), body, int(batch.offsets[index]), waiting)
            except ValueError:
                self._unread += 1
        if len(rows) > taken:
            self._rows(inner, rows[taken:])

    def _rows(self, batch: Batch, rows: Ints) -> None:
        begins, ends = batch.begins[rows], batch.ends[rows]
        pieces = zip(begins.tolist(), ends.tolist(), strict=True)
        body = b"".join([batch.data[begin:end] for begin, end in pieces])
        self._history.take(body, ends - begins, batch.offsets[rows])

    def _record(self, kind: int, body: memoryview, offset: int, before: int) -> None:
        """Take a record that is no row; `before` rows that wait come before it."""
        if kind in {OUTPUT, OUTPUT_RAW}:
            self._output(body, offset, before)
        elif kind == STATS:
            for name, value in items_in(body, 3):
                if _MACHINE.match(name):
                    for _name, one in numbers_of(name, value):
                        self._history.beside(f"system/{name}", one, offset, before)
        elif kind == CONFIG:
            self._settings(body)
        elif kind == RUN:
            self._run(body)
        elif kind == EXIT:
            self._exited(body, offset, before)
        elif kind == METRIC:
            said = {n: text(raw) for n, _kind, raw in fields(body) if n in {1, 2, 4}}
            self._history.axes.declare(said.get(1, ""), said.get(2, ""), said.get(4, ""))
        elif kind == TENSORBOARD:
            self._journal.note("the run's TensorBoard files are copied into its history")
        elif kind == PREEMPTING:
            self._event("signal", "the run told W&B that it is preempted", offset, before)

    def _output(self, body: memoryview, offset: int, before: int) -> None:
        line, stream, time = "", "0", 0.0
        for number, kind, raw in fields(body):
            if number == 3:
                line = text(raw)
            elif number == 2 and kind == BYTES:
                time = _seconds(raw)
            elif number == 1:
                stream = str(raw)
        for event in self._console.take(line, stream, offset, self._journal, time):
            self._history.happened(event, before)

    def _settings(self, body: memoryview) -> None:
        for name, value in items_in(body, 1):
            known = name in self._config or len(self._config) < MAX_CONFIG
            if known and not name.startswith("_wandb") and len(repr(value)) <= MAX_VALUE:
                self._config[name] = value

    def _run(self, body: memoryview) -> None:
        for number, kind, raw in fields(body):
            if kind == BYTES and isinstance(raw, memoryview):
                if number == 4:
                    self._settings(raw)
                elif number == 17:
                    self._journal.at(_seconds(raw) or None)
                elif number in _ABOUT:
                    self._about[_ABOUT[number]] = clean(text(raw), 100)

    def _exited(self, body: memoryview, offset: int, before: int) -> None:
        code = 0
        for number, kind, raw in fields(body):
            if number == 1 and kind == VARINT and isinstance(raw, int):
                code = signed(raw)
        self._exit = code
        told = f"W&B's exit record: exit code {code}"
        kind_ = "interrupted" if code == _INTERRUPTED else "exit_code" if code else "finished"
        self._event(kind_, told, offset, before)

    def _event(self, kind: str, told: str, offset: int, before: int) -> None:
        event = Event(kind, told, offset, self._console.lines)
        self._journal.event(event)
        self._journal.keep(offset, told)
        self._history.happened(event, before)

    def _fold(self) -> None:
        self._summary.fold()
        every = self._history.fold()
        scalars = self._scalars
        scalars.find_clock(every)
        for points in every:
            scalars.take(points.tag, points.steps, points.values, points.offsets)
            if points.tag == scalars.clock:
                scalars.tick(points.steps, points.times, points.offsets)
            told = points.times[np.isfinite(points.times) & (points.times > 0)]
            if len(told):
                self._journal.spans(float(told.min()), float(told.max()))

    # Outcome -----------------------------------------------------------------------------------

    def _ended(self) -> Ending:
        if self._exit is None:
            return self._console.ended if self._history.rows or self._console.lines else "unknown"
        if self._exit == _INTERRUPTED:
            return "interrupted"
        return "crashed" if self._exit else "finished"

    def _total(self) -> int | None:
        """How many steps the run is to make, as its settings say."""
        for name, value in self._config.items():
            if canonical(name)[0].name == "total_steps" and isinstance(value, int) and value > 0:
                return value if value >= (self._history.axes.printed or 0) else None
        return None

    def _notes(self) -> list[str]:
        notes = self._journal.remarks()
        chunks = self._chunks
        if self._about:
            told = ", ".join(f"{what} {name}" for what, name in self._about.items())
            notes.insert(0, f"W&B: {told}")
        if chunks.damaged or self._unread:
            notes.append(f"damaged records passed over: {chunks.damaged + self._unread}")
        if chunks.skipped:
            notes.append(f"records without a part of them passed over: {chunks.skipped}")
        if self._cut:
            notes.append("the file ends inside of a record")
        if self._history.axes.relative:
            notes.append("steps are logged per epoch: the series count on over epochs")
        return notes

    @property
    def reading(self) -> Reading:
        """What was read so far."""
        self._fold()
        journal, axes = self._journal, self._history.axes
        series = self._scalars.named()
        for name, value, offset in self._summary.results():
            # What only the summary has: results set once, as the test at the end.
            if not self._scalars.has(name):
                self._scalars.summary(series, name, axes.last, value, offset)
        step = axes.printed
        return Reading(
            file=self.file,
            format=self.kind,
            bytes=self.position,
            lines=self._count,
            series=series,
            last_step=int(step) if step is not None and abs(step) < 2**62 else None,
            total_steps=self._total(),
            ended=self._ended(),
            runs=1 if self._count else 0,
            events=journal.events,
            tail=journal.tail[-TAIL_LINES:],
            first_time=journal.first_time,
            last_time=journal.last_time,
            notes=self._notes(),
            config=dict(self._config),
        )

    # State -------------------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Everything as plain JSON-able data; `from_state` goes on exactly there."""
        self._fold()
        chunks, console, held = self._chunks, self._console, self._summary.held
        return {
            "kind": self.kind,
            "version": STATE_VERSION,
            "file": self.file,
            "chunks": {
                **{name: getattr(chunks, name) for name in _FRAMING},
                "held": _packed(chunks.held),
                "parts": [_packed(part) for part in chunks.parts],
            },
            "axes": self._history.axes.to_state(),
            "rows": self._history.rows,
            "scalars": self._scalars.to_state(),
            "journal": self._journal.to_state(),
            "console": {name: getattr(console, name) for name in _CONSOLE},
            "summary": {
                "values": self._summary.values,
                "held": None if held is None else [held[0], _packed(held[1])],
            },
            "plain": {name: getattr(self, name) for name in _PLAIN},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> WandbReader:
        """Rebuild what `to_state` gave. Raises KeyError, TypeError or ValueError on other data."""
        if state["version"] != STATE_VERSION or state["kind"] != cls.kind:
            raise ValueError(f"reading state of {state['kind']!r} version {state['version']!r}")
        reader = cls(str(state["file"]))
        chunks = reader._chunks
        for name in _FRAMING:
            setattr(chunks, name, state["chunks"][name])
        chunks.held = base64.b64decode(state["chunks"]["held"])
        chunks.parts = [base64.b64decode(part) for part in state["chunks"]["parts"]]
        reader._history.axes = Axes.from_state(state["axes"])
        reader._history.rows = int(state["rows"])
        reader._scalars = Scalars.from_state(state["scalars"])
        reader._journal = Journal.from_state(state["journal"])
        for name in _CONSOLE:
            setattr(reader._console, name, state["console"][name])
        held = reader._console.held
        reader._console.held = {
            stream: (int(at), str(piece)) for stream, (at, piece) in held.items()
        }
        summary = state["summary"]
        if (told := summary["held"]) is not None:
            reader._summary.held = int(told[0]), base64.b64decode(told[1])
        reader._summary.values = {
            name: (int(at), {key: float(value) for key, value in numbers.items()})
            for name, (at, numbers) in summary["values"].items()
        }
        for name in _PLAIN:
            setattr(reader, name, state["plain"][name])
        return reader


_ABOUT = {1: "run", 3: "project", 8: "named", 6: "group", 7: "type"}
_FRAMING = ("offset", "begun", "to_skip", "damaged", "skipped")
_CONSOLE = ("held", "lines", "fatal", "finished")
_PLAIN = ("_count", "_unread", "_exit", "_config", "_about")


def _seconds(raw: Value) -> float:
    """A Timestamp as Unix seconds, 0 where it is none."""
    if not isinstance(raw, memoryview):
        return 0.0
    parts = {
        n: value for n, kind, value in fields(raw) if kind == VARINT and isinstance(value, int)
    }
    return signed(parts.get(1, 0)) + parts.get(2, 0) * 1e-9


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
