"""NVIDIA's DLLogger and MLPerf's log lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.logs import Log, check, loss

D = "DLL 2020-03-01 10:00:00.123456 - "


def dlll(step: Any, data: dict[str, float], kind: str = "LOG") -> str:
    event = {"timestamp": "1600000000.1", "elapsedtime": "12.5", "type": kind, "step": step}
    return f"DLLL {json.dumps({**event, 'data': data})}\n"


def mllog(key: str, value: Any, **metadata: Any) -> str:
    event = {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": key}
    return f":::MLLOG {json.dumps({**event, 'value': value, 'metadata': metadata})}\n"


def old(text: str) -> str:
    return f":::MLPv0.5.0 resnet 1541635744.5 (/x/y.py:12) {text}\n"


LOGS: dict[str, Log] = {
    "a last loss by another name": (
        f"{D}PARAMETER SEED : 42 max_steps : 20 \n"
        + "".join(
            f"{D}Training Epoch: 0 Training Iteration: {i}  average_loss : {loss(i)}  "
            f"learning_rate : 0.001 \n"
            for i in range(1, 20)
        )
        + f"{D}Training Epoch: 0 Training Iteration: 20  final_loss : 2.6 None\n"
        f"{D} e2e_train_time : 1428.9 s training_sequences_per_second : 1542.2 sequences/s "
        "final_loss : 2.6 None\n",
        {"last_step": 20, "total_steps": 20, "ended": "finished", "format": "dll"},
        {
            "loss": (20, (1, 2.98), (20, 2.6)),
            "learning_rate": (19, (1, 0.001), (19, 0.001)),
        },
    ),
    "iterations of each epoch": (
        "".join(
            f"{D}Epoch: {e} Iteration: {i}  train.compute_ips : 2500.1 images/s train.loss : "
            f"{loss(e * 40 + i)} None train.lr : 0.1 None train.data_time : 0.002 s\n"
            for e in (0, 1)
            for i in (9, 19, 29, 39)
        )
        + f"{D}Epoch: 1  train.loss : 5.1 None train.top1 : 3.1 %  val.top1 : 12.5 %\n"
        f"{D}Summary: train.loss : 5.0 None val.top1 : 12.6 % val.loss : 4.0 None\n",
        {"last_step": 39, "ended": "finished", "runs": 1},
        {
            "loss": (8, (9, 2.82), (79, 1.42)),
            "eval_accuracy": (2, (79, 0.125), (79, 0.126)),
            "samples_per_second": (8, (9, 2500.1), (79, 2500.1)),
        },
    ),
    "counts of an epoch": (
        f"{D}PARAMETER epochs : 5 batch_size : 32 \n"
        + "".join(
            f"{D}Epoch: {e} Iter: {i}/100  train_loss : {loss(e)} train_items/s : 20000.1 it/s \n"
            for e in (1, 2)
            for i in (50, 100)
        ),
        {"last_step": 200, "total_steps": 500, "ended": "running"},
        {"loss": (4, (50, 2.98), (200, 2.96))},
    ),
    "tuples": (
        "".join(
            f"{D}({e}, {i})  loss : {loss(e * 40 + i)}  lr : 0.1 \n"
            for e in (0, 1)
            for i in (10, 20, 30, 40)
        )
        + f"{D}(1, 40, 3)  val_loss : 2.9 \n{D}(1,)  val.loss : 2.4\n{D}()  val.loss : 2.5 \n",
        {"last_step": 40, "ended": "finished"},
        {"loss": (8, (10, 2.8), (80, 1.4)), "eval_loss": (2, (80, 2.4), (80, 2.5))},
    ),
    "json": (
        dlll("PARAMETER", {"lr": 0.1, "epochs": 2})
        + "".join(
            dlll([e, i], {"train.loss": loss(e * 40 + i), "train.lr": 0.1})
            for e in (0, 1)
            for i in range(0, 40, 10)
        )
        + dlll([1], {"val.loss": 2.1, "val.top1": 30.1})
        + 'DLLL {"type": "METADATA", "metric": "train.loss", "metadata": {"unit": null}}\n'
        + dlll([], {"val.top1": 30.2}),
        {"last_step": 30, "ended": "finished", "format": "dll"},
        {"loss": (8, (0, 3.0), (70, 1.6)), "eval_accuracy": (2, (70, 30.1), (70, 30.2))},
    ),
    "mlperf": (
        mllog("global_batch_size", 256)
        + mllog("run_start", None)
        + "".join(
            mllog("train_loss", loss(e), epoch_num=e, step_num=e * 100)
            + mllog("eval_accuracy", e / 10, epoch_num=e, lineno=4)
            for e in (1, 2, 3)
        )
        + mllog("run_stop", None, status="success"),
        {"last_step": 300, "ended": "finished", "format": "mllog"},
        {"loss": (3, (100, 2.98), (300, 2.94)), "eval_accuracy": (3, (100, 0.1), (300, 0.3))},
    ),
    "mlperf's statistics on the way": (
        mllog("run_start", None)
        + "".join(
            mllog("tracked_stats", {"throughput": 10.1, "train_loss": loss(i)}, step=i)
            for i in range(1, 10)
        )
        + mllog("eval_accuracy", 2.69, samples_count=24576),
        {"last_step": 9, "ended": "running"},
        {"loss": (9, (1, 2.98), (9, 2.82)), "eval_accuracy": (1, (9, 2.69), (9, 2.69))},
    ),
    "mlperf of old": (
        old("run_start")
        + "".join(
            old(f"train_epoch: {e}") + old(f'eval_accuracy: {{"epoch": {e}, "value": 0.{e}}}')
            for e in (1, 2, 3)
        )
        + old('run_stop: {"success": true}')
        + old("run_final"),
        {"ended": "finished"},
        {"eval_accuracy": (3, (1, 0.1), (3, 0.3))},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_is_printed(name: str) -> None:
    check(LOGS[name])
