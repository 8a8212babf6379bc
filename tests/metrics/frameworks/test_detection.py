"""OpenMMLab (mmcv, mmengine), detectron2, DETR, and COCO's scores."""

from __future__ import annotations

import json

import pytest

from support.logs import Log, check, lines, loss, read

E = "2023/06/05 20:10:13 - mmengine - INFO - "
M = "2021-05-31 13:38:30,343 - mmdet - INFO - "
COCO = """\
Accumulating evaluation results...
 Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.374
 Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ] = 0.581
 Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = -1.000
 Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ] = 0.311
"""


def mmengine(epochs: int) -> str:
    text = f"{E}Config:\nmax_epochs = 3\ntrain_cfg = dict(max_epochs=3, val_interval=1)\n"
    for e in range(1, epochs + 1):
        text += "".join(
            f"{E}Epoch(train)   [{e}][{i:3d}/50]  base_lr: 1.0e-04 lr: 2.0000e-04  eta: 4:59:11  "
            f"time: 0.9787  data_time: 0.0130  memory: 8000  grad_norm: 35.{e}  loss: {loss(e)}  "
            "loss_cls: 0.5  loss_bbox: 0.4\n"
            for i in (25, 50)
        )
        text += (
            f"{E}Saving checkpoint at {e} epochs\n"
            f"{E}Epoch(val)   [{e}][ 50/100]    eta: 0:00:10  time: 0.1  data_time: 0.01\n"
            f"{E}Evaluating bbox...\n{E}bbox_mAP_copypaste: 0.38{e} 0.590 0.414 0.221 0.427 0.499\n"
            f"{E}Epoch(val) [{e}][100/100]    coco/bbox_mAP: 0.38{e}  time: 0.04\n"
        )
    return text


def mmcv(e: int) -> str:
    return (
        "".join(
            f"{M}Epoch [{e}][{i}/100]\tlr: 1.978e-02, eta: 5:00:00, time: 0.250, data_time: 0.010, "
            f"memory: 3000, loss_cls: 0.5, acc: 90.1, loss: {loss(i / 10)}, grad_norm: 3.{e}\n"
            for i in (50, 100)
        )
        + f"{M}Saving checkpoint at {e} epochs\n{M}Evaluating bbox...\n"
        f"{M}Epoch(val) [{e}][50]\tbbox_mAP: 0.2{e}, bbox_mAP_50: 0.4, "
        "bbox_mAP_copypaste: 0.2 0.4 0.2 0.1 0.2 0.3\n"
    )


def mmcv_json(e: int) -> str:
    rows = [
        {"mode": "train", "epoch": e, "iter": i, "lr": 0.02, "loss_cls": 0.5, "loss": loss(i / 10)}
        for i in (50, 100)
    ]
    rows.append({"mode": "val", "epoch": e, "iter": 60, "lr": 0.02, "bbox_mAP": 0.2 + e / 100})
    return "".join(json.dumps(row) + "\n" for row in rows)


def detectron2(i: int) -> str:
    return (
        f"[03/01 10:00:{i % 60:02d} d2.utils.events]:  eta: 1:10:11  iter: {i}  total_loss: "
        f"{loss(i / 20)}  loss_cls: 0.9  loss_box_reg: 0.5    time: 0.2501  last_time: 0.2400  "
        "data_time: 0.0100  last_data_time: 0.0050   lr: 0.0019  max_mem: 2740M\n"
    )


