"""Trainers that print a record over several lines: OLMo, Composer, NeMo-RL, EasyLM."""

from __future__ import annotations

import pytest

from support.logs import EVERY, Log, bar, check, lines, loss

OLMO = "2024-01-02 03:04:05.678\thost01:0\tolmo.train:967\tINFO\t"
CORE = "2024-01-02 03:04:05.678\thost01:0\tolmo_core.train.callbacks.console_logger:61\tINFO\t"
RULE = "=" * 25

LOGS: dict[str, Log] = {
    "olmo": (
        lines(
            OLMO + "[step={i}/7393,epoch=0]\n    optim/total_grad_norm=0.5000\n"
            "    optim/learning_rate_group0=0.0003\n    train/CrossEntropyLoss={l}\n"
            "    train/Perplexity=24.53\n    throughput/total_tokens=4,194,304\n"
            "    throughput/device/tokens_per_second=8,125\n"
            "    throughput/device/batches_per_second=0.2500\n"
            "    System/Peak GPU Memory (MB)=40,000"
        )
        + OLMO + "Running evaluation for 'c4_en-validation'...\n" + OLMO + "[eval_step=10/10]\n"
        + OLMO + "c4_en-validation\n    eval/c4_en-validation/CrossEntropyLoss=3.5\n"
        "    eval/c4_en-validation/Perplexity=33.12\n    eval/downstream/piqa_len_norm=0.625\n"
        + OLMO + "Training complete\n",
        {"last_step": 40, "total_steps": 7393, "ended": "finished", "runs": 1},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "grad_norm": (40, (1, 0.5), (40, 0.5)),
            "learning_rate": (40, (1, 3e-4), (40, 3e-4)),
            "tokens_per_second": (40, (1, 8125), (40, 8125)),
            "gpu_memory": (40, (1, 40000 * 2**20), (40, 40000 * 2**20)),
            "eval_loss": (1, (40, 3.5), (40, 3.5)),
            "eval_perplexity": (1, (40, 33.12), (40, 33.12)),
            "eval_downstream/piqa_len_norm": (1, (40, 0.625), (40, 0.625)),
        },
    ),
    "olmo-core": (
        lines(
            CORE + "[step={i}/5000,epoch=1,eta=2:03:04]\n    optim/LR (group 0)=3.00E-04\n"
            "    optim/total grad norm=0.5000\n    throughput/device/TPS=12,345\n"
            "    train/CE loss={l}\n    train/PPL=24.5"
        ),
        {"last_step": 40, "total_steps": 5000, "ended": "running"},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "learning_rate": (40, (1, 3e-4), (40, 3e-4)),
            "grad_norm": (40, (1, 0.5), (40, 0.5)),
            "tokens_per_second": (40, (1, 12345), (40, 12345)),
            "perplexity": (40, (1, 24.5), (40, 24.5)),
        },
    ),
    "composer": (
        # Its time/batch is that of the batch before.
        "".join(
            f"[batch={i}/100]:\n\t Train time/batch: {i - 1}\n\t Train time/sample: 64\n"
            f"\t Train loss/train/total: {loss(i)}\n"
            f"\t Train metrics/train/LanguageCrossEntropy: {loss(i)}\n"
            "\t Train throughput/tokens_per_sec: 12345.5\n\t Train throughput/device/mfu: 0.4000\n"
            "\t Train lr-DecoupledAdamW/group0: 0.0003\n"
            for i in EVERY
        )
        + "[Eval batch=1/8] Eval on eval data\n[Eval batch=8/8] Eval on eval data:\n"
        "\t Eval metrics/eval/LanguageCrossEntropy: 3.1000\n"
        "\t Eval metrics/lambada/0-shot/InContextLearningLMAccuracy: 0.2500\n",
        {"last_step": 40, "total_steps": 100, "ended": "running"},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "learning_rate": (40, (1, 3e-4), (40, 3e-4)),
            "tokens_per_second": (40, (1, 12345.5), (40, 12345.5)),
            "mfu": (40, (1, 0.4), (40, 0.4)),
            "eval_loss": (1, (40, 3.1), (40, 3.1)),
        },
    ),
    "composer for some epochs": (
        "".join(
            f"[epoch={e}][batch={i}/20]:\n\t Train time/batch: {i - 1}\n"
            f"\t Train loss/train/total: {loss(20 * (e - 1) + i)}\n"
            for e in (1, 2)
            for i in range(1, 21)
        ),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2))},
    ),
    "composer for some tokens": (
        "".join(
            f"[token={i * 4096}/1000000]:\n\t Train time/batch: {i}\n"
            f"\t Train loss/train/total: {loss(i)}\n"
            for i in EVERY
        ),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2))},
    ),
    "nemo-rl": (
        "".join(
            f"\n{RULE} Step {i}/100 {RULE}\n▶ Generating responses for batch of size 32...\n\n"
            f"📊 Training Results:\n  • Loss: {loss(i)}\n  • Generation KL Error: 0.0012\n"
            f"  • Avg Reward: 0.{i:02d}\n  • Mean Generation Length: 512.5000\n\n"
            "⏱️  Timing:\n  • Total step time: 30.50s\n  • generation: 15.00s (50.0%)\n"
            for i in EVERY
        )
        + "\n📊 Validation Results:\n    • Accuracy: 0.4325\n"
        "    • Average response length: 500.0 tokens\n    • Samples processed: 256\n\n"
        "  ⏱️  Validation Timing:\n    • Total validation time: 10.12s\n",
        {"last_step": 40, "total_steps": 100, "ended": "running", "runs": 1},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "reward": (40, (1, 0.01), (40, 0.4)),
            "response_length": (40, (1, 512.5), (40, 512.5)),
            "step_time": (40, (1, 30.5), (40, 30.5)),
            "eval_accuracy": (1, (40, 0.4325), (40, 0.4325)),
            "eval_response_length": (1, (40, 500), (40, 500)),
        },
    ),
    "nemo-rl over two epochs": (
        "".join(
            f"\n{RULE} Epoch {e}/2 {RULE}\n"
            + "".join(
                f"\n{RULE} Step {i}/20 {RULE}\n\n📊 Training Results:\n"
                f"  • Loss: {loss(20 * (e - 1) + i)}\n"
                for i in range(1, 21)
            )
            for e in (1, 2)
        ),
        {"last_step": 40, "total_steps": 40, "ended": "finished", "runs": 1},
        {"loss": (40, (1, 2.98), (40, 2.2))},
    ),
    "easylm": (
        "".join(
            bar(i, 100)
            + f"\n\n{{'accuracy': 0.5,\n 'gradient_norm': 1.5,\n 'learning_rate': 0.0003,\n"
            f" 'loss': {loss(i)},\n 'param_norm': 100.25,\n 'step': {i}}}\n\n"
            for i in EVERY
        ),
        {"last_step": 40, "total_steps": 100},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "learning_rate": (40, (1, 3e-4), (40, 3e-4)),
            "grad_norm": (40, (1, 1.5), (40, 1.5)),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_what_they_print(name: str) -> None:
    check(LOGS[name])
