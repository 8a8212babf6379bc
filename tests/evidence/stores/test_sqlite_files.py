"""SQLite files in odd states: being written, left in a commit, damaged, of others."""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainwarden.evidence import stores
from trainwarden.evidence.base import Target
from trainwarden.evidence.excerpts import text_at
from trainwarden.evidence.log_files import expand
from trainwarden.evidence.log_readings import read_log
from trainwarden.evidence.logs import LogSource
from trainwarden.evidence.stores.sqlite import Database, TimeUp
from trainwarden.records.job import Job

SCHEMA = (
    "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT NOT NULL,"
    " run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL)"
)


def writer(path: Path, journal: str, steps: int) -> sqlite3.Connection:
    """A connection that wrote some rows and stays open."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute(SCHEMA)
    add(connection, range(steps))
    return connection


def add(connection: sqlite3.Connection, steps: range) -> None:
    alone = connection.in_transaction
    if not alone:
        connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, 'r', ?, ?)",
        [("2026-01-01T00:00:00+00:00", step, f'{{"loss": {step}.5}}') for step in steps],
    )
    if not alone:
        connection.execute("COMMIT")


def traces(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        path.name: (path.stat().st_mtime_ns, path.stat().st_size, path.read_bytes())
        for path in folder.iterdir()
    }


def last_loss(path: Path) -> float:
    last = read_log(path).series["loss"].last
    assert last is not None
    return last.value


@pytest.mark.parametrize("journal", ["wal", "delete", "truncate", "persist"])
def test_a_live_store_is_read_without_a_trace(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "live.db"
    connection = writer(path, journal, 5)
    before = traces(tmp_path)
    assert last_loss(path) == 4.5
    assert traces(tmp_path) == before
    add(connection, range(5, 9))
    assert last_loss(path) == 8.5
    connection.close()
    before = traces(tmp_path)
    assert last_loss(path) == 8.5
    assert traces(tmp_path) == before
    assert set(before) <= {"live.db", "live.db-journal"}


def test_places_of_a_live_store_are_read_from_one_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "live.db"
    connection = writer(path, "wal", 50)
    copied: list[Path] = []
    copyfile = shutil.copyfile

    def counted(source: Path, target: Path) -> Path:
        copied.append(source)
        return copyfile(source, target)

    monkeypatch.setattr(shutil, "copyfile", counted)
    assert [text_at(path, row, 20) for row in range(1, 51)] == [
        f'step {step}: {{"loss": {step}.5}}'.encode()[:20] for step in range(50)
    ]
    assert copied.count(path) == 1
    add(connection, range(50, 51))
    assert last_loss(path) == 50.5
    assert copied.count(path) == 2
    assert text_at(path, 99, 20) == b""
    connection.close()


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_store_that_a_writer_holds_for_itself_is_read(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "held.db"
    connection = writer(path, journal, 5)
    connection.execute("BEGIN EXCLUSIVE")
    add(connection, range(5, 7))
    before = traces(tmp_path)
    assert last_loss(path) == 4.5
    assert traces(tmp_path) == before
    connection.execute("COMMIT")
    assert last_loss(path) == 6.5
    connection.close()


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_commit_that_a_killed_writer_left_is_read_as_far_as_it_was_made(
    tmp_path: Path, journal: str
) -> None:
    path = tmp_path / "cut.db"
    writer(path, journal, 5).close()
    script = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size = 2')\n"
        "c.execute('BEGIN')\n"
        "c.execute('DELETE FROM metrics')\n"
        "for n in range(3000):\n"
        "    c.execute('INSERT INTO metrics (timestamp, run_name, step, metrics)'\n"
        "              ' VALUES (?, ?, ?, ?)', ('', 'r', 70000 + n, '{\"loss\": 7}'))\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=60)
    before = traces(tmp_path)
    assert len(before) > 1
    assert last_loss(path) == 4.5
    assert traces(tmp_path) == before


def test_a_store_is_read_in_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "sealed"
    folder.mkdir()
    connection = writer(folder / "wal.db", "wal", 5)
    writer(folder / "closed.db", "wal", 6).close()
    folder.chmod(0o555)
    try:
        assert last_loss(folder / "wal.db") == 4.5
        assert last_loss(folder / "closed.db") == 5.5
    finally:
        folder.chmod(0o755)
        connection.close()


def test_a_writer_is_never_kept_from_writing(tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    writer(path, "wal", 2000).close()
    script = (
        "import sqlite3, sys, time\n"
        "end = time.monotonic() + 2\n"
        "n = 0\n"
        "while time.monotonic() < end:\n"
        "    c = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "    c.execute('INSERT INTO metrics (timestamp, run_name, step, metrics)'\n"
        "              ' VALUES (?, ?, ?, ?)',\n"
        "              ('', 'r', 2000 + n, '{\"loss\": %d.5}' % (2000 + n)))\n"
        "    c.close()\n"
        "    n += 1\n"
        "print(n)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True
    )
    reader, seen = None, 0
    while child.poll() is None:
        reader, _whole = stores.follow(path, reader)
        points = reader.reading.series["loss"].points()
        assert [point.value for point in points] == [point.step + 0.5 for point in points]
        assert reader.reading.lines >= seen
        seen = reader.reading.lines
    assert child.stdout is not None
    written = int(child.stdout.read())
    child.stdout.close()
    assert child.returncode == 0, "the writer was refused a lock"
    final, _ = stores.follow(path, reader)
    assert final.reading.lines == 2000 + written
    assert sorted(file.name for file in tmp_path.iterdir()) == ["busy.db"]


def report(root: Path, path: Path) -> tuple[str, str]:
    target = Target(job=Job(id="j", logs=(str(path),)), root=root, logs=(path,))
    told = LogSource().read(target)
    return told.status, told.message


def test_damaged_and_foreign_files_are_told_and_stop_nothing(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE metrics (id INTEGER, name TEXT)")
    connection.close()
    assert report(tmp_path, foreign) == (
        "failed",
        f"{foreign}: cannot be read: a SQLite file, but no store of MLflow or Trackio",
    )
    cut = tmp_path / "cut.db"
    writer(cut, "delete", 3000).close()
    whole = cut.read_bytes()
    for size in (16, 50, 100, 4096, 10_000, len(whole) // 2):
        cut.write_bytes(whole[:size])
        status, message = report(tmp_path, cut)
        assert status == "failed", size
        assert "cannot be read: " in message
    for start in range(4096, len(whole), 4096):
        cut.write_bytes(whole[: start + 8] + b"\xff" * 64 + whole[start + 72 :])
        assert report(tmp_path, cut)[0] in {"failed", "ok", "partial"}
    cut.write_bytes(whole[:50])
    log = tmp_path / "train.log"
    log.write_text("step 1 loss 2.0\nstep 2 loss 1.0\n")
    assert last_loss(log) == 1.0
    assert expand([tmp_path]) == [log]


def test_values_of_other_types_and_bytes_that_are_no_text_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            CREATE TABLE runs (run_uuid, name, status, start_time, end_time, lifecycle_stage);
            CREATE TABLE metrics ("key", value, timestamp, run_uuid, step, is_nan);
            CREATE TABLE params ("key", value, run_uuid);
            INSERT INTO runs VALUES ('a', x'ff', 17, 'soon', x'00', NULL);
            INSERT INTO params VALUES ('x''; DROP TABLE runs; --', x'fffe', 'a');
            INSERT INTO metrics VALUES (x'ff', 1.0, 1, 'a', 1, 0),
                (NULL, NULL, NULL, 'a', NULL, NULL);
            INSERT INTO metrics VALUES ('loss', 'many', 'now', 'a', 'third', 'no'),
                ('loss', 9e999, 9e18, 'a', 9e18, 0), ('loss', -9e999, -9e18, 'a', -9e18, 0);
            """
        )
        connection.execute("INSERT INTO metrics VALUES (?, 1.0, 1, 'a', 1, 0)", ("long" * 100_000,))
    connection.close()
    reading = read_log(path)
    assert reading.series["loss"].count == 3
    assert max(len(one.original) for one in reading.series.values()) <= 250
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (1,)
    connection.close()


