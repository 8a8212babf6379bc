"""Views and briefings made from readings, with the observations that a log source makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from trainwarden.diagnosis import View
from trainwarden.diagnosis.derived import derived_observations
from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.reading import Reading
from trainwarden.metrics.series import Series
from trainwarden.records.assessment import KeyIndicator
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.hostile import clean
from trainwarden.records.observation import Observation, Place, Trust

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)


def series(name: str, values: Iterable[float], every: int = 1, first: int | None = None) -> Series:
    made = Series(name, name)
    for index, value in enumerate(values):
        made.add((every if first is None else first) + index * every, value, 40 * index)
    return made


def reading(*parts: Series, total: int | None = None, ended: Any = "running") -> Reading:
    last = max((int(p.last.step) for p in parts if p.last), default=None)
    made = Reading("/runs/job/train.log", "text", 10_000, 100, {p.name: p for p in parts})
    made.last_step, made.total_steps, made.ended, made.runs = last, total, ended, 1
    return made


def read_text(text: str, file: str = "/runs/job/train.log") -> Reading:
    reader = LogReader(file)
    reader.feed(text.encode())
    reader.finish()
    return reader.reading


def read_file(path: Path) -> Reading:
    reader = LogReader(str(path))
    reader.feed(path.read_bytes())
    reader.finish()
    return reader.reading


def seen(
    quantity: str,
    value: Any,
    *,
    stat: str = "last",
    subject: str | None = None,
    trust: Trust = Trust.PROCESS,
    pid: int | None = None,
    text: str | None = None,
    **more: Any,
) -> Observation:
    return Observation(
        quantity=quantity,
        stat=stat,
        subject=subject,
        value=value,
        source=quantity.partition(".")[0],
        trust=trust,
        place=Place(pid=pid),
        text=text,
        **more,
    )


def log_observations(one: Reading) -> list[Observation]:
    made = []

    def add(quantity: str, value: Any, stat: str = "last", **more: Any) -> None:
        offset = more.pop("offset", None)
        made.append(
            Observation(
                quantity=quantity,
                stat=stat,
                value=value,
                source="log",
                trust=Trust.LOG,
                place=Place(file=one.file, offset=offset),
                **more,
            )
        )

    add("log.ended", one.ended)
    if one.last_step is not None:
        add("step", one.last_step)
    for name, part in one.series.items():
        points = {
            "last": part.last,
            "first": part.first,
            "min": part.minimum,
            "max": part.maximum,
        }
        for stat, point in points.items():
            if point is not None and name != "step":
                add(name, point.value, stat, step=int(point.step), offset=point.offset)
        add(name, part.count, "count")
    for event in one.events:
        add("log.event", event.kind, text=clean(event.text), offset=event.offset)
    return made


def numbered(observations: Iterable[Observation]) -> dict[str, Observation]:
    return {
        f"E{n}": one.model_copy(update={"id": f"E{n}"}) for n, one in enumerate(observations, 1)
    }


def view(
    *readings: Reading,
    more: Iterable[Observation] = (),
    indicator: KeyIndicator | None = None,
    facts: TrainingFacts | None = None,
    earlier: Iterable[Mapping[str, Any]] = (),
    live: bool = True,
    now: datetime = NOW,
) -> View:
    observations = [one for r in readings for one in log_observations(r)]
    observations += more
    if indicator is None and readings:
        from trainwarden.metrics.indicator import key_indicator

        every = {name: one for r in reversed(readings) for name, one in r.series.items()}
        choice = key_indicator(every, facts or TrainingFacts(), None)
        if choice.quantity in every:
            indicator = KeyIndicator(
                quantity=choice.quantity, direction=choice.direction, why=choice.why
            )
    observations += derived_observations(readings, observations, indicator)
    return View(
        observations=numbered(observations),
        now=now,
        readings=readings,
        facts=facts or TrainingFacts(),
        indicator=indicator,
        earlier=tuple(earlier),
        live=live,
    )
