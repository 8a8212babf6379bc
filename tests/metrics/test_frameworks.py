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
    "the imagenet example": (
        "".join(
            f"Epoch: [{e}][{i:3d}/51]\tTime 0.3 ( 0.4)\tLoss {loss(i):.4e} (7.0e+00)\t"
            f"Acc@1 {i:.2f} ( 0.20)\n"
            for e in (0, 1)
            for i in range(0, 51, 10)
        )
        + "Test: [ 0/20]\tTime 0.9 ( 0.9)\tLoss 5.1e+00 (5.1e+00)\tAcc@1 3.12 ( 3.12)\n"
        + " *   Acc@1 4.300 Acc@5 11.500\n",
        {"last_step": 101},
        {"loss": (12, (0, 3.0), (101, 2.0)), "eval_accuracy": (2, (101, 3.12), (101, 4.3))},
    ),
    "timm": (
        "".join(
            f"Train: {e} [{i:4d}/51 ({2 * i:3d}%)]  Loss: {loss(i):.3f} (3.0)  Time: 0.250s, "
            f"1012.12/s  (0.260s,  984.61/s)  LR: 5.000e-02  Data: 0.010 (0.015)\n"
            for e in (0, 1)
            for i in range(0, 51, 10)
        )
        + "Test: [  49/49]  Time: 0.1 (0.2)  Loss:   4.021 ( 4.099)  Acc@1:  12.156 ( 11.156)\n"
        + "*** Best metric: 11.156 (epoch 1)\n",
        {"ended": "finished", "last_step": 101},
        {"loss": (12, (0, 3.0), (101, 2.0)), "eval_loss": (1, (101, 4.099), (101, 4.099))},
    ),
    "mmengine": (
        lines(
            "10/09 12:00:00 - mmengine - INFO - Iter(train) [{i}/40]  lr: 9e-03  loss: {l}", *EVERY
        )
        + "10/09 12:20:00 - mmengine - INFO - Iter(val) [5/5]    mIoU: 30.12  mAcc: 40.5\n",
        {"last_step": 40, "total_steps": 40, "ended": "finished", "runs": 1},
        {
            "loss": (40, (1, loss(1)), (40, loss(40))),
            "eval_miou": (1, (40, 30.12), (40, 30.12)),
        },
    ),
    "means of an epoch": (
        lines("epoch 001: {i} / 40 loss={l}, num_updates={i}, lr=0.1, gnorm=2.5", *EVERY)
        + "valid | epoch 001 | valid on 'valid' subset | loss 2.5 | ppl 4.6 | num_updates 40\n"
        + "train | epoch 001 | loss 2.9 | ppl 6.1 | num_updates 40 | lr 0.1 | gnorm 2.4\n",
        {"last_step": 40},
        {"loss": (40, (1, loss(1)), (40, loss(40))), "eval_loss": (1, (40, 2.5), (40, 2.5))},
    ),
    "lightning": (
        "".join(
            bar(i, 50, f", v_num=0, train_loss={loss(i)}", f"Epoch {e}: ")
            for e in (0, 1)
            for i in range(0, 51, 10)
        )
        + bar(50, 50, ", v_num=0, train_loss=2.0, val_loss=1.5", "Epoch 1: ")
        + "\n`Trainer.fit` stopped: `max_epochs=2` reached.\n",
        {"last_step": 100, "ended": "finished"},
        {"eval_loss": (1, (100, 1.5), (100, 1.5))},
    ),
    "keras without bars": (
        "".join(
            f"Epoch {e}/5\n100/100 - 3s - 30ms/step - loss: {loss(e)} - val_loss: 1.{e}\n"
            for e in (1, 2, 3)
        ),
        {"last_step": 300, "total_steps": 500, "ended": "running", "format": "keras"},
        {"loss": (3, (100, 2.98), (300, 2.94)), "eval_loss": (3, (100, 1.1), (300, 1.3))},
    ),
    "xgboost": (
        lines("[{i}]\ttrain-logloss:{l}\teval-logloss:{e}", *EVERY),
        {"last_step": 40, "ended": "running"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (40, (1, 3.08), (40, 2.3))},
    ),
    "lightgbm": (
        lines("[{i}]\ttraining's binary_logloss: {l}\tvalid_1's binary_logloss: {e}", *EVERY)
        + "Early stopping, best iteration is:\n"
        + lines("[{i}]\ttraining's binary_logloss: {l}\tvalid_1's binary_logloss: {e}", 30),
        {"last_step": 40, "ended": "finished", "runs": 1},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (40, (1, 3.08), (40, 2.3))},
    ),
    "catboost": (
        lines("{i}:\tlearn: {l}\ttest: {e}\tbest: {e} ({i})\ttotal: 1.2s\tremaining: 5.1s", *EVERY)
        + "\nbestTest = 2.3\nbestIteration = 40\n",
        {"last_step": 40, "ended": "finished"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (40, (1, 3.08), (40, 2.3))},
    ),
    "ultralytics": (
        "".join(
            "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
            + "".join(
                f"\r      {e}/3      2.61G      {loss(e + n / 50):.3f}      3.2      1.5         25"
                f"        640: {2 * n:3d}%|██| {n}/50 [00:10<00:10,  5.1it/s]"
                for n in (0, 25, 50)
            )
            + "\n   Class     Images  Instances     Box(P          R      mAP50  mAP50-95): 100%|█|"
            " 4/4 [00:01<00:00,  2.5it/s]\n"
            f"                   all        128        929      0.64       0.53     0.{e}     0.4\n"
            for e in (1, 2, 3)
        )
        + "\n3 epochs completed in 0.010 hours.\n",
        {"last_step": 3, "total_steps": 3, "ended": "finished"},
        {"loss": (3, (1, 2.96), (3, 2.92)), "eval_map50": (3, (1, 0.1), (3, 0.3))},
    ),
    "seconds since the start": (
        "epoch,time,train/box_loss,val/box_loss,lr/pg0\n"
        + lines("{i},{i}2.5,{l},{e},0.01", *EVERY),
        {"last_step": 40, "format": "csv"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "time": (40, (1, 12.5), (40, 402.5))},
    ),
    "rllib": (
        lines(
            "Result for PPO_x:\n  episode_reward_mean: {i}.5\n  info:\n    total_loss: {l}\n"
            "  timesteps_total: {i}000\n",
            *EVERY,
        ),
        {"last_step": 40_000},
        {"reward": (40, (1000, 1.5), (40_000, 40.5)), "loss": (40, (1000, 2.98), (40_000, 2.2))},
    ),
    "composer": (
        lines("[batch={i}/100]:\n\t Train time/epoch: 0\n\t Train loss/train/total: {l}", *EVERY),
        {"last_step": 40, "total_steps": 100},
        {"loss": (40, (1, 2.98), (40, 2.2))},
    ),
    "mlperf": (
        "".join(
            ':::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", '
            f'"key": "eval_accuracy", "value": 0.{e}, "metadata": {{"epoch_num": {e}}}}}\n'
            for e in (1, 2, 3)
        )
        + ':::MLLOG {"key": "run_stop", "value": null, "metadata": {"status": "success"}}\n',
        {"ended": "finished"},
        {"eval_accuracy": (3, (1, 0.1), (3, 0.3))},
    ),
    "allennlp": (
        "".join(
            f"2022-09-19 21:40:07,600 - INFO - allennlp.training.trainer - Epoch {e}/2\n"
            "2022-09-19 21:40:07,600 - INFO - allennlp.training.tensorboard_writer -         "
            "          Training |  Validation\n"
            "2022-09-19 21:40:07,600 - INFO - allennlp.training.tensorboard_writer - "
            f"loss          |     {loss(e)} |     0.{e}\n"
            "2022-09-19 21:40:07,603 - INFO - allennlp.training.tensorboard_writer - "
            "cpu_memory_MB |  6759.232  |       N/A\n"
            for e in (0, 1, 2)
        ),
        {"last_step": 2, "total_steps": 2, "ended": "finished"},
        {"loss": (3, (0, 3.0), (2, 2.96)), "eval_loss": (3, (0, 0.0), (2, 0.2))},
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
    "paddle": (
        lines(
            "[2022/01/01 10:00:00] ppcls INFO: [Train][Epoch 1/2][Iter: {i}/50]lr(Momentum): 0.1, "
            "CELoss: {l}, loss: {l}, batch_cost: 0.25s, ips: 250.1 samples/s, eta: 0:10:00",
            *EVERY,
        )
        + "[2022/01/01 10:00:59] ppcls INFO: [Eval][Epoch 1][Avg]CELoss: 1.5, loss: 1.5\n",
        {"last_step": 40, "total_steps": 100},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "learning_rate": (40, (1, 0.1), (40, 0.1)),
            "eval_loss": (1, (40, 1.5), (40, 1.5)),
        },
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
    "fastai": (
        "epoch     train_loss  valid_loss  accuracy  time    \n"
        + lines("{i}         {l}      {e}      0.612345  00:12", *EVERY),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (40, (1, 3.08), (40, 2.3))},
    ),
    "rsl-rl": (
        "".join(
            f"{'#' * 80}\n                      \x1b[1m Learning iteration {i}/500 \x1b[0m\n\n"
            "                       Computation: 29696 steps/s (collection: 2.8s, learning 0.5s)\n"
            f"                    Mean surrogate loss: {loss(i)}\n"
            f"                            Mean reward: {i}.5\n{'-' * 80}\n"
            f"                        Total timesteps: {1536 * i}\n"
            "                         Iteration time: 3.31s\n\n"
            for i in EVERY
        ),
        {"last_step": 40, "total_steps": 500, "ended": "running", "runs": 1},
        {"loss": (40, (1, 2.98), (40, 2.2)), "reward": (40, (1, 1.5), (40, 40.5))},
    ),
    "ignite": (
        lines("Epoch[1], Iter[{i}] Loss: {l}", *EVERY)
        + "Training Results - Epoch[1] Avg accuracy: 0.97 Avg loss: 0.09\n"
        + "Validation Results - Epoch[1] Avg accuracy: 0.96 Avg loss: 0.08\n",
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (1, (40, 0.08), (40, 0.08))},
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
