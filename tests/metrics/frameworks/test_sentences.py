"""darknet, Deeplearning4j, StyleGAN, spaCy, and others whose lines have a form of their own."""

from __future__ import annotations

import pytest

from support.logs import EVERY, Log, bar, check, lines, loss

LOSS = (40, (1, 2.98), (40, 2.2))
DL4J = "01:46:44.695 [main] INFO org.deeplearning4j.optimize.listeners.ScoreIterationListener - "
REGION = (
    "v3 (iou loss, Normalizer: (iou: 0.07, cls: 1.00) Region 139 Avg (IOU: 0.2), count: 4, "
    "class_loss = 49152.0, iou_loss = 10.5, total_loss = 60151.9 \n"
)
LOGS: dict[str, Log] = {
    "darknet": (
        "".join(
            f"{REGION}\n {i}: {loss(i)}, 3.500000 avg loss, 0.001000 rate, 4.25 seconds, "
            f"{64 * i} images, 3.1 hours left\nLoaded: 0.000028 seconds\n"
            for i in EVERY
        ),
        {"last_step": 40},
        {"loss": LOSS, "learning_rate": (40, (1, 0.001), (40, 0.001))},
    ),
    "deeplearning4j": (
        lines(DL4J + "Score at iteration {i} is {l}")
        + "02:13:51.152 [main] INFO app.Train - Training is Done\n",
        {"last_step": 40, "ended": "finished"},
        {"loss": LOSS},
    ),
    "stylegan": (
        "Training for 25000 kimg...\n\n"
        + lines(
            "tick {i}     kimg {i}.0      time 12m 16s      sec/tick 648.1   sec/kimg 107.73  "
            "maintenance 30.5   cpumem 3.80   gpumem 10.22  augment 0.000"
        )
        + "^C\n",
        {"last_step": 40, "ended": "interrupted"},
        {"step_time": (40, (1, 648.1), (40, 648.1))},
    ),
    "marian": (
        "".join(
            f"[2019-08-17 13:28:13] Ep. 2 : Up. {100 * i} : Sen. 33,109,174 : Cost {loss(i)} : "
            "Time 339.26s : 28654.38 words/s : L.r. 5.3719e-05\n"
            for i in EVERY
        )
        + "[2019-08-17 13:34:11] [valid] Ep. 2 : Up. 4000 : ce-mean-words : 1.565 : new best\n"
        "[2019-08-17 13:37:31] [valid] Ep. 2 : Up. 4000 : translation : 32.09 : stalled 7 times "
        "(last best: 32.13)\n",
        {"last_step": 4000},
        {
            "loss": (40, (100, 2.98), (4000, 2.2)),
            "learning_rate": (40, (100, 5.3719e-5), (4000, 5.3719e-5)),
            "tokens_per_second": (40, (100, 28654.38), (4000, 28654.38)),
            "eval_loss": (1, (4000, 1.565), (4000, 1.565)),
            "eval_bleu": (1, (4000, 32.09), (4000, 32.09)),
        },
    ),
    "scikit-learn's boosting": (
        "      Iter       Train Loss   Remaining Time \n"
        + "".join(f"{i:10d} {loss(i):16.4f} {'7.89m':>16}\n" for i in EVERY),
        {"last_step": 40},
        {"loss": LOSS},
    ),
    "pytorch's tutorial": (
        "".join(f"[1, {2000 * i:5d}] loss: {loss(i)}\n" for i in EVERY) + "Finished Training\n",
        {"last_step": 80_000, "ended": "finished"},
        {"loss": (40, (2000, 2.98), (80_000, 2.2))},
    ),
    "spacy": (
        "E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  ENTS_P  ENTS_R  SCORE \n"
        "---  ------  ------------  --------  ------  ------  ------  ------\n"
        + "".join(
            f"  0  {200 * i:6d}  {loss(i):12.2f}  {100.0:8.2f}   83.16   83.79   82.53    0.83\n"
            for i in EVERY
        ),
        {"last_step": 8000},
        {
            "loss": (40, (200, 2.98), (8000, 2.2)),
            "eval_score": (40, (200, 0.83), (8000, 0.83)),
        },
    ),
    "lightgbm's command line": (
        "".join(
            f"[LightGBM] [Info] Iteration:{i}, training binary_logloss : {loss(i)}\n"
            f"[LightGBM] [Info] Iteration:{i}, valid_1 auc : 0.7{i + 10}\n"
            f"[LightGBM] [Info] {i}.704867 seconds elapsed, finished iteration {i}\n"
            for i in EVERY
        ),
        {"last_step": 40},
        {"loss": LOSS, "eval_auc": (40, (1, 0.711), (40, 0.75))},
    ),
    "catboost, copied from a terminal": (
        "".join(
            f"{i}:     learn: {loss(i)}       test: 20.657{i:02d}        best: 20.1 (100)  "
            "total: 1.35s    remaining: 1h 39m 5s\n"
            for i in EVERY
        )
        + "bestTest = 20.1\nbestIteration = 100\n",
        {"last_step": 40, "ended": "finished"},
        {"loss": LOSS},
    ),
    "a notebook's log at kaggle": (
        lines("1312{i}.7s\t{i}\t[{i}]\ttrain-logloss:{l}\teval-auc:0.610"),
        {"last_step": 40},
        {"loss": LOSS},
    ),
    "paddledetection 0.x": (
        lines(
            "2020-09-25 18:39:47,914-INFO: iter: {i}, lr: 0.001, 'loss_cls': '0.5', "
            "'loss': '{l}', eta: 5:10:47, batch_cost: 15.5 sec, ips: 0.51395 images/sec"
        ),
        {"last_step": 40},
        {"loss": LOSS, "learning_rate": (40, (1, 0.001), (40, 0.001))},
    ),
    "paddleseg": (
        lines(
            "2021-03-30 06:55:57 [INFO]\t[TRAIN] epoch: 2, iter: {i}/500, loss: {l}, "
            "lr: 0.009657, batch_cost: 0.53, reader_cost: 0.07, ips: 3.7 samples/sec | ETA 00:04:16"
        ),
        {"last_step": 40, "total_steps": 500},
        {"loss": LOSS},
    ),
    "ml-agents, with a run id that says test": (
        lines(
            "INFO:mlagents.trainers: gpu_test: Finder: Step: {i}000. Time Elapsed: 80.9 s "
            "Mean Reward: {l}. Std of Reward: 0.471. Training."
        ),
        {"last_step": 40_000},
        {"reward": (40, (1000, 2.98), (40_000, 2.2))},
    ),
    "lightning with a bar that never moves": (
        "Training: 0it [00:00, ?it/s]\rTraining:   0%|          | 0/100 [00:00<?, ?it/s]"
        + "".join(bar(i, 100, f", loss={loss(i)}, v_num=3", "Epoch 0: ") for i in EVERY),
        {"last_step": 40},
        {"loss": LOSS},
    ),
    "openpcdet": (
        "".join(
            f"2023-01-05 16:34:49,377   INFO  Train:    1/3 ( 33%) [{i - 1:4d}/323 ( 15%)]  "
            f"Loss: {loss(i)} (81.7)  LR: 1.351e-04  Time cost: 00:15/01:25 [00:15/04:48]  "
            f"Acc_iter {i}          Data time: 0.00(0.02)  Batch time: 0.31(0.31)\n"
            for i in EVERY
        ),
        {"last_step": 40},
        {"loss": LOSS},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_they_print(name: str) -> None:
    check(LOGS[name])
