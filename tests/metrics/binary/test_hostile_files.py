"""Run files that no writer would write, as fuzzing found them."""

from __future__ import annotations

from support.run_files import chunked, events, field, item, numbered, scalar
from trainwarden.metrics.binary.tfevents import EventReader
from trainwarden.metrics.binary.wandb import WandbReader
from trainwarden.metrics.readers import reader_from


def test_an_event_after_rows_without_a_step_is_told_alike_whenever_it_was_saved() -> None:
    row = field(1, 1) + field(2, item("loss", "0.5"))
    text = b"Traceback (most recent call last):\n"
    data = chunked([row, field(1, 2) + field(13, field(1, 1) + field(3, text))])
    whole, saved = WandbReader("run-x.wandb"), WandbReader("run-x.wandb")
    whole.feed(data)
    cut = len(chunked([row]))
    saved.feed(data[:cut])
    again = reader_from(saved.to_state())
    assert isinstance(again, WandbReader)
    again.feed(data[cut:])
    assert [event.step for event in whole.reading.events] == [0.0]
    assert again.reading == whole.reading


def test_a_half_of_more_than_sixteen_bits_stops_nothing() -> None:
    half = field(1, 19) + field(13, 1_787_648)
    event = field(2, 1) + field(5, field(1, field(1, b"loss") + field(8, half)))
    reader = EventReader("events.out.tfevents.1.host")
    reader.feed(events([event, scalar("loss", 2)]))
    assert reader.reading.last_step == 2


def test_rows_after_an_axis_that_falls_too_often_are_placed_alike_however_they_come() -> None:
    """The axis counts no steps then: rows go on at the last that it told."""
    falling = [50, 40, 30, 20, 10, 5, 4, 3, 2, 1]
    rows = [item("train/step", str(at)) + item("loss", "0.5") for at in falling]
    rows += [item("loss", "0.25")] * 4
    records = numbered(2, rows)
    whole, parted = WandbReader("run-x.wandb"), WandbReader("run-x.wandb")
    whole.feed(chunked(records))
    before = 0
    for count in range(len(records) + 1):
        data = chunked(records[:count])
        parted.feed(data[before:])
        before = len(data)
        assert parted.reading.bytes == before
    assert parted.reading == whole.reading
