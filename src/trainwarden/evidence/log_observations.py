"""What the reading of a log shows, as observations with their exact place."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from trainwarden.evidence.base import Target
from trainwarden.evidence.excerpts import line_at
from trainwarden.evidence.log_files import modified
from trainwarden.evidence.run_files import BINARY
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
    """Lines of one file by their offset: text and, where cheap, number."""

    def __init__(self, path: Path, reading: Reading) -> None:
        self._path, self._reading = path, reading
        self._known: dict[int, tuple[int | None, str | None]] = {}

    def at(self, offset: int) -> tuple[int | None, str | None]:
        if offset not in self._known:
            self._known[offset] = self._look(offset)
        return self._known[offset]

    def _look(self, offset: int) -> tuple[int | None, str | None]:
        if offset < 0:
            return None, None
        reach = 4 << 20
        try:
            line = line_at(self._path, offset)
            if self._reading.format in BINARY | STORED:
                return None, clean(line.decode("utf-8", "replace"))
            with self._path.open("rb") as stream:
                number = None
                if offset < reach:
                    stream.seek(0)
                    number = stream.read(offset).count(b"\n") + 1
                elif self._reading.bytes - offset < reach:
                    stream.seek(offset)
                    after = stream.read(self._reading.bytes - offset).count(b"\n")
                    number = self._reading.lines - after + 1
        except OSError:
            return None, None
        return number, clean(line[:2000].decode("utf-8", "replace"))


def observe(path: Path, reading: Reading, target: Target, main: bool) -> list[Observation]:
    """What a reading shows, each with its exact place; `main` is the job's main log."""
    subject = None if main else path.name
    excerpts = {str(path): _Excerpts(path, reading)}
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
        if path.is_file():
            add("log.size", path.stat().st_size, unit="bytes")
        age = target.now().timestamp() - changed
        written = datetime.fromtimestamp(changed, timezone.utc)
        add("log.age", round(max(age, 0.0), 3), unit="s", time=written)
    last_offset = reading.tail[-1][0] if reading.tail else None
    add("log.ended", reading.ended, place=Place(file=str(path), offset=last_offset))
    add("log.runs", reading.runs)
    if (interval := _interval(reading)) is not None:
        add("log.interval", interval, unit="s", stat="median")
    last_points = [
        s.last
        for s in reading.series.values()
        if s.last is not None and s.origins.get("last", str(path)) == str(path)
    ]
    if reading.last_step is not None:
        offset = max((point.offset for point in last_points), default=-1)
        line, text = excerpts[str(path)].at(offset)
        place = Place(file=str(path), offset=offset if offset >= 0 else None, line=line)
        add("step", reading.last_step, step=reading.last_step, place=place, text=text)
    for series in _chosen(reading.series)[: None if main else MAX_BESIDE]:
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
            file = series.origins.get(_SLOTS[stat], str(path))
            if file not in excerpts:
                excerpts[file] = _Excerpts(Path(file), reading)
            line, text = excerpts[file].at(point.offset)
            add(
                series.name,
                point.value,
                stat=stat,
                unit=series.unit,
                step=int(point.step) if math.isfinite(point.step) else None,
                place=Place(
                    file=file,
                    offset=point.offset if point.offset >= 0 else None,
                    line=line,
                    api=None if series.original == series.name else clean(series.original, 80),
                ),
                text=text,
            )
    for event in _selected(reading.events):
        when = None
        if event.time is not None and 0 < event.time < 4e9:
            when = datetime.fromtimestamp(event.time, timezone.utc)
        add(
            "log.event",
            event.kind,
            step=int(event.step) if event.step is not None else None,
            time=when,
            place=Place(
                file=str(path),
                offset=event.offset if event.offset >= 0 else None,
                line=event.line,
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
