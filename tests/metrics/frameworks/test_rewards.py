"""Language models that learn from rewards: verl, OpenRLHF, slime, prime-rl."""

from __future__ import annotations

import pytest

from support.logs import EVERY, Log, bar, check, lines, loss

VERL = "\x1b[36m(TaskRunner pid=1234)\x1b[0m "
ROLLOUT = "(RolloutManager pid=11) [2025-01-02 03:04:05] rollout.py:300 - "
ACTOR = "(MegatronTrainRayActor pid=12) [2025-01-02 03:04:05] model.py:500 - "

LOGS: dict[str, Log] = {
    "verl": (
        VERL + "Total training steps: 435\n"
        + "".join(
            VERL + f"step:{i} - global_seqlen/min:{i}00 - actor/entropy:np.float64(0.4) - "
            f"actor/kl_loss:0.001 - actor/pg_loss:{loss(i)} - actor/pg_clipfrac:0.002 - "
            "actor/grad_norm:1.5 - perf/mfu/actor:0.2 - perf/max_memory_allocated_gb:40.0 - "
            f"actor/lr:1e-06 - training/global_step:{i} - training/epoch:0 - "
            f"critic/score/mean:0.5 - critic/rewards/mean:0.{i:02d} - response_length/mean:200.5 - "
            "response_length/clip_ratio:0.01 - timing_s/step:30.5 - perf/throughput:1234.5\n"
            for i in EVERY
        )
        + VERL + "step:40 - val-core/openai/gsm8k/reward/mean@1:0.5125\n",
        {"last_step": 40, "total_steps": 435, "ended": "running"},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "reward": (40, (1, 0.01), (40, 0.4)),
            "entropy": (40, (1, 0.4), (40, 0.4)),
            "kl": (40, (1, 0.001), (40, 0.001)),
            "learning_rate": (40, (1, 1e-6), (40, 1e-6)),
            "response_length/mean": (40, (1, 200.5), (40, 200.5)),
            "response_length/clip_ratio": (40, (1, 0.01), (40, 0.01)),
            "actor/pg_clipfrac": (40, (1, 0.002), (40, 0.002)),
            "step_time": (40, (1, 30.5), (40, 30.5)),
            "tokens_per_second": (40, (1, 1234.5), (40, 1234.5)),
            "eval_core/openai/gsm8k/reward/mean_1": (1, (40, 0.5125), (40, 0.5125)),
        },
    ),
    "verl in fine-tuning": (
        # lr(1e-3) is in units of a thousandth.
        lines("step:{i} - train/loss:{l} - train/lr(1e-3):0.01 - train/time(s):1.25")
        + "step:40 - val/loss:2.5\n",
        {"last_step": 40},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "learning_rate": (40, (1, 1e-5), (40, 1e-5)),
            "eval_loss": (1, (40, 2.5), (40, 2.5)),
        },
    ),
    "openrlhf": (
        lines(
            "2025-01-02 03:04:05.678 | INFO | ✨ Global step {i}: {{'policy_loss': {l}, "
            "'actor_lr': 1e-06, 'actor_grad_norm': 0.5, 'ppo_clip_ratio': 0.01, 'kl': 0.001, "
            "'reward': 0.25, 'response_length': 200.5, 'truncated': 0.125, "
            "'generate_time': '00:00:12'}}"
        ),
        {"last_step": 40},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "reward": (40, (1, 0.25), (40, 0.25)),
            "kl": (40, (1, 0.001), (40, 0.001)),
            "learning_rate": (40, (1, 1e-6), (40, 1e-6)),
            "grad_norm": (40, (1, 0.5), (40, 0.5)),
            "response_length": (40, (1, 200.5), (40, 200.5)),
            "ppo_clip_ratio": (40, (1, 0.01), (40, 0.01)),
        },
    ),
    "openrlhf beside its bars": (
        # Each step is a bar's; the bars of its epochs are within a step.
        "".join(
            bar(i, 100, label="Episode [1/20]: ")
            + "".join(bar(j, 10, ", pg=0.01, rm=0.3, kl=0.001", "Train epoch [1/1]: ")
                      for j in (5, 10))
            + f"\n{{'policy_loss': {loss(i)}, 'reward': 0.25, 'actor_lr': 1e-06}}\n"
            for i in EVERY
        ),
        {"last_step": 40, "total_steps": 100, "runs": 1},
        {"loss": (40, (1, 2.98), (40, 2.2)), "reward": (40, (1, 0.25), (40, 0.25))},
    ),
    "openrlhf in fine-tuning": (
        "".join(
            bar(i, 100, f", gpt_loss={loss(i)}, loss_mean={loss(i)}, lr=9e-6",
                "Train step of epoch 0: ")
            for i in EVERY
        )
        + bar(5, 10, ", eval gpt_loss=2.75", "Eval stage of steps 40: ")
        + bar(10, 10, ", eval gpt_loss=2.5", "Eval stage of steps 40: ") + "\n",
        {"last_step": 40, "total_steps": 100},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "learning_rate": (40, (1, 9e-6), (40, 9e-6)),
            "eval_loss": (1, (40, 2.5), (40, 2.5)),
        },
    ),
    "slime": (
        "".join(
            ROLLOUT + f"perf {i}: {{'rollout/response_len/mean': 200.5, "
            "'rollout/truncated_ratio': 0.125, 'perf/rollout_time': 20.1}\n"
            + ROLLOUT + f"rollout {i}: {{'rollout/rewards': 0.{i:02d}, "
            "'rollout/log_probs': -0.3}\n"
            + ACTOR + f"step {i}: {{'train/loss': {loss(i)}, 'train/pg_loss': {loss(i)}, "
            "'train/entropy_loss': 0.4, 'train/pg_clipfrac': 0.01, 'train/ppo_kl': 0.0001, "
            f"'train/grad_norm': 0.5, 'train/lr-pg_0': 1e-06, 'train/step': {i}}}\n"
            for i in range(41)
        )
        + ROLLOUT + "eval 40: {'eval/aime': 0.3125}\n",
        {"last_step": 40, "runs": 1},
        {
            "loss": (41, (0, 3.0), (40, 2.2)),
            "reward": (41, (0, 0.0), (40, 0.4)),
            "entropy": (41, (0, 0.4), (40, 0.4)),
            "kl": (41, (0, 1e-4), (40, 1e-4)),
            "grad_norm": (41, (0, 0.5), (40, 0.5)),
            "learning_rate": (41, (0, 1e-6), (40, 1e-6)),
            "response_length": (41, (0, 200.5), (40, 200.5)),
            "clipped_ratio": (41, (0, 0.125), (40, 0.125)),
            "eval_aime": (1, (40, 0.3125), (40, 0.3125)),
        },
    ),
    "prime-rl": (
        # The mismatch of trainer and generator is not the divergence from the reference.
        lines(
            "03:04:05 [SUCCESS] [train.py:300] Step {i} | Time: 25.50s | Loss: {l} | "
            "Entropy: 0.35 | Mismatch KL: 0.0003 | Grad. Norm: 0.025 | LR: 1.00e-06 | "
            "Throughput: 5123 tokens/s | MFU: 12.5% | Peak Mem.: 60.0 GiB"
        ),
        {"last_step": 40},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "entropy": (40, (1, 0.35), (40, 0.35)),
            "mismatch_kl": (40, (1, 0.0003), (40, 0.0003)),
            "grad_norm": (40, (1, 0.025), (40, 0.025)),
            "learning_rate": (40, (1, 1e-6), (40, 1e-6)),
            "tokens_per_second": (40, (1, 5123), (40, 5123)),
            "mfu": (40, (1, 0.125), (40, 0.125)),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_what_they_print(name: str) -> None:
    check(LOGS[name])
