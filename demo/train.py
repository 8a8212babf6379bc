"""Train the character model of `config.yaml` and log it as trainers do.

    python demo/train.py config.yaml [--max-steps N] [--fault KIND]

Checkpoints and a copy of the config go to the config's `output_dir`, relative to the current
folder.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import time
from pathlib import Path
from typing import Any

# One core is enough for a model this small; the others stay free for whoever watches.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
import yaml  # noqa: E402
from data import Loader  # noqa: E402
from faults import ONSET, Fault  # noqa: E402
from model import Adam, CharModel, clip  # noqa: E402


def log(text: str) -> None:
    """One line with the local time before it."""
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} | {text}", flush=True)


class Trainer:
    """The run: model, data, optimizer and schedule of one config."""

    def __init__(self, config: dict[str, Any], output: Path) -> None:
        model, data = config["model"], config["data"]
        self.settings: dict[str, Any] = config["training"]
        self.output = output
        self.max_steps = int(self.settings["max_steps"])
        seed = int(self.settings["seed"])
        self.loader = Loader(
            model["vocab_size"], model["context"], data["sequence_length"], data["batch_size"], seed
        )
        self.model = CharModel(**model, seed=seed)
        self.optimizer = Adam(self.model.params)
        self.evaluation = self.loader.held_out()
        self.learning_rate_scale = 1.0
        self.began = 0.0
        self.best = math.inf

    def learning_rate(self, step: int) -> float:
        """Linear warm-up, then a cosine down to the minimum at the last step."""
        peak, low = self.settings["learning_rate"], self.settings["min_learning_rate"]
        warmup = self.settings["warmup_steps"]
        if step <= warmup:
            return float(peak * step / warmup)
        share = (step - warmup) / max(1, self.max_steps - warmup)
        return float(low + (peak - low) * 0.5 * (1 + math.cos(math.pi * share)))

    def step(self, rate: float) -> tuple[float, float]:
        """One update; the loss and the gradient's norm before clipping."""
        loss, _, kept = self.model.forward(*self.loader.next())
        grads = self.model.backward(kept)
        norm = clip(grads, self.settings["max_grad_norm"])
        self.optimizer.update(grads, rate)
        return loss, norm

    def evaluate(self, step: int) -> None:
        """Log loss and accuracy on the held-out text."""
        results = [self.model.forward(*batch)[:2] for batch in self.evaluation]
        loss, accuracy = (float(column) for column in np.mean(results, axis=0))
        self.best = min(self.best, loss)
        log(f"step {step}/{self.max_steps} | eval_loss {loss:.4f} | eval_accuracy {accuracy:.4f}")

    def save(self, step: int) -> None:
        """Write a checkpoint that is there wholly or not at all."""
        path = self.output / f"step_{step:06d}.npz"
        partial = path.with_suffix(".tmp")
        with partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **self.model.params)
        partial.replace(path)
        log(f"step {step}/{self.max_steps} | saved checkpoint {path}")

    def run(self, fault: Fault) -> None:
        """All steps, with logging, evaluation and checkpoints at their intervals."""
        every = self.settings["log_every"]
        tokens = every * self.loader.batch * self.loader.length
        size = sum(value.size for value in self.model.params.values())
        log(
            f"training for {self.max_steps} steps | {size:,} parameters | "
            f"vocabulary {self.model.vocab_size} | {len(self.loader.tokens):,} characters"
        )
        self.began = since = time.monotonic()
        losses: list[float] = []
        for step in range(1, self.max_steps + 1):
            fault.apply(self, step)
            rate = self.learning_rate(step) * self.learning_rate_scale
            loss, norm = self.step(rate)
            losses.append(loss)
            if step % every == 0:
                seconds = time.monotonic() - since
                log(
                    f"step {step}/{self.max_steps} | loss {sum(losses) / len(losses):.4f} | "
                    f"grad_norm {norm:.3f} | lr {rate:.3e} | {tokens / seconds:,.0f} tok/s | "
                    f"{1000 * seconds / every:.1f} ms/step"
                )
                losses.clear()
                since = time.monotonic()
            paused = time.monotonic()
            if step % self.settings["eval_every"] == 0 or step == self.max_steps:
                self.evaluate(step)
            if step % self.settings["save_every"] == 0 or step == self.max_steps:
                self.save(step)
            since += time.monotonic() - paused
        log(
            f"training finished: {self.max_steps} steps in {time.monotonic() - self.began:.1f} s, "
            f"best eval_loss {self.best:.4f}"
        )


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description="Train a small character model.")
    parser.add_argument("config", type=Path)
    parser.add_argument("--max-steps", type=int, help="instead of the config's")
    parser.add_argument("--fault", choices=sorted(ONSET), help="break the run midway")
    options = parser.parse_args()
    config = yaml.safe_load(options.config.read_text(encoding="utf-8"))
    if options.max_steps:
        config["training"]["max_steps"] = options.max_steps
    output = Path(config["output_dir"])
    output.mkdir(parents=True, exist_ok=True)
    shutil.copy(options.config, output / "config.yaml")
    trainer = Trainer(config, output)
    trainer.run(Fault(options.fault, trainer.max_steps))


if __name__ == "__main__":
    main()
