"""PaddlePaddle's many libraries, and MXNet with Gluon."""

from __future__ import annotations

import pytest

from support.logs import Log, check, lines, loss

C = "[2022/01/01 10:00:00] ppcls INFO: "
D = "[01/01 10:00:00] ppdet.engine INFO: "
N = "[2023-01-01 10:00:00,123] [    INFO] - "
ROOT = "INFO:root:"


def tensors(e: int) -> str:
    """What `train_from_dataset` prints of the tensors that it fetches."""
    return f"2021-02-22 02:20:0{e},914 - INFO - Epoch: {e}, Running Dataset Begin.\n" + "".join(
        f"Epoch {e} Var {name}\tvar_{name}.tmp_0\t  - place: CPUPlace\n  - shape: [1]\n"
        f"  - layout: NCHW\n  - dtype: float\n  - data: [{value}]\n"
        for i in range(3)
        for name, value in (("cost", loss(e * 5 + i)), ("auc", f"0.7{i}"))
    )


LOGS: dict[str, Log] = {
    "paddleclas": (
        "".join(
            f"{C}[Train][Epoch {e}/3][Iter: {i}/50]lr(Piecewise): 0.10000000, top1: 0.5, "
            f"CELoss: 9.5, loss: {loss(e * 50 + i)}, batch_cost: 0.25s, ips: 250.1 samples/s\n"
            for e in (1, 2)
            for i in (0, 10, 40)
        )
        + f"{C}[Train][Epoch 2/3][Avg]top1: 0.5, CELoss: 2.1, loss: 2.1\n"
        f"{C}[Eval][Epoch 2][Iter: 0/10]CELoss: 1.5, loss: 1.5, top1: 0.6, ips: 100 images/sec\n"
        f"{C}[Eval][Epoch 2][Avg]CELoss: 1.51, loss: 1.51, top1: 0.62, top5: 0.81\n"
        f"{C}[Eval][Epoch 2][best metric: 0.62]\n{C}Already save model in ./output/x/epoch_2\n",
        {"last_step": 90, "total_steps": 150, "ended": "running", "runs": 1},
        {
            "loss": (6, (0, 2.0), (90, 0.2)),
            "learning_rate": (6, (0, 0.1), (90, 0.1)),
            "eval_loss": (2, (90, 1.5), (90, 1.51)),
            "eval_accuracy": (2, (90, 0.6), (90, 0.62)),
        },
    ),
    "paddleclas of old": (
        "".join(
            f"{C}epoch:{e}   train step:{i}    lr: 0.100000, loss: {loss(e * 50 + i):7.4f} "
            "top1: 0.0117 top5: -0.0234 batch_cost: 0.28188 s, ips: 908.1 samples/sec, "
            "eta: 0:10:00\n"
            for e in (0, 1)
            for i in (0, 10, 40)
        )
        + f"{C}END epoch:1   train loss: 2.1 top1: 0.5 batch_cost: 0.2 s, batch_cost_sum: 21.7 s,\n"
        f"{C}epoch:1   valid step:0     loss: 1.5 top1: 0.6 batch_cost: 0.5 s\n",
        {"last_step": 40, "runs": 1},
        {"loss": (6, (0, 3.0), (110, 1.2)), "eval_loss": (1, (110, 1.5), (110, 1.5))},
    ),
    "paddledetection": (
        "".join(
            f"{D}Epoch: [{e}] [{i:3d}/100] learning_rate: 0.000133 loss_cls: 0.5 loss: "
            f"{loss(e * 50 + i / 10)} eta: 1:00:00 batch_cost: 0.2500 data_cost: 0.0010 "
            "ips: 32.1000 images/s\n"
            for e in (0, 1)
            for i in (0, 20, 80)
        )
        + f"{D}Eval iter: 0\n Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | "
        f"maxDets=100 ] = 0.374\n{D}Best test bbox ap is 0.374.\n",
        {"last_step": 180, "ended": "running", "runs": 1},
        {
            "loss": (6, (0, 3.0), (180, 1.84)),
            "learning_rate": (6, (0, 1.33e-4), (180, 1.33e-4)),
            "eval_ap": (1, (180, 0.374), (180, 0.374)),
        },
    ),
    "paddlenlp": (
        lines(
            f"{N}loss: {{l}}, learning_rate: 3e-05, global_step: {{i}}, interval_runtime: 2.5, "
            "interval_samples_per_second: 64.1, interval_steps_per_second: 4.1, epoch: 0.{i:02d}"
        )
        + f"{N}***** Running Evaluation *****\n{N}  Num examples = 1000\n"
        f"{N}eval_loss: 1.5, eval_accuracy: 0.9, eval_runtime: 2.1, epoch: 1.0\n"
        f"{N}Training completed. \n",
        {"last_step": 40, "ended": "finished"},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "learning_rate": (40, (1, 3e-5), (40, 3e-5)),
            "samples_per_second": (40, (1, 64.1), (40, 64.1)),
            "eval_loss": (1, (40, 1.5), (40, 1.5)),
        },
    ),
    "paddlenlp's examples": (
        lines("global step {i}, epoch: 1, batch: {i}, loss: {l}, speed: 4.12 step/s")
        + "eval loss: 1.5, accu: 0.91\n",
        {"last_step": 40},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "steps_per_second": (40, (1, 4.12), (40, 4.12)),
            "eval_loss": (1, (40, 1.5), (40, 1.5)),
        },
    ),
    "paddleocr": (
        lines(
            "[2022/01/01 10:00:00] ppocr INFO: epoch: [1/500], global_step: {i}, lr: 0.001000, "
            "acc: 0.1, norm_edit_dis: 0.2, loss: {l}, avg_batch_cost: 0.2 s, ips: 500.1 samples/s"
        ),
        {"last_step": 40, "ended": "running"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "learning_rate": (40, (1, 0.001), (40, 0.001))},
    ),
    "paddleseg": (
        lines(
            "2022-01-01 10:00:00 [INFO]\t[TRAIN] epoch: 1, iter: {i}/1000, loss: {l}, "
            "lr: 0.009919, batch_cost: 0.2, reader_cost: 0.01, ips: 20.1 samples/sec | ETA 00:10:00"
        )
        + "2022-01-01 10:01:00 [INFO]\t[EVAL] #Images: 76 mIoU: 0.6712 Acc: 0.9123 Kappa: 0.81\n",
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_miou": (1, (40, 0.6712), (40, 0.6712))},
    ),
    "paddle's fit": (
        "".join(
            f"Epoch {e}/3\nstep  10/938 [......] - loss: 2.1 - acc: 0.2 - ETA: 20s - 22ms/step\r"
            f"step 938/938 [============] - loss: {loss(e)} - acc: 0.9 - 20ms/step\nEval begin...\n"
            f"step 157/157 [============] - loss: 1.{e} - acc: 0.95 - 9ms/step\nEval samples: 100\n"
            for e in (1, 2, 3)
        ),
        {"last_step": 2814, "total_steps": 2814, "ended": "finished"},
        {
            "loss": (3, (938, 2.98), (2814, 2.94)),
            "eval_loss": (3, (938, 1.1), (2814, 1.3)),
            "eval_accuracy": (3, (938, 0.95), (2814, 0.95)),
        },
    ),
    "tensors that paddle's executor prints": (
        "".join(tensors(e) for e in (0, 1, 2)),
        {"last_step": 2, "ended": "running"},
        {"loss": (9, (0, 3.0), (2, 2.76)), "auc": (9, (0, 0.7), (2, 0.72))},
    ),
    "mxnet": (
        "".join(
            f"{ROOT}Epoch[{e}] Batch [{i - 20}-{i}]\tSpeed: 1000.1 samples/sec\t"
            f"accuracy=0.{i + 10}\tcross-entropy={loss(e * 60 + i)}\n"
            for e in (0, 1)
            for i in (20, 40, 60)
        )
        + f"{ROOT}Epoch[1] Train-accuracy=0.95\n{ROOT}Epoch[1] Time cost=12.1\n"
        f'{ROOT}Saved checkpoint to "x-0002.params"\n{ROOT}Epoch[1] Validation-accuracy=0.96\n'
        f"{ROOT}Epoch[1] Validation-cross-entropy=1.5\n",
        {"last_step": 60, "ended": "running", "runs": 1},
        {
            "loss": (6, (20, 2.6), (120, 0.6)),
            "accuracy": (6, (20, 0.3), (120, 0.7)),
            "samples_per_second": (6, (20, 1000.1), (120, 1000.1)),
            "eval_accuracy": (1, (120, 0.96), (120, 0.96)),
            "eval_loss": (1, (120, 1.5), (120, 1.5)),
        },
    ),
    "gluoncv's detectors": (
        "".join(
            f"[Epoch {e}][Batch {i}], Speed: 100.1 samples/sec, CrossEntropy={loss(e * 200 + i)}, "
            "SmoothL1=1.5\n"
            for e in (0, 1)
            for i in (100, 200)
        )
        + "[Epoch 1] Training cost: 100.1, CrossEntropy=2.1, SmoothL1=1.4\n",
        {"last_step": 200, "runs": 1},
        {"loss": (4, (100, 1.0), (400, -5.0))},
    ),
    "gluonnlp": (
        "".join(
            f"[Epoch {e} Batch {i}/1000] loss={loss(e * 10 + i / 100)}, lr=0.00001, "
            "metrics:accuracy:0.5\n"
            for e in (1, 2)
            for i in (100, 200)
        )
        + "Now we are doing evaluation on dev with gpu(0).\nvalidation metrics:accuracy:0.9\n",
        {"last_step": 1200, "ended": "running"},
        {"loss": (4, (100, 2.78), (1200, 2.56)), "eval_accuracy": (1, (1200, 0.9), (1200, 0.9))},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_is_printed(name: str) -> None:
    check(LOGS[name])
