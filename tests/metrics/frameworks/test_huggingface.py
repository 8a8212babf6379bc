"""Trainers that print dicts: Hugging Face, TRL, Axolotl, LLaMA-Factory, Unsloth, ms-swift."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from support.logs import Log, bar, check, lines, loss

BANNER = """\
***** Running training *****
  Num examples = 1,008
  Num Epochs = 3
  Instantaneous batch size per device = 8
  Gradient Accumulation steps = 2
  Total optimization steps = 189
  Number of trainable parameters = 124,439,808
"""
TENS = range(10, 150, 10)


def record(i: int, more: str = "", steps: int = 63) -> str:
    """What the trainer logs at a step: its loss is a mean since the record before."""
    return (
        f"{{'loss': {loss(i)}, 'grad_norm': 1.5, 'learning_rate': 5e-05, {more}"
        f"'epoch': {round(i / steps, 2)}}}\n"
    )


def beside_bar(steps: Iterable[int], total: int, more: str = "") -> str:
    return "".join(bar(i, total) + "\n" + record(i, more) for i in steps)


SUMMARY = (
    "{'train_runtime': 161.2, 'train_samples_per_second': 18.6, 'train_steps_per_second': 1.17, "
    "'train_loss': 1.2345, 'epoch': 3.0}\n"
)
EVALUATION = (
    "{'eval_loss': 1.9, 'eval_accuracy': 0.61, 'eval_runtime': 3.2, "
    "'eval_samples_per_second': 31.1, 'epoch': 3.0}\n"
)
STAMP = "[INFO|trainer.py:2414] 2025-01-02 03:04:05,678 >> "
PRINTED = "01/02/2025 03:04:05 - INFO - __main__ - "
SWIFT = [
    f'{{"loss": {loss(i)}, "token_acc": 0.6, "grad_norm": 2.1, "learning_rate": 1e-05, '
    f'"memory(GiB)": 20.0, "train_speed(iter/s)": 0.3, "epoch": 0.{i}, '
    f'"global_step/max_steps": "{i}/60", "percentage": "1.00%", "elapsed_time": "{i}m 3s"}}\n'
    for i in range(1, 41)
]

EVALUATING = STAMP + "\n***** Running Evaluation *****\n" + STAMP + "  Num examples = 64\n"


def prepared(what: str) -> str:
    """The bar of one thing that is done to the examples before training."""
    return (
        f"\r{what}:   0%|          | 0/640 [00:00<?, ? examples/s]"
        f"\r{what}: 100%|██████████| 640/640 [00:00<00:00, 9123.45 examples/s]"
    )


PREPARED = "".join(
    prepared(f"{what} {split} dataset")
    for split in ("train", "eval")
    for what in ("Adding EOS to", "Tokenizing", "Truncating", "Dropping fully masked examples from")
)
ANSWERED = (
    "-------------------- Question:\nA shop sells 48 clips in April, and half as many in May.\n"
    "Response:\nStep 1: cost = 48/2 = 24\nStep 2: Total loss: 72\nloss: 3.5, step: 900\n"
    "Reward: 2.0\naccuracy: 95%\n"
)
"""What a reward function shows of a model's answers."""
STATE = {
    "best_global_step": 40,
    "best_metric": 2.2,
    "epoch": 0.7,
    "global_step": 43,
    "log_history": [{"epoch": i / 63, "loss": loss(i), "step": i} for i in range(10, 50, 10)],
    "logging_steps": 10,
    "max_steps": 60,
    "num_train_epochs": 1,
}

