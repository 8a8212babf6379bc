"""MLflow's file store (`mlruns/<experiment>/<run>/`): a file a metric, each line a point."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from trainwarden.evidence.stores.base import number
from trainwarden.evidence.stores.sqlite import TimeUp
from trainwarden.metrics.binary.scalars import Floats, Points
from trainwarden.metrics.stored import MAX_CONFIG, MAX_VALUE, StoreReader, Tracker

MAX_RUNS, MAX_FILES = 20_000, 2000
ROUND = 16 << 20
"""Bytes of all metrics together that are read at once."""
_META = 16_384
_LARGEST = 2.0**62
_RUN = re.compile(r"(?m)^run_(?:uuid|id): ")
_DELETED = re.compile(r"(?m)^lifecycle_stage: deleted\s*$")
_BEGUN = re.compile(r"(?m)^start_time: (\d{1,18})\s*$")
_OVER = re.compile(r"(?m)^end_time: (\d{1,18})\s*$")
_STATUS = re.compile(r"(?m)^status: '?(\w{1,20})'?\s*$")
_STATUSES = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run."""
    return _RUN.search(_meta(folder)) is not None


def newest_run(folder: Path) -> Path | None:
    """The run begun last of those in a folder: of an experiment, a store, or beside `mlruns`.

    Of two, one that logged something goes before one that did not.
    """
    begun: list[tuple[int, str, Path]] = []
    for run in islice(_runs(folder), MAX_RUNS):
        meta = _meta(run)
        if _RUN.search(meta) and not _DELETED.search(meta):
            found = _BEGUN.search(meta)
            begun.append((int(found[1]) if found else 0, run.name, run))
    runs = [run for _time, _name, run in sorted(begun, reverse=True)]
    return next((run for run in runs if any(_metrics(run))), runs[0] if runs else None)


def written(run: Path) -> float:
    """When a run was last written, in Unix seconds."""
    paths = (run / "meta.yaml", *islice(_metrics(run), MAX_FILES))
    return max((modified(path) for path in paths), default=0.0)


class MlflowFiles:
    """The run of a folder. `deadline` is of `time.monotonic`."""

    tracker: Tracker = "mlflow"

    def __init__(self, run: Path, deadline: float | None = None) -> None:
        self.run = run.name
        self.folder = str(run / "metrics")
        self._path, self._deadline = run, deadline

    def reads_on(self, reader: StoreReader) -> bool:
        """Whether no file is shorter than it was."""
        ends = reader.cursor.get("ends", {})
        return all(_size(Path(self.folder) / name) >= end for name, end in ends.items())

    def read(self, reader: StoreReader, until: int | None = None) -> None:
        """Take the lines after those that were read; `until` is a time in milliseconds."""
        meta = _meta(self._path)
        status, begun, over = (each.search(meta) for each in (_STATUS, _BEGUN, _OVER))
        said = status[1] if status else ""
        reader.about(
            _STATUSES.get(said, said),
            dict(self._params()),
            int(begun[1]) / 1000 if begun else None,
            int(over[1]) / 1000 if over else None,
        )
        files = sorted(islice(_metrics(self._path), MAX_FILES))
        ends = dict(reader.cursor.get("ends", {}))
        piece = max(ROUND // max(1, len(files)), 1 << 16)
        left = files
        while left:
            points, more = [], []
            for path in left:
                name = path.relative_to(self.folder).as_posix()
                data, whole = _lines(path, ends.get(name, 0), piece)
                if (found := _points(name, data, ends.get(name, 0), until)) is not None:
                    points.append(found)
                ends[name] = ends.get(name, 0) + len(data)
                if not whole:
                    more.append(path)
            # In the order in which the first of each was written, as a database has them.
            points.sort(key=lambda one: float(one.times[0]))
            reader.take(points)
            latest = [int(1000 * one.times.max() + 0.5) for one in points]
            reader.position = max([reader.position, *latest])
            reader.cursor, left = {"ends": dict(ends)}, more
            reader.size = sum(ends.values())
            if left and self._deadline is not None and time.monotonic() > self._deadline:
                raise TimeUp

    def _params(self) -> Iterator[tuple[str, int | float | str]]:
        base = self._path / "params"
        for path in islice(_files(base), MAX_CONFIG):
            try:
                with path.open("rb") as file:
                    text = file.read(MAX_VALUE).decode("utf-8", "replace")
            except OSError:
                continue
            yield path.relative_to(base).as_posix(), number(text.strip())


def _runs(folder: Path) -> Iterator[Path]:
    """Folders that may be of runs."""
    for base in (folder, folder / "mlruns"):
        for pattern in ("meta.yaml", "*/meta.yaml", "*/*/meta.yaml"):
            try:
                yield from (path.parent for path in base.glob(pattern))
            except OSError:
                continue


def _metrics(run: Path) -> Iterator[Path]:
    return _files(run / "metrics")


def _files(folder: Path) -> Iterator[Path]:
    """Files of a folder, of names with slashes too."""
    for base, folders, names in os.walk(folder):
        folders.sort()
        paths = (Path(base) / name for name in sorted(names) if name[:1] != ".")
        yield from (path for path in paths if path.is_file())


def _meta(run: Path) -> str:
    path = run / "meta.yaml"
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_META).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def modified(path: Path) -> float:
    """When a file was last written, in Unix seconds; 0 where it is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _lines(path: Path, start: int, size: int) -> tuple[bytes, bool]:
    """Whole lines from a byte on, and whether no more is to be had of the file now."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(size)
    except OSError:
        return b"", True
    end = data.rfind(b"\n") + 1
    if not end and len(data) == size:
        return data, False  # no point is that long: passed over
    return data[:end], len(data) < size


def _points(name: str, data: bytes, start: int, until: int | None) -> Points | None:
    """The points of a metric from lines `time value step`, the first of them at byte `start`."""
    signs = np.frombuffer(data, np.uint8)
    places = np.flatnonzero(signs == 10)
    starts = np.concatenate([[0], places + 1])[: len(places)] + start
    gaps = signs[signs <= 32]
    try:
        if len(gaps) != 3 * len(starts) or (gaps.reshape(-1, 3) != (32, 32, 10)).any():
            raise ValueError
        table = np.array(list(map(float, data.split())), np.float64).reshape(-1, 3)
    except ValueError:
        rows = [_row(line) for line in data.split(b"\n")[: len(starts)]]
        good = np.array([row is not None for row in rows], bool)
        starts = starts[good]
        table = np.array([row for row in rows if row is not None], np.float64).reshape(-1, 3)
    good = np.all(np.abs(table[:, (0, 2)]) < _LARGEST, axis=1)
    if until is not None:
        good = np.logical_and(good, table[:, 0] <= until)
    table, starts = table[good], starts[good]
    if not len(table):
        return None
    stamps: Floats = table[:, 0] / 1000
    return Points(name, starts.astype(np.int64), table[:, 2].copy(), table[:, 1].copy(), stamps)


def _row(line: bytes) -> tuple[float, float, float] | None:
    """Time, value and step of a line: old ones have no step, and later ones tell of more."""
    words = line.split()
    try:
        return float(words[0]), float(words[1]), float(words[2]) if len(words) > 2 else 0.0
    except (ValueError, IndexError):
        return None
