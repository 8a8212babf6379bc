"""The log reader: bytes in, in pieces of any size; a `Reading` out. Pure, bounded, resumable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from trainwarden.metrics.block import Block, Plan
from trainwarden.metrics.cadence import cadence
from trainwarden.metrics.ending import CHANCE, by_chance
from trainwarden.metrics.formats import LineFormat, builtin_formats
from trainwarden.metrics.formats.base import FEWEST
from trainwarden.metrics.lines import strip
from trainwarden.metrics.linewise import LINE_CAP, LineByLine, readable
from trainwarden.metrics.merge import Merge
from trainwarden.metrics.parts import Part
from trainwarden.metrics.reading import Ending, Reading
from trainwarden.metrics.saved import PLAIN, STATE_VERSION, Memory, dump, restore
from trainwarden.metrics.survey import Survey

_CONTROL = bytes([*range(8), *range(14, 27), *range(28, 32)])
_LAST_NUMBER = re.compile(r"[\d.eE+\-]\s*\Z")
_BREAK = re.compile(r"[\s,;|:=]")
SELF_CLOSING = frozenset({"hf-dict"})
"""Formats that print a summary where the run ends as it should."""
MAX_BREAKS = 3
STREAK = 8
"""So many lines of shapes that were learnt just now, and the rest of a block is looked at again."""


def _without_last_number(text: str) -> str:
    """The text of a line that may be cut short, without a number at its end."""
    if _LAST_NUMBER.search(text):
        # From behind, since the text may be one long word.
        before = _BREAK.search(text[::-1])
        text = text[: len(text) - before.start()] if before else ""
        text = text[:-1] if text.endswith(",") else text
    return text


def _shape(line: str) -> str:
    """How a line begins, whatever the digits."""
    return re.sub(r"\d", "0", line[:8])


class LogReader(LineByLine):
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
        super().__init__(formats or builtin_formats(), use_templates)
        self.file = file
        self._offset = 0
        self._held = b""
        self._skipping = False
        self._quiet: list[tuple[int, float]] = []
        """Lines of the block that say nothing but a time."""
        self._merge: Merge | None = None
        """Lines of the block that are taken in as it goes on."""
        self._breaks = 0
        """How often such lines did not go on as they should, in this block."""
        self._over = False
        self._snapshot: LogReader | None = None

    # Reading -----------------------------------------------------------------------------------

    def feed(self, data: bytes, looked: tuple[Plan, Survey] | None = None) -> None:
        """Take the next bytes of the file.

        Whole lines may come with what a look at them showed, by a plan of this reader's: it saves
        time and changes nothing else.
        """
        self._snapshot = None
        if not data:
            return
        data = self._held + data
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        self._held = data[cut:]
        if cut:
            fits = looked is not None and cut == len(data) == looked[1].starts[-1]
            self._take(data[:cut], looked if fits else None)
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
            if not complete:
                text = _without_last_number(text)
            other._line(text, other._offset)
        other._held = self._held
        other._recorder.close()
        self._snapshot = other

    def next_file(self, head: bytes = b"") -> None:
        """Go on in the log's next file.

        A last line without an end is whole where a process ended there, which is taken so where
        no `head` of the next file is given; else it goes on there, unless that begins as lines do.
        """
        self._snapshot = None
        if self._held and not self._skipping and self._begins_a_line(head):
            text = self._held.decode("latin-1")
            self._suspicious = True
            self._journal.lines([text], self._offset + len(text) + 1)
            self._line(_without_last_number(text), self._offset)
            self._offset += len(self._held)
            self._held = b""
        self._memory.pop("json", None)

    def _begins_a_line(self, head: bytes) -> bool:
        if not head or head[:1] in b"\r\n":
            return not head
        first = re.split(r"[\r\n]", head.decode("latin-1"), maxsplit=1)[0]
        begins = _shape(first)
        return strip(first).time is not None or any(
            _shape(line) == begins for _, line in self._journal.tail
        )

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
        super().note(text)

    def plan(self) -> Plan:
        """How a block that comes is to be looked at, as far as the log is known."""
        if "json" in self._memory or "dict" in self._memory:
            return Plan([], [], {})
        return Plan(self._shapes.likely(), list(self._seen), dict(self._memory))

    def _take(self, data: bytes, looked: tuple[Plan, Survey] | None) -> None:
        if self._skipping:
            # The rest of a line that was too long.
            cut = min(at for at in (data.find(b"\n"), data.find(b"\r")) if at >= 0) + 1
            self._offset += cut
            self._lines += data[cut - 1] == 10
            self._skipping, looked, data = False, None, data[cut:]
            if not data:
                return
        self._suspicious = len(data.translate(None, _CONTROL)) < len(data)
        block = Block(data, self._offset, self._lines)
        if not self.use_templates or self._suspicious:
            for index in range(len(block)):
                self._one(block, index)
        else:
            self._walk(block, looked)
        self._offset += len(data)
        self._lines = block.line_number(len(block))
        self._journal.lines(block.last_lines(), self._offset)
        self._recorder.tracker.columns.ease()

    def _walk(self, block: Block, looked: tuple[Plan, Survey] | None) -> None:
        """Take the lines of a block: those of known shapes together, the others by themselves."""
        begin, enough, self._breaks = 0, STREAK, 0
        while begin < len(block):
            self._flush()
            plan, seen = looked or (None, None)
            if plan is None or seen is None:
                plan = self.plan()
                seen = plan.look(block.data[block.starts[begin] :], self.formats)
            parts = block.parts(plan, seen, begin)
            parts = [part for part in parts if self._recorder.can_merge(part.key)]
            self._shapes.seen({id(shape): n for shape, n in plan.counts(seen).items()})
            looked, streak = None, 0
            for index in block.others(parts, begin):
                text = block.line(index)
                if not text:
                    continue
                silent, time = self._silent(text)
                if silent:
                    if time is not None:
                        self._quiet.append((index, time))
                    continue
                self._settle(block, parts, begin, index)
                streak = streak + 1 if self._one(block, index) else 0
                begin = index + 1
                if streak >= enough and len(block) - begin > 4 * FEWEST:
                    enough *= 4
                    break
            else:
                self._settle(block, parts, begin, len(block))
                break
        self._flush()

    def _settle(self, block: Block, parts: Sequence[Part], begin: int, end: int) -> None:
        """Take lines that say nothing or are of known shapes; one by one where they must be."""
        tried = 4
        while begin < end:
            some = [one for part in parts if len(one := part.between(begin, end))]
            if some and self._merged(parts, some, begin, end, len(block)):
                self._tell(some, begin)
                break
            if some:
                self._flush()
            stop = min(end, begin + tried) if some else end
            for index in range(begin, stop):
                self._one(block, index)
            begin, tried = stop, 4 * tried
        self._quiet.clear()

    def _merged(
        self, parts: Sequence[Part], some: Sequence[Part], begin: int, end: int, last: int
    ) -> bool:
        """Take in some lines together; whether that can be.

        All lines up to the `last` are looked at then, so that those behind a line that makes no
        difference to them need no further look.
        """
        if self._recorder.block or self._in_traceback:
            return False
        if self._merge is not None and not self._merge.stands():
            self._flush()
            self._breaks += 1
        if self._merge is None:
            if sum(map(len, some)) < FEWEST:
                return False
            if end < last and self._breaks < MAX_BREAKS:
                ahead = [one for part in parts if len(one := part.between(begin, last))]
                self._merge = Merge(self._recorder, ahead)
                if not self._merge.possible():
                    self._merge, self._breaks = None, MAX_BREAKS
        if self._merge is None:
            merge = Merge(self._recorder, some)
            if not merge.possible():
                return False
            merge.commit(begin, end)
            merge.flush()
        else:
            self._merge.commit(begin, end)
        return True

    def _flush(self) -> None:
        merge, self._merge = self._merge, None
        if merge is not None:
            merge.flush()

    def _tell(self, parts: Sequence[Part], begin: int) -> None:
        told = [(index, time) for index, time in self._quiet if index >= begin]
        for part in parts:
            self._journal.saw(part.row.format, len(part))
            told += part.ends()
        if told:
            self._journal.at(min(told)[1])
            self._journal.at(max(told)[1])

    def _one(self, block: Block, index: int) -> bool:
        """Take a line by itself; whether it was of a shape that is known."""
        text = block.line(index)
        if not text:
            return False
        self._lines = block.line_number(index)
        offset = block.offset(index)
        if self.use_templates and not self._suspicious and self._fast(text, offset):
            return True
        self._line(text, offset)
        return False

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
            tail=[(offset, readable(text)) for offset, text in self._journal.tail],
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
