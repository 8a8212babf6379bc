"""Readings of logs outside of a session's own look: whole, as far as was read, from the cache."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainwarden import plugins
from trainwarden.evidence import reading_cache as cache
from trainwarden.evidence import stores
from trainwarden.evidence.follow import Followed, follow
from trainwarden.evidence.log_files import expand, modified
from trainwarden.evidence.pieces import pieces_of
from trainwarden.evidence.ranks import process_of
from trainwarden.evidence.run_files import companions, joined, newest_run
from trainwarden.evidence.strangers import problems_of, strangers
from trainwarden.metrics.formats import LineFormat, builtin_formats
from trainwarden.metrics.reading import Reading
from trainwarden.records.job import Job


def formats() -> tuple[LineFormat, ...]:
    """Log formats of plug-ins, then the built-in ones."""
    return (*strangers(), *builtin_formats())


def read_log(path: Path) -> Reading:
    """What the reader makes of a whole file or store, or of a folder's newest run that has either.

    Raises OSError (IsADirectoryError for a folder that has none).
    """
    if path.is_dir() and not stores.is_store(path):
        files = [*newest_run(path), *stores.stores_in(path)]
        if not files:
            raise IsADirectoryError(f"{path} is a folder")
        found = joined([(file, read_log(file)) for file in files])
        return main_first([reading for _, reading in found])[0]
    followed = follow(path, None, formats())
    followed.settled = followed.over = time.time() - modified(path) > 5.0
    for problem in (*plugins.plugins().problems, *problems_of(followed.reader)):
        followed.reader.note(problem)
    return followed.reading()


def read_as_far(path: Path, ends: Mapping[str, int]) -> Reading:
    """A log read anew as far as `ends` says by path; with it the other files of its run there.

    The whole log where it is not among them. Raises OSError.
    """
    if stores.is_store(path):
        return stores.follow(path, None, until=ends.get(str(path)))[0].reading
    log = next((Path(name) for name in ends if path in pieces_of(Path(name))), path)
    found = []
    for name in companions(log, ends):
        followed = follow(Path(name), None, formats(), until=ends.get(name))
        if followed.position.offset < ends.get(name, 0):
            raise OSError(errno.ENODATA, "a part of it is gone", name)
        found.append((Path(name), followed.reading()))
    return joined(found)[0][1]


def load_readings(
    cache_dir: Path, job: Job | str, logs: Iterable[Path] | None = None
) -> list[Reading]:
    """What the last session had read of the job's logs, frozen; the logs are not read."""
    found = [(Path(one.reader.file), one.reading()) for one in _cached(cache_dir, job, logs)]
    return main_first([reading for _, reading in joined(found)])


def positions(
    cache_dir: Path, job: Job | str, logs: Iterable[Path] | None = None
) -> dict[str, dict[str, Any]]:
    """Where reading stands in each log, by path: offset, inode, device, fingerprint."""
    return {
        cached.reader.file: vars(cached.position).copy() for cached in _cached(cache_dir, job, logs)
    }


def _cached(cache_dir: Path, job: Job | str, logs: Iterable[Path] | None) -> list[Followed]:
    name = job if isinstance(job, str) else job.id
    if logs is None:
        logs = [Path(log) for log in job.logs] if isinstance(job, Job) else []
    found: list[Followed] = []
    for path in logs:
        one = cache.cache_file(cache_dir, name, path)
        # A folder or a pattern: its files each have their own cache.
        files = (
            [one]
            if one.exists()
            else [cache.cache_file(cache_dir, name, inner) for inner in expand([path])]
        )
        for file in files:
            try:
                cached = cache.load(file, formats())
            except ValueError:
                continue
            if cached is not None:
                found.append(cached)
    return found


def main_first(readings: Sequence[Reading]) -> list[Reading]:
    """The log that tells most before the others; of equal ones that of the lowest rank."""

    def weight(reading: Reading) -> tuple[bool, bool, int, int, int]:
        loss = reading.series.get("loss")
        points = sum(series.count for series in reading.series.values())
        process = process_of(Path(reading.file))
        rank = process.rank if process else 0
        # Ranks print the same, one of them a line further than another.
        return (loss is not None, points > 0, -rank, loss.count if loss else 0, points)

    return sorted(readings, key=weight, reverse=True)
