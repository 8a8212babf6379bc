from __future__ import annotations

import math

import pytest

from trainwarden.metrics.formats import LineFormat, builtin_formats
from trainwarden.metrics.formats.markers import mark
from trainwarden.metrics.lines import moment, strip
from trainwarden.metrics.reader import LogReader


def last(line: str) -> dict[str, tuple[float, float]]:
    reader = LogReader("log")
    reader.feed(line.encode() + b"\n")
    reader.finish(complete=True)
    return {
        name: (series.last.step, series.last.value)
        for name, series in reader.reading.series.items()
        if series.last is not None
    }


@pytest.mark.parametrize("format_", builtin_formats(), ids=lambda f: f.name)
def test_each_format_keeps_the_protocol(format_: LineFormat) -> None:
    assert isinstance(format_, LineFormat)
    assert all(hint == hint.lower() for hint in format_.hints)


LINES: list[tuple[str, dict[str, float], float]] = [
    ("iter 10: loss 4.6810, time 49.27ms, mfu 7.56%", {"loss": 4.681, "step_time": 0.04927}, 10),
    (
        "step  342/19560 | loss 5.847695 (-1.66z)| norm 0.9166 (+0.12z)| lr 2.93e-04 | "
        "4162.06 ms | 32.4% bf16 MFU | 124662 tok/s",
        {
            "loss": 5.847695,
            "grad_norm": 0.9166,
            "learning_rate": 2.93e-4,
            "step_time": 4.16206,
            "mfu": 0.324,
            "tokens_per_second": 124662,
        },
        342,
    ),
    (
        " iteration      120/ 1716613 | consumed samples:        30720 | elapsed time per iteration"
        " (ms): 591.5 | learning rate: 7.019E-06 | global batch size:   256 | lm loss: "
        "8.958018E+00 | loss scale: 2048.0 | number of skipped iterations:   0 | number of nan "
        "iterations:   0 |",
        {"loss": 8.958018, "learning_rate": 7.019e-6, "step_time": 0.5915, "loss_scale": 2048.0},
        120,
    ),
    (
        "[2023-04-18 02:34:04,657] [INFO] [logging.py:96:log_dist] [Rank 0] step=3710, skipped=70, "
        "lr=[4.9e-06, 4.9e-06], mom=[(0.9, 0.95), (0.9, 0.95)]",
        {"learning_rate": 4.9e-6, "skipped": 70},
        3710,
    ),
    (
        "(main_task pid=7) step:105 - critic/kl:0.126 - critic/grad_norm:10.8 - "
        "critic/lr(1e-4):0.100 - actor/pg_loss:0.005 - actor/grad_norm:2.151 - "
        "actor/lr(1e-4):0.010 - critic/rewards/mean:np.float64(0.662)",
        {"kl": 0.126, "loss": 0.005, "grad_norm": 2.151, "learning_rate": 1e-6, "reward": 0.662},
        105,
    ),
    (
        "{'loss': '-0.0217', 'grad_norm': '0.8933', 'learning_rate': '0', 'reward': '1.188', "
        "'entropy': tensor(0.06, device='cuda:0'), 'note': 'x', 'epoch': '0.00625'}",
        {
            "loss": -0.0217,
            "grad_norm": 0.8933,
            "learning_rate": 0,
            "reward": 1.188,
            "entropy": 0.06,
        },
        1,
    ),
    (
        "Mon May 31 13:38:30 2021[1,0]<stderr>:2021-05-31 13:38:30,343 - mmseg - INFO - Iter "
        "[10/20]\tlr: 1.346e-03, eta: 0:00:00, time: 1.090, data_time: 0.040, memory: 11440, "
        "decode.loss_seg: 2.1022, loss: 2.1022",
        {"loss": 2.1022, "learning_rate": 1.346e-3, "step_time": 1.09},
        10,
    ),
    (
        "2023/06/05 21:51:40 - mmengine - INFO - Epoch(train) [132][3/6]  lr: 4.0e-03  "
        "eta: 2:04:27  time: 7.47  data_time: 6.9  loss: 0.0815  loss_kpt: 0.0815",
        {"loss": 0.0815, "learning_rate": 4e-3, "step_time": 7.47},
        789,
    ),
    (
        "| epoch 001:   1000 / 3935 loss=10.189, ppl=680.32, num_updates=998, lr=0.0002, "
        "gnorm=90465.337, clip=100%, oom=0, wall=154",
        {"loss": 10.189, "perplexity": 680.32, "learning_rate": 2e-4, "grad_norm": 90465.337},
        998,
    ),
    ("step=1    loss=15.50  gnorm=42.7", {"loss": 15.5, "grad_norm": 42.7}, 1),
    (
        "[2025-10-14 20:26:57,340][INFO] Train Step 500/500 | Train Loss: 15.1337 | Train mIoU: 0",
        {"loss": 15.1337},
        500,
    ),
    (
        "\r\rStep 17500: grad_norm=0.1047, loss=0.0029, param_norm=1380.7021",
        {"loss": 0.0029, "grad_norm": 0.1047},
        17500,
    ),
    (
        "INFO:mlagents.trainers: PPO: NewLearner: Step: 19000. Mean Reward: -57.270. "
        "Std of Reward: 0.000. Training.",
        {"reward": -57.27},
        19000,
    ),
    ("INFO:tensorflow:loss = 11.152613, step = 13 (1409.856 sec)", {"loss": 11.152613}, 13),
    (
        "[Epoch 8 993/993][Iteration 8089][Wall Clock 1273.1s] loss is 0.0867, training cost "
        "158.5s. Throughput is 626817.6 record / second. ",
        {"loss": 0.0867},
        8089,
    ),
    ("step: 3  loss:     nan  tps: 9,982", {"loss": math.nan, "tokens_per_second": 9982}, 3),
    ('{"global_step/max_steps": "9/547", "loss": -0.0, "kl": 0.5}', {"loss": 0.0, "kl": 0.5}, 9),
    ('2026-01-01 00:00:00 INFO {"step": 5, "train": {"loss": 1.5}}', {"loss": 1.5}, 5),
    (
        "Epoch 2:  50%|█████     | 50/100 [00:03<00:03, 16.5it/s, v_num=0, train_loss=0.25]",
        {"loss": 0.25, "steps_per_second": 16.5},
        150,
    ),
    (" 10%|█ | 3/30 [00:05<00:45,  1.5s/it, loss=2.5, lr=1e-05]", {"loss": 2.5}, 3),
]


