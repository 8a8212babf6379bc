"""Run files that no writer would write, as fuzzing found them."""

from __future__ import annotations

from support.run_files import chunked, field, item
from trainwarden.metrics.binary.wandb import WandbReader
from trainwarden.metrics.readers import reader_from


def test_an_event_after_rows_without_a_step_is_told_alike_whenever_it_was_saved() -> None:
    row = field(1, 1) + field(2, item("loss", "0.5"))
    text = b"Traceback (most recent call last):\n"
    data = chunked([row, field(1, 2) + field(13, field(1, 1) + field(3, text))])
    whole, saved = WandbReader("run-x.wandb"), WandbReader("run-x.wandb")
    whole.feed(data)
    saved.feed(data[:-60])
    again = reader_from(saved.to_state())
    assert isinstance(again, WandbReader)
    again.feed(data[-60:])
    assert [event.step for event in whole.reading.events] == [0.0]
    assert again.reading == whole.reading
