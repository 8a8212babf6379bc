"""What experiment trackers keep in stores of their own (MLflow, Trackio): rows in, a `Reading` out.

Pure, bounded, resumable. `evidence/stores` reads the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from trainwarden.metrics.binary.axes import Axes
from trainwarden.metrics.binary.items import numbers_of
from trainwarden.metrics.binary.scalars import Points, Scalars
from trainwarden.metrics.columns import DERIVED
from trainwarden.metrics.journal import Journal
from trainwarden.metrics.names import canonical
from trainwarden.metrics.reading import Ending, Event, Reading
from trainwarden.records.hostile import clean

STATE_VERSION = 1
Tracker = Literal["mlflow", "trackio"]
FORMATS: frozenset[str] = frozenset({"mlflow", "trackio"})
MACHINE = "system/"
"""How names of what MLflow samples of the machine begin: their steps count samples."""
MAX_CONFIG, MAX_VALUE, MAX_LOOSE = 500, 2000, 4000
_SLOTS = ("first", "last", "minimum", "maximum", "first_nonfinite")
_LATEST = 4e9
_ENDED: dict[str, Ending] = {"FINISHED": "finished", "FAILED": "crashed", "KILLED": "interrupted"}
_EVENTS = {"FINISHED": "finished", "FAILED": "error", "KILLED": "interrupted"}

Row = tuple[int, float | None, float, Mapping[str, Any]]
"""A row of Trackio: its id, its step, its time in Unix seconds (NaN unknown), what was logged."""


class StoreReader:
    """The reading of one run of a store, brought on by its rows in the order of their writing."""

    kind: ClassVar[str] = "store"

    def __init__(self, file: str, tracker: Tracker, run: str, folder: str = "") -> None:
        self.file, self.tracker, self.run = file, tracker, run
        self.folder = folder
        """Where each metric has a file of its own, by its name: offsets are of these."""
        self.cursor: dict[str, Any] = {}
        """Where reading stands in the store, as whoever reads it needs to know. Plain data."""
        self.position = 0
        """The same as one number: up to where it was read, for reading it again that far."""
        self.size = 0
        """Bytes of the store."""
        self._status = ""
        self._config: dict[str, Any] = {}
        self._rows = 0
        self._axes = Axes()
        self._scalars = Scalars(stepped=tracker == "trackio")
        self._journal = Journal()
        self._told: tuple[float, float] | None = None
        """Time and step of the last point that is not of the machine."""

    def note(self, text: str) -> None:
        """Remember something that was come upon."""
        self._journal.note(text)

    def finish(self, complete: bool = False, over: bool = False) -> None:
        """Rows are whole as they are, and the store itself says whether the run is over."""

    # What a store tells ------------------------------------------------------------------------

    def about(
        self,
        status: str,
        config: Mapping[str, Any],
        begun: float | None = None,
        ended: float | None = None,
    ) -> None:
        """The run's present status, its settings, and when it began and ended (Unix seconds)."""
        for name, value in config.items():
            known = name in self._config or len(self._config) < MAX_CONFIG
            if known and len(repr(value)) <= MAX_VALUE:
                self._config[str(name)[:MAX_VALUE]] = value
        self._status = status
        for time in (begun, ended):
            if time is not None and 0 < time < _LATEST:
                self._journal.spans(time, time)

    def take(self, every: Sequence[Points]) -> None:
        """Points by name as MLflow keeps them: each with its step, those of a name in order."""
        own = [points for points in every if not points.tag.startswith(MACHINE)]
        self._step_all(own)
        self._scalars.find_clock(own)
        self._take(own)
        machine = [points for points in every if points.tag.startswith(MACHINE)]
        self._place(machine, own)
        self._take(machine)

    def rows(self, rows: Sequence[Row]) -> None:
        """Rows as Trackio keeps them: what one call logged, at the step that the run counts."""
        columns: dict[str, tuple[list[int], list[float]]] = {
            "_step": ([], []),
            "_timestamp": ([], []),
        }
        for index, (_id, step, time, logged) in enumerate(rows):
            found = [item for name, value in logged.items() for item in numbers_of(name, value)]
            own = {"_step": step, "_timestamp": time if time == time else None}
            found = [item for item in found if item[0] not in own]
            found += [(name, value) for name, value in own.items() if value is not None]
            for name, value in found:
                if name in columns or len(columns) < MAX_LOOSE:
                    at, values = columns.setdefault(name, ([], []))
                    at.append(index)
                    values.append(value)
        arrays = {
            name: (np.array(at, np.int64), np.array(values, np.float64))
            for name, (at, values) in columns.items()
            if at
        }
        ids = np.array([row[0] for row in rows], np.int64)
        steps, times = self._axes.place(len(rows), arrays)
        points = [
            Points(name, ids[at], self._axes.declared(name, steps, arrays)[at], values, times[at])
            for name, (at, values) in arrays.items()
            if not name.startswith("_")
        ]
        self._axes.done(arrays)
        self._scalars.find_clock(points)
        self._take(points)

    def _take(self, every: Sequence[Points]) -> None:
        scalars = self._scalars
        for points in every:
            self._rows += len(points.steps)
            scalars.take(points.tag, points.steps, points.values, points.offsets)
            if points.tag == scalars.clock:
                # What is written together has one time: that of the last step among it.
                last = np.append(np.diff(points.times) != 0, True)
                # No single place holds the pace.
                nowhere = np.full(int(last.sum()), -1, np.int64)
                scalars.tick(points.steps[last], points.times[last], nowhere)
            with np.errstate(invalid="ignore"):
                told = points.times[(points.times > 0) & (points.times < _LATEST)]
            if len(told):
                self._journal.spans(float(told.min()), float(told.max()))

    def _step_all(self, every: Sequence[Points]) -> None:
        """Count the points of each name for as long as no step but 0 was told."""
        scalars = self._scalars
        if scalars.stepped:
            return
        if any(points.steps.any() for points in every):
            scalars.stepped = True
            scalars.counts.clear()
            return
        for points in every:
            points.steps = scalars.count(points.tag, len(points.steps))

    def _place(self, machine: Sequence[Points], own: Sequence[Points]) -> None:
        """Give what was sampled of the machine the step that training had reached by then."""
        before = [self._told] if self._told else []
        told = [(float(p.times[-1]), float(p.steps[-1])) for p in own if len(p.steps)]
        times = np.concatenate([[time for time, _ in before], *(p.times for p in own)])
        steps = np.concatenate([[step for _, step in before], *(p.steps for p in own)])
        order = np.argsort(times, kind="stable")
        reached = np.concatenate([[0.0], np.maximum.accumulate(steps[order])])
        for points in machine:
            points.steps = reached[np.searchsorted(times[order], points.times, side="right")]
        self._told = max([*told, *before], default=None)

    # Outcome -----------------------------------------------------------------------------------

    def _ended(self) -> Ending:
        running: Ending = "running" if self._rows or self._status == "RUNNING" else "unknown"
        return _ENDED.get(self._status, running)

    def _total(self, step: int | None) -> int | None:
        """How many steps the run is to make, as its settings say."""
        for name, value in _inner(self._config):
            if canonical(name)[0].name == "total_steps":
                try:
                    total = float(value)
                except (TypeError, ValueError, OverflowError):
                    continue
                if 0 < total < 2**62 and total == int(total) and total >= (step or 0):
                    return int(total)
        return None

    def _step(self) -> int | None:
        if self.tracker == "mlflow":
            return self._scalars.far()
        step = self._axes.printed
        return int(step) if step is not None and abs(step) < 2**62 else None

    @property
    def reading(self) -> Reading:
        """What was read so far."""
        scalars, journal = self._scalars, self._journal
        series = scalars.named()
        for one in series.values() if self.folder else ():
            if one.original != DERIVED:
                one.origins = dict.fromkeys(_SLOTS, f"{self.folder}/{one.original}")
        step = self._step()
        notes = [f"{self.tracker}: run {clean(self.run, 100)}", *journal.remarks()]
        if scalars.counted:
            notes.append("no step is told: points are counted")
        if self._axes.relative:
            notes.append("steps are logged per epoch: the series count on over epochs")
        events = []
        if self._status in _EVENTS:
            told = f"the run's status in {self.tracker} is {self._status}"
            events.append(Event(_EVENTS[self._status], told, -1, 0, step, journal.last_time))
        return Reading(
            file=self.file,
            format=self.tracker,
            bytes=self.size,
            lines=self._rows,
            series=series,
            last_step=step,
            total_steps=self._total(step),
            ended=self._ended(),
            runs=1 if self._rows else 0,
            events=events,
            first_time=journal.first_time,
            last_time=journal.last_time,
            notes=notes,
            counted=scalars.counted,
            config=dict(self._config),
        )

    # State -------------------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Everything as plain JSON-able data; `from_state` goes on exactly there."""
        return {
            "kind": self.kind,
            "version": STATE_VERSION,
            "axes": self._axes.to_state(),
            "scalars": self._scalars.to_state(),
            "journal": self._journal.to_state(),
            "plain": {name: getattr(self, name) for name in _PLAIN},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> StoreReader:
        """Rebuild what `to_state` gave. Raises KeyError, TypeError or ValueError on other data."""
        if state["version"] != STATE_VERSION or state["kind"] != cls.kind:
            raise ValueError(f"reading state of {state['kind']!r} version {state['version']!r}")
        reader = cls(*(state["plain"][name] for name in ("file", "tracker", "run")))
        for name in _PLAIN:
            setattr(reader, name, state["plain"][name])
        if (told := reader._told) is not None:
            reader._told = float(told[0]), float(told[1])
        reader._axes = Axes.from_state(state["axes"])
        reader._scalars = Scalars.from_state(state["scalars"])
        reader._journal = Journal.from_state(state["journal"])
        return reader


_PUBLIC = ("file", "tracker", "run", "folder", "cursor", "position", "size")
_PLAIN = (*_PUBLIC, "_status", "_config", "_rows", "_told")


def _inner(config: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Settings by the last part of their name, nested ones too: `trainer/max_steps`."""
    for name, value in config.items():
        if isinstance(value, dict) and depth < 4:
            yield from _inner(value, depth + 1)
        else:
            yield re.split(r"[./]", str(name))[-1], value
