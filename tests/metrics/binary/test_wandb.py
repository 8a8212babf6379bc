"""W&B's run files, written by the real package without a network and read back by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwarden.metrics.binary.wandb import WandbReader
from trainwarden.metrics.readers import kind_of, reader_from
from trainwarden.metrics.reading import Reading

pytest.importorskip("wandb", exc_type=ImportError)

TRAIN = """
import os, sys, wandb
run = wandb.init(project="p", dir=sys.argv[1], config={"learning_rate": 3e-4, "max_steps": 400})
if sys.argv[2] == "axis":
    run.define_metric("iter")
    run.define_metric("*", step_metric="iter")
for i in range(40):
    row = {"train/loss": 3.0 / (1 + i), "train/grad_norm": 0.5 + i / 100, "nested": {"a": i}}
    if sys.argv[2] == "axis":
        row["iter"] = i * 10
    if i % 10 == 9:
        row["val/loss"] = 3.5 / (1 + i)
    run.log(row)
run.log({"train/loss": float("nan"), "iter": 400} if sys.argv[2] == "axis" else {"train/loss": 0.1})
if sys.argv[2] == "crash":
    run.finish(exit_code=1)
else:
    run.finish()
"""


def train(folder: Path, how: str) -> Path:
    """The run file of a small run that logs like `how` says."""
    quiet = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DISABLE_GIT": "true"}
    environment = {**os.environ, **quiet, "HOME": str(folder), "WANDB_CONSOLE": "off"}
    command = [sys.executable, "-c", TRAIN, str(folder), how]
    subprocess.run(command, check=True, env=environment, timeout=120, capture_output=True)
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    return path


@dataclass
class Written:
    """A file, without its bytes in messages."""

    data: bytes = field(repr=False)


@pytest.fixture(scope="module")
def axis(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(train(tmp_path_factory.mktemp("axis"), "axis").read_bytes())


def read(data: bytes, cuts: Sequence[int] = (), complete: bool = False) -> Reading:
    reader = WandbReader("run-x.wandb")
    for begin, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        reader.feed(data[begin:end])
    reader.finish(complete=complete)
    return reader.reading


def history_by_wandb(path: Path) -> list[dict[str, Any]]:
    """The rows of a run file as the package itself reads them."""
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore

    store = DataStore()
    store.open_for_scan(str(path))
    rows = []
    while (data := store.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            rows.append(
                {
                    "/".join(item.nested_key) or item.key: json.loads(item.value_json)
                    for item in record.history.item
                }
            )
    return rows


def test_a_file_is_known_by_its_beginning(axis: Written) -> None:
    assert kind_of("anything", axis.data[:64]) == "wandb"


def test_each_value_is_read_as_the_package_reads_it(axis: Written, tmp_path: Path) -> None:
    path = tmp_path / "run-x.wandb"
    path.write_bytes(axis.data)
    rows = history_by_wandb(path)
    assert len(rows) == 41
    by_original = {one.original: one for one in read(axis.data).series.values()}
    for name in ("train/loss", "train/grad_norm", "val/loss"):
        expected = [(row["iter"], row[name]) for row in rows if name in row]
        found = [(point.step, point.value) for point in by_original[name].points()]
        assert str(found) == str([(float(step), float(value)) for step, value in expected])


def test_the_axis_that_the_run_declares_is_its_step(axis: Written) -> None:
    reading = read(axis.data)
    assert reading.last_step == 400
    assert reading.series["loss"].count == 41
    assert reading.series["loss"].nonfinite == 1
    assert reading.series["eval_loss"].last is not None
    assert reading.series["eval_loss"].last.step == 390
    assert reading.ended == "finished"
    assert reading.config["learning_rate"] == pytest.approx(3e-4)


def test_without_an_axis_rows_are_counted_and_a_failure_is_told(tmp_path: Path) -> None:
    reading = read(train(tmp_path, "crash").read_bytes())
    assert reading.last_step == 40
    assert reading.ended == "crashed"


def test_a_live_run_is_read_as_far_as_it_is_written(axis: Written) -> None:
    before = 0
    for end in range(2000, len(axis.data), 1500):
        reading = read(axis.data[:end])
        count = reading.series["loss"].count if "loss" in reading.series else 0
        assert count >= before
        before = count
    assert before >= 30


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_how_the_bytes_are_cut_does_not_matter(axis: Written, data: st.DataObject) -> None:
    places = st.lists(st.integers(0, len(axis.data)), max_size=8).map(sorted)
    assert repr(read(axis.data, data.draw(places))) == repr(read(axis.data))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_damage_stops_the_reader(axis: Written, data: st.DataObject) -> None:
    broken = bytearray(axis.data)
    for _ in range(data.draw(st.integers(1, 6))):
        broken[data.draw(st.integers(7, len(broken) - 1))] = data.draw(st.integers(0, 255))
    reading = read(bytes(broken[: data.draw(st.integers(0, len(broken)))]))
    assert all(series.count <= 42 for series in reading.series.values())


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=3000))
def test_any_bytes_are_taken(noise: bytes) -> None:
    reading = read(b":W&B" + noise)
    assert reading.bytes == len(noise) + 4
    assert not reading.series


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_reading_goes_on_from_what_was_saved(axis: Written, data: st.DataObject) -> None:
    half = data.draw(st.integers(0, len(axis.data)))
    reader = WandbReader("run-x.wandb")
    reader.feed(axis.data[:half])
    again = reader_from(json.loads(json.dumps(reader.to_state())))
    again.feed(axis.data[half:])
    again.finish()
    assert repr(again.reading) == repr(read(axis.data))


def value_texts() -> st.SearchStrategy[str]:
    """What stands for a value in a row."""
    number = st.one_of(st.integers(-(10**20), 10**20), st.floats(allow_nan=True, width=32))
    word = st.sampled_from(["NaN", "Infinity", "-Infinity", "x" * 300, "1,2", "\u20ac"])
    inner = st.dictionaries(st.sampled_from(["a", "b", "_type"]), st.one_of(number, word))
    odd = st.sampled_from(["1,2", "1,[2", "3]", '1,"', '"5"', "-", "01", "1e999", "", "tru", "{"])
    every = st.one_of(number, number, number, word, inner, st.lists(number), st.none())
    return st.one_of(every.map(json.dumps), every.map(json.dumps), odd)


NAMES = st.sampled_from(
    ["train/loss", "val/loss", "lr", "n" * 80, "iter", "_runtime", "euro\u20ac"]
)
ROW = st.tuples(
    st.sampled_from(["history", "history", "history", "summary", "stats"]),
    st.lists(st.tuples(NAMES, value_texts(), st.booleans()), max_size=5, unique_by=lambda i: i[0]),
    st.sampled_from(["item", "field", "both", "none"]),
    st.booleans(),
)


def written_by_the_package(path: Path, rows: Sequence[Any]) -> bytes:
    """A run file of rows, by the package's own writer."""
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore

    store = DataStore()
    store.open_for_write(str(path))
    for step, (kind, items, steps, info) in enumerate(rows):
        record = wandb_internal_pb2.Record(num=step)
        content = getattr(record, kind)
        if kind == "stats":
            content.item.add(key="cpu", value_json="3.5")
            store.write(record)
            continue
        told = content.item if kind == "history" else content.update
        for name, value, nested in items:
            one = told.add(value_json=value)
            if nested:
                one.nested_key.append(name)
            else:
                one.key = name
        if kind == "history" and steps in {"item", "both"}:
            told.add(key="_step", value_json=str(3 * step))
        if kind == "history" and steps in {"field", "both"}:
            content.step.num = 3 * step
        if info:
            content._info.stream_id = "x" * 8
        store.write(record)
    store.close()
    return path.read_bytes()


