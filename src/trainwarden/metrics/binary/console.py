"""What a run printed, as W&B keeps it beside its history: pieces of lines to events."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainwarden.metrics.formats.markers import mark
from trainwarden.metrics.journal import Journal
from trainwarden.metrics.lines import ESCAPES
from trainwarden.metrics.reading import Ending, Event

LONGEST = 20_000
"""Characters of a line that are looked at."""
MAX_SEEN = 5000
_ZEROS = str.maketrans("123456789", "000000000")


@dataclass
class Console:
    """Joins pieces to lines and notes what matters in a journal."""

    held: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By stream, the line under way: offset of its first piece, text."""
    lines: int = 0
    fatal: str | None = None
    """The first line after which runs do not go on, since the last row of history."""
    finished: bool = False
    seen: set[str] = field(default_factory=set, repr=False)
    """Lines that say nothing, digits made 0."""

    def take(
        self, text: str, stream: str, offset: int, journal: Journal, time: float
    ) -> list[Event]:
        """Take what was printed at once: the events that it tells."""
        events: list[Event] = []
        begun, before = self.held.pop(stream, (offset, ""))
        *whole, rest = (before + text).split("\n")
        for line in whole:
            event = self._line(line, begun, journal, time)
            events += [event] if event is not None else []
            begun = offset
        if rest:
            self.held[stream] = begun, rest[-LONGEST:]
        return events

    def _line(self, line: str, offset: int, journal: Journal, time: float) -> Event | None:
        self.lines += 1
        line = line.rstrip("\r").rpartition("\r")[2]  # of a bar, what it was in the end
        if not line.strip():
            return None
        journal.keep(offset, line)
        shape = line[:LONGEST].translate(_ZEROS)
        if shape in self.seen:
            return None
        plain = ESCAPES.sub("", line[:LONGEST]) if "\x1b" in line else line[:LONGEST]
        found = mark(plain)
        if found is None:
            if len(self.seen) >= MAX_SEEN:
                self.seen.clear()
            self.seen.add(shape)
            return None
        if found.fatal and self.fatal is None:
            self.fatal = found.kind
        self.finished = self.finished or found.kind == "finished"
        when = time if time > 0 else None
        event = Event(found.kind, plain[:2000], offset, self.lines, None, when)
        journal.event(event)
        return event

    def went_on(self) -> None:
        """A row of history came after what was printed."""
        self.fatal, self.finished = None, False

    @property
    def ended(self) -> Ending:
        """How the run ended, as far as it printed it."""
        if self.fatal is not None:
            return "interrupted" if self.fatal == "interrupted" else "crashed"
        return "finished" if self.finished else "running"
