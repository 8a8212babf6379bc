"""What the reading of a log shows, as observations with their exact place."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from trainwarden.evidence.base import Target
from trainwarden.evidence.excerpts import line_at, numbered
from trainwarden.evidence.log_files import modified
from trainwarden.evidence.packed import LONGEST_MAGIC, packing
from trainwarden.evidence.run_files import BINARY
from trainwarden.metrics.columns import DERIVED
from trainwarden.metrics.names import canonical
from trainwarden.metrics.reading import Event, Reading
from trainwarden.metrics.series import Point, Series
from trainwarden.metrics.stored import FORMATS as STORED
from trainwarden.records.base import Scalar
from trainwarden.records.hostile import clean
from trainwarden.records.observation import Observation, Place, Trust

SOURCE = "log"
_SLOTS = {"last": "last", "first": "first", "min": "minimum", "max": "maximum"}
MAX_METRICS = 48
MAX_EVENTS = 20
MAX_BESIDE = 12
"""Metrics of a log beside the main one."""
MAX_EVALUATED = 12
"""Evaluation metrics of other names before the run's own: benchmarks come in dozens of variants."""
_TELLING = re.compile(r"loss|score|reward|length|clip|entropy|kl|norm|value|accuracy|ratio|frac")
_IMPORTANT = ("exception", "killed", "signal", "exit_code", "interrupted", "error", "finished")