def test_a_summary_value_is_the_last_one_however_its_name_is_written(tmp_path: Path) -> None:
    changes = [("1", True), ("2", False), ("3", True), ("4", False), ("null", True), ("5", False)]
    for number in range(1, len(changes) + 1):
        rows = [
            *(("summary", [("val/score", *one)], "none", False) for one in changes[:number]),
            ("summary", [("val/other", "2", True)], "none", False),
        ]
        series = read(written_by_the_package(tmp_path / f"run-{number}.wandb", rows)).series
        told = [one.last.value for one in series.values() if one.last]
        assert told == [float(text) for text, _ in changes[number - 1 : number] if text != "null"]


@settings(max_examples=200, deadline=None)
@given(st.lists(ROW, max_size=12), st.integers(1, 30), st.data())
def test_many_rows_at_once_are_read_as_each_by_itself(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], times: int, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("run") / "run-x.wandb"
    order = data.draw(st.permutations(rows))
    whole = written_by_the_package(path, [*(rows * times), *order])
    whole = whole[: len(whole) - data.draw(st.integers(0, 3))]
    if len(whole) > 7 and data.draw(st.booleans()):
        broken = bytearray(whole)
        broken[data.draw(st.integers(7, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        whole = bytes(broken)
    reader = WandbReader("run-x.wandb")
    pieces = data.draw(st.sampled_from([50, 333, 5000]))
    for begin in range(0, len(whole), pieces):
        reader.feed(whole[begin : begin + pieces])
        assert reader.reading.bytes == min(len(whole), begin + pieces)
    assert repr(reader.reading) == repr(read(whole))


@settings(max_examples=100, deadline=None)
@given(st.lists(ROW, max_size=12), st.integers(1, 30))
def test_every_number_of_a_row_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], times: int
) -> None:
    path = tmp_path_factory.mktemp("run") / "run-x.wandb"
    found = read(written_by_the_package(path, rows * times)).series
    expected: dict[str, list[float]] = {}
    for kind, items, _steps, _info in rows * times:
        for name, value, _nested in items if kind == "history" else ():
            try:
                parsed = json.loads(value)
            except ValueError:
                continue
            if isinstance(parsed, str) and parsed in {"NaN", "Infinity", "-Infinity"}:
                parsed = float(parsed)
            if isinstance(parsed, (int, float)) and name not in {"_runtime", "iter"}:
                expected.setdefault(name, []).append(float(parsed))
    values = {
        one.original: [point.value for point in one.points()]
        for one in found.values()
        if one.count and "." not in one.original and not one.original.startswith("system/")
    }
    assert {k: repr(v) for k, v in values.items() if k in expected} == {
        k: repr(v) for k, v in expected.items()
    }
