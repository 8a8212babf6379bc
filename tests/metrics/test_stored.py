"""Rows of trackers' stores as series: steps, settings, states; whole, in pieces, saved between."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.metrics.binary.scalars import Points
from trainwarden.metrics.readers import reader_from
from trainwarden.metrics.stored import Row, StoreReader, Tracker


def points(tag: str, values: Sequence[float], steps: Sequence[float], begun: float = 1e9) -> Points:
    n = len(values)
    return Points(
        tag,
        np.arange(n, dtype=np.int64),
        np.array(steps, np.float64),
        np.array(values, np.float64),
        begun + np.array(steps, np.float64),
    )


def row(id_: int, step: float, logged: Mapping[str, Any]) -> Row:
    return id_, step, 1e9 + 2 * id_, logged


def reader(tracker: Tracker) -> StoreReader:
    return StoreReader("store.db", tracker, "r")


def saved(one: StoreReader) -> StoreReader:
    """The same after it was written down and read again, as a session does."""
    again = reader_from(json.loads(json.dumps(one.to_state())))
    assert isinstance(again, StoreReader)
    assert again.to_state() == one.to_state()
    return again


@given(st.lists(st.integers(0, 60), max_size=6), st.booleans())
def test_rows_give_the_same_series_however_they_come(cuts: list[int], keep: bool) -> None:
    rows = [
        row(n, n, {"loss": 3 - n / 60, "step": 10 * n} | ({"eval_loss": 2.0} if n % 9 == 8 else {}))
        for n in range(60)
    ]
    whole, parted = reader("trackio"), reader("trackio")
    whole.rows(rows)
    bounds = [0, *sorted(cuts), 60]
    for low, high in itertools.pairwise(bounds):
        parted.rows(rows[low:high])
        if keep:
            parted = saved(parted)
    assert parted.to_state() == whole.to_state()
    reading = whole.reading
    assert [point.step for point in reading.series["loss"].points()] == list(range(0, 600, 10))
    assert reading.series["step_time"].last is not None
    assert reading.series["step_time"].last.value == pytest.approx(0.2)


@given(st.lists(st.integers(0, 50), max_size=5))
def test_points_give_the_same_series_however_they_come(cuts: list[int]) -> None:
    steps = list(range(5, 505, 10))
    values = [1000 / step for step in steps]
    whole, parted = reader("mlflow"), reader("mlflow")
    whole.take([points("train/loss", values, steps)])
    bounds = [0, *sorted(cuts), 50]
    for low, high in itertools.pairwise(bounds):
        if low < high:
            some = points("train/loss", values[low:high], steps[low:high])
            some.offsets += low
            parted.take([some])
            parted = saved(parted)
    assert parted.to_state() == whole.to_state()


@pytest.mark.parametrize(
    ("status", "ended", "event"),
    [
        ("RUNNING", "running", None),
        ("SCHEDULED", "unknown", None),
        ("FINISHED", "finished", "finished"),
        ("FAILED", "crashed", "error"),
        ("KILLED", "interrupted", "interrupted"),
        ("as nobody says", "unknown", None),
    ],
)
def test_the_status_tells_how_a_run_ended(status: str, ended: str, event: str | None) -> None:
    one = reader("mlflow")
    one.about(status, {}, 1e9, None)
    reading = one.reading
    assert reading.ended == ended
    assert [found.kind for found in reading.events] == ([event] if event else [])


@pytest.mark.parametrize(
    ("config", "total"),
    [
        ({"max_steps": 400}, 400),
        ({"trainer/max_steps": "400"}, 400),
        ({"trainer": {"max_steps": 400.0}}, 400),
        ({"max_steps": -1}, None),
        ({"max_steps": 10}, None),
        ({"max_steps": "many"}, None),
        ({"max_steps": math.inf}, None),
        ({"max_steps": 10**400}, None),
    ],
)
def test_settings_tell_how_long_a_run_is_to_be(config: dict[str, Any], total: int | None) -> None:
    one = reader("mlflow")
    one.about("RUNNING", config)
    one.take([points("loss", [2.0, 1.0], [10, 20])])
    assert one.reading.total_steps == total


def test_a_run_without_steps_is_counted_until_a_step_is_told() -> None:
    one = reader("mlflow")
    one.take([points("loss", [3.0, 2.0], [0, 0])])
    assert one.reading.counted
    assert [point.step for point in one.reading.series["loss"].points()] == [0, 1]


def test_what_a_metric_has_its_own_file_for_lies_there() -> None:
    one = StoreReader("mlruns/0/r", "mlflow", "r", "mlruns/0/r/metrics")
    one.take([points("train/loss", [3.0, 2.0], [1, 2])])
    series = one.reading.series
    assert series["loss"].origins["last"] == "mlruns/0/r/metrics/train/loss"
    assert series["step_time"].origins == {}
    assert series["step_time"].last is not None
    assert series["step_time"].last.offset == -1


def test_what_is_kept_is_bounded() -> None:
    one = reader("trackio")
    one.about("", {f"s{n}": n for n in range(3000)} | {"long": "x" * 10_000})
    for n in range(20):
        one.rows([row(n, n, {f"m{n}.{k}": 1.0 for k in range(1000)})])
    assert len(one.reading.series) <= 1001
    assert len(one.reading.config) <= 500