class _Excerpts:
    """Lines of a log's files by their offsets there: text and, where cheap, number."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[tuple[str, int], tuple[int | None, str | None]] = {}

    def at(self, file: str, offset: int | None) -> tuple[int | None, str | None]:
        if offset is None:
            return None, None
        if (file, offset) not in self._known:
            self._look(file, offset)
        return self._known.setdefault((file, offset), (None, None))

    def _look(self, file: str, offset: int) -> None:
        reading = self._reading
        try:
            if reading.format in BINARY | STORED:
                line = line_at(Path(file), offset)
                self._known[file, offset] = None, clean(line.decode("utf-8", "replace"))
                return
            end = None if reading.pieces else (reading.bytes, reading.lines)
            wanted = [offset]
            if reading.pieces and self._is_packed(file):
                wanted += [at for name, at in self._places() if name == file and at is not None]
            for at, number, line in numbered(Path(file), wanted, end):
                text = clean(line[:2000].decode("utf-8", "replace"))
                self._known[file, at] = number, text
        except OSError:
            return

    def _is_packed(self, file: str) -> bool:
        with Path(file).open("rb") as stream:
            return packing(stream.read(LONGEST_MAGIC)) is not None

    def _places(self) -> Iterator[tuple[str, int | None]]:
        """All places that may be asked for."""
        for series in self._reading.series.values():
            for slot in _SLOTS.values():
                if (point := getattr(series, slot)) is not None:
                    yield self._reading.place(point.offset)


def observe(
    path: Path,
    reading: Reading,
    target: Target,
    subject: str | None,
    told: Reading | None = None,
) -> list[Observation]:
    """What a reading shows, each with its exact place; the job's main log has no `subject`.

    `told` is the main log where this one is another process's of the same run: what they both
    measure is told once.
    """
    excerpts = _Excerpts(reading)
    found: list[Observation] = []

    def add(quantity: str, value: Scalar, **more: Any) -> None:
        more.setdefault("place", Place(file=str(path)))
        found.append(
            Observation(
                quantity=quantity,
                value=value,
                subject=subject,
                source=SOURCE,
                trust=Trust.LOG,
                **more,
            )
        )

    if changed := modified(path):
        if path.is_file() and told is None:
            add("log.size", path.stat().st_size, unit="bytes")
        age = target.now().timestamp() - changed
        written = datetime.fromtimestamp(changed, timezone.utc)
        add("log.age", round(max(age, 0.0), 3), unit="s", time=written)
    file, at = reading.place(reading.tail[-1][0] if reading.tail else -1)
    add("log.ended", reading.ended, place=Place(file=file, offset=at))
    if told is None:
        add("log.runs", reading.runs)
    if told is None and (interval := _interval(reading)) is not None:
        add("log.interval", interval, unit="s", stat="median")
    last_points = [
        s.last
        for s in reading.series.values()
        if s.last is not None and s.origins.get("last", str(path)) == str(path)
    ]
    if reading.last_step is not None:
        file, at = reading.place(max((point.offset for point in last_points), default=-1))
        line, text = excerpts.at(file, at)
        place = Place(file=file, offset=at, line=line)
        add("step", reading.last_step, step=reading.last_step, place=place, text=text)
    fresh = {
        name: one for name, one in reading.series.items() if not told or name not in told.series
    }
    for series in _chosen(fresh)[: None if subject is None else MAX_BESIDE]:
        stats: list[tuple[str, Point | None]] = [("last", series.last)]
        if canonical(series.original)[0].known:
            stats.append(("first", series.first))
            if series.name.endswith(("loss", "perplexity")):
                stats.append(("min", series.minimum))
            elif series.name.endswith(("reward", "accuracy")) or series.name in ("grad_norm", "kl"):
                stats.append(("max", series.maximum))
        for stat, point in stats:
            if point is None or (stat != "last" and series.count < 2):
                continue
            file, at = reading.place(point.offset)
            file = series.origins.get(_SLOTS[stat], file)
            line, text = excerpts.at(file, at)
            offset: int | None = at
            if series.original == DERIVED:  # of two lines, and printed on neither
                file, offset, line, text = reading.file, None, None, None
            add(
                series.name,
                point.value,
                stat=stat,
                unit=series.unit,
                step=int(point.step) if math.isfinite(point.step) else None,
                place=Place(
                    file=file,
                    offset=offset,
                    line=line,
                    api=None if series.original == series.name else clean(series.original, 80),
                ),
                text=text,
            )
    for event in _selected(reading.events):
        when = None
        if event.time is not None and 0 < event.time < 4e9:
            when = datetime.fromtimestamp(event.time, timezone.utc)
        file, at = reading.place(event.offset)
        add(
            "log.event",
            event.kind,
            step=int(event.step) if event.step is not None else None,
            time=when,
            place=Place(
                file=file,
                offset=at,
                # Lines are counted from the log's beginning.
                line=event.line if at == event.offset else None,
            ),
            text=clean(event.text),
        )
    return found


def _chosen(series: Mapping[str, Series]) -> list[Series]:
    """The key metrics first, cut to a bounded number: some trainers log hundreds."""
    ordered = sorted(series.values(), key=_tier)
    evaluated = [one for one in ordered if _tier(one) == 1 and not canonical(one.original)[0].known]
    late = {one.name for one in evaluated[MAX_EVALUATED:]}
    return sorted(ordered, key=lambda one: one.name in late)[:MAX_METRICS]


def _tier(series: Series) -> int:
    meaning = canonical(series.original)[0]
    if meaning.known and series.name in {meaning.name, f"eval_{meaning.name}"}:
        return 0
    if meaning.known or series.name.startswith("eval_"):
        return 1
    return 2 if _TELLING.search(series.name) else 3


def _selected(events: list[Event]) -> list[Event]:
    """The important events, first and last ones, in order."""
    if len(events) <= MAX_EVENTS:
        return events
    weighty = [event for event in events if event.kind in _IMPORTANT]
    if len(weighty) > MAX_EVENTS - 4:
        half = (MAX_EVENTS - 4) // 2
        weighty = weighty[:half] + weighty[-half:]
    others = [event for event in events if event.kind not in _IMPORTANT]
    room = MAX_EVENTS - len(weighty)
    rest = others if len(others) <= room else others[: room // 2] + others[-(room - room // 2) :]
    chosen = {id(event) for event in (*weighty, *rest)}
    return [event for event in events if id(event) in chosen]


def _interval(reading: Reading) -> float | None:
    """Median seconds between two step lines, where the log tells seconds per step."""
    pace, loss = reading.series.get("step_time"), reading.series.get("loss")
    if pace is None or not pace.recent:
        return None
    seconds = statistics.median(point.value for point in pace.recent)
    stride = 1.0
    if loss is not None and len(loss.recent) > 1:
        gaps = [b.step - a.step for a, b in zip(loss.recent, loss.recent[1:], strict=False)]
        stride = max(statistics.median(gaps), 1.0)
    value = seconds * stride
    return round(value, 6) if math.isfinite(value) and value >= 0 else None
