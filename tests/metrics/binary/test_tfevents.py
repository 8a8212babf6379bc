"""TensorBoard's event files, written by real writers and read back by TensorBoard itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwarden.metrics.binary.crc32c import crc32c
from trainwarden.metrics.binary.tfevents import EventReader
from trainwarden.metrics.readers import kind_of, reader_from
from trainwarden.metrics.reading import Reading

tensorboardx = pytest.importorskip("tensorboardX", exc_type=ImportError)


def write(folder: Path, rows: Sequence[tuple[str, float, int]], **options: int) -> Path:
    """An event file of tag, value and step."""
    writer = tensorboardx.SummaryWriter(str(folder), **options)
    for tag, value, step in rows:
        writer.add_scalar(tag, value, step)
    writer.close()
    return max(folder.glob("events.out.tfevents.*"))


def curve(steps: int = 40) -> list[tuple[str, float, int]]:
    rows = []
    for step in range(0, steps * 10, 10):
        rows.append(("train/loss", 3.0 / (1 + step), step))
        rows.append(("train/learning_rate", 3e-4, step))
        if step % 100 == 0:
            rows.append(("eval/loss", 3.5 / (1 + step), step))
    return rows


def read(data: bytes, cuts: Sequence[int] = ()) -> Reading:
    reader = EventReader("events.out.tfevents.1.host")
    for begin, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        reader.feed(data[begin:end])
    reader.finish(complete=True)
    return reader.reading


@dataclass
class Written:
    """A file, without its bytes in messages."""

    data: bytes = field(repr=False)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(write(tmp_path_factory.mktemp("run"), curve()).read_bytes())


def test_a_file_is_known_by_its_beginning(written: Written) -> None:
    assert kind_of("anything", written.data[:64]) == "tfevents"
    assert kind_of("train.log", b"step 1: loss 3.2\n") == "text"


def test_each_scalar_is_read_as_tensorboard_reads_it(tmp_path: Path) -> None:
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    rows = [*curve(), ("train/loss", math.nan, 400), ("train/loss", math.inf, 410)]
    path = write(tmp_path, rows)
    theirs = loading.EventAccumulator(str(path), size_guidance={"scalars": 0})
    theirs.Reload()
    ours = read(path.read_bytes()).series
    by_original = {series.original: series for series in ours.values()}
    assert set(theirs.Tags()["scalars"]) <= set(by_original)
    for tag in theirs.Tags()["scalars"]:
        points = by_original[tag].points()
        expected = theirs.Scalars(tag)
        assert [point.step for point in points] == [event.step for event in expected]
        np.testing.assert_array_equal(
            [point.value for point in points], [event.value for event in expected]
        )


def test_names_are_those_of_text_logs(written: Written) -> None:
    reading = read(written.data)
    assert {"loss", "eval_loss", "learning_rate"} <= set(reading.series)
    assert reading.last_step == 390
    assert reading.series["loss"].count == 40
    assert reading.series["eval_loss"].count == 4
    assert reading.first_time is not None


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
def test_scalars_in_tensors(tmp_path: Path, dtype: str) -> None:
    """As TensorFlow 2 and Keras write them."""
    proto = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    summary = pytest.importorskip("tensorboard.compat.proto.summary_pb2")
    util = pytest.importorskip("tensorboard.util.tensor_util")
    writing = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
    writer = writing.EventFileWriter(str(tmp_path))
    for step in range(1, 6):
        tensor = util.make_tensor_proto(np.array(step * 2, dtype=dtype))
        value = summary.Summary.Value(tag="epoch_loss", tensor=tensor)
        one = proto.Event(step=step, wall_time=1e9 + step, summary=summary.Summary(value=[value]))
        writer.add_event(one)
    writer.close()
    (path,) = tmp_path.glob("events*")
    loss = read(path.read_bytes()).series["loss"]
    assert [point.value for point in loss.points()] == [2, 4, 6, 8, 10]


def test_a_restart_takes_back_what_it_writes_anew(tmp_path: Path) -> None:
    rows = [("loss", 1.0, step) for step in range(10)]
    first = write(tmp_path / "a", rows).read_bytes()
    again = write(tmp_path / "b", [("loss", 2.0, s) for s in range(6, 9)], purge_step=6)
    loss = read(first + again.read_bytes()).series["loss"]
    assert [(p.step, p.value) for p in loss.points()] == [
        *((step, 1.0) for step in range(6)),
        *((step, 2.0) for step in range(6, 9)),
    ]


def test_a_record_that_is_not_whole_yet_is_read_when_it_is(written: Written) -> None:
    whole = read(written.data)
    for cut in range(len(written.data) - 60, len(written.data), 7):
        reader = EventReader("events.out.tfevents.1.host")
        reader.feed(written.data[:cut])
        assert reader.reading.series["loss"].count <= 40
        reader.feed(written.data[cut:])
        assert reader.reading == whole


def test_a_damaged_record_is_passed_over_and_told(written: Written) -> None:
    at = len(written.data) // 2
    broken = written.data[:at] + bytes([written.data[at] ^ 0xFF]) + written.data[at + 1 :]
    reading = read(broken)
    points = sum(series.count for series in reading.series.values())
    everything = sum(series.count for series in read(written.data).series.values())
    assert everything - 4 <= points < everything
    assert any("damaged" in note for note in reading.notes)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_how_the_bytes_are_cut_does_not_matter(written: Written, data: st.DataObject) -> None:
    places = st.lists(st.integers(0, len(written.data)), max_size=8).map(sorted)
    assert read(written.data, data.draw(places)) == read(written.data)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_damage_stops_the_reader(written: Written, data: st.DataObject) -> None:
    broken = bytearray(written.data)
    for _ in range(data.draw(st.integers(1, 6))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    reading = read(bytes(broken[: data.draw(st.integers(0, len(broken)))]))
    assert sum(series.count for series in reading.series.values()) <= 200


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=3000))
def test_any_bytes_are_taken(noise: bytes) -> None:
    reading = read(noise)
    assert reading.bytes == len(noise)
    assert not reading.series, "no sum fits by chance"


def test_reading_goes_on_from_what_was_saved(written: Written) -> None:
    half = len(written.data) // 2 + 3
    reader = EventReader("events.out.tfevents.1.host")
    reader.feed(written.data[:half])
    again = reader_from(reader.to_state())
    again.feed(written.data[half:])
    again.finish(complete=True)
    assert again.reading == read(written.data)


def framed(record: bytes) -> bytes:
    """A record as event files hold it."""
    known = pytest.importorskip("tensorboardX.crc32c")

    def summed(data: bytes) -> bytes:
        crc = known.crc32c(data)
        return data + ((((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(
            4, "little"
        )

    return summed(len(record).to_bytes(8, "little")) + summed(record)


def event(step: int | None, time: float | None, values: Sequence[tuple[str, float, str]]) -> bytes:
    """An event with a scalar for each tag, value and how it is kept."""
    proto = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    util = pytest.importorskip("tensorboard.util.tensor_util")
    one = proto.Event()
    if step is not None:
        one.step = step
    if time is not None:
        one.wall_time = time
    for tag, value, how in values:
        if how == "simple":
            one.summary.value.add(tag=tag, simple_value=value)
        elif how == "histogram":
            histo = one.summary.value.add(tag=tag).histo
            histo.bucket.extend([value] * 9 + [0.0] * 9)
        else:
            tensor = util.make_tensor_proto(np.array(value, dtype=how))
            one.summary.value.add(tag=tag, tensor=tensor)
    return bytes(one.SerializeToString())


VALUES = st.tuples(
    st.sampled_from(["loss", "a/loss", "b/loss", "validation/loss", "lr", "b" * 70]),
    st.floats(allow_nan=True, width=32),
    st.sampled_from(["simple", "simple", "simple", "float32", "float64", "histogram"]),
)
EVENTS = st.builds(
    event,
    st.one_of(st.none(), st.integers(-2, 5), st.integers(100, 20_000)),
    st.one_of(st.none(), st.just(1.7e9), st.floats(1e9, 2e9)),
    st.lists(VALUES, max_size=3),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=12), st.integers(1, 40), st.data())
def test_many_records_at_once_are_read_as_each_by_itself(
    events: list[bytes], times: int, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(events))))
    records = [framed(events[at]) for _ in range(times) for at in order]
    whole = b"".join(records)
    whole = whole[: max(0, len(whole) - data.draw(st.integers(0, 5)))]
    if data.draw(st.booleans()) and whole:
        broken = bytearray(whole)
        broken[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        whole = bytes(broken)
    ends = np.cumsum([0, *map(len, records)]).tolist()
    alone = read(whole, [end for end in ends if end < len(whole)])
    assert str(read(whole)) == str(alone)


def test_a_record_inside_of_a_record_is_none() -> None:
    hidden = event(7, 1e9, [("hidden", 1.0, "simple")])
    outer = event(1, 1e9, [("loss", 2.0, "simple")]) + b"\x32" + bytes([len(framed(hidden))])
    data = framed(outer + framed(hidden)) * 5 + framed(event(2, 1e9, [("loss", 1.0, "simple")]))
    assert set(read(data).series) == {"loss"}


@given(st.binary(max_size=5000))
def test_sums_are_those_of_tensorboardx(data: bytes) -> None:
    known = pytest.importorskip("tensorboardX.crc32c")
    assert crc32c(data) == known.crc32c(data)
