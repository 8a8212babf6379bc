"""nanoGPT and its relatives: nanochat, modded-nanogpt, build-nanogpt, llm.c."""

from __future__ import annotations

import pytest

from support.logs import EVERY, Log, check, lines, loss

TABLE = """\
+-----------------------+----------------------------------------------------+
| max_steps             | -1                                                 |
| train_num_batches     | 19560                                              |
| val_num_batches       | 20                                                 |
+-----------------------+----------------------------------------------------+
"""
NAN = float("nan")

LOGS: dict[str, Log] = {
    "mlx-lm": (
        "Starting training..., iters: 600\nIter 1: Val loss 3.100, Val took 12.345s\n"
        + lines(
            "Iter {i}: Train loss {l}, Learning Rate 1.000e-05, It/sec 0.512, Tokens/sec 301.5, "
            "Trained Tokens 9000, Peak mem 8.104 GB",
            range(10, 110, 10),
        )
        + "Iter 100: Saved adapter weights to adapters/0000100_adapters.safetensors.\n",
        {"last_step": 100, "total_steps": 600, "ended": "running"},
        {
            "loss": (10, (10, 2.8), (100, 1.0)),
            "eval_loss": (1, (1, 3.1), (1, 3.1)),
            "learning_rate": (10, (10, 1e-5), (100, 1e-5)),
        },
    ),
    "nanogpt": (
        # The last iteration is max_iters itself; the training loss beside val is a mean of many.
        "Overriding: max_iters = 40\nnumber of parameters: 10.65M\n"
        + "".join(
            (f"step {i}: train loss 2.5, val loss 2.{i}\nsaving checkpoint to out\n"
             if i % 20 == 0 else "")
            + f"iter {i}: loss {loss(i):.4f}, time 40.00ms, mfu {-100 if i < 5 else 12.5:.2f}%\n"
            for i in range(41)
        ),
        {"last_step": 40, "total_steps": 40, "ended": "finished"},
        {
            "loss": (41, (0, 3.0), (40, 2.2)),
            "train_loss": (3, (0, 2.5), (40, 2.5)),
            "eval_loss": (3, (0, 2.0), (40, 2.4)),
            "mfu": (36, (5, 0.125), (40, 0.125)),
            "step_time": (41, (0, 0.04), (40, 0.04)),
        },
    ),
    "nanogpt with a config file": (
        "Overriding config with config/train_x.py:\n# a small one\nmax_iters = 60\n"
        "lr_decay_iters = 60 # make equal to max_iters usually\nlearning_rate = 1e-3\n\n"
        + lines("iter {i}: loss {l}, time 40.00ms, mfu 12.50%"),
        {"last_step": 40, "total_steps": 60, "ended": "running"},
        {"loss": (40, (1, 2.98), (40, 2.2))},
    ),
    "nanochat": (
        # Times in minutes are no numbers of seconds; the last evaluation is at the last step.
        "Calculated number of iterations from target data:param ratio: 40\n"
        "Step 00000 | Validation bpb: 3.250000\n"
        + lines(
            "step {i:05d}/00040 (2.50%) | loss: {l} | lrm: 1.00 | dt: 480.00ms | "
            "tok/sec: 1,090,{i:03d} | bf16_mfu: 48.00 | epoch: 1 pq: 12 rg: 3 | "
            "total time: 0.50m | eta: 10.25m",
            range(40),
        )
        + "Step 00040 | Validation bpb: 1.012500\nStep 00040 | CORE metric: 0.1250\n"
        "If 5*x + 3 = 13, then x is 2\nPeak memory usage: 75374.27MiB\n"
        "Total training time: 20.50m\nMinimum validation bpb: 1.012500\n",
        {"last_step": 40, "total_steps": 40, "ended": "finished", "runs": 1},
        {
            "loss": (40, (0, 3.0), (39, loss(39))),
            "eval_bpb": (2, (0, 3.25), (40, 1.0125)),
            "core_metric": (1, (40, 0.125), (40, 0.125)),
            "step_time": (40, (0, 0.48), (39, 0.48)),
            "tokens_per_second": (40, (0, 1_090_000), (39, 1_090_039)),
            "mfu": (40, (0, 0.48), (39, 0.48)),
        },
    ),
    "nanochat in fine-tuning": (
        "Step 00000 | Validation loss: 1.250000\n"
        + lines("Step {i:05d}/00041 | Training loss: {l}| lrm: 1.000000| num_tokens: 12,345",
                range(41))
        + "Step 00040 | Validation loss: 1.012500\n"
        "Step 00040 | mmlu_acc: 0.312500, arc_easy_acc: 0.406250\n",
        {"last_step": 40, "total_steps": 41, "ended": "finished"},
        {
            "loss": (41, (0, 3.0), (40, 2.2)),
            "eval_loss": (2, (0, 1.25), (40, 1.0125)),
            "mmlu": (1, (40, 0.3125), (40, 0.3125)),
        },
    ),
    "nanochat learning from rewards": (
        lines("Step {i}/467 | Average reward: 0.{i:02d} | Average sequence length: 200.50"),
        {"last_step": 40, "total_steps": 467},
        {"reward": (40, (1, 0.01), (40, 0.4)), "response_length": (40, (1, 200.5), (40, 200.5))},
    ),
    "modded-nanogpt": (
        # The program's own text stands at the top of its log.
        "import os\n@dataclass\nclass Hyperparameters:\n    num_iterations = 1770 # to run\n"
        "    val_loss_every = 125\n    learning_rate : float = 0.0036\n"
        "print0(f'step:{step}/{args.num_iterations} val_loss:{val_loss:.4f}')\n" + "=" * 100
        + "\nRunning PyTorch 2.6.0.dev20241231+cu126 compiled for CUDA 12.6\n"
        "| NVIDIA-SMI 550.127.08             Driver Version: 550.127.08     CUDA Version: 12.4 |\n"
        + "=" * 100
        + "\nstep:0/1770 val_loss:10.8258 train_time:0ms step_avg:nanms\n"
        + lines("step:{i}/1770 train_time:{i}00ms step_avg:98.00ms")
        + "step:40/1770 val_loss:4.5000 train_time:4000ms step_avg:100.00ms\n",
        {"last_step": 40, "total_steps": 1770, "ended": "running", "runs": 1},
        {"eval_loss": (2, (0, 10.8258), (40, 4.5)), "step_time": (41, (1, 0.098), (40, 0.1))},
    ),
    "modded-nanogpt with its training loss": (
        lines("step:{i}/40 train_loss:{l} train_time:{i}00ms step_avg:98.00ms")
        + "step:40/40 val_loss:3.2750 train_time:4000ms step_avg:100.00ms\n"
        "peak memory consumption: 39000 MiB\n",
        {"last_step": 40, "total_steps": 40, "ended": "finished"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (1, (40, 3.275), (40, 3.275))},
    ),
    "build-nanogpt": (
        "total desired batch size: 524288\nvalidation loss: 10.9500\n"
        "HellaSwag accuracy: 2463/10042=0.2453\n"
        "rank 0 sample 0: Hello, I'm a language model, and step 3 has a loss\n"
        + lines(
            "step {i:5d} | loss: {l} | lr 6.0000e-04 | norm: 1.5000 | dt: 500.00ms | "
            "tok/sec: 1048576.50", range(41)
        )
        + "validation loss: 2.4000\nHellaSwag accuracy: 2515/10042=0.2504\n",
        {"last_step": 40, "ended": "running"},
        {
            "loss": (41, (0, 3.0), (40, 2.2)),
            "grad_norm": (41, (0, 1.5), (40, 1.5)),
            "learning_rate": (41, (0, 6e-4), (40, 6e-4)),
            "eval_loss": (2, (0, 10.95), (40, 2.4)),
        },
    ),
    "build-nanogpt's log.txt": (
        "0 val 10.9500\n0 hella 0.2500\n" + lines("{i} train {l}", range(41))
        + "40 val 2.4000\n40 hella 0.3125\n",
        {"last_step": 40},
        {
            "loss": (41, (0, 3.0), (40, 2.2)),
            "eval_loss": (2, (0, 10.95), (40, 2.4)),
            "hellaswag": (2, (0, 0.25), (40, 0.3125)),
        },
    ),
    "llm.c": (
        # The numbers with a z are how far from the usual, not what was measured.
        TABLE + "val loss 11.000000\n"
        + "".join(
            f"step {i:4d}/19560 | loss {loss(i):7.6f} ({'+nan' if i == 1 else '+0.52'}z)| "
            "norm 1.5000 (+nanz)| lr 6.00e-04 | 3585.00 ms | 45.0% bf16 MFU | 145701 tok/s\n"
            for i in EVERY
        )
        + "val loss 2.400000\nHellaSwag: 2515/10042 = 0.250448\n"
        "generating:\n---\nHe said that step 3 had a loss of 5.0\n---\n",
        {"last_step": 40, "total_steps": 19560, "ended": "running"},
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "grad_norm": (40, (1, 1.5), (40, 1.5)),
            "eval_loss": (2, (0, 11.0), (40, 2.4)),
            "hellaswag": (1, (40, 0.250448), (40, 0.250448)),
            "step_time": (40, (1, 3.585), (40, 3.585)),
            "mfu": (40, (1, 0.45), (40, 0.45)),
            "tokens_per_second": (40, (1, 145701), (40, 145701)),
        },
    ),
    "llm.c with an error before its first step": (
        TABLE + "val loss nan\n[CUDA ERROR] at file train_gpt2.cu:123:\nmisaligned address\n",
        {"last_step": 0, "total_steps": 19560, "ended": "crashed"},
        {"eval_loss": (1, (0, NAN), (0, NAN))},
    ),
    "llm.c's main.log": (
        "s:0 tel:11.0000\n" + lines("s:{i} trl:{l} lr:0.000600 norm:1.50", range(41))
        + "s:40 tel:2.4000\ns:40 eval:0.3125\n",
        {"last_step": 40},
        {
            "loss": (41, (0, 3.0), (40, 2.2)),
            "learning_rate": (41, (0, 6e-4), (40, 6e-4)),
            "grad_norm": (41, (0, 1.5), (40, 1.5)),
            "eval_loss": (2, (0, 11.0), (40, 2.4)),
            "hellaswag": (1, (40, 0.3125), (40, 0.3125)),
        },
    ),
    "llm.c in python": (
        lines(
            "step {i:4d}/40 | train loss {l} | norm 1.5000 | lr 6.00e-04 | "
            "(123.40 ms | 4321 tok/s)"
        ),
        {"last_step": 40, "total_steps": 40, "ended": "finished"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "grad_norm": (40, (1, 1.5), (40, 1.5))},
    ),
    "llm.c on a cpu": (
        "train dataset num_batches: 1192\nval loss 5.325531\n"
        + lines("step {i}: train loss {l} (took 1452.013000 ms)", range(41)),
        {"last_step": 40},
        {"loss": (41, (0, 3.0), (40, 2.2)), "eval_loss": (1, (0, 5.325531), (0, 5.325531))},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_what_they_print(name: str) -> None:
    check(LOGS[name])
