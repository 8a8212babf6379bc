"""Trainers on JAX: MaxText, T5X, Flax, Levanter, openpi."""

from __future__ import annotations

import pytest

from support.logs import EVERY, Log, check, lines, loss

CLU = "I0102 03:04:05.678901 139912345678912 logging_writer.py:48] "

LOGS: dict[str, Log] = {
    "maxtext": (
        lines(
            "completed step: {i}, seconds: 1.250, TFLOP/s/device: 100.125, "
            "Tokens/s/device: 5000.500, total_weights: 65536, loss: {l}, lm_loss: {l}, "
            "perplexity: 20.125", range(41),
        )
        + "eval metrics after step: 40, loss=2.5, total_weights=65536\n",
        {"last_step": 40},
        {
            "loss": (41, (0, 3.0), (40, 2.2)),
            "step_time": (41, (0, 1.25), (40, 1.25)),
            "tokens_per_second": (41, (0, 5000.5), (40, 5000.5)),
            "eval_loss": (1, (40, 2.5), (40, 2.5)),
        },
    ),
    "t5x": (
        lines(
            CLU + "[{i}] collection=train accuracy=0.4, cross_ent_loss={l}, learning_rate=0.01, "
            "loss={l}, timing/seqs_per_second=512.5, z_loss=0.01"
        )
        + CLU + "[40] collection=training_eval/mix accuracy=0.51, cross_ent_loss=2.1, loss=2.1\n",
        {"last_step": 40},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "learning_rate": (40, (1, 0.01), (40, 0.01)),
            "eval_loss": (1, (40, 2.1), (40, 2.1)),
            "eval_accuracy": (1, (40, 0.51), (40, 0.51)),
        },
    ),
    "flax with clu": (
        lines(CLU + "[{i}] train_loss={l}, train_accuracy=0.5, steps_per_second=3.5")
        + CLU + "[40] eval_loss=2.1, eval_accuracy=0.51\n",
        {"last_step": 40},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "steps_per_second": (40, (1, 3.5), (40, 3.5)),
            "eval_loss": (1, (40, 2.1), (40, 2.1)),
        },
    ),
    "flax for each epoch": (
        lines(
            "I0102 03:04:05.678901 139912345678912 train.py:140] epoch:{i:3d}, train_loss: {l}, "
            "train_accuracy: 97.50, test_loss: {e}, test_accuracy: 98.25"
        ),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (40, (1, 3.08), (40, 2.3))},
    ),
    "flax of hugging face": (
        lines("Step... ({i} | Loss: {l}, Learning Rate: 0.0003)")
        + "Step... (40 | Eval Loss: 3.125 | Eval Perplexity: 22.75)\n",
        {"last_step": 40},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "learning_rate": (40, (1, 3e-4), (40, 3e-4)),
            "eval_loss": (1, (40, 3.125), (40, 3.125)),
            "eval_perplexity": (1, (40, 22.75), (40, 22.75)),
        },
    ),
    "levanter": (
        "".join(
            f"Progress on:train {i / 10:.1f}kit/10.0kit rate:1.2it/s remaining:02:05:00 "
            f"elapsed:13:00 postfix:loss={loss(i)}\n"
            for i in EVERY
        )
        + "Progress on:eval 20.0it/20.0it rate:10.1it/s remaining:00:00 elapsed:00:02 "
        "postfix:loss=2.5\n",
        {"last_step": 4000, "total_steps": 10000},
        {"loss": (40, (100, 2.98), (4000, 2.2)), "eval_loss": (1, (4000, 2.5), (4000, 2.5))},
    ),
    "openpi": (
        "".join(
            f"\r\rProgress on: {i / 10:.1f}kit/100kit rate:2.1it/s remaining:10:41:42 "
            f"elapsed:01:00 postfix:-\nStep {100 * i}: grad_norm=0.5, loss={loss(i)}, "
            "param_norm=1802.125\n"
            for i in EVERY
        ),
        {"last_step": 4000, "total_steps": 100_000},
        {"loss": (40, (100, 2.98), (4000, 2.2)), "grad_norm": (40, (100, 0.5), (4000, 0.5))},
    ),
    "openpi on pytorch": (
        # Behind each line stand the process and the place in the program.
        "".join(
            f"03:04:05.678 [I] step={i} loss={loss(i)} lr=2.50e-05 grad_norm=1.25 time=10.5s "
            "(1234:train_pytorch.py:530)\n"
            for i in EVERY
        ),
        {"last_step": 40},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "learning_rate": (40, (1, 2.5e-5), (40, 2.5e-5)),
            "grad_norm": (40, (1, 1.25), (40, 1.25)),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_what_they_print(name: str) -> None:
    check(LOGS[name])
