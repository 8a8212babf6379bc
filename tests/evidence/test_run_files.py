"""Binary run files as logs of a job: found in folders, joined over restarts, cited, read again."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.cli import call
from trainwarden.evidence.base import Target
from trainwarden.evidence.log_files import expand
from trainwarden.evidence.log_readings import read_log
from trainwarden.evidence.logs import LogSource
from trainwarden.evidence.run_files import newest_run, phase_of
from trainwarden.records.job import Job

tensorboardx = pytest.importorskip("tensorboardX", exc_type=ImportError)


def write(
    folder: Path, rows: Sequence[tuple[str, float, int]], stamp: int, purge: int | None = None
) -> Path:
    """An event file whose name and time say that it was begun at `stamp`."""
    writer = tensorboardx.SummaryWriter(str(folder), purge_step=purge)
    for tag, value, step in rows:
        writer.add_scalar(tag, value, step)
    writer.close()
    (fresh,) = (path for path in folder.glob("events.out.tfevents.*") if ".host" not in path.name)
    path = fresh.rename(folder / f"events.out.tfevents.{stamp}.host")
    os.utime(path, (stamp, stamp))
    return path


def loss(steps: range, value: float) -> list[tuple[str, float, int]]:
    return [("train/loss", value - step / 1000, step) for step in steps]


def look(root: Path, *logs: Path) -> tuple[list[str], Target]:
    job = Job(id="j", logs=tuple(map(str, logs)))
    target = Target(job=job, root=root, logs=logs, cache_dir=root / "cache")
    report = LogSource().read(target)
    assert report.status == "ok", report.message
    return [f"{o.quantity}.{o.stat}={o.value}" for o in report.observations], target


def test_the_newest_run_below_a_folder_is_taken(tmp_path: Path) -> None:
    write(tmp_path / "runs/old", loss(range(9), 3.0), 1_700_000_000)
    new = write(tmp_path / "runs/new", loss(range(5), 2.0), 1_700_009_000)
    assert newest_run(tmp_path) == [new]
    assert expand([tmp_path / "runs"]) == [new]
    assert read_log(tmp_path / "runs").series["loss"].count == 5


def test_restarts_of_a_run_are_read_as_one(tmp_path: Path) -> None:
    write(tmp_path, loss(range(10), 3.0), 1_700_000_000)
    write(tmp_path, loss(range(6, 12), 2.0), 1_700_009_000, purge=6)
    reading = read_log(tmp_path)
    points = reading.series["loss"].points()
    assert [point.step for point in points] == list(range(12))
    assert points[5].value == pytest.approx(2.995)
    assert points[6].value == pytest.approx(1.994)
    assert reading.runs == 2


def test_train_and_validation_folders_are_parts_of_one_run(tmp_path: Path) -> None:
    write(tmp_path / "train", [("epoch_loss", 3.0 - e / 10, e) for e in range(8)], 1_700_000_000)
    other = write(
        tmp_path / "validation", [("epoch_loss", 3.5 - e / 10, e) for e in range(8)], 1_700_000_001
    )
    assert phase_of(other) == "eval"
    reading = read_log(tmp_path)
    assert reading.series["loss"].last is not None
    assert reading.series["loss"].last.value == pytest.approx(2.3)
    assert reading.series["eval_loss"].last is not None
    assert reading.series["eval_loss"].last.value == pytest.approx(2.8)


def test_only_what_is_new_is_taken_and_each_value_says_where_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path / "run", loss(range(40), 3.0), 1_700_000_000)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    before, _ = look(tmp_path, path)
    path.write_bytes(whole)
    after, target = look(tmp_path, path)
    assert before != after
    assert target.readings[path].series["loss"].count == 40
    assert f"step.last={39}" in after
    shown = LogSource().read(target).observations
    (last,) = (o for o in shown if o.quantity == "loss" and o.stat == "last")
    assert last.place.offset is not None
    assert last.text is not None
    assert "step 39" in last.text
    assert "train/loss" in last.text


def test_read_takes_a_file_or_its_folder(tmp_path: Path) -> None:
    path = write(tmp_path / "run", loss(range(40), 3.0), 1_700_000_000)
    by_file, by_folder = (call("read", place, "--json") for place in (path, path.parent))
    assert by_file.returncode == by_folder.returncode == 0, by_file.stderr + by_folder.stderr
    told = json.loads(by_file.stdout)
    assert told == json.loads(by_folder.stdout)
    assert told["format"] == "tfevents"
    assert told["metrics"]["loss"]["points"] == 40
    (tmp_path / "nothing").mkdir()
    refused = call("read", tmp_path / "nothing")
    assert refused.returncode != 0
    assert "without TensorBoard or W&B" in refused.stderr


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("run7-validation.tfevents", "eval"),
        ("val_run7.tfevents", "eval"),
        ("events.out.tfevents.1700000000.test-node.7.0", None),
        ("run7-train.tfevents", None),
        ("test-run.tfevents", None),
        ("latest-evaluator7.tfevents", None),
    ],
)
def test_a_copy_of_an_event_file_may_be_named_by_its_phase(
    tmp_path: Path, name: str, phase: str | None
) -> None:
    assert phase_of(tmp_path / "runs" / name) == phase
