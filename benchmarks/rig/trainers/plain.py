"""A character model without any package: the next character by the last two, by plain SGD.

    python plain.py config.json

Faults, by RIG_FAULT: no_step, same_batch, lr_high (by its config), blocks, crash.
"""

from __future__ import annotations

import math
import random
import time

from common import Log, Side, alphabet, fault, learning_rate, make_text, read_config


class Model:
    """Logits of the next character: one row for the last one, one for the one before."""

    def __init__(self, size: int, seed: int) -> None:
        draw = random.Random(seed)
        self.size = size
        self.rows = [[draw.gauss(0, 0.02) for _ in range(size)] for _ in range(2 * size)]

    def chances(self, a: int, b: int) -> list[float]:
        """Probability of each character after `a`, `b`."""
        logits = [x + y for x, y in zip(self.rows[a], self.rows[self.size + b], strict=True)]
        top = max(logits)
        powers = [math.exp(value - top) for value in logits]
        total = sum(powers)
        return [power / total for power in powers]

    def step(self, batch: list[tuple[int, int, int]], rate: float) -> tuple[float, float]:
        """Loss in nats and the gradient's norm; the update is made when `rate` is above 0."""
        loss = 0.0
        grads: dict[int, list[float]] = {}
        for a, b, target in batch:
            chances = self.chances(a, b)
            loss -= math.log(max(chances[target], 1e-300))
            chances[target] -= 1.0
            for row in (a, self.size + b):
                held = grads.setdefault(row, [0.0] * self.size)
                for index, value in enumerate(chances):
                    held[index] += value / len(batch)
        norm = math.sqrt(sum(value * value for row in grads.values() for value in row))
        for row, grad in grads.items():
            kept = self.rows[row]
            for index, value in enumerate(grad):
                kept[index] -= rate * value
        return loss / len(batch), norm


def main() -> None:
    """Train."""
    config, side, broken = read_config(), Side(), fault()
    text = make_text(config["seed"], 20_000)
    known = alphabet()
    codes = [known[character] for character in text]
    train, held = codes[:18_000], codes[18_000:]
    draw = random.Random(config["seed"] + 1)
    model = Model(len(known), config["seed"])
    log = Log(config["log_style"], config["max_steps"])
    log.say(f"training for {config['max_steps']} steps, vocabulary {len(known)}")
    onset = int(config["max_steps"] * 0.4)
    side.onset(0) if broken in ("no_step", "lr_high") else None
    fixed: list[tuple[int, int, int]] | None = None
    losses: list[float] = []
    since = time.monotonic()
    for step in range(1, config["max_steps"] + 1):
        places = [draw.randrange(len(train) - 2) for _ in range(config["batch_size"])]
        batch = [(train[p], train[p + 1], train[p + 2]) for p in places]
        if broken == "same_batch":
            side.onset(1)
            fixed = batch = fixed or batch
        if broken == "blocks" and step == onset:
            side.onset(step)
            time.sleep(10_000)  # as a read from a mount that is gone
        if broken == "crash" and step == onset:
            side.onset(step)
            batch = [(a, b, target + len(known)) for a, b, target in batch]
        rate = learning_rate(step, config)
        loss, norm = model.step(batch, 0.0 if broken == "no_step" else rate)
        losses.append(loss)
        time.sleep(config["pause"])
        if step % config["log_every"] == 0:
            spent = (time.monotonic() - since) / config["log_every"]
            mean = sum(losses) / len(losses)
            log.train(step, {"loss": mean, "grad_norm": norm, "lr": rate, "seconds": spent})
            side.progress(step)
            losses.clear()
            since = time.monotonic()
        if step % config["eval_every"] == 0:
            total = 0.0
            for place in range(0, len(held) - 2, 4):
                chances = model.chances(held[place], held[place + 1])
                total -= math.log(max(chances[held[place + 2]], 1e-300))
            mean = total / len(range(0, len(held) - 2, 4))
            log.evaluated(step, loss, {"eval_loss": mean})
            since = time.monotonic()
    log.finished()


if __name__ == "__main__":
    main()