@pytest.mark.parametrize(("line", "expected", "step"), LINES, ids=lambda x: str(x)[:30])
def test_lines_of_many_frameworks(line: str, expected: dict[str, float], step: float) -> None:
    found = last(line)
    for name, value in expected.items():
        assert name in found, f"{name} not among {sorted(found)}"
        assert found[name][1] == pytest.approx(value, nan_ok=True)
        assert found[name][0] == step


def test_boxes_are_one_record() -> None:
    text = """---------------------------------
| rollout/           |          |
|    ep_len_mean     | 83.2     |
|    ep_rew_mean     | -50.8    |
| time/              |          |
|    fps             | 674      |
|    total_timesteps | 16384    |
| train/             |          |
|    loss            | 0.065    |
|    learning_rate   | 0.0003   |
---------------------------------"""
    found = last(text)
    assert found["reward"] == (16384, -50.8)
    assert found["loss"] == (16384, 0.065)


def test_tables_of_aligned_columns_and_tabs() -> None:
    text = "Step  loss  grad_norm  reward_mean\n1     0.5   0.25       1\n2     0.4   0.25       2"
    assert last(text)["loss"] == (2, 0.4)
    assert last("iter\tRMSE\n900\t2.13\n901\t2.12")["rmse"] == (901, 2.12)


def test_bars_that_are_not_the_training() -> None:
    text = (
        "Map: 100%|███| 5000/5000 [00:01<00:00, 4000it/s]\n"
        "Loading checkpoint shards: 50%|█ | 1/2 [00:01<00:01,  1.0s/it]\n"
        "model.bin: 10%|█ | 81.8M/818M [00:01<00:09, 80.1MB/s]\n"
        "  5%|▌ | 5/100 [00:05<01:35,  1.0s/it]{'loss': 2.5, 'epoch': 0.05}\n"
        " 50%|█ | 600/1200 [00:05<00:05, 99.0it/s]\n{'eval_loss': 2.0, 'epoch': 0.05}"
    )
    found = last(text)
    assert found["loss"] == (5, 2.5)
    assert found["eval_loss"] == (5, 2.0)


