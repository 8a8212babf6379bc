"""ESPnet (and Chainer's report), OpenNMT-py, Coqui TTS, AllenNLP."""

from __future__ import annotations

import pytest

from support.logs import Log, check, lines, loss

E = "[host] 2021-10-18 23:44:50,895 (trainer:250) INFO: "
N = "[2022-01-01 10:00:00,123 INFO] "
A = "2022-09-19 21:40:07,600 - INFO - allennlp.training."


def espnet_batches(e: int) -> str:
    return "".join(
        f"{E}{e}epoch:train:{i - 49}-{i}batch: iter_time=0.1, forward_time=0.2, loss_ctc=90.1, "
        f"loss_att=60.{e}, acc=0.3, loss={loss(e * 10 + i / 50)}, backward_time=0.2, grad_norm="
        f"5.{e}, clip=100.000, loss_scale=1.000, optim0_lr0=1.2e-04, train_time=0.9\n"
        for i in (50, 100)
    )


def espnet_epoch(e: int) -> str:
    return (
        f"{E}{e}epoch results: [train] iter_time=0.1, loss_ctc=85.1, loss={loss(e)}, "
        f"train_time=0.9, time=3 minutes and 12.13 seconds, total_count={e * 100}, "
        f"gpu_max_cached_mem_GB=10.1, [valid] loss_ctc=70.1, acc=0.5, cer=0.3, wer=0.6, "
        f"loss=1.{e}, time=12.1 seconds, total_count={e * 10}, gpu_max_cached_mem_GB=10.1, "
        "[att_plot] time=5.1 seconds, total_count=0, gpu_max_cached_mem_GB=10.1\n"
    )


def espnet(epochs: int) -> str:
    return f"{E}1/3epoch started\n" + "".join(
        espnet_batches(e)
        + espnet_epoch(e)
        + f"{E}{e + 1}/3epoch started. Estimated time to finish:"
        " 1 hour\n" * (e < 3)
        for e in range(1, epochs + 1)
    )


NAMES = ("epoch", "iteration", "main/loss", "validation/main/loss", "main/acc", "elapsed_time")


def chainer(cells: tuple[object, ...]) -> str:
    """A row of `PrintReport`: left-aligned, blank where there is nothing to say."""
    widths = [max(10, len(name)) for name in NAMES]
    return "  ".join(f"{cell:<{w}}" for cell, w in zip(cells, widths, strict=True)) + "\n"


def coqui(e: int) -> str:
    text = f"\n\x1b[4m\x1b[1m > EPOCH: {e}/1000\x1b[0m\n --> /x/run\n"
    text += "\n\x1b[1m > TRAINING (2022-01-01 10:00:00) \x1b[0m\n"
    for i in (0, 25, 50):
        text += (
            f"\n\x1b[1m   --> TIME: 2022-01-01 10:00:0{e} -- STEP: {i}/60 -- GLOBAL_STEP: "
            f"{e * 60 + i}\x1b[0m\n     | > decoder_loss: 5.1  (5.2)\n     | > loss: "
            f"{loss(e * 60 + i)}  (2.1)\n     | > current_lr: 0.001 \n     | > grad_norm: 2.{e}  "
            "(2.5)\n     | > step_time: 0.51  (0.52)\n\n"
        )
    return text + (
        "\x1b[1m > EVALUATION \x1b[0m\n\n\x1b[1m   --> STEP: 0\x1b[0m\n     | > loss: 1.9  (1.9)\n"
        "\n  \x1b[1m--> EVAL PERFORMANCE\x1b[0m\n     | > avg_loader_time: 0.1 (+0)\n"
        f"     | > avg_loss: 1.{e} (+0)\n\n > BEST MODEL : /x/best_model_{e * 60 + 50}.pth\n"
    )


