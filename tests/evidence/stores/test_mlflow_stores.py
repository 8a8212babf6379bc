"""MLflow's stores, both kinds: what MLflow wrote, compared with what it reads back itself."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from pathlib import Path

import pytest

from support.cli import call
from support.trackers import Written
from trainwarden.analysts.rereading import reread
from trainwarden.evidence import stores
from trainwarden.evidence.base import Target
from trainwarden.evidence.excerpts import line_at
from trainwarden.evidence.log_files import expand
from trainwarden.evidence.log_readings import read_as_far, read_log
from trainwarden.evidence.logs import LogSource
from trainwarden.metrics.reading import Reading
from trainwarden.records.job import Job

ENDED = {"done": "finished", "broken": "crashed", "killed": "interrupted", "live": "running"}
KINDS = ("files", "sqlite")


def store(written: Written, kind: str, run: str, folder: Path | None = None) -> Path:
    """The path of a run, in a store of either kind."""
    base = folder or written.folder
    name = written.told[kind][run]["id"]
    if kind == "sqlite":
        return base / f"mlflow.db#{name}"
    (path,) = base.glob(f"mlruns/*/{name}")
    return path


def points_of(reading: Reading, name: str) -> list[tuple[int, str]]:
    (series,) = (one for one in reading.series.values() if one.original == name)
    return [(int(point.step), repr(point.value)) for point in series.points()]


@pytest.mark.parametrize("kind", KINDS)
def test_the_points_are_those_that_mlflow_reads(mlflow_stores: Written, kind: str) -> None:
    for run, told in mlflow_stores.told[kind].items():
        reading = read_log(store(mlflow_stores, kind, run))
        assert {one.original for one in reading.series.values()} - {"from timestamps"} == set(
            told["metrics"]
        )
        for name, expected in told["metrics"].items():
            # Its database keeps infinite ones as the largest numbers, and gives these back.
            largest = {repr(1.7976931348623157e308): "inf", repr(-1.7976931348623157e308): "-inf"}
            points = sorted((step, largest.get(value, value)) for step, value in expected)
            if not name.startswith("system/"):
                assert sorted(points_of(reading, name)) == points


@pytest.mark.parametrize("kind", KINDS)
def test_names_steps_state_and_plan_of_a_run(mlflow_stores: Written, kind: str) -> None:
    for run, ended in ENDED.items():
        reading = read_log(store(mlflow_stores, kind, run))
        assert reading.ended == ended
        assert (reading.last_step, reading.total_steps) == (400, 500)
        assert {"loss", "eval_loss", "grad_norm"} <= set(reading.series)
        assert reading.config["learning_rate"] == 3e-4
        assert reading.config["optimizer"] == "adamw"
        nans = reading.series["grad_norm"]
        assert nans.first_nonfinite is not None
        assert math.isnan(nans.first_nonfinite.value)
        assert reading.series["step_time"].last is not None
        assert reading.series["step_time"].first.value == pytest.approx(0.25, rel=1e-4)
        begun = 1_760_000_000 + 1000 * list(ENDED).index(run)
        assert (reading.first_time, reading.lines) == (begun, 162)


@pytest.mark.parametrize("kind", KINDS)
def test_samples_of_the_machine_stand_at_the_step_that_training_had_reached(
    mlflow_stores: Written, kind: str
) -> None:
    reading = read_log(store(mlflow_stores, kind, "live"))
    points = points_of(reading, "system/gpu_0_power_usage_watts")
    assert [step for step, _ in points] == list(range(0, 400, 10))


@pytest.mark.parametrize("kind", KINDS)
def test_points_are_counted_where_none_tells_a_step(mlflow_stores: Written, kind: str) -> None:
    base = mlflow_stores.folder
    path = base / "mlflow.db#unstepped"
    if kind == "files":
        (tag,) = (
            tag
            for tag in base.glob("mlruns/*/*/tags/mlflow.runName")
            if tag.read_text() == "unstepped"
        )
        path = tag.parents[1]
    reading = read_log(path)
    assert reading.counted
    assert points_of(reading, "loss") == [(0, "3.0"), (1, "2.0"), (2, "1.0")]


def test_the_newest_run_that_logged_is_taken_and_never_a_deleted_one(
    mlflow_stores: Written,
) -> None:
    for path in (mlflow_stores.folder / "mlflow.db", mlflow_stores.folder / "mlruns"):
        assert read_log(path).counted, "the run without steps was begun last"
    (run,) = expand([mlflow_stores.folder / "mlruns"])
    assert run.parent.parent.name == "mlruns"
    beside = expand([mlflow_stores.folder])
    assert beside == [run, mlflow_stores.folder / "mlflow.db"]


def test_a_run_may_be_named_and_one_that_is_not_there_is_told(mlflow_stores: Written) -> None:
    database = mlflow_stores.folder / "mlflow.db"
    assert read_log(database.with_name("mlflow.db#broken")).ended == "crashed"
    done = call("read", database.with_name("mlflow.db#killed"), "--json")
    assert json.loads(done.stdout)["ended"] == "interrupted", done.stderr
    refused = call("read", database.with_name("mlflow.db#nobody"))
    assert refused.returncode == 2
    assert "no run nobody in this store" in refused.stderr


def look(root: Path, path: Path) -> tuple[Target, str, dict[str, object]]:
    job = Job(id="j", logs=(str(path),))
    target = Target(job=job, root=root, logs=(path,), cache_dir=root / "cache")
    report = LogSource().read(target)
    assert report.status == "ok", report.message
    for item in report.observations:
        again = reread(item)
        assert again is None or again.agrees, f"{item} reread as {again}"
    seen = {f"{o.quantity}.{o.stat}": o for o in report.observations}
    return target, report.message, seen


@pytest.mark.parametrize("kind", KINDS)
def test_a_grown_store_is_read_on_and_gives_what_one_reading_gives(
    mlflow_stores: Written, tmp_path: Path, kind: str
) -> None:
    whole = store(mlflow_stores, kind, "live")
    path = store(mlflow_stores, kind, "live", shutil_tree(mlflow_stores.folder, tmp_path))
    if kind == "sqlite":
        file = stores.parted(path)[0]
        with sqlite3.connect(file) as connection:
            name = mlflow_stores.told[kind]["live"]["id"]
            ((first,),) = connection.execute(
                "SELECT min(rowid) FROM metrics WHERE run_uuid = ?", (name,)
            )
            connection.execute("DELETE FROM metrics WHERE rowid > ?", (first + 50,))
        connection.close()
    else:
        for part in path.glob("metrics/**/*"):
            if part.is_file():
                data = part.read_bytes()
                part.write_bytes(data[: len(data) // 2])
    target, _message, _ = look(tmp_path, path)
    half = target.readings[path]
    assert 0 < half.lines < 200
    shutil_tree(mlflow_stores.folder, tmp_path)
    target, message, seen = look(tmp_path, path)
    assert "anew" not in message
    fresh = read_log(whole)
    now = target.readings[path]
    assert now.lines == fresh.lines
    for name, series in fresh.series.items():
        if name != "step_time":
            mine = now.series[name].to_json()
            assert mine == series.to_json() or kind == "files", name
            assert len(now.series[name].points()) == len(series.points())
    last = seen["loss.last"]
    text = line_at(Path(last.place.file), last.place.offset).decode()  # type: ignore[attr-defined]
    assert "inf" in text.split("=")[-1]
    as_then = read_as_far(path, {str(path): 0 if kind == "sqlite" else 1})
    assert as_then.lines == 0


def shutil_tree(source: Path, target: Path) -> Path:
    for name in ("mlruns", "mlflow.db"):
        part = source / name
        if part.is_dir():
            shutil.copytree(part, target / name, dirs_exist_ok=True)
        else:
            shutil.copy(part, target / name)
    return target


def test_what_a_session_read_is_read_again_as_far(mlflow_stores: Written, tmp_path: Path) -> None:
    shutil_tree(mlflow_stores.folder, tmp_path)
    for kind in KINDS:
        path = store(mlflow_stores, kind, "live", tmp_path)
        _target, _message, seen = look(tmp_path, path)
        followed, _ = stores.follow(path, None)
        again = read_as_far(path, {str(path): followed.position})
        assert again.series["loss"].to_json() == followed.reading.series["loss"].to_json()
        assert seen["log.ended.last"].value == "running"  # type: ignore[attr-defined]


def test_rows_given_other_ids_are_read_from_the_beginning(
    mlflow_stores: Written, tmp_path: Path
) -> None:
    path = shutil_tree(mlflow_stores.folder, tmp_path) / "mlflow.db#live"
    reader, _ = stores.follow(path, None)
    connection = sqlite3.connect(tmp_path / "mlflow.db")
    connection.execute("UPDATE metrics SET rowid = rowid - 1000000")
    connection.commit()
    connection.execute("UPDATE metrics SET rowid = rowid + 1000007")
    connection.commit()
    connection.close()
    again, whole = stores.follow(path, reader)
    assert whole
    assert again is not reader
    assert again.reading.lines == reader.reading.lines
    assert any("made anew" in note for note in again.reading.notes)
    unchanged, _ = stores.follow(path, again)
    assert unchanged is again


def test_old_schemas_are_read(tmp_path: Path) -> None:
    """As the first versions made them, before steps and NaN had columns."""
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.executescript(
            """
            CREATE TABLE runs (run_uuid VARCHAR(32) PRIMARY KEY, name VARCHAR(250),
                status VARCHAR(20), start_time BIGINT, end_time BIGINT);
            CREATE TABLE metrics ("key" VARCHAR(250), value FLOAT, timestamp BIGINT,
                run_uuid VARCHAR(32));
            INSERT INTO runs VALUES ('a', 'one', 'FINISHED', 1500000000000, 1500000100000);
            INSERT INTO metrics VALUES ('loss', 2.0, 1500000001000, 'a');
            INSERT INTO metrics VALUES ('loss', 1.0, 1500000002000, 'a');
            """
        )
    connection.close()
    reading = read_log(tmp_path / "old.db")
    assert reading.ended == "finished"
    assert [point.value for point in reading.series["loss"].points()] == [2.0, 1.0]
    run = tmp_path / "mlruns/0/abc"
    (run / "metrics").mkdir(parents=True)
    (run / "meta.yaml").write_text("run_uuid: abc\nstatus: 3\nstart_time: 1500000000000\n")
    (run / "metrics/loss").write_text(
        "1500000001 2.0\n1500000002 1.0\nrubbish\n1e999 3 3\n15 4 nan\n15000000"
    )
    (run / "metrics/lr").write_text("1500000001 2.0\n1500000002 1.0 5 run-of-a-model\n")
    reading = read_log(tmp_path / "mlruns")
    assert (reading.ended, reading.series["loss"].count) == ("finished", 2)
    rates = reading.series["learning_rate"].points()
    assert [point[:2] for point in rates] == [(0, 2.0), (5, 1.0)]