def test_reading_stops_when_its_time_is_over_and_goes_on_where_it_stood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.db"
    writer(path, "delete", 5000).close()
    reader, whole = stores.follow(path, None, deadline=time.monotonic() - 1)
    assert (whole, reader.reading.lines) == (False, 0)
    queries = itertools.count(1)

    def in_time(_database: Database) -> None:
        if next(queries) % 15 == 0:
            raise TimeUp

    with monkeypatch.context() as patched:
        patched.setattr(Database, "_in_time", in_time)
        patched.setattr("trainwarden.evidence.stores.trackio.CHUNK", 100)
        rounds = 0
        while not whole:
            reader, whole = stores.follow(path, reader)
            rounds += 1
    assert 3 < rounds < 40
    assert reader.reading.series["loss"].count == 5000
    fresh, _ = stores.follow(path, None)
    assert reader.to_state() == fresh.to_state()


def test_of_a_file_too_large_to_copy_what_was_folded_in_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.db"
    connection = writer(path, "wal", 5)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    add(connection, range(5, 9))
    monkeypatch.setattr("trainwarden.evidence.stores.sqlite.LARGEST_COPY", 100)
    before = sorted(tmp_path.iterdir())
    reading = read_log(path)
    assert reading.series["loss"].count == 5
    assert any("write-ahead log" in note for note in reading.notes)
    assert sorted(tmp_path.iterdir()) == before
    connection.close()
    assert read_log(path).series["loss"].count == 9


def test_a_query_has_its_values_bound(tmp_path: Path) -> None:
    path = tmp_path / "bound.db"
    writer(path, "delete", 1).close()
    with Database(path) as database:
        assert database.columns("metrics'); DROP TABLE metrics; --") == frozenset()
        assert "step" in database.columns("metrics")
    with pytest.raises(FileNotFoundError, match="no run"):
        read_log(tmp_path / "bound.db#' OR 1 = 1 --")


def test_whatever_bytes_are_changed_it_is_read_or_told_without_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    writer(path, "wal", 300).close()
    whole = path.read_bytes()
    chance = random.Random(7)
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 5, 100])):
            reach = chance.choice([100, 4096, len(data)])
            data[chance.randrange(16, reach)] = chance.randrange(256)
        path.write_bytes(data)
        with contextlib.suppress(OSError):
            reader, _ = stores.follow(path, None)
            assert reader.reading.lines <= 600
        assert [file.name for file in tmp_path.iterdir()] == ["odd.db"]
