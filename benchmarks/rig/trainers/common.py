"""What the rig's trainers share: text, schedules, log styles, and the side record.

The standard library alone, since the plain trainer runs on every machine. The side record is for
the rig and lies where the watch does not look: how far the run really is, and when its fault set
in.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

NOUNS = (
    "cat",
    "dog",
    "bird",
    "fox",
    "child",
    "farmer",
    "baker",
    "sailor",
    "king",
    "queen",
    "river",
    "stone",
    "tree",
    "lamp",
    "boat",
)
VERBS = (
    "sees",
    "likes",
    "finds",
    "calls",
    "follows",
    "carries",
    "paints",
    "draws",
    "greets",
    "helps",
)
ADJECTIVES = (
    "old",
    "young",
    "red",
    "green",
    "small",
    "tall",
    "quiet",
    "bright",
    "cold",
    "kind",
)
ENDINGS = ("in the morning", "at noon", "every day", "by the sea", "without a word", "twice")


def make_text(seed: int, characters: int) -> str:
    """Sentences of a small grammar, some of them sums that are right."""
    draw = random.Random(seed)
    sentences: list[str] = []
    size = 0
    while size < characters:
        if draw.random() < 0.15:
            a, b = draw.randrange(50), draw.randrange(50)
            sentence = f"{a} and {b} make {a + b}. "
        else:
            noun, other = draw.choice(NOUNS), draw.choice(NOUNS)
            sentence = f"the {draw.choice(ADJECTIVES)} {noun} {draw.choice(VERBS)} the {other}"
            sentence += f" {draw.choice(ENDINGS)}. " if draw.random() < 0.5 else ". "
        sentences.append(sentence)
        size += len(sentence)
    return "".join(sentences)[:characters]


def alphabet() -> dict[str, int]:
    """A number for each character of such text: `vocab_size` of the configs."""
    characters = "".join((*NOUNS, *VERBS, *ADJECTIVES, *ENDINGS, "the and make 0123456789."))
    return {character: number for number, character in enumerate(sorted(set(characters)))}


def learning_rate(step: int, config: dict[str, Any]) -> float:
    """Linear warm-up, then as `lr_scheduler_type` says: cosine to 0.1, linear to 0, constant."""
    peak, warmup, total = config["learning_rate"], config["warmup_steps"], config["max_steps"]
    if step <= warmup:
        return float(peak * step / max(1, warmup))
    share = min(1.0, (step - warmup) / max(1, total - warmup))
    kind = config["lr_scheduler_type"]
    if kind == "constant":
        return float(peak)
    if kind == "linear":
        return float(peak * (1 - share))
    return float(peak * (0.1 + 0.45 * (1 + math.cos(math.pi * share))))


class Side:
    """Notes for the rig, in the folder that it names; none where it names none."""

    def __init__(self) -> None:
        named = os.environ.get("RIG_SIDE")
        self.folder = Path(named) if named else None

    def _write(self, name: str, step: int) -> None:
        if self.folder is None:
            return
        partial = self.folder / f"{name}.{os.getpid()}"
        partial.write_text(json.dumps({"step": step, "time": time.time()}), encoding="utf-8")
        partial.replace(self.folder / name)

    def progress(self, step: int) -> None:
        """How far the run is."""
        self._write("progress.json", step)

    def onset(self, step: int) -> None:
        """The fault sets in now; only the first time counts."""
        if self.folder is not None and not (self.folder / "onset.json").exists():
            self._write("onset.json", step)


def fault() -> str:
    """The fault that the rig asks for; empty for a sound run."""
    return os.environ.get("RIG_FAULT", "")


class Log:
    """Prints what a run tells in one of the styles in use: plain, hf, jsonl or nano."""

    def __init__(self, style: str, total: int, per_epoch: int = 100) -> None:
        self.style, self.total, self.per_epoch = style, total, per_epoch
        self.began = time.monotonic()
        self.bar: Any = None
        if style == "hf":
            from tqdm.auto import tqdm  # type: ignore[import-untyped]

            self.bar = tqdm(total=total)

    def say(self, text: str) -> None:
        """A line that has no numbers of a step."""
        if self.style == "jsonl":
            print(json.dumps({"event": text, "time": round(time.time(), 3)}), flush=True)
        elif self.style == "plain":
            print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} | INFO | {text}", flush=True)
        else:
            print(text, flush=True)

    def train(self, step: int, values: dict[str, float]) -> None:
        """A step's numbers; `seconds` among them is the time of one step."""
        values = dict(values)
        seconds = values.pop("seconds", 0.0)
        if self.style == "jsonl":
            row = {"step": step, **{k: _short(v) for k, v in values.items()}}
            print(json.dumps({**row, "step_time": _short(seconds)}), flush=True)
        elif self.style == "hf":
            self.bar.update(step - self.bar.n)
            sys.stderr.flush()
            shown = {_hf(k): _short(v) for k, v in values.items()}
            print({**shown, "epoch": round(step / self.per_epoch, 2)}, flush=True)
        elif self.style == "nano":
            loss = values["loss"]
            more = "".join(f", {key} {value:.4g}" for key, value in values.items() if key != "loss")
            print(
                f"iter {step}: loss {loss:.4f}, time {1000 * seconds:.2f}ms{more}",
                flush=True,
            )
        else:
            shown_plain = " | ".join(f"{key} {value:.5g}" for key, value in values.items())
            self.say(f"step {step}/{self.total} | {shown_plain} | {1000 * seconds:.1f} ms/step")

    def evaluated(self, step: int, train_loss: float, values: dict[str, float]) -> None:
        """An evaluation's numbers, named as `eval_loss`."""
        if self.style == "jsonl":
            print(json.dumps({"step": step, **{k: _short(v) for k, v in values.items()}}))
            sys.stdout.flush()
        elif self.style == "hf":
            shown = {key: _short(value) for key, value in values.items()}
            print({**shown, "epoch": round(step / self.per_epoch, 2)}, flush=True)
        elif self.style == "nano":
            loss = values["eval_loss"]
            print(f"step {step}: train loss {train_loss:.4f}, val loss {loss:.4f}", flush=True)
        else:
            shown_plain = " | ".join(f"{key} {value:.4f}" for key, value in values.items())
            self.say(f"step {step}/{self.total} | {shown_plain}")

    def finished(self) -> None:
        """The last line of a run that reached its end."""
        if self.bar is not None:
            self.bar.close()
            spent = time.monotonic() - self.began
            print({"train_runtime": round(spent, 2), "train_steps": self.total}, flush=True)
        else:
            self.say("training finished")


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _hf(name: str) -> str:
    return "learning_rate" if name == "lr" else name


def read_config() -> dict[str, Any]:
    """The config named on the command line, and what the rig keeps out of it."""
    config: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    side = os.environ.get("RIG_SIDE")
    if side:
        config |= json.loads((Path(side) / "hidden.json").read_text(encoding="utf-8"))
    return config
