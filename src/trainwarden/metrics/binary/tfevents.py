"""TensorBoard event files (`events.out.tfevents.*`): bytes in, in pieces of any size; a `Reading`
out. Pure, bounded, resumable."""

from __future__ import annotations

import base64
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trainwarden.metrics.binary.layouts import Decoded, Layouts
from trainwarden.metrics.binary.scalars import Points, Scalars
from trainwarden.metrics.binary.tfrecord import TFRecords
from trainwarden.metrics.journal import Journal
from trainwarden.metrics.names import slug
from trainwarden.metrics.reading import Ending, Reading

STATE_VERSION = 1
_ENDS = frozenset({"train_runtime", "total_flos"})
"""Names of what trainers tell once, when training is done."""
_LATEST = 4e9
"""Unix seconds: later ones are no times."""
MAX_STARTS = 100
"""Writers begin a file with one; each costs a look at every series."""


class EventReader:
    """Reads one event file incrementally; the outcome does not depend on how it was cut.

    `phase` is that of tags that tell none themselves: `eval` for the files of a `validation`
    folder.
    """

    kind: ClassVar[str] = "tfevents"

    def __init__(self, file: str, phase: str | None = None) -> None:
        self.file = file
        self._records = TFRecords()
        self._layouts = Layouts()
        self._scalars = Scalars(phase)
        self._journal = Journal()
        self._count = 0
        self._damaged = 0
        self._done = False
        self._begins: float | None = None
        self._starts = 0
        self._cut = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file."""
        self._cut = False
        batch = self._records.feed(data)
        if not len(batch.starts):
            return
        decoded = self._layouts.decode(batch)
        self._count += decoded.records - decoded.damaged
        self._damaged += decoded.damaged
        begins: list[tuple[int, float]] = []
        for offset, event in decoded.events:
            self._times(np.array([event.wall_time]))
            if event.started and self._starts < MAX_STARTS:
                self._starts += 1
                begins.append((offset, float(event.step)))
        self._step_all(decoded)
        self._scalars.find_clock(decoded.points)
        after = -1
        for offset, step in begins:
            self._take(decoded.points, after, offset)
            self._begins = step if self._begins is None else min(self._begins, step)
            self._scalars.purge(step)
            after = offset
        self._take(decoded.points, after, None)

    def finish(self, complete: bool = False, over: bool = False) -> None:  # noqa: ARG002
        """Of a file that is `complete` an unfinished last record is noted, for `reading` only."""
        self._cut = complete and bool(self._records.held) and not self._records.lost

    @property
    def position(self) -> int:
        """How many bytes were taken, those of an incomplete last record included."""
        return self._records.position

    def note(self, text: str) -> None:
        """Remember something that was come upon."""
        self._journal.note(text)

    # One batch ---------------------------------------------------------------------------------

    def _step_all(self, decoded: Decoded) -> None:
        """Count the points for as long as no step but 0 was told in the file."""
        scalars = self._scalars
        if scalars.stepped:
            return
        firsts = [
            int(points.offsets[moving[0]])
            for points in decoded.points
            if len(moving := np.flatnonzero(points.steps))
        ]
        until = min(firsts, default=None)
        for points in decoded.points:
            n = len(points.steps)
            if until is not None:
                n = int(np.searchsorted(points.offsets, until))
            if n:
                points.steps[:n] = scalars.count(points.tag, n)
        if until is not None:
            scalars.stepped = True
            scalars.counts.clear()

    def _take(self, every: list[Points], after: int, until: int | None) -> None:
        """Take the points of a batch between two offsets."""
        for points in every:
            low = int(np.searchsorted(points.offsets, after, side="right"))
            high = len(points.offsets)
            if until is not None:
                high = int(np.searchsorted(points.offsets, until))
            if low >= high:
                continue
            part = slice(low, high)
            steps, offsets = points.steps[part], points.offsets[part]
            self._scalars.take(points.tag, steps, points.values[part], offsets)
            self._times(points.times[part])
            if points.tag == self._scalars.clock:
                self._scalars.tick(steps, points.times[part], offsets)
            self._done = self._done or slug(points.tag).rpartition("/")[2] in _ENDS
            self._journal.saw(self.kind, high - low)

    def _times(self, times: NDArray[np.float64]) -> None:
        good = times[(times > 0) & (times < _LATEST)]
        if len(good):
            self._journal.spans(float(good.min()), float(good.max()))

    # Outcome -----------------------------------------------------------------------------------

    @property
    def reading(self) -> Reading:
        """What was read so far."""
        scalars, records = self._scalars, self._records
        notes = self._journal.remarks()
        if self._damaged or records.damaged:
            notes.append(f"damaged records passed over: {self._damaged + records.damaged}")
        if records.skipped:
            notes.append(f"records longer than 4 MiB passed over: {records.skipped}")
        if self._cut:
            notes.append("the file ends inside of a record")
        if scalars.counted:
            notes.append("no step is told: points are counted")
        total = scalars.places.get("total_steps")
        step = scalars.far()
        ended: Ending = "finished" if self._done else "unknown"
        return Reading(
            file=self.file,
            format=self.kind,
            bytes=self.position,
            lines=self._count,
            series=scalars.named(),
            last_step=step,
            total_steps=int(total) if total is not None and 0 < total < 2**62 else None,
            ended=ended,
            runs=1 + scalars.restarts if step is not None else 0,
            first_time=self._journal.first_time,
            last_time=self._journal.last_time,
            notes=notes,
            counted=scalars.counted,
            begins_at=self._begins,
        )

    # State -------------------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Everything as plain JSON-able data; `from_state` goes on exactly there."""
        records = self._records
        return {
            "kind": self.kind,
            "version": STATE_VERSION,
            "file": self.file,
            "records": {
                "held": base64.b64encode(records.held).decode("ascii"),
                **{name: getattr(records, name) for name in _FRAMING},
            },
            "scalars": self._scalars.to_state(),
            "journal": self._journal.to_state(),
            "plain": {name: getattr(self, name) for name in _PLAIN},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> EventReader:
        """Rebuild what `to_state` gave. Raises KeyError, TypeError or ValueError on other data."""
        if state["version"] != STATE_VERSION or state["kind"] != cls.kind:
            raise ValueError(f"reading state of {state['kind']!r} version {state['version']!r}")
        reader = cls(str(state["file"]))
        reader._records.held = base64.b64decode(state["records"]["held"])
        for name in _FRAMING:
            setattr(reader._records, name, state["records"][name])
        reader._scalars = Scalars.from_state(state["scalars"])
        reader._journal = Journal.from_state(state["journal"])
        for name in _PLAIN:
            setattr(reader, name, state["plain"][name])
        return reader


def first_tag(data: bytes) -> str:
    """The first scalar's tag in the beginning of a file; empty where there is none."""
    decoded = Layouts().decode(TFRecords().feed(data))
    return decoded.points[0].tag if decoded.points else ""


_FRAMING = ("offset", "lost", "to_skip", "damaged", "skipped")
_PLAIN = ("_count", "_damaged", "_done", "_begins", "_starts")
