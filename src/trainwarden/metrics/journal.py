"""What a log says beside its metrics: events, last lines, timestamps, what was odd. Bounded."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from trainwarden.metrics.reading import Event

EVENTS = 200
TAIL_LINES = 40
TAIL_WIDTH = 400
MAX_NOTES = 50


@dataclass(slots=True)
class Journal:
    """The first and last events, the tail, notes, formats seen, first and last time printed."""

    first_events: list[Event] = field(default_factory=list)
    last_events: list[Event] = field(default_factory=list)
    tail: list[tuple[int, str]] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    formats: dict[str, int] = field(default_factory=dict)
    first_time: float | None = None
    last_time: float | None = None

    def event(self, event: Event) -> None:
        """Keep an event: the first ones and the last ones stay."""
        if len(self.first_events) < EVENTS:
            self.first_events.append(event)
            return
        self.last_events.append(event)
        if len(self.last_events) > 2 * EVENTS:
            del self.last_events[:-EVENTS]

    @property
    def events(self) -> list[Event]:
        """All that were kept, in order."""
        return self.first_events + self.last_events[-EVENTS:]

    def note(self, text: str) -> None:
        """Count something odd that was come upon."""
        if text in self.notes or len(self.notes) < MAX_NOTES:
            self.notes[text] = self.notes.get(text, 0) + 1

    def remarks(self) -> list[str]:
        """The notes with how often."""
        return [text if n == 1 else f"{text} ({n} times)" for text, n in self.notes.items()]

    def saw(self, format_: str, lines: int = 1) -> None:
        """Count lines of a format."""
        self.formats[format_] = self.formats.get(format_, 0) + lines

    @property
    def format(self) -> str:
        """The format of most lines; bars stand only where nothing else does."""
        seen = {name: n for name, n in self.formats.items() if name != "tqdm"} or self.formats
        return max(seen, key=lambda name: seen[name]) if seen else "unknown"

    def at(self, time: float | None) -> None:
        """A printed timestamp."""
        if time is not None:
            if self.first_time is None:
                self.first_time = time
            self.last_time = time

    def lines(self, pieces: list[str], end: int) -> None:
        """Keep the last lines; `end` is the byte offset after the last piece."""
        last: list[tuple[int, str]] = []
        for piece in reversed(pieces):
            end -= len(piece) + 1
            if piece:
                last.append((end, piece[:TAIL_WIDTH]))
                if len(last) == TAIL_LINES:
                    break
        self.tail = (self.tail + last[::-1])[-TAIL_LINES:]

    def spans(self, low: float, high: float) -> None:
        """Widen the time told to what lies between two moments, in Unix seconds."""
        self.first_time = low if self.first_time is None else min(self.first_time, low)
        self.last_time = high if self.last_time is None else max(self.last_time, high)

    def keep(self, offset: int, text: str) -> None:
        """Keep one last line by its byte offset."""
        self.tail.append((offset, text[:TAIL_WIDTH]))
        if len(self.tail) > 2 * TAIL_LINES:
            del self.tail[:-TAIL_LINES]

    def copy(self) -> Journal:
        """An independent copy."""
        return Journal(
            list(self.first_events),
            list(self.last_events),
            list(self.tail),
            dict(self.notes),
            dict(self.formats),
            self.first_time,
            self.last_time,
        )

    def to_state(self) -> dict[str, Any]:
        """Plain data; `from_state` is its inverse."""
        state = asdict(self)
        state["last_events"] = state["last_events"][-EVENTS:]
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Journal:
        """Rebuild what `to_state` gave. Raises KeyError, TypeError or ValueError on other data."""
        data = dict(state)
        for name in ("first_events", "last_events"):
            data[name] = [Event(**event) for event in data[name]]
        data["tail"] = [(int(offset), str(text)) for offset, text in data["tail"]]
        return cls(**data)
