"""Trainers of large models: DeepSpeed, Megatron-LM and its relatives, NeMo, torchtitan."""

from __future__ import annotations

import pytest

from support.logs import EVERY, Log, check, lines, loss

SPEED = "[2023-11-07 01:55:23,711] [INFO] "
TITAN = "[titan] 2025-01-02 03:04:05,678 - root - INFO - "
TENS = range(10, 410, 10)


def megatron(i: int, total: int = 1000) -> str:
    return (
        f" [2024-05-06 07:08:09] iteration {i:8d}/{total:8d} | consumed samples: {i * 256:12d} | "
        "elapsed time per iteration (ms): 1234.0 | throughput per GPU (TFLOP/s/GPU): 180.1 | "
        f"learning rate: 1.500000E-05 | global batch size:   256 | lm loss: {loss(i / 10):.6E} | "
        "loss scale: 1.0 | grad norm: 1.500 | params norm: 1234.500 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def step(i: int) -> str:
    return (
        SPEED + f"[logging.py:96:log_dist] [Rank 0] step={i}, skipped=0, lr=[0.0001, 1e-05], "
        "mom=[(0.9, 0.95), (0.9, 0.95)]\n"
    )


def timer(i: int, each: int = 4, epoch: int = 0, before: int = 0) -> str:
    return (
        SPEED + f"[timer.py:260:stop] epoch={epoch}/micro_step={(i - before) * each}/"
        f"global_step={i}, RunningAvgSamplesPerSec=25.5, CurrSamplesPerSec=26.5, "
        "MemAllocated=4.0GB, MaxMemAllocated=38.5GB\n"
    )


MEGATRON_TIMES = (
    "(min, max) time across ranks (ms):\n"
    "    forward-backward ...............................: (1100.12, 1102.34)\n"
    "    optimizer ......................................: (50.12, 51.34)\n"
)
LOGS: dict[str, Log] = {
    "deepspeed": (
        # step: in a line of times is how long it took.
        "".join(
            step(i) + timer(i) + SPEED
            + "[logging.py:96:log_dist] [Rank 0] time (ms) | fwd_microstep: 10.25 | "
            "bwd_microstep: 20.5 | step_microstep: 30.5\n" + SPEED
            + "[logging.py:96:log_dist] [Rank 0] rank=0 time (ms) | fwd: 12.5 | bwd: 30.5 | "
            "step: 5.25\n"
            for i in TENS
        )
        + SPEED + "[launch.py:347:main] Process 1234 exits successfully.\n",
        {"last_step": 400, "ended": "finished", "runs": 1},
        {
            "learning_rate": (40, (10, 1e-4), (400, 1e-4)),
            "samples_per_second": (40, (10, 26.5), (400, 26.5)),
            "gpu_memory": (40, (10, 4 * 2**30), (400, 4 * 2**30)),
        },
    ),
    "deepspeed's pipelines": (
        "".join(
            step(i) + f"steps: {i} loss: {loss(i / 10):.4f} iter time (s): 1.250 "
            "samples/sec: 25.500\n"
            for i in TENS
        ),
        {"last_step": 400, "runs": 1},
        {
            "loss": (40, (10, 2.98), (400, 2.2)),
            "step_time": (40, (10, 1.25), (400, 1.25)),
            "samples_per_second": (40, (10, 25.5), (400, 25.5)),
        },
    ),
    "deepspeed-chat in fine-tuning": (
        # How many steps there are, its timer tells: 4 micro-batches each.
        "***** Running training *****\n***** Evaluating perplexity, Epoch 0/2 *****\n"
        "ppl: 4000.5, loss: 8.25\n"
        + "".join(
            f"Beginning of Epoch {e}/2, Total Micro Batches 80\n"
            + "".join(
                step(i) + timer(i, 4, e - 1, 20 * e - 20)
                for i in range(20 * e - 15, 20 * e + 1, 5)
            )
            + f"***** Evaluating perplexity, Epoch {e}/2 *****\nppl: {5 - e}.5, loss: 1.{e}\n"
            for e in (1, 2)
        ),
        {"last_step": 40, "total_steps": 40, "ended": "finished", "runs": 1},
        {
            "learning_rate": (8, (5, 1e-4), (40, 1e-4)),
            "eval_perplexity": (3, (0, 4000.5), (40, 3.5)),
            "eval_loss": (3, (0, 8.25), (40, 1.2)),
        },
    ),
    "deepspeed-chat's reward model": (
        "***** Evaluating reward, Epoch 0/1 *****\n"
        "chosen_last_scores (higher is better) : 2.5, acc (higher is better) : 0.48\n"
        "Beginning of Epoch 1/1, Total Micro Batches 40\n"
        + "".join(step(i) for i in (10, 20, 30, 40))
        + "Epoch 1/1 with loss 0.6512\n***** Evaluating reward, Epoch 1/1 *****\n"
        "chosen_last_scores (higher is better) : 4.25, "
        "rejected_last_scores (lower is better) : 1.5, acc (higher is better) : 0.71\n",
        {"last_step": 40},
        {
            "loss": (1, (40, 0.6512), (40, 0.6512)),
            "eval_accuracy": (2, (0, 0.48), (40, 0.71)),
        },
    ),
    "deepspeed-chat learning from rewards": (
        "Beginning of Epoch 1/1, Total Generation Batches 100\n"
        + "".join(
            f"Epoch: 0 | Step: {i} | PPO Epoch: 1 | Actor Loss: {loss(i)} | Critic Loss: 0.125 | "
            "Unsupervised Loss: 0.0\nEnd-to-End => Latency: 5.05s, TFLOPs: 20.12, "
            "Samples/sec: 6.34, Time/seq 0.16s, Batch Size: 32, Total Seq. Length: 512\n"
            "Generation => Latency: 3.54s, Per-token Latency 14.12 ms, TFLOPs: 1.52, "
            "BW: 180.12 GB/sec, Answer Seq. Length: 256\n"
            f"Average reward score: {i}.5 | EMA reward score: 1.25\n" + "-" * 85 + "\n"
            for i in EVERY
        ),
        {"last_step": 40, "total_steps": 100, "ended": "running"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "reward": (40, (1, 1.5), (40, 40.5))},
    ),
    "megatron": (
        # The validation at the end is told once more, and that of the test set after it.
        "  train_iters ..................................... 1000\n"
        + "".join(megatron(i) + MEGATRON_TIMES for i in range(100, 501, 100))
        + "[Rank 0] (after 500 iterations) memory (MB) | allocated: 12345.12 | "
        "max allocated: 23456.25 | reserved: 25000.0 | max reserved: 25000.0\n" + "-" * 90
        + "\n validation loss at iteration 500 | lm loss value: 4.125000E+00 | "
        "lm loss PPL: 6.187000E+01 | \n"
        "  successfully saved checkpoint from iteration     500 to /ckpt [ t 1/2, p 1/1 ]\n"
        + "".join(megatron(i) for i in range(600, 1001, 100))
        + "[after training is done] datetime: 2024-05-06 09:00:00 \n"
        " validation loss at iteration 1000 on validation set | lm loss value: 4.025000E+00 | "
        "lm loss PPL: 5.598000E+01 | \n",
        {"last_step": 1000, "total_steps": 1000, "ended": "finished", "runs": 1},
        {
            "loss": (10, (100, loss(10)), (1000, loss(100))),
            "grad_norm": (10, (100, 1.5), (1000, 1.5)),
            "learning_rate": (10, (100, 1.5e-5), (1000, 1.5e-5)),
            "step_time": (10, (100, 1.234), (1000, 1.234)),
            "params_norm": (10, (100, 1234.5), (1000, 1234.5)),
            "eval_loss": (2, (500, 4.125), (1000, 4.025)),
            "eval_perplexity": (2, (500, 61.87), (1000, 55.98)),
        },
    ),
    "megatron without a norm of its gradients": (
        megatron(10).replace(" grad norm: 1.500 |", ""),
        {"last_step": 10},
        {"params_norm": (1, (10, 1234.5), (10, 1234.5))},
    ),
    "megatron-deepspeed": (
        "".join(
            f" iteration {i:8d}/  317892 | consumed samples: {i * 768:12d} | "
            f"consumed tokens: {i * 768 * 2048:12d} | elapsed time per iteration (ms): 14287.5 | "
            f"learning rate: 2.407E-04 | global batch size:   768 | lm loss: {loss(i):.6E} | "
            "moe loss: 1.1E-01 | loss scale: 8192.0 | grad norm: 1.100 | num zeros: 0.0 | "
            "actual seqlen:  2048 | number of skipped iterations:   0 | "
            "number of nan iterations:   0 | samples per second: 53.750 | "
            "tokens per gpu per second (tgs): 1000.500 | TFLOPs: 50.12 |\n"
            for i in EVERY
        )
        + " validation loss at the end of training for val data | lm loss value: 2.125E+00 | "
        "lm loss PPL: 8.375E+00 | \n",
        {"last_step": 40, "total_steps": 317892},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "tokens_per_second": (40, (1, 1000.5), (40, 1000.5)),
            "num_tokens": (40, (1, 768 * 2048), (40, 40 * 768 * 2048)),
            "eval_loss": (1, (40, 2.125), (40, 2.125)),
        },
    ),
    "gpt-neox": (
        "".join(
            step(i) + f"steps: {i} loss: {loss(i):.4f} iter time (s): 8.000 samples/sec: 128.0\n"
            f" samples/sec: 127.500 | iteration {i:8d}/  320000 | "
            "elapsed time per iteration (ms): 8031.2 | learning rate: 6.000E-05 | "
            f"approx flops per GPU: 60.1TFLOPS | lm_loss: {loss(i):.6E} | loss scale: 65536.0 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
            for i in EVERY
        )
        + " validation results at iteration 40 | lm_loss value: 3.125000E+00 | "
        "lm_loss_ppl value: 2.276000E+01 | \n",
        {"last_step": 40, "total_steps": 320000, "runs": 1},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "eval_loss": (1, (40, 3.125), (40, 3.125)),
            "eval_perplexity": (1, (40, 22.76), (40, 22.76)),
        },
    ),
    "nemo": (
        # global_step is the number of the step before.
        "".join(
            f"\rEpoch 0: :   {i // 10}%|▏         | {i}/1000 [00:30<50:12,  3.00s/it, v_num=3, "
            f"reduced_train_loss={loss(i)}, global_step={i - 1}.000, consumed_samples=64.0, "
            "train_step_timing in s=2.500]"
            for i in EVERY
        )
        + "\rValidation DataLoader 0: 100%|█████| 10/10 [00:05<00:05,  2.0it/s]"
        "\rEpoch 0: :   4%|▏         | 40/1000 [00:30<50:12,  3.00s/it, v_num=3, "
        "reduced_train_loss=2.2, global_step=39.00, val_loss=2.450]\n"
        "Epoch 0, global step 40: 'val_loss' reached 2.45000 (best 2.45000), saving model to "
        "'/x/megatron--val_loss=2.45-step=40.ckpt' as top 1\n",
        {"last_step": 39, "total_steps": 1000, "runs": 1},
        {"loss": (40, (0, 2.98), (39, 2.2)), "eval_loss": (1, (39, 2.45), (39, 2.45))},
    ),
    "nemo's own lines": (
        lines(
            "[NeMo I 2025-01-02 03:04:05 nemo_logging:393] Training epoch 0, iteration {i}/999 | "
            "lr: 3e-05 | global_batch_size: 8 | global_step: {i} | reduced_train_loss: {l} | "
            "train_step_timing in s: 2.5 | consumed_samples: 64 | val_loss: 2.75"
        ),
        {"last_step": 40, "total_steps": 999},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "learning_rate": (40, (1, 3e-5), (40, 3e-5)),
            "step_time": (40, (1, 2.5), (40, 2.5)),
        },
    ),
    "torchtitan": (
        TITAN + "Training starts at step 1, with local batch size 8, global batch size 64, "
        "sequence length 2048, total steps 40 (warmup 2)\n"
        + lines(
            TITAN + "step: {i:2}  loss: {l:7.4f}  grad_norm:  1.5000  memory: 40.00GiB(50.10%)  "
            "tps: 1,2{i:02d}  tflops: 60.12  mfu: 20.00%"
        )
        + TITAN + "validate step: 40  loss:  2.5000  memory: 40.00GiB(50.10%)  tps: 5,123\n"
        + TITAN + "Training completed\n",
        {"last_step": 40, "total_steps": 40, "ended": "finished"},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "grad_norm": (40, (1, 1.5), (40, 1.5)),
            "mfu": (40, (1, 0.2), (40, 0.2)),
            "gpu_memory": (40, (1, 40 * 2**30), (40, 40 * 2**30)),
            "tokens_per_second": (40, (1, 1201), (40, 1240)),
            "eval_loss": (1, (40, 2.5), (40, 2.5)),
        },
    ),
    "torchtune": (
        lines(
            "Step {i} | loss:{l} lr:2e-05 tokens_per_second_per_gpu:1234.5 grad_norm:1.5 "
            "peak_memory_active:10.1 peak_memory_alloc:9.1 peak_memory_reserved:12.1 "
        ),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "tokens_per_second": (40, (1, 1234.5), (40, 1234.5))},
    ),
    "litgpt while nothing is validated yet": (
        lines("Epoch 1 | step {i}: loss train (now): {l}, val (last): None | iter time: 125.0 ms"),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "step_time": (40, (1, 0.125), (40, 0.125))},
    ),
    "litgpt": (
        # Validation is told by iterations, of which several make a step.
        "".join(
            f"Epoch 1 | iter {4 * i} step {i} | loss train: {loss(i)}, val: n/a | "
            "iter time: 125.00 ms (step)\n"
            for i in EVERY
        )
        + "iter 160: val loss 2.5000, val time: 1234.56 ms\n",
        {"last_step": 40},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "step_time": (40, (1, 0.125), (40, 0.125)),
            "eval_loss": (1, (40, 2.5), (40, 2.5)),
        },
    ),
    "paddlenlp": (
        lines(
            "[2024-01-02 03:04:05,678] [    INFO] - loss: {l}, learning_rate: 1e-05, "
            "global_step: {i}, interval_runtime: 1.2, interval_samples_per_second: 10.5, "
            "interval_steps_per_second: 0.8, ppl: 3.25, progress_or_epoch: 0.05"
        ),
        {"last_step": 40},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "perplexity": (40, (1, 3.25), (40, 3.25)),
            "samples_per_second": (40, (1, 10.5), (40, 10.5)),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_what_they_print(name: str) -> None:
    check(LOGS[name])