BOXES = """\
[03/01 10:10:00 d2.evaluation.coco_evaluation]: Evaluation results for bbox: 
|   AP   |  AP50  |  AP75  |  APs   |
|:------:|:------:|:------:|:------:|
| 37.123 | 58.201 | 40.118 | 21.132 |
[03/01 10:10:00 d2.evaluation.coco_evaluation]: Per-category bbox AP: 
| category   | AP     | category   | AP     |
|:-----------|:-------|:-----------|:-------|
| person     | 52.1   | bicycle    | 30.2   |
"""  # noqa: W291
HOOKS = (
    "[03/01 10:10:00 d2.engine.hooks]: Overall training speed: 398 iterations in 0:01:40 (0.25 s / "
    "it)\n[03/01 10:10:00 d2.engine.hooks]: Total training time: 0:02:00 (0:00:20 on hooks)\n"
)
LOGS: dict[str, Log] = {
    "mmengine by epochs": (
        mmengine(2),
        {"last_step": 100, "total_steps": 150, "ended": "running", "runs": 1},
        {
            "loss": (4, (25, 2.98), (100, 2.96)),
            "learning_rate": (4, (25, 2e-4), (100, 2e-4)),
            "grad_norm": (4, (25, 35.1), (100, 35.2)),
            "eval_coco/bbox_map": (2, (50, 0.381), (100, 0.382)),
        },
    ),
    "mmengine to its last epoch": (mmengine(3), {"last_step": 150, "ended": "finished"}, {}),
    "mmengine by iterations": (
        lines(
            f"{E}Iter(train) [{{i:5d}}/80000]  base_lr: 9e-3 lr: 9.9e-03  eta: 10:00:00  "
            "memory: 5000  loss: {l}  decode.loss_ce: 0.9  decode.acc_seg: 60.1"
        )
        + f"{E}Iter(val) [ 50/500]    eta: 0:00:30  time: 0.05\n"
        + f"{E}Iter(val) [500/500]    aAcc: 95.1  mIoU: 70.2  mAcc: 78.5  time: 0.05\n",
        {"last_step": 40, "total_steps": 80000, "ended": "running"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_miou": (1, (40, 70.2), (40, 70.2))},
    ),
    "mmengine's scalars": (
        # What an evaluation calls step is its epoch.
        "".join(
            json.dumps({"lr": 2e-4, "loss": loss(i), "epoch": 1 + i // 21, "iter": i, "step": i})
            + "\n"
            + (json.dumps({"coco/bbox_mAP": i / 100, "step": i // 20}) + "\n" if not i % 20 else "")
            for i in range(1, 41)
        ),
        {"last_step": 40, "runs": 1},
        {"loss": (40, (1, 2.98), (40, 2.2)), "coco/bbox_map": (2, (20, 0.2), (40, 0.4))},
    ),
    "mmcv by epochs": (
        f"{M}Start running, host: u@h, work_dir: /x\n{M}workflow: [('train', 1)], max: 12 epochs\n"
        + mmcv(1)
        + mmcv(2),
        {"last_step": 200, "total_steps": 1200, "ended": "running", "runs": 1},
        {
            "loss": (4, (50, 2.9), (200, 2.8)),
            "learning_rate": (4, (50, 0.01978), (200, 0.01978)),
            "eval_bbox_map": (2, (100, 0.21), (200, 0.22)),
        },
    ),
    "mmcv by iterations": (
        f"{M}workflow: [('train', 1)], max: 40000 iters\n"
        + lines(f"{M}Iter [{{i}}/40000]\tlr: 1e-02, eta: 5:00:00, time: 0.2, loss: {{l}}")
        + f"{M}Iter(val) [40]\taAcc: 0.9, mIoU: 0.55, mAcc: 0.66\n",
        {"last_step": 40, "total_steps": 40000},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_miou": (1, (40, 0.55), (40, 0.55))},
    ),
    "mmcv's json": (
        json.dumps({"env_info": "sys.platform: linux", "seed": 0, "epoch": 1})
        + "\n"
        + mmcv_json(1)
        + mmcv_json(2),
        {"runs": 1},
        {"loss": (4, (50, 2.9), (200, 2.8)), "eval_bbox_map": (2, (100, 0.21), (200, 0.22))},
    ),
    "detectron2": (
        "[03/01 10:00:00 d2.engine.train_loop]: Starting training from iteration 0\n"
        + "".join(detectron2(i) for i in range(19, 400, 20))
        + BOXES
        + HOOKS,
        {"last_step": 399, "ended": "finished"},
        {
            "loss": (20, (19, 2.981), (399, 2.601)),
            "learning_rate": (20, (19, 0.0019), (399, 0.0019)),
            "gpu_memory": (20, (19, 2740 * 2**20), (399, 2740 * 2**20)),
            "eval_ap": (1, (399, 37.123), (399, 37.123)),
            "eval_ap50": (1, (399, 58.201), (399, 58.201)),
        },
    ),
    "detectron2's json": (
        "".join(
            json.dumps({"iteration": i, "loss_cls": 0.9, "lr": 0.0019, "total_loss": loss(i / 20)})
            + "\n"
            for i in range(19, 400, 20)
        )
        + json.dumps({"bbox/AP": 37.1, "iteration": 399})
        + "\n",
        {"last_step": 399},
        {"loss": (20, (19, 2.981), (399, 2.601)), "bbox/ap": (1, (399, 37.1), (399, 37.1))},
    ),
    "detectron2's words after an error": (
        "".join(detectron2(i) for i in range(19, 100, 20))
        + "[03/01 10:00:00 d2.engine.train_loop]: ERROR: Exception during training:\n"
        'Traceback (most recent call last):\n  File "train_loop.py", line 149, in train\n'
        "    self.run_step()\nFloatingPointError: Loss became infinite or NaN at iteration=101!\n"
        "loss_dict = {'loss_cls': tensor(nan)}\n" + HOOKS,
        {"last_step": 99, "ended": "crashed"},
        {"loss": (5, (19, 2.981), (99, 2.901))},
    ),
    "metrics of DETR": (
        "".join(
            f"Epoch: [{e}]  [ {i:3d}/100]  eta: 0:01:00  lr: 0.000100  class_error: 80.1  loss: "
            f"{loss(i / 10)} (2.9)  loss_ce: 0.5 (0.6)  time: 0.25  data: 0.01  max mem: 3000\n"
            for e in (0, 1)
            for i in (0, 50, 99)
        )
        + "Epoch: [1] Total time: 0:01:00 (0.25 s / it)\n"
        "Averaged stats: lr: 0.000100  class_error: 80.5  loss: 2.4 (2.5)  loss_ce: 0.5 (0.6)\n"
        "Test:  [ 0/20]  eta: 0:00:10  loss: 1.9 (1.9)  acc1: 60.1 (60.1)  time: 0.5\n"
        "Test:  [19/20]  eta: 0:00:10  loss: 1.5 (1.7)  acc1: 70.1 (65.1)  time: 0.5\n"
        + COCO
        + "Training time 1:00:00\n",
        {"last_step": 199, "ended": "finished"},
        {
            "loss": (6, (0, 3.0), (199, 2.802)),
            "eval_loss": (2, (199, 1.9), (199, 1.7)),
            "eval_accuracy": (2, (199, 60.1), (199, 65.1)),
            "eval_ap": (1, (199, 0.374), (199, 0.374)),
            "eval_ap50": (1, (199, 0.581), (199, 0.581)),
            "eval_ar1": (1, (199, 0.311), (199, 0.311)),
        },
    ),
}


def test_absent_scores_are_left_out() -> None:
    assert "eval_aps" not in read(COCO).series


@pytest.mark.parametrize("name", LOGS)
def test_what_is_printed(name: str) -> None:
    check(LOGS[name])