def test_a_section_of_evaluation_ends_where_training_goes_on() -> None:
    text = (
        "step=10, loss=2.5\n***** Running Evaluation *****\nloss: 3.5\n"
        "step=11, loss=2.0\nstep=12, loss=1.5"
    )
    found = last(text)
    assert found["eval_loss"] == (10, 3.5)
    assert found["loss"] == (12, 1.5)


@pytest.mark.parametrize(
    ("line", "start", "rank"),
    [
        ("[rank0]:[rank0]: loss", "loss", 0),
        ("[rank12]: loss", "loss", 12),
        ("[RANK:3] loss", "loss", 3),
        ("[GPU1] loss", "loss", 1),
        ("2026-01-02 03:04:05,678 [INFO] rank 1: loss", "loss", 1),
        ("Rank 2 | loss", "loss", 2),
        ("rank 2 of 8", "rank 2 of 8", None),
        ("[03:04:05.678901] loss", "loss", None),
        ("3: loss 2.5", "loss 2.5", 3),
        ("[1,0]<stdout>:loss", "loss", 0),
        ("(main_task pid=7) loss", "loss", None),
        ("(WorkerDict pid=65860, ip=10.0.0.1) loss", "loss", None),
        ("2026-01-02 03:04:05,678 - root - INFO - loss", "loss", None),
        ("2026-01-02T03:04:05.678Z loss", "loss", None),
        ("[2026-01-02 03:04:05,678] [INFO] [logging.py:96:log_dist] [Rank 0] loss", "loss", 0),
        ("I0802 09:41:46.599227 139878636152640 hooks.py:262] loss", "loss", None),
        ("INFO:tensorflow:loss", "loss", None),
        ("loss: 2.5", "loss: 2.5", None),
        ("12: 13", "12: 13", None),
    ],
)
def test_prefixes(line: str, start: str, rank: int | None) -> None:
    prefix = strip(line)
    if line != "12: 13":
        assert line[prefix.start :] == start
        assert prefix.rank == rank


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("2026-01-02 03:04:05,678", 1767323045.678),
        ("2026-01-02T03:04:05.5Z", 1767323045.5),
        ("2026-01-02 05:04:05+02:00", 1767323045.0),
        ("2026/01/02 03:04:05", 1767323045.0),
        ("Fri Jan  2 03:04:05 2026", 1767323045.0),
        ("01/02/2026 03:04:05", 1767323045.0),
        ("2026-13-45 99:99:99", None),
        ("nonsense", None),
    ],
)
def test_moments(stamp: str, seconds: float | None) -> None:
    found = moment(stamp)
    assert (found is None) == (seconds is None)
    if seconds is not None:
        assert found == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Traceback (most recent call last):", "traceback"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate", "exception"),
        ("KeyboardInterrupt", "interrupted"),
        ("[CUDA ERROR] at file train_gpt2.cu:754:", "error"),
        ("train.sh: line 18:    36 Killed                  python3 x.py", "killed"),
        ("exitcode  : 1 (pid: 7)", "exit_code"),
        ("Terminated", "signal"),
        ("run.sh: line 12:  4711 Terminated              python train.py", "signal"),
        ("traceback : Signal 6 (SIGABRT) received by PID 7", "signal"),
        ("[WARNING] submitit - Caught signal SIGUSR1 on node05: this job is timed-out.", "signal"),
        ("Grad overflow on iteration 0", "overflow"),
        ("Saving model checkpoint to out/checkpoint-500", "checkpoint_saved"),
        ("Resuming training from step 500", "resume"),
        ("Training completed", "finished"),
        ("`Trainer.fit` stopped: `max_epochs=3` reached.", "finished"),
        ("number of nan iterations: 0", None),
        ("No errors found in background save thread", None),
        ("step 5 | loss 2.5", None),
        ("UserWarning: something", "warning"),
    ],
)
def test_marks(line: str, kind: str | None) -> None:
    found = mark(line)
    if kind == "warning":
        assert found is None or found.kind == "warning"
    else:
        assert (found.kind if found else None) == kind
