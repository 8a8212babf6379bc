"""Logs as many frameworks print them, written out line by line as their sources format them."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest

from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.reading import Reading


def read(text: str) -> Reading:
    reader = LogReader("log")
    reader.feed(text.encode())
    reader.finish(complete=True)
    return reader.reading


def loss(i: float) -> float:
    return round(3 - i / 50, 4)


def bar(n: int, total: int, post: str = "", label: str = "") -> str:
    full = 10 * n // total
    return (
        f"\r{label}{100 * n // total:3d}%|{'█' * full}{' ' * (10 - full)}| {n}/{total} "
        f"[00:{n % 60:02d}<01:00,  2.1{n % 10}it/s{post}]"
    )


def lines(template: str, *numbers: int) -> str:
    """One line for each number: `{i}` is it, `{l}` its loss, `{e}` its evaluation loss."""
    return "".join(
        template.format(i=i, l=loss(i), e=round(loss(i) + 0.1, 4), c=f"{i:,}") + "\n"
        for i in numbers
    )


EVERY = range(1, 41)
STATE = {
    "epoch": 1.0,
    "global_step": 40,
    "log_history": [{"epoch": i / 40, "loss": loss(i), "step": i} for i in EVERY]
    + [{"epoch": 1.0, "eval_loss": 2.5, "eval_runtime": 2.0, "step": 40}],
    "logging_steps": 1,
    "max_steps": 60,
    "stateful_callbacks": {"TrainerControl": {"args": {"should_log": False}, "attributes": {}}},
    "total_flos": 1e15,
}
Point = tuple[float, float]
LOGS: dict[str, tuple[str, dict[str, Any], dict[str, tuple[int, Point, Point]]]] = {
    "a trainer state on one line": (
        json.dumps(STATE),
        {"last_step": 40, "total_steps": 60, "ended": "running"},
        {"loss": (40, (1, loss(1)), (40, loss(40))), "eval_loss": (1, (40, 2.5), (40, 2.5))},
    ),
    "an indented trainer state": (
        json.dumps(STATE, indent=2),
        {"last_step": 40, "total_steps": 60, "ended": "running"},
        {"loss": (40, (1, loss(1)), (40, loss(40))), "eval_loss": (1, (40, 2.5), (40, 2.5))},
    ),
    "a trainer state that is being written": (
        json.dumps(STATE)[:1500],
        {"total_steps": None},
        {},
    ),
    "quoted numbers": (
        "".join(
            bar(i, 60) + f"\n{{'loss': '{loss(i)}', 'epoch': '{i / 60:.2f}'}}\n" for i in EVERY
        ),
        {"last_step": 40, "total_steps": 60, "ended": "running", "format": "hf-dict"},
        {"loss": (40, (1, loss(1)), (40, loss(40)))},
    ),
    "nanochat": (
        lines(
            "step {i:05d}/21400 (0.01%) | loss: {l:.6f} | lrm: 1.00 | dt: 480.12ms | "
            "tok/sec: 1,090,{i:03d} | mfu: 48.12 | total time: 0.50m",
            *EVERY,
        ),
        {"last_step": 40, "total_steps": 21400},
        {
            "loss": (40, (1, loss(1)), (40, loss(40))),
            "mfu": (40, (1, 0.4812), (40, 0.4812)),
            "step_time": (40, (1, 0.48012), (40, 0.48012)),
            "tokens_per_second": (40, (1, 1_090_001), (40, 1_090_040)),
        },
    ),
    "modded-nanogpt": (
        lines("step:{i}/40 val_loss:{e} train_time:142{i}ms step_avg:142.12ms", 10, 20, 30, 40),
        {"last_step": 40, "total_steps": 40, "ended": "finished"},
        {
            "eval_loss": (4, (10, 2.9), (40, 2.3)),
            "step_time": (4, (10, 0.14212), (40, 0.14212)),
        },
    ),
    "steps from 0": (
        lines("iteration {i}/ 40 | lm loss: {l:.6E} | number of nan iterations: 0 |", *range(40)),
        {"last_step": 39, "total_steps": 40, "ended": "finished"},
        {"loss": (40, (0, 3.0), (39, loss(39)))},
    ),
    "thousands": (
        lines("Step {c}/100,000 | loss {l}", *range(500, 20_500, 500)),
        {"last_step": 20_000, "total_steps": 100_000, "ended": "running"},
        {"loss": (40, (500, loss(500)), (20_000, loss(20_000)))},
    ),
    "composer": (
        lines("[batch={i}/100]:\n\t Train time/epoch: 0\n\t Train loss/train/total: {l}", *EVERY),
        {"last_step": 40, "total_steps": 100},
        {"loss": (40, (1, 2.98), (40, 2.2))},
    ),
    "maxtext": (
        lines(
            "completed step: {i}, seconds: 1.25, TFLOP/s/device: 100.1, Tokens/s/device: 5{i}.5, "
            "total_weights: 65536, loss: {l}",
            *EVERY,
        ),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "step_time": (40, (1, 1.25), (40, 1.25))},
    ),
    "a line for each rank": (
        "".join(
            f"Epoch: 0, Step: {i}, Rank: {r}, loss = {loss(i) + r}\n" for i in EVERY for r in (0, 1)
        ),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2))},
    ),
    "a phase a line": (
        lines(
            "Epoch {i}/50\n----------\ntrain Loss: {l} Acc: 0.5\nval Loss: {e} Acc: 0.6\n", *EVERY
        ),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_accuracy": (40, (1, 0.6), (40, 0.6))},
    ),
    "names of phases alone": (
        lines("step {i}: train {l}, val {e}", *EVERY),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (40, (1, 3.08), (40, 2.3))},
    ),
    "ignite": (
        lines("Epoch[1], Iter[{i}] Loss: {l}", *EVERY)
        + "Training Results - Epoch[1] Avg accuracy: 0.97 Avg loss: 0.09\n"
        + "Validation Results - Epoch[1] Avg accuracy: 0.96 Avg loss: 0.08\n",
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (1, (40, 0.08), (40, 0.08))},
    ),
    "bars as wide as the window": (
        # The last value is cut short, or all but its last digits stand there.
        "".join(
            f"\rtrain Epoch 0:  50%|██ | {i}/50 [00:42<00:00, 3.4ba/s, loss={loss(i):.4f}, lr=0.0"
            for i in EVERY
        )
        + "\n\reval Epoch 0: 100%|██| 8/8 [00:01<00:00, 8.5ba/s, metrics/eval/CrossEntropy=1.787\n",
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (1, (40, 1.787), (40, 1.787))},
    ),
    "values after bars": (
        "".join(
            f"Epoch {e} [Train]: 100%|███| 20/20 [00:42<00:00,  3.48it/s] loss: {loss(e)}\n"
            f"Epoch {e} [Val]: 100%|███| 5/5 [00:07<00:00] loss: 1.{e}, acc: 92.5%\n"
            for e in (1, 2)
        ),
        {"last_step": 40},
        {"loss": (2, (20, 2.98), (40, 2.96)), "eval_accuracy": (2, (20, 0.925), (40, 0.925))},
    ),
    "shares called by their phase": (
        lines("Epoch [{i}/100] Loss: {l} | Train: 8.5% | Test: 11.5%", *EVERY),
        {"last_step": 40, "total_steps": 100},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_accuracy": (40, (1, 0.115), (40, 0.115))},
    ),
    "a counter in brackets": (
        lines("[{i:>6}/100000] loss: {l}, lr: 1.0e-04, 12s elapsed", *EVERY),
        {"last_step": 40, "total_steps": 100_000},
        {"loss": (40, (1, 2.98), (40, 2.2))},
    ),
    "what a model wrote": (
        lines("iter {i}: loss {l}, time 40.12ms", *EVERY)
        + "Step 1: Find the total cost: 3 * 5 = 15. What is the loss: 3?\nThe loss: 7 of the man\n"
        + "Cost: 15\nscore: 5\nThe capital of step 3 had a loss of 4 people\n",
        {"last_step": 40, "ended": "running", "runs": 1},
        {"loss": (40, (1, 2.98), (40, 2.2))},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_frameworks_print(name: str) -> None:
    text, fields, metrics = LOGS[name]
    reading = read(text)
    for field, wanted in fields.items():
        assert getattr(reading, field) == wanted, field
    for metric, (count, first, last) in metrics.items():
        assert metric in reading.series, (metric, sorted(reading.series))
        series = reading.series[metric]
        assert series.count == count, metric
        assert series.first is not None
        assert series.last is not None
        assert series.first[:2] == pytest.approx(first), metric
        assert series.last[:2] == pytest.approx(last), metric


def test_counts_of_megabytes_without_a_b() -> None:
    series = read("iter: 5  total_loss: 2.5  lr: 0.1  max_mem: 2740M\n").series["gpu_memory"]
    assert (series.last.value, series.unit) == (2740 * 2**20, "bytes")  # type: ignore[union-attr]


def test_derived_step_times_give_way_to_printed_ones() -> None:
    text = lines("2026-01-02 03:04:{i:02d} step {i} loss {l} step_time 0.9", *EVERY)
    reading = read(text)
    assert reading.series["step_time"].original == "step_time"
    assert "from_timestamps" not in reading.series


def test_integers_beyond_floats_are_passed_over() -> None:
    reading = read('{"step": 1, "loss": 2.5, "n": 1' + "0" * 400 + "}\n")
    assert reading.series["loss"].count == 1
    assert "n" not in reading.series


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "1",
            "1.5 ",
            "loss is ",
            "1/2 ",
            "10:00:00 Step 1 ",
            "a=1 ",
            "{'a': 1, ",
            "tensor(1.",
            "%|",
        ),
        *("loss ON it/s is ", "1,234", "1 days, ", "[1/2", " | 5", "saved checkpoint <", "Error: "),
    ],
)
def test_cost_grows_with_the_length_of_a_line_and_no_faster(unit: str) -> None:
    def cost(length: int) -> float:
        text = (
            ("iter 5: " + unit * length)[:length] + "é\n" + ("x" + unit * length)[:length] + "1.5\n"
        )
        took = math.inf
        for _ in range(3):
            reader = LogReader("log")
            reader.feed(b"iter 5: loss 1.25, time 3.1ms\n" * 9)
            began = time.process_time()
            reader.feed(text.encode())
            took = min(took, time.process_time() - began)
        return took

    # Quadratic cost would be 64 times that of the short line.
    assert cost(160_000) < 32 * cost(20_000) + 0.5
