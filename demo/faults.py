"""Faults put into the real run: each breaks a part of it, none only prints that it did."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from train import Trainer

ONSET = {
    "nan": 0.45,
    "divergence": 0.45,
    "plateau": 0.25,
    "stall": 0.5,
    "crash": 0.75,
    "oom": 0.5,
    "slow": 0.45,
    "leak": 0.25,
}
"""The share of the run after which each fault sets in."""

MEBI = 1 << 20
LEAK_LIMIT = 1200 * MEBI
OOM_LIMIT = 1500 * MEBI
OOM_SECONDS = 15.0


def available_memory() -> int:
    """Bytes that may be taken without harm, or a gibibyte where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:  # noqa: PTH123
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 1024 * MEBI


class Fault:
    """One fault; `apply` is called before every step and does nothing until the onset."""

    def __init__(self, kind: str | None, max_steps: int) -> None:
        self.kind = kind
        self.onset = int(max_steps * ONSET[kind]) if kind else 0
        self.remaining = max(1, max_steps - self.onset)
        self.budget = min(OOM_LIMIT if kind == "oom" else LEAK_LIMIT, available_memory() // 3)
        self.hoard: list[np.ndarray[tuple[int], np.dtype[np.uint8]]] = []
        self.began = 0.0
        self.usual = 0.0

    def apply(self, trainer: Trainer, step: int) -> None:
        """Break `trainer` in the way this fault does."""
        if self.kind is None or step < self.onset:
            return
        if step == self.onset:
            self.began = time.monotonic()
            self.usual = (self.began - trainer.began) / max(1, step - 1)
        getattr(self, f"_{self.kind}")(trainer, step)

    def _nan(self, trainer: Trainer, step: int) -> None:
        # Overflows float32 in the next forward pass: inf - inf in the softmax.
        if step == self.onset:
            trainer.model.params["out"] *= np.float32(1e38)

    def _divergence(self, trainer: Trainer, step: int) -> None:
        if step == self.onset:
            trainer.learning_rate_scale = 100.0

    def _plateau(self, trainer: Trainer, step: int) -> None:
        # The optimizer goes on with stale copies, as after a wrapper replaced the parameters.
        if step == self.onset:
            copies = {name: value.copy() for name, value in trainer.model.params.items()}
            trainer.optimizer.params = copies

    def _stall(self, trainer: Trainer, step: int) -> None:  # noqa: ARG002
        if step == self.onset:
            os.kill(os.getpid(), signal.SIGSTOP)

    def _crash(self, trainer: Trainer, step: int) -> None:  # noqa: ARG002
        # The next batch comes with windows one character too short for the first layer.
        trainer.loader.context -= 1

    def _slow(self, trainer: Trainer, step: int) -> None:  # noqa: ARG002
        # Input that is tokenised anew for every batch, for as long as a step used to take.
        until = time.monotonic() + self.usual
        while time.monotonic() < until:
            trainer.loader.tokenise(trainer.loader.text[:2000])

    def _leak(self, trainer: Trainer, step: int) -> None:  # noqa: ARG002
        self._grow(self.budget // self.remaining)

    def _oom(self, trainer: Trainer, step: int) -> None:
        elapsed = (time.monotonic() - self.began) / OOM_SECONDS
        share = min(1.0, max(elapsed, 4 * (step - self.onset) / trainer.max_steps))
        self._grow(int(self.budget * share) - sum(block.nbytes for block in self.hoard))
        if share >= 1.0:
            os.kill(os.getpid(), signal.SIGKILL)

    def _grow(self, size: int) -> None:
        if size > 0:
            self.hoard.append(np.ones(size, np.uint8))
