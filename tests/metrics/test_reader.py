from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.growth import ALLOWED, growth
from trainwarden.metrics.reader import LINE_CAP, LogReader
from trainwarden.metrics.reading import Reading


def read(text: str | bytes, complete: bool = True, **more: bool) -> Reading:
    reader = LogReader("log", **more)
    reader.feed(text.encode() if isinstance(text, str) else text)
    reader.finish(complete=complete)
    return reader.reading


def values(reading: Reading, name: str) -> list[tuple[float, float]]:
    return [(point.step, point.value) for point in reading.series[name].points()]


def outcome(reading: Reading) -> str:
    """All that a reading says, as text, so that NaN equals NaN."""
    data = reading.to_json()
    data["series"] = {name: series.to_json() for name, series in reading.series.items()}
    data["events"] = [repr(event) for event in reading.events]
    data["rest"] = [reading.tail, reading.notes, reading.lines, reading.first_time]
    return json.dumps(data, sort_keys=True)


NANO = "".join(
    (f"step {i}: train loss {5 - i / 50:.4f}, val loss {5.1 - i / 50:.4f}\n" if i % 50 == 0 else "")
    + f"iter {i}: loss {5 - i / 50:.4f}, time {40 + i % 7}.25ms, "
    + f"mfu {'-100.00' if i == 0 else '7.56'}%\n"
    for i in range(0, 200, 2)
)
HF = "\r  0%|          | 0/40 [00:00<?, ?it/s]" + "".join(
    f"\r {i * 2}%|{'█' * (i // 8)}{' ' * 5}| {i}/40 [00:{i:02d}<00:30,  1.0{i % 10}it/s]"
    + (
        f"{' ' * 20}\n{{'loss': {3 - i / 40}, 'grad_norm': {'nan' if i == 20 else 1.5}, "
        f"'learning_rate': '{i}e-06', 'epoch': {i / 40}}}\n"
        if i % 4 == 0
        else ""
    )
    for i in range(1, 41)
)
MIXED = (
    "\x1b[32m2026-01-02 03:04:05,678 - root - INFO - config: lr=0.1, batch_size=8\x1b[0m\n"
    + "".join(
        f"[rank{rank}]:[titan] 2026-01-02 03:{i:02d}:05,678 - root - INFO - \x1b[31mstep: {i}  "
        f"\x1b[32mloss:  {9 - i / 9:.5f}  memory: 169.10GiB(94.81%)  "
        f"tps: {10_000 + i:,}\x1b[39m\r\n"
        for i in range(1, 30)
        for rank in (0, 1)
    )
    + '{"step": 30, "loss": NaN, "lr": 1e-3}\n{"step": 31, "loss": 1.5, "lr": 1e-3}\n'
    + "Traceback (most recent call last):\n  File 'x.py', line 3\nRuntimeError: CUDA error\n"
)
CSV = "step,loss,lr\r\n" + "".join(f"{i},{5 - i / 10},\r\n" for i in range(20))
MEGATRON = "".join(
    f" iteration {i}/ 100 | lm loss: {9 - i / 9:.6E} | number of nan iterations:   0 |\n"
    + ("Traceback (most recent call last):\n  File 'x.py', line 3\n    loss = 5 / 0\n" * (i == 40))
    for i in range(100)
)
JSONL = "".join(
    json.dumps({"mode": "train", "step": i, "epoch": i // 20, "loss": 5 - i / 20, "at": "x y"})
    + "\n"
    + (
        f'{{"mode": "val", "step": {i}, "loss": 4.5, "m": {{"acc": 0.5}}}}\n'
        if i % 20 == 19
        else ""
    )
    + (f'{{"step": {i}, "loss": NaN, "note": null}}\n' if i in {33, 47} else "")
    for i in range(60)
)
SPARSE = "epoch,lr-Adam,step,train_loss,val_loss\n" + "".join(
    f"{i // 20},,{i},{5 - i / 20},\n"
    + (f",0.001,{i},,\n" if i % 10 == 0 else "")
    + (f"{i // 20},,{i},,{5.5 - i / 20}\n" if i % 20 == 19 else "")
    for i in range(60)
)
TREES = "".join(f"[{i}]\ttrain-auc:0.{i}\teval-auc:0.{i}+0.01\n" for i in range(10, 60))
SHARES = "".join(f"step {i}: loss 2.5, mfu {'-100' if i < 3 else i}%\n" * 2 for i in range(40))
NOISE = NANO + "[1] NCCL INFO Channel 3/16\nEpoch 1/3\nthe 12 of 3\n" * 3 + "exit code 0\n" * 2
SAMPLES = (
    *(MEGATRON, NANO, HF, MIXED, CSV, NANO + MIXED, HF + NANO, JSONL, SPARSE, TREES, SHARES),
    NOISE + NOISE + "exit code 1\n",
)


@pytest.mark.parametrize("text", SAMPLES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_chunking_gives_the_identical_reading(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    reader = LogReader("log")
    for begin, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        reader.feed(raw[begin:end])
        if data.draw(st.booleans()):
            reader.finish()  # looking must not disturb
        if data.draw(st.booleans()):
            reader = LogReader.from_state(json.loads(json.dumps(reader.to_state())))
    reader.finish(complete=True)
    assert outcome(reader.reading) == outcome(read(text))


@pytest.mark.parametrize("text", SAMPLES)
def test_templates_change_nothing_but_the_speed(text: str) -> None:
    assert outcome(read(text)) == outcome(read(text, use_templates=False))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_survived(raw: bytes) -> None:
    reading = read(raw)
    assert reading.bytes == len(raw)


WORDS = st.sampled_from(
    [
        "loss",
        "step",
        "iter",
        "lr",
        ":",
        "=",
        " ",
        ", ",
        "1",
        "0.5",
        "nan",
        "-",
        "|",
        "/",
        "%",
        "ms",
        "epoch",
        "10/20",
        "[",
        "]",
        "{'",
        "'",
        "}",
        "\r",
        "\n",
        "1e-4",
        "(",
        ")",
        "val",
        "acc",
        "it/s",
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=60).map("".join), st.integers(0, 60))
def test_any_mix_of_log_words_is_chunk_invariant(text: str, cut: int) -> None:
    raw = text.encode()
    reader = LogReader("log")
    reader.feed(raw[:cut])
    reader.feed(raw[cut:])
    reader.finish(complete=True)
    assert outcome(reader.reading) == outcome(read(text))
    assert outcome(read(text, use_templates=False)) == outcome(read(text))


def test_nanogpt_lines() -> None:
    reading = read(NANO)
    assert reading.last_step == 198
    assert reading.runs == 1
    assert reading.series["loss"].count == 100
    assert reading.series["eval_loss"].count == 4
    assert reading.series["train_loss"].count == 4, "an evaluation's estimate is not the loss"
    assert reading.series["step_time"].last is not None
    assert reading.series["step_time"].last.value == pytest.approx(0.04225, abs=0.005)
    assert reading.series["mfu"].count == 99, "-100% is no reading"
    point = reading.series["loss"].points()[3]
    assert NANO.encode()[point.offset :].startswith(b"iter 6: ")


def test_hf_dicts_take_their_step_from_the_bar() -> None:
    reading = read(HF)
    assert reading.format == "hf-dict"
    assert reading.last_step == reading.total_steps == 40
    assert [step for step, _ in values(reading, "loss")] == list(range(4, 41, 4))
    assert reading.series["grad_norm"].nonfinite == 1
    assert reading.series["learning_rate"].last is not None
    assert reading.series["learning_rate"].last.value == pytest.approx(40e-6)
    assert reading.ended == "finished"


def test_only_one_rank_counts_and_units_are_read() -> None:
    reading = read(MIXED)
    assert reading.series["loss"].count == 31
    assert math.isnan(reading.series["loss"].points()[29].value)
    assert reading.series["gpu_memory"].last is not None
    assert reading.series["gpu_memory"].last.value == pytest.approx(169.10 * 2**30)
    assert values(reading, "tokens_per_second")[0] == (1.0, 10_001.0)
    assert reading.series["step_time"].original == "from timestamps"
    assert reading.series["step_time"].points()[0].value == pytest.approx(60.0)
    assert reading.ended == "crashed"
    assert {"traceback", "exception"} <= {event.kind for event in reading.events}


def test_an_indented_step_line_ends_a_traceback() -> None:
    reading = read(MEGATRON)
    assert reading.series["loss"].count == 100
    assert (reading.last_step, reading.total_steps, reading.ended) == (99, 100, "finished")


def test_an_incomplete_last_line_is_neither_lost_nor_doubled() -> None:
    reader = LogReader("log")
    reader.feed(b"iter 1: loss 2.50\niter 2: loss 2.2")
    reader.finish()
    assert values(reader.reading, "loss") == [(1.0, 2.5)], "2.2 may go on"
    reader.finish(complete=True)
    assert values(reader.reading, "loss") == [(1.0, 2.5), (2.0, 2.2)]
    reader.feed(b"75\n")
    reader.finish()
    assert values(reader.reading, "loss") == [(1.0, 2.5), (2.0, 2.275)]
    reader.feed(b"{'loss': 1.5, 'step': 3}")
    reader.finish()
    assert values(reader.reading, "loss")[-1] == (3.0, 1.5)


@pytest.mark.parametrize(
    "prose",
    [
        "The loss of 5 dollars over 3 steps: 7 people in total were sad about that, he said.",
        "    loss = model(x, y)  # line 20",
        "learning_rate=0.003, batch size=98304, beta1=0.78, max epoch=20, eps=1.4E-07",
        "optimizer = dict(type='SGD', lr=0.01, momentum=0.9, weight_decay=0.0005)",
        "| max_sequence_length T | 1024 |",
        "loss=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0)",
        "Step 1: wash the rice. Step 2: cook 20 minutes at 180 degrees, without loss of steam.",
        '{"learning_rate": 0.001, "batch_size": 8, "max_steps": 100, "seed": 1}',
        "{'lr': 0.1, 'weight_decay': 0.1, 'betas': 0.9, 'batch_size': 3}",
        "Namespace(lr=0.1, epochs=3, loss='mse', steps=100, seed=1)",
    ],
)
def test_prose_and_config_are_no_metrics(prose: str) -> None:
    assert "loss" not in read(prose + "\n").series
    assert "learning_rate" not in read(prose + "\n").series


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("", "unknown"),
        ("hello\n", "unknown"),
        (NANO, "running"),
        (NANO + "Training completed\n", "finished"),
        (NANO + "{'train_runtime': 1.5, 'train_loss': 2.5, 'epoch': 1.0}\n", "finished"),
        (NANO + "Traceback (most recent call last):\nValueError: x\n", "crashed"),
        (NANO + "Traceback (most recent call last):\nKeyboardInterrupt\n", "interrupted"),
        (
            NANO + "KeyboardInterrupt\n[launch] Main process received SIGTERM, exiting\n",
            "interrupted",
        ),
        (NANO + "RuntimeError: x\nKeyboardInterrupt\n", "crashed"),
        (NANO + "Killed\n", "crashed"),
        (
            NANO + "slurmstepd: error: *** JOB 1 ON a CANCELLED AT x DUE TO TIME LIMIT ***",
            "crashed",
        ),
        (
            NANO + "slurmstepd: error: *** JOB 1 ON a CANCELLED AT 2026-01-01T00:00:00 ***",
            "interrupted",
        ),
        ("ValueError: caught and retried\n" + NANO, "running"),
        (NANO + "ValueError: x\niter 999: loss 1.0\n", "crashed"),
        (NANO + "UserWarning: RuntimeError: is deprecated\n", "running"),
        (NANO + "exitcode : -6 (pid: 7)  (SIGABRT)\n", "crashed"),
    ],
)
def test_how_a_run_ended(text: str, ended: str) -> None:
    assert read(text).ended == ended


def test_words_glued_to_a_metric_line_are_read_too() -> None:
    reading = read(
        NANO
        + "iter 200: loss 1.25|slurmstepd: error: *** JOB 1 ON a CANCELLED DUE TO TIME LIMIT ***"
    )
    assert values(reading, "loss")[-1] == (200.0, 1.25)
    assert reading.ended == "crashed"


def test_the_summary_at_the_end_is_no_point_of_the_loss() -> None:
    reading = read(
        "{'loss': 2.5, 'epoch': 0.1}\n{'train_runtime': 10.0, 'train_loss': 3.5, 'epoch': 1.0}\n"
    )
    assert values(reading, "loss") == [(1.0, 2.5)]
    assert reading.series["train_loss"].last is not None
    assert reading.series["train_loss"].last.value == 3.5


def test_a_run_appended_to_the_file_is_a_second_run() -> None:
    reading = read(NANO + NANO)
    assert reading.runs == 2
    assert reading.last_step == 198
    assert [event.kind for event in reading.events] == ["resume"]


def test_resuming_from_a_checkpoint_just_behind_counts_after_an_error() -> None:
    first = "".join(f"iter {i}: loss 1.5\n" for i in range(10))
    again = "".join(f"iter {i}: loss 1.5\n" for i in range(8, 20))
    assert read(first + again).runs == 1
    assert read(first + "RuntimeError: x\n" + again).runs == 2
    assert read(first + "Resuming from checkpoint 9\n" + again).runs == 2


def test_an_endless_line_is_skipped_and_noted() -> None:
    reader = LogReader("log")
    reader.feed(b"iter 1: loss 2.5\n")
    for _ in range(40):
        reader.feed(b"x" * (LINE_CAP // 10))
        assert len(reader.to_state()["held"]) < 3 * LINE_CAP
    reader.feed(b"\niter 2: loss 2.0\n")
    reading = reader.reading
    assert values(reading, "loss") == [(1.0, 2.5), (2.0, 2.0)]
    assert reading.lines == 3
    assert any("1 MiB" in note for note in reading.notes)


def test_binary_is_noted() -> None:
    reading = read(b"iter 1: loss 2.5\n" + bytes(range(256)) * 4 + b"\niter 2: loss 2.0\n")
    assert reading.series["loss"].count == 2
    assert any("binary" in note for note in reading.notes)


def test_a_long_word_without_an_end_costs_no_more_than_its_length() -> None:
    def work(size: int) -> None:
        reader = LogReader("log")
        reader.feed(b"iter 1: loss 2.5\nx" + b"1" * size)
        reader.finish()
        assert reader.reading.lines == 1

    assert growth(work, 5000, 100_000) < ALLOWED


def test_a_hole_in_a_table_is_read_alike_however_it_was_cut() -> None:
    """A crashed machine leaves zeros where rows should be."""
    rows = [b"step,loss,acc\n", *(b"%d,0.5,0.25\n" % i for i in range(1, 40))]
    rows[20] = b"20,0.5" + bytes(40) + b"1,0.25\n"
    data = b"".join(rows)
    readings = []
    for pieces in ([data], [data[:150], data[150:300], data[300:]], rows):
        for use_templates in (True, False):
            reader = LogReader("log", use_templates=use_templates)
            for piece in pieces:
                reader.feed(piece)
            reader.finish(complete=True)
            readings.append(reader.reading)
    assert readings[0].series["loss"].count == 38
    assert all(reading == readings[0] for reading in readings)


def test_epochs_that_restart_their_steps_count_on() -> None:
    text = "".join(
        f"Epoch [{e}][{i}/4] lr: 1e-3 loss: {9 - e - i / 10}\n"
        for e in (1, 2, 3)
        for i in (1, 2, 3, 4)
    )
    reading = read(text)
    assert [step for step, _ in values(reading, "loss")] == list(range(1, 13))
    text = "".join(f"Epoch: {e} Iteration: {i} loss: 1.{i}\n" for e in (0, 1) for i in (0, 5, 10))
    reading = read(text)
    assert reading.runs == 1
    assert reading.last_step == 10
    steps = [step for step, _ in values(reading, "loss")]
    assert steps == sorted(set(steps))


def test_keras_bars() -> None:
    text = ""
    for epoch in (1, 2, 3):
        text += f"Epoch {epoch}/3\n"
        for n in (1, 50, 100):
            text += f"\r{n:3d}/100 [====>....] - ETA: 3s - loss: {9 - n / 100} - accuracy: 0.1"
        text += f"\r100/100 [==========] - 5s 3ms/step - loss: {2 / epoch} - val_loss: 1.5\n"
    reading = read(text)
    assert reading.format == "keras"
    assert values(reading, "loss") == [(100, 2.0), (200, 1.0), (300, 2 / 3)]
    assert reading.series["eval_loss"].count == 3
    assert (reading.last_step, reading.total_steps, reading.ended) == (300, 300, "finished")


def test_indented_json_is_read_record_by_record() -> None:
    state = {
        "epoch": 1.0,
        "log_history": [
            {"epoch": 0.1 * i, "learning_rate": 1e-4, "loss": 3.0 - i, "step": 10 * i}
            for i in (1, 2)
        ]
        + [{"epoch": 0.2, "eval_loss": 1.5, "step": 20}],
        "global_step": 20,
        "max_steps": 50,
    }
    reading = read(json.dumps(state, indent=2))
    assert values(reading, "loss") == [(10, 2.0), (20, 1.0)]
    assert values(reading, "eval_loss") == [(20, 1.5)]
    assert reading.total_steps == 50


def test_sparse_csv() -> None:
    reading = read("val_loss,train_loss,epoch,step\r\n,2.5,0,9\r\n1.5,,0,9\r\n,2.0,1,19\r\n")
    assert reading.format == "csv"
    assert values(reading, "loss") == [(9, 2.5), (19, 2.0)]
    assert values(reading, "eval_loss") == [(9, 1.5)]
    assert reading.last_step == 19


def test_long_runs_stay_bounded() -> None:
    rng = random.Random(1)
    reader = LogReader("log")
    for start in range(0, 30_000, 1000):
        reader.feed(
            "".join(
                f"step {i} | loss {rng.random():.4f}\n" for i in range(start, start + 1000)
            ).encode()
        )
    series = reader.reading.series["loss"]
    assert series.count == 30_000
    assert len(series.points()) < 4000
    assert len(json.dumps(reader.to_state())) < 500_000
