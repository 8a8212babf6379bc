"""Large logs as trainers print them: step lines of 5 to 10 values, evaluations, other lines."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

Lines = Iterator[str]


def _loss(step: int, noise: random.Random) -> float:
    return 2 + 300 / (step + 100) + noise.random() / 20


def logger(noise: random.Random) -> Lines:
    """A logger's prefix, then pairs between bars; evaluations, checkpoints, a loader's words."""
    step = 0
    while True:
        step += 1
        clock = f"{step // 3600 % 24:02d}:{step // 60 % 60:02d}:{step % 60:02d}"
        head = (
            f"2026-01-{1 + step // 86_400 % 28:02d} {clock},{noise.randrange(1000):03d} - INFO - "
        )
        yield (
            f"{head}step {step} | loss {_loss(step, noise):.4f} | grad_norm {noise.random():.3f}"
            f" | lr {3e-4 / (1 + step / 1e6):.2e} | {61_000 + noise.randrange(999):,} tok/s"
            f" | mem {40 + noise.random():.2f}GiB\n"
        )
        if step % 50 == 0:
            yield f"{head}data loader worker {noise.randrange(8)} opened shard {step // 50}\n"
        if step % 500 == 0:
            yield f"{head}step {step} | val loss {_loss(step, noise):.4f} | val ppl 9.{step % 97}\n"
        if step % 2000 == 0:
            yield f"{head}Saved checkpoint to out/step_{step}.pt\n"


def nanogpt(noise: random.Random) -> Lines:
    """nanoGPT's lines, with an evaluation every 250 steps."""
    step = 0
    while True:
        if step % 250 == 0:
            first, second = _loss(step, noise), _loss(step, noise)
            yield f"step {step}: train loss {first:.4f}, val loss {second:.4f}\n"
            yield "saving checkpoint to out\n"
        yield (
            f"iter {step}: loss {_loss(step, noise):.4f}, time {90 + 20 * noise.random():.2f}ms, "
            f"mfu {30 + noise.random():.2f}%\n"
        )
        step += 1


def megatron(noise: random.Random) -> Lines:
    """Megatron-LM's lines, with validation between rulers and a line of timers now and then."""
    step = 0
    while True:
        step += 1
        yield (
            f" iteration {step:8d}/ 9000000 | consumed samples: {step * 256:12d} | "
            f"elapsed time per iteration (ms): {500 + noise.random() * 9:.1f} | "
            f"learning rate: {1e-4 / (1 + step / 1e6):.6E} | global batch size:   256 | "
            f"lm loss: {_loss(step, noise):.6E} | loss scale: 1.0 | "
            f"grad norm: {noise.random():.3f} | number of skipped iterations:   0 | "
            "number of nan iterations:   0 |\n"
        )
        if step % 100 == 0:
            yield f"    forward-backward ........................: {noise.random() * 99:.2f}\n"
        if step % 1000 == 0:
            ruler = "-" * 100 + "\n"
            yield ruler
            value = _loss(step, noise)
            yield (
                f" validation loss at iteration {step} | lm loss value: {value:.6E} | "
                f"lm loss PPL: {value * 3:.6E} | \n"
            )
            yield ruler


def hf(noise: random.Random) -> Lines:
    """The Hugging Face trainer's dicts, every ten redraws of its bar."""
    step, total = 0, 9_000_000
    while True:
        step += 1
        part = step * 100 // total
        bar = "█" * (part // 10) + " " * (10 - part // 10)
        spent = f"{step // 3600}:{step // 60 % 60:02d}:{step % 60:02d}"
        yield (
            f"\r{part:3d}%|{bar}| {step}/{total} [{spent}<{(total - step) // 3600}:09:31,"
            f"  {1 + noise.random():.2f}it/s]"
        )
        if step % 10 == 0:
            yield (
                f"{' ' * 26}\n\r{' ' * 40}\r{{'loss': {_loss(step, noise):.4f}, "
                f"'grad_norm': {noise.random() + 0.5}, "
                f"'learning_rate': {5e-5 * (1 - step / total)}, 'epoch': {step / 100_000:.2f}}}\n"
            )
        if step % 5000 == 0:
            yield (
                f"{{'eval_loss': {_loss(step, noise)}, 'eval_runtime': 12.5, "
                f"'eval_samples_per_second': 80.1, 'epoch': {step / 100_000:.2f}}}\n"
            )


def jsonl(noise: random.Random) -> Lines:
    """JSON lines of ten metrics, floats in full, with an evaluation every 500 steps."""
    step = 0
    while True:
        step += 1
        yield (
            json.dumps(
                {
                    "step": step,
                    "loss": _loss(step, noise),
                    "grad_norm": noise.random() + 0.5,
                    "learning_rate": 3e-4 / (1 + step / 1e6),
                    "epoch": step / 100_000,
                    "tokens_per_second": 61_000 + 999 * noise.random(),
                    "mfu": 0.4 + noise.random() / 50,
                    "gpu_memory_gb": 40 + noise.random(),
                    "step_time": 0.5 + noise.random() / 9,
                    "timestamp": 1_760_000_000.25 + step,
                }
            )
            + "\n"
        )
        if step % 500 == 0:
            yield json.dumps({"step": step, "eval_loss": _loss(step, noise)}) + "\n"


KINDS: dict[str, Callable[[random.Random], Lines]] = {
    "logger": logger,
    "nanogpt": nanogpt,
    "megatron": megatron,
    "hf": hf,
    "jsonl": jsonl,
}


def write(path: Path, kind: str, size: int, seed: int = 1) -> None:
    """Write a log of one kind of at least `size` bytes."""
    with path.open("wb") as file:
        held: list[str] = []
        written = 0
        for line in KINDS[kind](random.Random(seed)):
            held.append(line)
            if len(held) == 10_000:
                written += file.write("".join(held).encode())
                held.clear()
                if written >= size:
                    return
