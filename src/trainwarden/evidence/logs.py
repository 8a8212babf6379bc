"""The log source: each log followed from where it last stood, read into series and observations."""

from __future__ import annotations

import glob
import math
import re
import statistics
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

from trainwarden import plugins
from trainwarden.evidence import follow as following
from trainwarden.evidence.base import Target, absent
from trainwarden.evidence.config import training_facts
from trainwarden.evidence.excerpts import line_at
from trainwarden.evidence.run_files import BINARY, companions, joined, newest_run, phase_of
from trainwarden.metrics.formats import LineFormat, builtin_formats
from trainwarden.metrics.names import canonical
from trainwarden.metrics.readers import HEAD, reader_for
from trainwarden.metrics.reading import Event, Reading
from trainwarden.metrics.series import Point, Series
from trainwarden.records.base import Scalar
from trainwarden.records.facts import planned_steps
from trainwarden.records.hostile import clean
from trainwarden.records.job import Job
from trainwarden.records.observation import Observation, Place, SourceReport, Trust

LOG_SUFFIXES = (".log", ".out", ".txt", ".err", ".jsonl", ".csv", ".tsv", ".json")
MAX_FILES = 16
_STREAMS = ("files", "logs")
"""Folders of a run of W&B."""
_SLOTS = {"last": "last", "first": "first", "min": "minimum", "max": "maximum"}
MAX_METRICS = 48
MAX_EVENTS = 20
MAX_BESIDE = 12
"""Metrics of a log beside the main one."""
MAX_EVALUATED = 12
"""Evaluation metrics of other names before the run's own: benchmarks come in dozens of variants."""
_RANK = re.compile(
    r"(?i)(?:^|[^a-z])(?:rank|worker|proc|process|gpu|task|local|node)[_.-]?(\d+)(?!\d)|^(\d+)$"
)
SETTLED_SECONDS = 60.0
"""A file untouched for so long ends where it ends: its last line is taken as whole."""
OVER_SECONDS = 1800.0
"""For so long neither an evaluation nor a checkpoint holds a run up: it is over."""
_TELLING = re.compile(r"loss|score|reward|length|clip|entropy|kl|norm|value|accuracy|ratio|frac")
_IMPORTANT = ("exception", "killed", "signal", "exit_code", "interrupted", "error", "finished")


def formats() -> tuple[LineFormat, ...]:
    """Log formats of plug-ins, then the built-in ones."""
    return (*plugins.log_formats(), *builtin_formats())


def expand(logs: Iterable[Path]) -> list[Path]:
    """The files behind log paths: a folder's log files (newest first), a pattern's matches.

    Of the binary files in a folder (TensorBoard's, W&B's) those of the newest run are taken.
    """
    files: list[Path] = []
    for path in logs:
        if path.is_dir():
            runs = newest_run(path)
            # What W&B keeps of the console beside its own record says nothing more.
            beside = "wandb" if any(run.suffix == ".wandb" for run in runs) else ""
            inside = [
                child
                for child in (*path.glob("*"), *path.glob("*/*"))
                if child.suffix in LOG_SUFFIXES
                and child.is_file()
                and _is_log(child)
                and not (beside and {beside, *_STREAMS} & set(child.parts))
            ]
            inside.sort(key=_modified, reverse=True)
            files += inside[:MAX_FILES] + runs
        elif not path.exists() and any(char in str(path) for char in "*?["):
            files += [Path(name) for name in sorted(glob.glob(str(path)))][:MAX_FILES]  # noqa: PTH207
        else:
            files.append(path)
    return list(dict.fromkeys(files))


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # gone since it was listed
        return 0.0


def _is_log(path: Path) -> bool:
    return path.suffix != ".json" or path.name in {"trainer_state.json", "metrics.json"}


def read_log(path: Path) -> Reading:
    """What the reader makes of a whole file, or of the newest run's binary files in a folder.

    Raises OSError (IsADirectoryError for a folder that has none).
    """
    if path.is_dir():
        files = newest_run(path)
        if not files:
            raise IsADirectoryError(f"{path} is a folder")
        found = joined([(file, read_log(file)) for file in files])
        return _main_first([reading for _, reading in found])[0]
    followed = following.follow(path, None, formats())
    followed.settled = followed.over = time.time() - _modified(path) > 5.0
    return followed.reading()


def read_as_far(path: Path, ends: Mapping[str, int]) -> Reading:
    """A log read anew as far as `ends` says by path; with it the other files of its run there.

    The whole log where it is not among them. Raises OSError.
    """
    found = []
    for name in companions(path, ends):
        file, end = Path(name), ends.get(name)
        with file.open("rb") as stream:
            reader = reader_for(name, stream.read(HEAD), formats(), phase_of(file))
            stream.seek(0)
            left = file.stat().st_size if end is None else end
            while left > 0 and (data := stream.read(min(following.CHUNK, left))):
                reader.feed(data)
                left -= len(data)
        reader.finish()
        found.append((file, reader.reading))
    return joined(found)[0][1]


def load_readings(
    cache_dir: Path, job: Job | str, logs: Iterable[Path] | None = None
) -> list[Reading]:
    """What the last session had read of the job's logs, frozen; the logs are not read."""
    found = [(Path(one.reader.file), one.reading()) for one in _cached(cache_dir, job, logs)]
    return _main_first([reading for _, reading in joined(found)])


def positions(
    cache_dir: Path, job: Job | str, logs: Iterable[Path] | None = None
) -> dict[str, dict[str, Any]]:
    """Where reading stands in each log, by path: offset, inode, device, fingerprint."""
    return {
        cached.reader.file: vars(cached.position).copy() for cached in _cached(cache_dir, job, logs)
    }


