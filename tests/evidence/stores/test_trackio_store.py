"""Trackio's store: what it wrote, compared with what it reads back itself."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from support.cli import answer
from support.trackers import Written
from trainwarden.evidence import stores
from trainwarden.evidence.base import Target
from trainwarden.evidence.excerpts import line_at
from trainwarden.evidence.log_readings import read_log
from trainwarden.evidence.logs import LogSource
from trainwarden.records.job import Job


def copied(written: Written, folder: Path) -> Path:
    return Path(shutil.copy(written.folder / "tiny.db", folder))


@pytest.mark.parametrize("run", ["first", "second"])
def test_the_points_are_those_that_trackio_reads(trackio_stores: Written, run: str) -> None:
    reading = read_log(trackio_stores.folder / f"tiny.db#{run}")
    rows = trackio_stores.told[run]
    for name in ("train/loss", "grad_norm", "scale", "eval/loss"):
        (series,) = (one for one in reading.series.values() if one.original == name)
        told = [(row["train/global_step"], repr(row[name])) for row in rows if name in row]
        assert [(point.step, repr(point.value)) for point in series.points()] == told


def test_names_steps_and_plan_of_the_newest_run(trackio_stores: Written) -> None:
    told = answer("read", trackio_stores.folder / "tiny.db")
    assert told["format"] == "trackio"
    assert (told["last_step"], told["total_steps"], told["ended"]) == (390, 500, "running")
    assert told["metrics"]["loss"] == {
        "points": 40,
        "first": [0.0, 3.0],
        "last": [390.0, 3.0 - 390 / 200],
        "original": "train/loss",
    }
    assert {"eval_loss", "grad_norm", "parts.ce"} <= set(told["metrics"])
    assert "note" not in told["metrics"]
    reading = read_log(trackio_stores.folder / "tiny.db")
    assert reading.config == {"max_steps": 500, "optimizer": {"name": "adamw"}}
    second = read_log(trackio_stores.folder / "tiny.db#second")
    assert reading.notes == second.notes


def test_a_step_that_is_given_is_taken(trackio_stores: Written) -> None:
    reading = read_log(trackio_stores.folder / "plain.db")
    assert [point.step for point in reading.series["loss"].points()] == list(range(0, 400, 10))


def test_a_grown_store_is_read_on(trackio_stores: Written, tmp_path: Path) -> None:
    path = copied(trackio_stores, tmp_path)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM metrics WHERE id > 60")
    connection.close()
    reader, _ = stores.follow(path, None)
    assert reader.reading.series["loss"].count == 60 - 41
    copied(trackio_stores, tmp_path)
    again, whole = stores.follow(path, reader)
    assert whole
    assert again is reader
    fresh, _ = stores.follow(path, None)
    assert again.cursor == fresh.cursor
    for name, series in fresh.reading.series.items():
        if name != "step_time":  # what is logged together has one time
            assert again.reading.series[name].to_json() == series.to_json()


def test_places_are_rows_that_can_be_seen_again(trackio_stores: Written, tmp_path: Path) -> None:
    path = copied(trackio_stores, tmp_path)
    target = Target(job=Job(id="j", logs=(str(path),)), root=tmp_path, logs=(path,))
    report = LogSource().read(target)
    assert report.status == "ok", report.message
    (last,) = (o for o in report.observations if (o.quantity, o.stat) == ("loss", "last"))
    assert last.place.offset is not None
    text = line_at(path, last.place.offset).decode()
    assert '"train/loss":1.05' in text
    assert last.text is not None
    assert "train/loss" in last.text


def test_old_schemas_are_read(tmp_path: Path) -> None:
    """As the first versions made them: runs have names alone, JSON is text, Python's NaN stands."""
    path = tmp_path / "old.db"
    rows = [{"loss": 2.0, "x": float("nan")}, {"loss": 1.0}, ["no", "row"]]
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT NOT NULL,"
            " run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL)"
        )
        for step, row in enumerate(rows):
            connection.execute(
                "INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)",
                (f"2026-01-01T00:00:0{step}.5", "tiny", step * 5, json.dumps(row)),
            )
        connection.execute(
            "INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES ('?', 'tiny', 9, '{')"
        )
    connection.close()
    reading = read_log(path)
    assert [point[:2] for point in reading.series["loss"].points()] == [(0, 2.0), (5, 1.0)]
    assert reading.series["x"].nonfinite == 1
    assert any("no JSON" in note for note in reading.notes)
