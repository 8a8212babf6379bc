"""Local stores of experiment trackers, read as logs are: MLflow's files and SQLite, Trackio's.

A store is named by its path, which stands for its newest run; `store.db#RUN` is another run of a
SQLite store, by its id or name, and the folder of a run is itself. Rows are cited by their rowid.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from trainwarden.evidence.stores import mlflow_db, mlflow_files, trackio
from trainwarden.evidence.stores.base import Store
from trainwarden.evidence.stores.mlflow_db import MlflowDatabase, is_mlflow
from trainwarden.evidence.stores.mlflow_files import MlflowFiles
from trainwarden.evidence.stores.sqlite import Database, TimeUp, besides, is_sqlite
from trainwarden.evidence.stores.trackio import Trackio, is_trackio
from trainwarden.metrics.stored import StoreReader

SUFFIXES = (".db", ".sqlite", ".sqlite3")
MAX_DATABASES = 64


def parted(path: Path) -> tuple[Path, str]:
    """The file of a store, and the run that is meant; empty for the newest one."""
    name, mark, run = path.name.partition("#")
    if mark and run and not path.exists():
        return path.with_name(name), run
    return path, ""


def is_store(path: Path) -> bool:
    """Whether a path is a SQLite file, of a tracker or not, or the folder of a run of MLflow."""
    try:
        file, _run = parted(path)
        return is_sqlite(file) if file.is_file() else mlflow_files.is_run(file)
    except (OSError, ValueError):
        return False


def exists(path: Path) -> bool:
    """Whether there is a file, a folder, or a run's store by a name."""
    return path.exists() or parted(path)[0].is_file()


def written(path: Path) -> float:
    """When a store was last written, in Unix seconds; 0 where it is gone."""
    file, _run = parted(path)
    if file.is_dir():
        return mlflow_files.written(file)
    return max(mlflow_files.modified(each) for each in (file, *besides(file)))


def stores_in(folder: Path) -> list[Path]:
    """The newest run of MLflow's file store in a folder, and the SQLite store written last."""
    run = mlflow_files.newest_run(folder)
    files = [
        path for suffix in SUFFIXES for path in islice(folder.glob(f"*{suffix}"), MAX_DATABASES)
    ]
    files.sort(key=written, reverse=True)
    database = next((path for path in files if holds_runs(path)), None)
    return [path for path in (run, database) if path is not None]


def holds_runs(path: Path) -> bool:
    """Whether a file is a SQLite store of a tracker."""
    try:
        if path.suffix in SUFFIXES and path.is_file() and is_sqlite(path):
            with Database(path) as database:
                return is_mlflow(database) or is_trackio(database)
    except OSError:
        pass
    return False


def follow(
    path: Path, reader: object, deadline: float | None = None, until: int | None = None
) -> tuple[StoreReader, bool]:
    """The reader of a store brought up to the present, and whether the time sufficed for that.

    `reader` is what read it before, if anything did; of another run, or of a store that was made
    anew, it is not gone on with. `until` is a `position` to stop at. Raises OSError.
    """
    try:
        with _opened(path, deadline) as (store, database):
            fresh = StoreReader(str(path), store.tracker, store.run, store.folder)
            if isinstance(reader, StoreReader) and reader.run == store.run and store.run:
                if store.reads_on(reader):
                    fresh = reader
                else:
                    fresh.note("the store was made anew: it was read from its beginning")
            elif isinstance(reader, StoreReader) and reader.run:
                fresh.note(f"a newer run than {reader.run} is read")
            try:
                if store.run:
                    store.read(fresh, until)
            except TimeUp:
                return fresh, False
            finally:
                if database is not None:
                    fresh.size = database.size
                    if database.behind:
                        fresh.note("what is only in the file's write-ahead log is not read yet")
            return fresh, True
    except TimeUp:
        known = reader if isinstance(reader, StoreReader) else None
        return known or StoreReader(str(path), "mlflow", ""), False


def row_text(path: Path, row: int) -> str | None:
    """What stands in a row of a SQLite store, in one line; None where there is none.

    Raises OSError.
    """
    file, _run = parted(path)
    if file.is_dir():
        return None
    with Database(file) as database:
        kind = mlflow_db if is_mlflow(database) else trackio if is_trackio(database) else None
        return kind.row_text(database, row) if kind else None


@contextmanager
def _opened(path: Path, deadline: float | None) -> Iterator[tuple[Store, Database | None]]:
    file, run = parted(path)
    if file.is_dir():
        yield MlflowFiles(file, deadline), None
        return
    with Database(file, deadline) as database:
        if is_mlflow(database):
            yield MlflowDatabase(database, run), database
        elif is_trackio(database):
            yield Trackio(database, run), database
        else:
            told = "a SQLite file, but no store of MLflow or Trackio"
            raise OSError(errno.EINVAL, told, str(file))