LOGS: dict[str, Log] = {
    "a trainer_state.json past its last record": (
        json.dumps(STATE, indent=2),
        {"last_step": 43, "total_steps": 60, "ended": "running"},
        {"loss": (4, (10, loss(10)), (40, loss(40)))},
    ),
    "a trainer_state.json on one line": (
        json.dumps(STATE),
        {"last_step": 43, "total_steps": 60},
        {"loss": (4, (10, loss(10)), (40, loss(40)))},
    ),
    "evaluations that are announced": (
        BANNER
        + "".join(
            beside_bar((i, i + 10), 189)
            + EVALUATING
            + bar(2, 8)
            + bar(8, 8)
            + "\n"
            + EVALUATION.replace("3.0}", f"{(i + 10) / 63:.2f}}}")
            for i in range(10, 130, 20)
        ),
        {"last_step": 120, "total_steps": 189},
        {
            "loss": (12, (10, loss(10)), (120, loss(120))),
            "learning_rate": (12, (10, 5e-5), (120, 5e-5)),
            "eval_loss": (6, (20, 1.9), (120, 1.9)),
        },
    ),
    "bars of data before those of training": (
        PREPARED + "\n" + beside_bar(TENS, 189),
        {"last_step": 140, "total_steps": 189},
        {"loss": (14, (10, loss(10)), (140, loss(140)))},
    ),
    "answers between the records": (
        bar(0, 189) + "".join(
            ANSWERED + bar(i, 189) + "\n" + record(i, "'reward': 1.5, 'kl': 0.01, ") for i in TENS
        ),
        {"last_step": 140, "total_steps": 189, "ended": "running", "runs": 1},
        {
            "loss": (14, (10, loss(10)), (140, loss(140))),
            "reward": (14, (10, 1.5), (140, 1.5)),
        },
    ),
    "answers in the tables of trl": (
        "".join(
            bar(i, 189)
            + "\n"
            + record(i, "'reward': 1.5, ")
            + bar(i, 189)
            + f"╭──────────────── Step {i} ────────────────╮\n"
            "│ ┏━━━━━━━━━━━━━━┳━━━━━━━━━━━━━┳━━━━━━━━┓ │\n"
            "│ ┃ Prompt       ┃ Completion  ┃ reward ┃ │\n"
            "│ ┡━━━━━━━━━━━━━━╇━━━━━━━━━━━━━╇━━━━━━━━┩ │\n"
            "│ │ What is loss │ loss: 3.25  │   6.00 │ │\n"
            "│ └──────────────┴─────────────┴────────┘ │\n"
            "╰─────────────────────────────────────────╯\n"
            for i in TENS
        ),
        {"last_step": 140, "total_steps": 189},
        {
            "loss": (14, (10, loss(10)), (140, loss(140))),
            "reward": (14, (10, 1.5), (140, 1.5)),
        },
    ),
    "the trainer": (
        BANNER + beside_bar(TENS, 189) + bar(189, 189) + "\n" + EVALUATION + SUMMARY,
        {"last_step": 189, "total_steps": 189, "ended": "finished", "runs": 1},
        {
            "loss": (14, (10, loss(10)), (140, loss(140))),
            "grad_norm": (14, (10, 1.5), (140, 1.5)),
            "eval_loss": (1, (189, 1.9), (189, 1.9)),
            "eval_accuracy": (1, (189, 0.61), (189, 0.61)),
        },
    ),
    "the trainer with an error": (
        BANNER + beside_bar(TENS[:4], 189) + "Traceback (most recent call last):\n"
        '  File "train.py", line 9, in <module>\n    trainer.train()\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
        {"last_step": 40, "total_steps": 189, "ended": "crashed"},
        {"loss": (4, (10, loss(10)), (40, loss(40)))},
    ),
    "a banner behind a logger": (
        "".join(STAMP + line + "\n" for line in BANNER.splitlines()) + beside_bar(TENS, 189),
        {"last_step": 140, "total_steps": 189},
        {"loss": (14, (10, loss(10)), (140, loss(140)))},
    ),
    "lines of every process": (
        "".join(bar(i, 189) + "\n" + 2 * record(i) for i in TENS),
        {"last_step": 140, "total_steps": 189},
        {"loss": (14, (10, loss(10)), (140, loss(140)))},
    ),
    "a loss of 0 again and again": (
        "".join(f"{{'loss': 0.0, 'learning_rate': 0.0, 'epoch': {i // 5 / 100}}}\n"
                for i in range(20)),
        {"last_step": 20},
        {"loss": (20, (1, 0.0), (20, 0.0))},
    ),
    "a script without a trainer": (
        PRINTED + "  Total optimization steps = 189\n" + "".join(
            "".join(bar(63 * e + i, 189) for i in (1, 32, 63)) + "\n" + PRINTED
            + f"epoch {e}: perplexity: 2{e}.5 eval_loss: 3.{e}\n"
            for e in range(3)
        ),
        {"last_step": 189, "total_steps": 189, "ended": "finished"},
        {
            "eval_perplexity": (3, (63, 20.5), (189, 22.5)),
            "eval_loss": (3, (63, 3.0), (189, 3.2)),
        },
    ),
    "scores of an epoch": (
        "".join(
            "".join(bar(63 * e + i, 189) for i in (1, 32, 63)) + "\n" + PRINTED
            + f"epoch {e}: {{'accuracy': 0.8{e}, 'f1': 0.7{e}}}\n"
            for e in range(3)
        ),
        {"last_step": 189, "total_steps": 189},
        {"eval_accuracy": (3, (63, 0.8), (189, 0.82)), "eval_f1": (3, (63, 0.7), (189, 0.72))},
    ),
    "a notebook's table": (
        "Step\tTraining Loss\tValidation Loss\n" + lines("{i}\t{l}\t{e}", (10, 20, 30)),
        {"last_step": 30},
        {"loss": (3, (10, 2.8), (30, 2.4)), "eval_loss": (3, (10, 2.9), (30, 2.5))},
    ),
    "trl dpo": (
        beside_bar(
            TENS,
            189,
            "'rewards/chosen': 0.25, 'rewards/rejected': -0.1, 'rewards/accuracies': 0.7, "
            "'rewards/margins': 0.35, 'logps/chosen': -300.1, 'logits/chosen': -1.1, ",
        )
        + "{'eval_loss': 0.5, 'eval_rewards/accuracies': 0.75, 'eval_rewards/margins': 0.5, "
        "'eval_logps/chosen': -290.0, 'eval_runtime': 3.2, 'epoch': 2.9}\n",
        {"last_step": 140, "total_steps": 189},
        {
            "loss": (14, (10, loss(10)), (140, loss(140))),
            "rewards/margins": (14, (10, 0.35), (140, 0.35)),
            "rewards/accuracies": (14, (10, 0.7), (140, 0.7)),
            "eval_loss": (1, (140, 0.5), (140, 0.5)),
            "eval_rewards/accuracies": (1, (140, 0.75), (140, 0.75)),
        },
    ),
    "trl grpo": (
        "".join(
            bar(i, 50)
            + f"\n{{'loss': '{loss(i)}', 'grad_norm': '0.5', 'learning_rate': '1e-06', "
            "'num_tokens': '9000', 'completions/mean_length': '200.5', "
            "'completions/clipped_ratio': '0.125', 'rewards/correct/mean': '0.25', "
            f"'reward': '0.{i}', 'reward_std': '0.3', 'frac_reward_zero_std': '0.25', "
            "'kl': '0.001', 'entropy': '0.4', 'clip_ratio/region_mean': '0.01', 'epoch': '0.1'}\n"
            for i in range(1, 6)
        ),
        {"last_step": 5, "total_steps": 50, "ended": "running"},
        {
            "reward": (5, (1, 0.1), (5, 0.5)),
            "reward_std": (5, (1, 0.3), (5, 0.3)),
            "kl": (5, (1, 0.001), (5, 0.001)),
            "entropy": (5, (1, 0.4), (5, 0.4)),
            "completions/mean_length": (5, (1, 200.5), (5, 200.5)),
            "completions/clipped_ratio": (5, (1, 0.125), (5, 0.125)),
            "clip_ratio/region_mean": (5, (1, 0.01), (5, 0.01)),
        },
    ),
    "trl ppo": (
        # Its val/ is the value function's.
        "".join(
            f"{{'eps': 2, 'objective/kl': 0.{i}, 'objective/entropy': 50.5, "
            f"'objective/rlhf_reward': 0.{i}, 'objective/scores': 0.{i}, "
            "'policy/clipfrac_avg': 0.01, 'loss/policy_avg': -0.05, 'loss/value_avg': 0.3, "
            f"'val/clipfrac_avg': 0.02, 'val/ratio': 1.0, 'lr': 3e-06, 'episode': {64 * i}, "
            "'epoch': 0.1}\n"
            for i in range(1, 6)
        ),
        {"last_step": 320},
        {
            "kl": (5, (64, 0.1), (320, 0.5)),
            "reward": (5, (64, 0.1), (320, 0.5)),
            "entropy": (5, (64, 50.5), (320, 50.5)),
            "val/clipfrac_avg": (5, (64, 0.02), (320, 0.02)),
            "learning_rate": (5, (64, 3e-6), (320, 3e-6)),
        },
    ),
    "trl reward model": (
        beside_bar(
            TENS, 189, "'min_reward': -1.5, 'mean_reward': 0.25, 'max_reward': 2.5, "
            "'accuracy': 0.65, 'margin': 0.4, "
        ),
        {"last_step": 140},
        {
            "loss": (14, (10, loss(10)), (140, loss(140))),
            "accuracy": (14, (10, 0.65), (140, 0.65)),
            "reward": (14, (10, 0.25), (140, 0.25)),
        },
    ),
    "axolotl": (
        beside_bar(
            TENS, 189, "'ppl': 4.5, 'memory/max_active (GiB)': 18.0, "
            "'memory/device_reserved (GiB)': 19.5, 'tokens_per_second_per_gpu': 1234.5, "
        )
        + "[2025-01-02 03:14:05,678] [INFO] [axolotl.train.save_trained_model:250] [PID:12] "
        "[RANK:0] Training completed! Saving trained model to ./out.\n",
        {"last_step": 140, "total_steps": 189, "ended": "finished"},
        {
            "gpu_memory": (14, (10, 18 * 2**30), (140, 18 * 2**30)),
            "tokens_per_second": (14, (10, 1234.5), (140, 1234.5)),
            "perplexity": (14, (10, 4.5), (140, 4.5)),
        },
    ),
    "llama-factory's trainer_log.jsonl": (
        lines(
            '{{"current_steps": {i}, "total_steps": 60, "loss": {l}, "lr": 4.9e-05, '
            '"epoch": 0.5, "percentage": 1.5, "elapsed_time": "0:00:10", '
            '"remaining_time": "0:03:10", "throughput": 8123.5, "total_tokens": 5000}}'
        )
        + '{"current_steps": 40, "total_steps": 60, "eval_loss": 1.8, "epoch": 0.5, '
        '"percentage": 50.0, "elapsed_time": "0:01:10", "remaining_time": "0:02:10"}\n',
        {"last_step": 40, "total_steps": 60, "ended": "running"},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "learning_rate": (40, (1, 4.9e-5), (40, 4.9e-5)),
            "eval_loss": (1, (40, 1.8), (40, 1.8)),
            "throughput": (40, (1, 8123.5), (40, 8123.5)),
        },
    ),
    "llama-factory's console": (
        # Its callback and the trainer's print the same step.
        "".join(
            bar(i, 189)
            + "\n[INFO|2025-01-02 03:04:05] llamafactory.train.callbacks:143 >> "
            + f"{{'loss': {loss(i):.4f}, 'learning_rate': 5.0000e-05, 'epoch': {i / 63:.2f}}}\n"
            + record(i)
            for i in TENS
        ),
        {"last_step": 140, "total_steps": 189, "runs": 1},
        {
            "loss": (14, (10, loss(10)), (140, loss(140))),
            "grad_norm": (14, (10, 1.5), (140, 1.5)),
        },
    ),
    "unsloth": (
        "==((====))==  Unsloth - 2x faster free finetuning | Num GPUs used = 1\n"
        "   \\\\   /|    Num examples = 51,760 | Num Epochs = 1 | Total steps = 60\n"
        "O^O/ \\_/ \\    Batch size per device = 2 | Gradient accumulation steps = 4\n"
        "\\        /    Data Parallel GPUs = 1 | Total batch size (2 x 4 x 1) = 8\n"
        ' "-____-"     Trainable parameters = 41,943,040 of 8,072,204,288 (0.52% trained)\n'
        + "".join(record(i, steps=6470) for i in range(1, 41)),
        {"last_step": 40, "total_steps": 60, "ended": "running"},
        {"loss": (40, (1, 2.98), (40, 2.2))},
    ),
    "ms-swift's logging.jsonl": (
        # Its last line holds again what the lines before it said.
        "".join(SWIFT)
        + '{"eval_loss": 1.8, "eval_token_acc": 0.61, "epoch": 0.9, '
        '"global_step/max_steps": "40/60", "percentage": "66.67%"}\n'
        '{"train_runtime": 600.1, "train_samples_per_second": 1.6, "train_loss": 2.5, '
        '"epoch": 1.0, "global_step/max_steps": "60/60", "percentage": "100.00%"}\n'
        '{"last_model_checkpoint": "/out/checkpoint-60", "best_metric": 1.8, "global_step": 60, '
        '"log_history": ['
        + ", ".join(f'{{"epoch": 0.5, "loss": {loss(i)}, "step": {i}}}' for i in range(1, 41))
        + '], "memory": 20.0}\n',
        {"last_step": 40, "total_steps": 60, "ended": "finished", "runs": 1},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "accuracy": (40, (1, 0.6), (40, 0.6)),
            "gpu_memory": (40, (1, 20 * 2**30), (40, 20 * 2**30)),
            "steps_per_second": (40, (1, 0.3), (40, 0.3)),
            "eval_loss": (1, (40, 1.8), (40, 1.8)),
        },
    ),
    "ms-swift's console": (
        "".join(line.replace('"', "'") for line in SWIFT),
        {"last_step": 40, "total_steps": 60, "ended": "running"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "grad_norm": (40, (1, 2.1), (40, 2.1))},
    ),
    "ms-swift over megatron": (
        lines(
            '{{"loss": {l}, "grad_norm": 2.1, "learning_rate": 1e-05, "iteration": "{i}/60", '
            '"consumed_samples": 64, "memory(GiB)": 40.0, "train_speed(s/it)": 4.5}}'
        ),
        {"last_step": 40, "total_steps": 60},
        {"loss": (40, (1, 2.98), (40, 2.2)), "step_time": (40, (1, 4.5), (40, 4.5))},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_what_they_print(name: str) -> None:
    check(LOGS[name])