def _cached(
    cache_dir: Path, job: Job | str, logs: Iterable[Path] | None
) -> list[following.Followed]:
    name = job if isinstance(job, str) else job.id
    if logs is None:
        logs = [Path(log) for log in job.logs] if isinstance(job, Job) else []
    found: list[following.Followed] = []
    for path in logs:
        one = following.cache_file(cache_dir, name, path)
        # A folder or a pattern: its files each have their own cache.
        files = (
            [one]
            if one.exists()
            else [following.cache_file(cache_dir, name, inner) for inner in expand([path])]
        )
        for file in files:
            try:
                cached = following.load(file, formats())
            except ValueError:
                continue
            if cached is not None:
                found.append(cached)
    return found


def rank_of(path: Path) -> int | None:
    """Which process of a run a log is of, where its name or its folder's says so."""
    found = _RANK.search(path.stem) or _RANK.search(path.parent.name)
    return int(found[1] or found[2]) if found else None


def _main_first(readings: Sequence[Reading]) -> list[Reading]:
    """The log that tells most before the others; of equal ones that of the lowest rank."""

    def weight(reading: Reading) -> tuple[bool, bool, int, int, int]:
        loss = reading.series.get("loss")
        points = sum(series.count for series in reading.series.values())
        rank = rank_of(Path(reading.file))
        # Ranks print the same, one of them a line further than another.
        return (loss is not None, points > 0, -(rank or 0), loss.count if loss else 0, points)

    return sorted(readings, key=weight, reverse=True)


class LogSource:
    """Logs of the job, bounded in memory, each time only what is new."""

    name: ClassVar[str] = "log"
    trust: ClassVar[Trust] = Trust.LOG
    timeout: ClassVar[float] = 120.0

    def read(self, target: Target) -> SourceReport:
        """Follow every log, fill `target.readings`, and give what they show."""
        begun = time.monotonic()
        if not target.logs:
            return absent(self, "no log is known for this job: give --log")
        files = expand(target.logs)
        problems: list[str] = list(plugins.plugins().problems)
        remarks: list[str] = []
        read: list[tuple[Path, Reading]] = []
        missing = sum(not path.exists() for path in files) + (not files)
        if not files:
            problems.append(f"no log file in {', '.join(map(str, target.logs))}")
        deadline = begun + self.timeout * 0.8
        for path in files:
            problem, reading = self._one(path, target, deadline)
            problems += [problem] if problem else []
            if reading is not None:
                read.append((path, reading))
                remarks += [f"{path.name}: {note}" for note in reading.notes]
                if reading.bytes == 0:
                    problems.append(f"{path}: empty so far")
                elif not reading.series and reading.last_step is None:
                    problems.append(f"{path}: no step or metric found in {reading.bytes} bytes")
        read = joined(read)
        order = {id(reading): i for i, reading in enumerate(_main_first([r for _, r in read]))}
        read.sort(key=lambda item: order[id(item[1])])
        observations: list[Observation] = []
        for index, (path, reading) in enumerate(read):
            target.readings[path] = reading
            observations += observe(path, reading, target, main=index == 0)
        status = "ok" if read and not problems else "partial" if read else "failed"
        if not read and missing and missing >= len(files):
            status = "absent"
        return SourceReport(
            source=self.name,
            trust=self.trust,
            status=status,  # type: ignore[arg-type]
            message=clean("; ".join(problems + remarks), 1000),
            seconds=round(time.monotonic() - begun, 3),
            observations=tuple(observations),
        )

    def _one(self, path: Path, target: Target, deadline: float) -> tuple[str, Reading | None]:
        problem = ""
        cached: following.Followed | None = None
        file: Path | None = None
        if target.cache_dir is not None:
            file = following.cache_file(target.cache_dir, target.job.id, path)
            try:
                cached = following.load(file, formats())
            except ValueError as error:
                following.set_aside(file)
                problem = f"reading cache was damaged and set aside, the log is read anew ({error})"
        try:
            if path.exists() and not path.is_file() and not path.is_dir():
                return f"{path}: not a regular file", None
            followed = following.follow(path, cached, formats(), deadline)
        except FileNotFoundError:
            return f"{path}: no such file", None
        except PermissionError:
            return f"{path}: may not be read: permission denied", None
        except IsADirectoryError:
            return f"{path}: a folder without log files", None
        except OSError as error:
            return f"{path}: cannot be read: {error.strerror or error}", None
        except (EOFError, zlib.error) as error:
            return f"{path}: what it was rotated to cannot be unpacked: {error}", None
        if not followed.complete:
            problem = (
                f"{path}: time ran out at byte {followed.position.offset}; the rest is read next"
            )
        age = target.now().timestamp() - _modified(path)
        followed.settled = age > SETTLED_SECONDS or not target.live
        followed.over = age > OVER_SECONDS and target.live
        if file is not None:
            try:
                following.save(file, followed)
            except OSError as error:
                problem = f"{file}: reading cache not written: {error.strerror or error}"
        facts = training_facts(target.config)
        return problem, followed.reading().stretched(facts.log_every, planned_steps(facts))


# Observations ------------------------------------------------------------------------------------


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
            if self._reading.format in BINARY:
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
                source=LogSource.name,
                trust=LogSource.trust,
                **more,
            )
        )

    try:
        status = path.stat()
    except OSError:
        status = None
    if status is not None:
        add("log.size", status.st_size, unit="bytes")
        age = target.now().timestamp() - status.st_mtime
        written = datetime.fromtimestamp(status.st_mtime, timezone.utc)
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