LOGS: dict[str, Log] = {
    "espnet under way": (
        espnet(2),
        {"ended": "running", "runs": 1, "format": "espnet"},
        {
            "loss": (4, (50, 2.78), (200, 2.56)),
            "grad_norm": (4, (50, 5.1), (200, 5.2)),
            "learning_rate": (4, (50, 1.2e-4), (200, 1.2e-4)),
            "step_time": (4, (50, 0.9), (200, 0.9)),
            "eval_loss": (2, (100, 1.1), (200, 1.2)),
            "eval_wer": (2, (100, 0.6), (200, 0.6)),
        },
    ),
    "espnet to its end": (
        espnet(3) + f"{E}The training was finished at 3 epochs \n",
        {"ended": "finished"},
        {"eval_loss": (3, (100, 1.1), (300, 1.3))},
    ),
    "espnet by epochs alone": (
        f"{E}1/3epoch started\n" + "".join(espnet_epoch(e) for e in (1, 2)),
        {"last_step": 2, "total_steps": 3, "ended": "running"},
        {"loss": (2, (1, 2.98), (2, 2.96)), "eval_loss": (2, (1, 1.1), (2, 1.2))},
    ),
    "a report with blank cells": (
        chainer(NAMES)
        + "".join(
            "\x1b[J"
            + chainer(
                (i // 300, i, loss(i / 100), 1.5 if i % 300 == 0 else "", 0.5, f"{i * 0.5:g}")
            )
            for i in range(100, 1000, 100)
        )
        + "\x1b[J     total [##########..............] 20.00%\n",
        {"last_step": 900},
        {"loss": (9, (100, 2.98), (900, 2.82)), "eval_loss": (3, (300, 1.5), (900, 1.5))},
    ),
    "opennmt": (
        lines(
            f"{N}Step {{i}}/ 100000; acc: 4{{i}}.1; ppl: 55.{{i}}; xent: {{l}}; lr: 0.00123; "
            "sents:    5000; bsz: 3000/2900/50; 40000/39000 tok/s;    {i} sec;",
            range(1, 10),
        )
        + f"{N}Train perplexity: 60.1\n{N}Train accuracy: 44.1\n{N}Validation perplexity: 30.5\n"
        f"{N}Validation accuracy: 51.2\n{N}Saving checkpoint model_step_9.pt\n",
        {"last_step": 9, "total_steps": 100_000, "ended": "running"},
        {
            "loss": (9, (1, 2.98), (9, 2.82)),
            "perplexity": (9, (1, 55.1), (9, 55.9)),
            "learning_rate": (9, (1, 0.00123), (9, 0.00123)),
            "eval_perplexity": (1, (9, 30.5), (9, 30.5)),
            "eval_accuracy": (1, (9, 51.2), (9, 51.2)),
        },
    ),
    "opennmt before version 3": (
        lines(
            f"{N}Step {{i}}/100000; acc:  41.10; ppl: 55.10; xent: {{l}}; lr: 0.00123; "
            "40000/39000 tok/s;    {i} sec"
        ),
        {"last_step": 40, "total_steps": 100_000},
        {"loss": (40, (1, 2.98), (40, 2.2))},
    ),
    "coqui": (
        "".join(coqui(e) for e in (0, 1, 2)),
        {"last_step": 170, "total_steps": 60_000, "ended": "running", "runs": 1},
        {
            "loss": (9, (0, 3.0), (170, -0.4)),
            "learning_rate": (9, (0, 0.001), (170, 0.001)),
            "grad_norm": (9, (0, 2.0), (170, 2.2)),
            "eval_loss": (3, (50, 1.9), (170, 1.9)),
            "eval_avg_loss": (3, (50, 1.0), (170, 1.2)),
        },
    ),
    "allennlp": (
        "".join(
            f"{A}trainer - Epoch {e}/2\n"
            f"{A}tensorboard_writer -                    Training |  Validation\n"
            f"{A}tensorboard_writer - loss          |     {loss(e)} |     0.{e}\n"
            f"{A}tensorboard_writer - cpu_memory_MB |  6759.232  |       N/A\n"
            for e in (0, 1, 2)
        ),
        {"last_step": 2, "total_steps": 2, "ended": "finished"},
        {"loss": (3, (0, 3.0), (2, 2.96)), "eval_loss": (3, (0, 0.0), (2, 0.2))},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_is_printed(name: str) -> None:
    check(LOGS[name])
