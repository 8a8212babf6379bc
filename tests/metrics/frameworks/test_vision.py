"""Ultralytics, timm, Swin, the ImageNet example, nnU-Net, k-diffusion and diffusers."""

from __future__ import annotations

import pytest

from support.logs import EVERY, Log, bar, check, lines, loss

HEAD = "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
SCORES = (
    "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): "
)
ARGUMENTS = (
    "engine/trainer: task=detect, mode=train, model=yolov8n.pt, data=coco.yaml, epochs=3, "
    "time=None, patience=50, batch=16, imgsz=640, save=True, workers=8, lr0=0.01, lrf=0.01, "
    "momentum=0.937, weight_decay=0.0005, warmup_epochs=3.0, box=7.5, cls=0.5, dfl=1.5\n"
)
S = "[2022-01-01 10:00:00 swin_tiny] (main.py 222): INFO "


def ultralytics(e: int, total: int) -> str:
    return (
        HEAD
        + "".join(
            f"\r      {e}/{total}      2.61G      {loss(e + n / 50):.3f}      3.2      1.5         "
            f"25        640: {2 * n:3d}%|██| {n}/50 [00:10<00:10,  5.1it/s]"
            for n in (0, 25, 50)
        )
        + f"\n\r{SCORES}  0%|          | 0/4 [00:00<?, ?it/s]"
        + f"\r{SCORES}100%|█| 4/4 [00:01<00:00,  2.5it/s]\n"
        f"                   all        128        929      0.64       0.53     0.{e}     0.4\n"
    )


def new_bars(e: int) -> str:
    return (
        HEAD
        + "".join(
            f"\x1b[K      {e}/5      2.61G      {loss(e + n / 50):.3f}      3.2      1.5         "
            f"25        640: {2 * n:3d}% ━━━━━────── {n}/50 5.1it/s 10.0s<2.1s\r"
            for n in (0, 25)
        )
        + f"\x1b[K      {e}/5      2.61G      {loss(e + 1):.3f}      3.2      1.5         25       "
        f" 640: 100% ━━━━━━━━━━━━ 50/50 5.1it/s 10.0s\n\x1b[K{SCORES}100% ━━━━━━━━━ 4/4 2.5it/s\n"
        f"                   all        128        929      0.64       0.53     0.{e}     0.4\n"
    )


def yolov5(e: int) -> str:
    return (
        "     Epoch   gpu_mem       box       obj       cls    labels  img_size\n"
        f"       {e}/2     3.04G   {loss(e):.5f}   0.05512   0.01712        25       640: 100%|██| "
        "50/50 [00:10<00:10,  5.1it/s]\n"
        f"                 all        128        929      0.64       0.53     0.{e}     0.4\n"
    )


def timm(e: int) -> str:
    return (
        "".join(
            f"Train: {e} [{i:4d}/51 ({2 * i:3d}%)]  Loss: {loss(i):.3f} (3.0)  Time: 0.250s, "
            f"1012.12/s  (0.260s,  984.61/s)  LR: 5.000e-0{5 - e}  Data: 0.010 (0.015)\n"
            for i in range(0, 51, 10)
        )
        + "Test: [   0/49]  Time: 1.3 (1.3)  Loss:  3.81 (3.81)  Acc@1:  20.1 ( 20.1)\n"
        f"Test: [  49/49]  Time: 0.1 (0.2)  Loss:   4.021 ( 4.0{e})  Acc@1:  12.156 ( 11.1{e})\n"
        f"Current checkpoints:\n ('./output/checkpoint-{e}.pth.tar', 11.1{e})\n\n"
    )


def nnunet(e: int) -> str:
    at = f"2024-01-01 10:{e:02d}:"
    return (
        f"{at}00.123456:  \n{at}00.123456: Epoch {e} \n{at}00.123456: Current learning rate: "
        f"0.0{9 - e} \n{at}30.123456: train_loss -0.{e}5 \n{at}30.123456: val_loss -0.{e}4 \n"
        f"{at}30.123456: Pseudo dice [np.float32(0.8{e}), np.float32(0.7)] \n"
        f"{at}30.123456: Epoch time: 30.12 s \n"
        f"{at}30.123456: Yayy! New best EMA pseudo Dice: 0.8 \n"
    )


