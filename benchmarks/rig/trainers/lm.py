"""A small transformer on characters of text that it makes itself, on the CPU.

    python lm.py config.json

Faults, by RIG_FAULT, are put where the real mistake is made: in building the model, in the loader,
in the update, in resuming. RIG_PREEMPT_AT has the first attempt end by SIGTERM at that step; the
next one finds its checkpoint and goes on.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from common import Log, Side, alphabet, fault, learning_rate, make_text, read_config
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset

FROM_THE_START = {
    "lr_high", "frozen", "no_step", "label_shift", "label_leak", "same_batch",
}  # fmt: skip
"""Faults that are there at the first step."""


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, width) to the same."""
        b, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Decoder with learnt positions."""

    def __init__(self, vocabulary: int, config: dict[str, Any]) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(config["sequence_length"], width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(config["num_layers"]))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        """(batch, length) to logits (batch, length, vocabulary)."""
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))  # type: ignore[no-any-return]


class Windows(IterableDataset[Tensor]):
    """Windows of the text at random places, one character longer than the context, and a further
    one for a label that is shifted once too often. `blocks_at` is the window at which the reader
    opens a pipe that nobody writes to, as a read from a mount that is gone."""

    def __init__(self, codes: Tensor, length: int, seed: int, pipe: str | None) -> None:
        self.codes, self.length, self.seed, self.pipe = codes, length, seed, pipe

    def __iter__(self) -> Iterator[Tensor]:
        draw = torch.Generator().manual_seed(self.seed)
        while True:
            if self.pipe and Path(self.pipe).exists():
                with Path(self.pipe).open("rb") as gone:
                    gone.read()
            place = int(torch.randint(len(self.codes) - self.length - 2, (1,), generator=draw))
            yield self.codes[place : place + self.length + 2]


class Run:
    """Model, data, optimizer and schedule of one config."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config, self.side, self.fault = config, Side(), fault()
        torch.manual_seed(config["seed"])
        torch.set_num_threads(1)
        text = make_text(config["seed"], config["characters"])
        known = alphabet()
        self.vocabulary = len(known)
        codes = torch.tensor([known[character] for character in text])
        cut = int(0.9 * len(codes))
        self.held = codes[cut:]
        self.model = Transformer(self.vocabulary, config)
        if self.fault == "frozen":  # a filter on names that matches nearly everything
            for name, parameter in self.model.named_parameters():
                parameter.requires_grad = "places" in name
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(
            trained, lr=config["learning_rate"], betas=(0.9, config["adam_beta2"])
        )
        self.half = config["precision"] == "fp16"
        self.scaler = torch.amp.GradScaler("cpu", enabled=self.half, growth_interval=100)
        self.total = config["max_steps"]
        self.onset = int(self.total * config["onset"])
        self.start, self.schedule_from = 0, 0
        self.hoard: list[Tensor] = []
        self.fixed: Tensor | None = None
        self.pipe = str(Path(os.environ.get("RIG_SIDE", ".")) / "pipe")
        self.codes = codes[:cut]
        self.log = Log(config["log_style"], self.total)
        if self.fault in FROM_THE_START:
            self.side.onset(0)

    # Data -----------------------------------------------------------------------------------------

    def load(self) -> None:
        """Start the loader; after a resume it draws other windows than before."""
        pipe = self.pipe if self.fault == "loader_blocks" else None
        config = self.config
        windows = Windows(self.codes, config["sequence_length"], config["seed"] + self.start, pipe)
        workers = config["loader_workers"]
        loader = DataLoader(windows, batch_size=config["batch_size"], num_workers=workers)
        self.batches = iter(loader)

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Inputs and labels of a step, both (batch, length)."""
        late = step >= self.onset
        if late and self.fault == "loader_blocks" and not Path(self.pipe).exists():
            self.side.onset(step)
            os.mkfifo(self.pipe)
        if late and self.fault == "loader_slow":
            self.side.onset(step)
            time.sleep(3 * self.usual)
        windows = next(self.batches)
        if self.fault == "same_batch":
            self.fixed = windows = windows if self.fixed is None else self.fixed
        if late and (
            self.fault == "corrupt_all" or (self.fault == "corrupt_some" and step % 12 == 0)
        ):
            self.side.onset(step)
            windows = torch.randint(self.vocabulary, windows.shape)
        shift = {"label_shift": 2, "label_leak": 0}.get(self.fault, 1)
        length = self.config["sequence_length"]
        return windows[:, :length], windows[:, shift : shift + length]

    # A step ---------------------------------------------------------------------------------------

    def loss(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy in nats."""
        with torch.autocast("cpu", dtype=torch.float16, enabled=self.half):
            logits = self.model(inputs)
        return functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())

    def step(self, step: int) -> tuple[float, float, float]:
        """One update: loss, the gradient's norm before clipping, the rate."""
        if step == self.onset:
            self.damage(step)
        rate = learning_rate(step - self.schedule_from, self.config)
        if self.fault == "lr_jump" and step >= self.onset:
            self.side.onset(step)
            rate *= 300  # a decimal point in a schedule's table
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = self.loss(*self.batch(step))
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config["max_grad_norm"])
        if self.fault != "no_step":
            self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.fault == "memory_leak" and step >= self.onset:
            self.side.onset(step)
            # What is kept of each step is as large as the activations of a run that logs them.
            self.hoard.append(torch.ones(self.config["leak_bytes"] // 4))
        return float(loss.detach()), float(norm), rate

    def damage(self, step: int) -> None:
        """Weights that are out of the range of 16 bits: every step overflows from here on."""
        if self.fault == "fp16_overflow":
            self.side.onset(step)
            with torch.no_grad():
                self.model.blocks[0].up.weight.mul_(3e5)  # type: ignore[union-attr, operator]

    @torch.no_grad()
    def evaluate(self, step: int, train_loss: float) -> None:
        """Log the loss on the held-out text, with labels as they should be."""
        length = self.config["sequence_length"]
        rows = torch.stack([self.held[i : i + length + 1] for i in range(0, 32 * 7, 7)])
        loss = self.loss(rows[:, :-1], rows[:, 1:])
        self.log.evaluated(step, train_loss, {"eval_loss": float(loss)})

    # Checkpoints ----------------------------------------------------------------------------------

    def save(self, step: int) -> None:
        """All that a resume needs; every checkpoint is kept."""
        folder = Path(self.config["output_dir"])
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"step_{step:06d}.pt"
        if self.fault == "disk_full" and step >= self.onset:
            self.side.onset(step)
        state = {"step": step, "model": self.model.state_dict()}
        torch.save({**state, "optimizer": self.optimizer.state_dict()}, path)
        self.log.say(f"saved checkpoint {path}")

    def resume(self) -> None:
        """Go on from the newest checkpoint, if there is one."""
        found = sorted(Path(self.config["output_dir"]).glob("step_*.pt"))
        if not found:
            return
        state = torch.load(found[-1], weights_only=True)
        step = int(state["step"])
        weights = state["model"]
        if self.fault == "resume_weights":  # saved from a wrapper, loaded without strict
            weights = {f"module.{name}": value for name, value in weights.items()}
        self.model.load_state_dict(weights, strict=self.fault != "resume_weights")
        if self.fault not in ("resume_optimizer", "resume_weights"):
            self.optimizer.load_state_dict(state["optimizer"])
        self.schedule_from = step if self.fault == "resume_schedule" else 0
        self.start = 0 if self.fault == "resume_step" else step
        if self.fault.startswith("resume_"):
            self.side.onset(self.start)
        self.log.say(f"resumed from checkpoint {found[-1]} at step {step}")

    # The loop -------------------------------------------------------------------------------------

    def train(self) -> None:
        """All steps."""
        config, preempt = self.config, int(os.environ.get("RIG_PREEMPT_AT", "0"))
        count = sum(p.numel() for p in self.model.parameters())
        self.resume()
        self.load()
        self.log.say(f"training for {self.total} steps, {count} parameters")
        losses: list[float] = []
        since = began = time.monotonic()
        paused = 0.0
        for step in range(self.start + 1, self.total + 1):
            self.usual = (time.monotonic() - began) / max(1, step - self.start - 1)
            if step == self.onset:
                self.at_onset = self.usual
            if step > self.onset and self.fault == "loader_slow":
                self.usual = self.at_onset
            loss, norm, rate = self.step(step)
            losses.append(loss)
            time.sleep(config["pause"])
            if step % config["log_every"] == 0:
                spent = (time.monotonic() - since - paused) / config["log_every"]
                values = {"loss": sum(losses) / len(losses), "grad_norm": norm, "lr": rate}
                if self.half:
                    values["loss_scale"] = self.scaler.get_scale()
                if config["log_memory"]:
                    values["rss_mb"] = resident_mebibytes()
                self.log.train(step, {**values, "seconds": spent})
                self.side.progress(step)
                losses.clear()
                since, paused = time.monotonic(), 0.0
            before = time.monotonic()
            if step % config["eval_every"] == 0:
                self.evaluate(step, loss)
            if step % config["save_every"] == 0:
                self.save(step)
            paused += time.monotonic() - before
            if preempt and step == preempt and self.start == 0 and not self.resumed():
                self.log.say("received SIGTERM, shutting down")
                os.kill(os.getpid(), signal.SIGTERM)
        self.log.finished()

    def resumed(self) -> bool:
        """Whether this attempt is not the first one; remembered beside the rig's notes."""
        mark = Path(os.environ["RIG_SIDE"]) / "preempted"
        if mark.exists():
            return True
        mark.touch()
        return False


def resident_mebibytes() -> float:
    """Resident memory of this process, after what is free was given back."""
    ctypes.CDLL(None).malloc_trim(0)
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


if __name__ == "__main__":
    Run(read_config()).train()
