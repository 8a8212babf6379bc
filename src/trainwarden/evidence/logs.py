"""The log source: each log followed from where it last stood, read into series and observations."""

from __future__ import annotations

import time
from pathlib import Path
from typing import ClassVar

from trainwarden import plugins
from trainwarden.evidence import reading_cache as cache
from trainwarden.evidence import stores
from trainwarden.evidence.base import Target, absent
from trainwarden.evidence.config import training_facts
from trainwarden.evidence.follow import Followed, follow
from trainwarden.evidence.log_files import expand, modified
from trainwarden.evidence.log_observations import SOURCE, observe
from trainwarden.evidence.log_readings import formats, main_first
from trainwarden.evidence.ranks import beside, distinct
from trainwarden.evidence.run_files import joined
from trainwarden.evidence.strangers import problems_of
from trainwarden.metrics.reading import Reading
from trainwarden.records.facts import planned_steps
from trainwarden.records.hostile import clean
from trainwarden.records.observation import Observation, SourceReport, Trust

SETTLED_SECONDS = 60.0
"""A file untouched for so long ends where it ends: its last line is taken as whole."""
OVER_SECONDS = 1800.0
"""For so long neither an evaluation nor a checkpoint holds a run up: it is over."""


def _says_nothing(path: Path, reading: Reading) -> list[str]:
    if reading.bytes == 0:
        return [f"{path}: empty so far"]
    if not reading.series and reading.last_step is None:
        return [f"{path}: no step or metric found in {reading.bytes} bytes"]
    return []


class LogSource:
    """Logs of the job, bounded in memory, each time only what is new."""

    name: ClassVar[str] = SOURCE
    trust: ClassVar[Trust] = Trust.LOG
    timeout: ClassVar[float] = 120.0

    def read(self, target: Target) -> SourceReport:
        """Follow every log, fill `target.readings`, and give what they show."""
        begun = time.monotonic()
        if not target.logs:
            return absent(self, "no log is known for this job: give --log")
        files = expand(target.logs)
        problems: list[str] = []
        remarks: list[str] = []
        read: list[tuple[Path, Reading]] = []
        missing = sum(not stores.exists(path) for path in files) + (not files)
        if not files:
            problems.append(f"no log file in {', '.join(map(str, target.logs))}")
        deadline = begun + self.timeout * 0.8
        for path in files:
            found, reading = self._one(path, target, deadline)
            problems += found
            if reading is not None:
                read.append((path, reading))
        problems[:0] = plugins.plugins().problems
        read = joined(read)
        order = {id(reading): i for i, reading in enumerate(main_first([r for _, r in read]))}
        read.sort(key=lambda item: order[id(item[1])])
        main = read[0][1] if read else None
        ranks = {id(one) for one in beside(main, [other for _, other in read[1:]])} if main else {}
        names = distinct([path for path, _ in read])
        observations: list[Observation] = []
        for path, reading in read:
            target.readings[path] = reading
            name = names[path]
            remarks += [f"{name}: {note}" for note in reading.notes]
            told = main if id(reading) in ranks else None
            if told is None:
                problems += _says_nothing(path, reading)
            subject = None if reading is main else name
            observations += observe(path, reading, target, subject, told)
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

    def _one(self, path: Path, target: Target, deadline: float) -> tuple[list[str], Reading | None]:
        problems: list[str] = []
        cached: Followed | None = None
        file: Path | None = None
        if target.cache_dir is not None:
            file = cache.cache_file(target.cache_dir, target.job.id, path)
            try:
                cached = cache.load(file, formats())
            except ValueError as error:
                cache.set_aside(file)
                problems.append(
                    f"reading cache was damaged and set aside, the log is read anew ({error})"
                )
        try:
            if path.exists() and not path.is_file() and not path.is_dir():
                return [f"{path}: not a regular file"], None
            followed = follow(path, cached, formats(), deadline)
        except FileNotFoundError:
            return [f"{path}: no such file"], None
        except PermissionError:
            return [f"{path}: may not be read: permission denied"], None
        except IsADirectoryError:
            return [f"{path}: a folder without log files"], None
        except OSError as error:
            return [f"{path}: cannot be read: {error.strerror or error}"], None
        problems += [*followed.problems, *problems_of(followed.reader)]
        if not followed.complete:
            problems.append(
                f"{path}: time ran out at byte {followed.position.offset}; the rest is read next"
            )
        age = target.now().timestamp() - modified(path)
        followed.settled = age > SETTLED_SECONDS or not target.live
        followed.over = age > OVER_SECONDS and target.live
        if file is not None:
            try:
                cache.save(file, followed)
            except OSError as error:
                problems.append(f"{file}: reading cache not written: {error.strerror or error}")
        facts = training_facts(target.config)
        return problems, followed.reading().stretched(facts.log_every, planned_steps(facts))