LOGS: dict[str, Log] = {
    "ultralytics": (
        ARGUMENTS
        + "Starting training for 3 epochs...\n"
        + "".join(ultralytics(e, 3) for e in (1, 2, 3))
        + "\n3 epochs completed in 0.010 hours.\n\nValidating runs/x/best.pt...\n"
        "                   all        128        929      0.66       0.55     0.61     0.45\n"
        "                person        128        254       0.8       0.67     0.77      0.54\n",
        {"last_step": 3, "total_steps": 3, "ended": "finished", "runs": 1},
        {"loss": (3, (1, 2.96), (3, 2.92)), "eval_map50": (4, (1, 0.1), (3, 0.61))},
    ),
    "ultralytics' own bars": (
        "".join(new_bars(e) for e in (1, 2, 3)),
        {"last_step": 3, "total_steps": 5, "ended": "running"},
        {"loss": (3, (1, 2.96), (3, 2.92)), "eval_map50-95": (3, (1, 0.4), (3, 0.4))},
    ),
    "masks and boxes": (
        ultralytics(1, 3)
        + "                   all   128   929   0.6   0.5   0.4   0.3   0.55  0.45  0.35  0.25\n",
        {"last_step": 1, "ended": "running"},
        {"eval_map50": (2, (1, 0.1), (1, 0.4)), "eval_map50_m": (1, (1, 0.35), (1, 0.35))},
    ),
    "a classifier": (
        "      Epoch    GPU_mem       loss  Instances       Size\n"
        "        1/3     0.5G        2.5         16        224: 100%|█| 50/50 [00:10<00:00, 5it/s]"
        "\n               classes   top1_acc   top5_acc: 100%|█| 4/4 [00:01<00:00,  2.5it/s]\n"
        "                   all      0.812       0.97\n",
        {"last_step": 1, "total_steps": 3},
        {"loss": (1, (1, 2.5), (1, 2.5)), "eval_accuracy": (1, (1, 0.812), (1, 0.812))},
    ),
    "yolov5": (
        "".join(yolov5(e) for e in (0, 1, 2)) + "\n3 epochs completed in 0.010 hours.\n",
        {"last_step": 2, "ended": "finished"},
        {"loss": (3, (0, 3.0), (2, 2.96)), "obj_loss": (3, (0, 0.05512), (2, 0.05512))},
    ),
    "results.csv of yolov5": (
        # Every name is padded to a width.
        "               epoch,      train/box_loss,metrics/mAP_0.5:0.95,        val/box_loss,"
        "               x/lr0\n"
        + lines("                   {i},        {l},         0.4,          {e},          0.003"),
        {"last_step": 40, "format": "csv"},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "eval_loss": (40, (1, 3.08), (40, 2.3)),
            "learning_rate": (40, (1, 0.003), (40, 0.003)),
        },
    ),
    "results.csv, with the seconds since the start": (
        "epoch,time,train/box_loss,val/box_loss,lr/pg0\n" + lines("{i},{i}2.5,{l},{e},0.01"),
        {"last_step": 40, "format": "csv"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "time": (40, (1, 12.5), (40, 402.5))},
    ),
    "timm": (
        timm(0) + timm(1) + "*** Best metric: 11.11 (epoch 1)\n",
        {"ended": "finished", "last_step": 101},
        {
            "loss": (12, (0, 3.0), (101, 2.0)),
            "learning_rate": (12, (0, 5e-5), (101, 5e-4)),
            "eval_loss": (4, (50, 3.81), (101, 4.01)),
            "eval_accuracy": (4, (50, 20.1), (101, 11.11)),
        },
    ),
    "summary.csv of timm": (
        "epoch,train_loss,eval_loss,eval_top1,eval_top5,lr\n"
        + lines("{i},{l},{e},{i}.5,30.1,0.05"),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_accuracy": (40, (1, 1.5), (40, 40.5))},
    ),
    "swin": (
        "".join(
            f"{S}Train: [{e}/300][{i}/625]\teta 0:10:00 lr 0.000{e}01\t wd 0.0500\ttime 0.2501 "
            f"(0.2601)\tloss {loss(e * 6 + i / 100)} (6.9)\tgrad_norm 1.5 (1.6)\tmem 11200MB\n"
            for e in (0, 1)
            for i in (0, 300, 620)
        )
        + f"{S}EPOCH 1 training takes 0:10:00\n"
        f"{S}Test: [90/98]\tTime 1.2 (1.2)\tLoss 1.5 (1.6)\tAcc@1 70.1 (69.1)\tMem 11200MB\n"
        f"{S} * Acc@1 71.5 Acc@5 91.1\n",
        {"last_step": 1245, "total_steps": 187_500, "ended": "running"},
        {
            "loss": (6, (0, 3.0), (1245, 2.756)),
            "grad_norm": (6, (0, 1.5), (1245, 1.5)),
            "eval_accuracy": (2, (1245, 69.1), (1245, 71.5)),
        },
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
    "nnunet": (
        "".join(nnunet(e) for e in range(5)) + "2024-01-01 10:59:30.123456: Training done.\n",
        {"last_step": 4, "ended": "finished", "runs": 1},
        {
            "loss": (5, (0, -0.05), (4, -0.45)),
            "eval_loss": (5, (0, -0.04), (4, -0.44)),
            "learning_rate": (5, (0, 0.09), (4, 0.05)),
            "dice": (5, (0, 0.8), (4, 0.84)),
        },
    ),
    "nnunet's first version": (
        "".join(
            f"2021-01-01 10:{e:02d}:00.1: \nepoch:  {e}\n2021-01-01 10:{e:02d}:30.1: train loss : "
            f"-0.{e}5\n2021-01-01 10:{e:02d}:30.1: validation loss: -0.{e}4\n"
            f"2021-01-01 10:{e:02d}:30.1: Average global foreground Dice: [0.8{e}, 0.7]\n"
            f"2021-01-01 10:{e:02d}:30.1: lr: 0.009\n"
            f"2021-01-01 10:{e:02d}:30.1: This epoch took 30 s\n"
            for e in range(5)
        ),
        {"last_step": 4, "ended": "running"},
        {
            "loss": (5, (0, -0.05), (4, -0.45)),
            "eval_loss": (5, (0, -0.04), (4, -0.44)),
            "learning_rate": (5, (0, 0.009), (4, 0.009)),
        },
    ),
    "k-diffusion": (
        "".join(
            f"\r 10%|█         | {i}/1000 [00:10<01:00,  2.10it/s]\n"
            f"Epoch: 0, step: {i}, loss: {loss(i)}\n"
            for i in range(0, 100, 25)
        ),
        {"last_step": 75, "ended": "running"},
        {"loss": (4, (0, 3.0), (75, 1.5))},
    ),
    "diffusers": (
        "01/01/2023 10:00:00 - INFO - __main__ - ***** Running training *****\n"
        "01/01/2023 10:00:00 - INFO - __main__ -   Num Epochs = 72\n"
        "01/01/2023 10:00:00 - INFO - __main__ -   Total optimization steps = 15000\n"
        + "".join(bar(i, 15000, f", lr=1e-5, step_loss={loss(i)}", "Steps: ") for i in EVERY)
        + "\n01/01/2023 10:00:00 - INFO - __main__ - Running validation... \n",
        {"last_step": 40, "total_steps": 15_000, "ended": "running"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "learning_rate": (40, (1, 1e-5), (40, 1e-5))},
    ),
    "epochs told before bars of the whole run": (
        "epoch 1/10\n"
        + "".join(bar(i, 400, f", avr_loss={loss(i)}", "steps: ") for i in range(1, 41))
        + "\nsaving checkpoint: x.safetensors\n\nepoch 2/10\n"
        + bar(41, 400, f", avr_loss={loss(41)}", "steps: "),
        {"last_step": 41, "total_steps": 400, "ended": "running"},
        {"loss": (41, (1, 2.98), (41, 2.18))},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_is_printed(name: str) -> None:
    check(LOGS[name])
