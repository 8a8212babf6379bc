"""How a run ended, where no traceback and no last word says it."""

from __future__ import annotations

import math

import pytest

from trainwarden.metrics.ending import EndingWatch, by_chance, round_share
from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.reading import Reading


def read(text: str, over: bool = True) -> Reading:
    reader = LogReader("log")
    reader.feed(text.encode())
    reader.finish(complete=True, over=over)
    return reader.reading


def nano(last: int, every: int = 10) -> str:
    return "".join(
        (f"step {i}: train loss 2.1, val loss 2.2\n" if i % 250 == 0 else "")
        + f"iter {i}: loss {3 - i / 9000:.4f}, time 41.20ms, mfu 7.56%\n"
        for i in range(0, last + 1, every)
    )


@pytest.mark.parametrize(
    ("step", "stride", "share"),
    [
        (5000, 10, 0.01),
        (4990, 10, 1.0),
        (10_010_624, 16_384, 0.0016384),
        (100, 1, 0.01),
        (50, 1, 0.1),
        (37, 1, 1.0),
        (120, 10, 1.0),
        (0, 1, 1.0),
        (3, 0, 1.0),
        (math.inf, 1, 1.0),
    ],
)
def test_round_numbers_are_rare_by_their_roundness(
    step: float, stride: float, share: float
) -> None:
    assert round_share(step, stride) == pytest.approx(share)


def test_evidence_of_an_end_multiplies() -> None:
    ending = EndingWatch()
    assert by_chance(ending, 100, 1000, 100, None) == pytest.approx(0.1)
    assert by_chance(ending, 100, 1000, 100, (1.0, 0.01)) == pytest.approx(0.1 * 0.2 / math.pi)
    assert by_chance(ending, 100, 1000, 100, (1.0, math.nan)) == pytest.approx(0.1)
    ending.pause()
    assert by_chance(ending, 100, 1234, 1, None) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        (nano(4000), "finished"),  # a round number, with its evaluation
        (nano(4000) + "iter 4010: loss 2.5, time 41.20ms, mfu 7.56%\n", "running"),
        (nano(3970), "running"),
        (nano(1000, 100), "running"),  # one stop in ten is as round
        (nano(4000) + "Traceback (most recent call last):\nValueError: x\n", "crashed"),
    ],
)
def test_a_run_that_stopped_at_a_round_number(text: str, ended: str) -> None:
    assert read(text).ended == ended
    assert read(text, over=False).ended == ("running" if ended == "finished" else ended)


def test_a_table_stops_at_the_end_of_its_schedule() -> None:
    rows = [(i, 0.5 / i, 0.001 * (51 - i) / 50) for i in range(1, 51)]
    table = "epoch,train_loss,lr\n" + "".join(f"{e},{loss},{lr}\n" for e, loss, lr in rows)
    assert read(table).ended == "finished"
    assert read(table.rsplit("\n", 20)[0] + "\n").ended == "unknown"


def test_all_epochs_that_a_config_states_were_summed_up() -> None:
    def log(epochs: int) -> str:
        return "    num_epochs : 3\n" + "".join(
            f"epoch:{e} train step:{i * 10} lr: 0.1, loss: 2.{i}\n"
            + (f"END epoch:{e} train loss: 2.5\n" if i == 7 else "")
            for e in range(epochs)
            for i in range(8)
        )

    assert read(log(3), over=False).ended == "finished"
    assert read(log(2), over=False).ended == "running"


@pytest.mark.parametrize(
    ("last", "ended"),
    [
        ("wandb: Run summary:\nwandb:   loss 0.5\n", "finished"),
        ("real\t12m3.450s\nuser\t1m0.1s\n", "finished"),
        ("Process finished with exit code 0\n", "finished"),
        ("ValueError: bad\nwandb: Run summary:\nwandb:   loss 0.5\n", "crashed"),
        ("RuntimeError: bad\nreal\t12m3.450s\n", "crashed"),
    ],
)
def test_what_is_printed_at_any_exit_hides_no_error(last: str, ended: str) -> None:
    assert read(nano(3970) + last).ended == ended


@pytest.mark.parametrize("step", ["", "()", "Summary:"])
def test_dllogger_sums_up_without_a_step(step: str) -> None:
    head = "DLL 2026-01-02 03:04:05.678901 - "
    rows = "".join(
        f"{head}Epoch: 0 Iteration: {i}  train.loss : {3 - i / 50} None train.lr : 0.1 None\n"
        for i in range(1, 31)
    )
    reading = read(rows + f"{head}{step} train.loss : 2.7 None train.ips : 900.1 images/s\n", False)
    assert reading.ended == "finished"
    assert reading.series["loss"].count == 30
    assert reading.series["loss"].last is not None
    assert reading.series["loss"].last.value == 2.4
    assert read(rows, False).ended == "running"


def test_dllogger_in_json() -> None:
    def line(step: str, data: str) -> str:
        return (
            '[1,0]<stdout>:DLLL {"timestamp": "1700000000.5", "elapsedtime": "9.1", '
            f'"type": "LOG", "step": {step}, "data": {data}}}\n'
        )

    text = "".join(line(f"[0, {i}]", f'{{"loss": {3 - i / 50}, "lr": 0.1}}') for i in range(1, 21))
    text += line("[0, 20, 5]", '{"val_loss": 2.25}') + line("[]", '{"loss": 2.7}')
    reading = read(text, False)
    assert reading.series["loss"].count == 20
    assert (reading.last_step, reading.ended) == (20, "finished")
    assert reading.series["eval_loss"].last is not None
    assert reading.series["eval_loss"].last[:2] == (20.0, 2.25)


def test_one_line_tells_of_no_course() -> None:
    assert read("{'loss': '2.5', 'grad_norm': '0.8', 'learning_rate': '0'}\n").ended == "unknown"
