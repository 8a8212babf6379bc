"""One reading of a run that wrote several files: after restarts, and beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from trainwarden.metrics.names import slug
from trainwarden.metrics.reading import Ending, Reading
from trainwarden.metrics.series import Series


def join(readings: Sequence[Reading]) -> Reading:
    """The readings of a run's files, in order of their beginning, as one; named after the last.

    Files of one folder follow upon each other: where a later one says from which step on it
    begins, what earlier ones tell of later steps is dropped. Files of other folders (`train` and
    `validation`, say) are told at the same time. Of a series the points lie where
    `Series.origins` says, else in the file of the reading.
    """
    if len(readings) == 1:
        return readings[0]
    folders: dict[str, Reading] = {}
    for reading in readings:
        folder = str(PurePath(reading.file).parent)
        before = folders.get(folder)
        folders[folder] = reading if before is None else _continued(before, reading)
    parts = sorted(folders.values(), key=_weight, reverse=True)
    whole = parts[0]
    for other in parts[1:]:
        whole = _beside(whole, other)
    return whole


def _weight(reading: Reading) -> tuple[bool, int]:
    return "loss" in reading.series, sum(series.count for series in reading.series.values())


def _continued(before: Reading, after: Reading) -> Reading:
    """One file and the next one of its folder."""
    series = dict(before.series)
    restarted = False
    if after.begins_at is not None:
        for name, one in before.series.items():
            series[name] = one.before(after.begins_at)
            restarted = restarted or series[name].count < one.count
    if before.last_step is not None and after.series:
        firsts = [one.first.step for one in after.series.values() if one.first]
        restarted = restarted or min(firsts, default=before.last_step + 1) <= before.last_step
    found: dict[str, Series] = {}
    for name in (*series, *(name for name in after.series if name not in series)):
        mine, theirs = series.get(name), after.series.get(name)
        if mine is not None and mine.count:
            found[name] = (
                _placed(mine, before.file)
                if theirs is None
                else mine.joined(theirs, before.file, after.file)
            )
        elif theirs is not None:
            found[name] = theirs
    ended: Ending = after.ended if after.ended != "unknown" or after.series else before.ended
    return _summed(
        before,
        after,
        series=found,
        last_step=after.last_step if after.last_step is not None else before.last_step,
        runs=before.runs + after.runs if restarted else max(before.runs, after.runs),
        ended=ended,
        begins_at=before.begins_at,
    )


def _beside(whole: Reading, other: Reading) -> Reading:
    """The files of one folder and those of another."""
    series = dict(whole.series)
    for name, one in other.series.items():
        key = name
        if key in series:
            key = slug(f"{PurePath(other.file).parent.name}/{one.original}")
        if key not in series:
            series[key] = replace(_placed(one, other.file), name=key)
    steps = [step for step in (whole.last_step, other.last_step) if step is not None]
    return replace(
        _summed(other, whole, series=series, runs=max(whole.runs, other.runs)),
        last_step=whole.last_step if "loss" in whole.series else max(steps, default=None),
        ended=whole.ended if whole.ended != "unknown" else other.ended,
    )


def _placed(series: Series, file: str) -> Series:
    """A series whose points all lie in a file."""
    slots = ("first", "last", "minimum", "maximum", "first_nonfinite")
    return replace(series, origins=dict.fromkeys(slots, file) | series.origins)


def _summed(before: Reading, after: Reading, **more: object) -> Reading:
    """What is summed up of both, `after` giving the rest."""
    times = [t for r in (before, after) for t in (r.first_time, r.last_time) if t is not None]
    return replace(
        after,
        bytes=before.bytes + after.bytes,
        lines=before.lines + after.lines,
        total_steps=after.total_steps or before.total_steps,
        events=[*before.events, *after.events],
        first_time=min(times, default=None),
        last_time=max(times, default=None),
        notes=list(dict.fromkeys([*before.notes, *after.notes])),
        counted=before.counted and after.counted,
        config={**before.config, **after.config},
        **more,  # type: ignore[arg-type]
    )
