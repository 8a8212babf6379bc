"""Recognising the facts of a run in a config, whichever trainer it was written for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from trainwarden.records.facts import TrainingFacts
from trainwarden.records.hostile import clean

Value = TypeVar("Value")

MAX_KEYS = 20_000


def flatten(config: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings under dotted keys, at most `MAX_KEYS`, in the config's order.

    A list with one scalar stands as that scalar, longer ones under their indices as well as
    whole. The `value` level that W&B writes around each setting is left out.
    """
    flat: dict[str, Any] = {}
    stack: list[tuple[str, Any, int]] = [("", config, 0)]
    while stack and len(flat) < MAX_KEYS:
        name, value, depth = stack.pop()
        if isinstance(value, Mapping) and depth < 64:
            if name and "value" in value and set(value) <= {"value", "desc"}:
                stack.append((name, value["value"], depth + 1))
                continue
            if name:
                flat.setdefault(name, value)
            items: list[tuple[Any, Any]] = list(value.items())[:MAX_KEYS]
        elif isinstance(value, (list, tuple)) and name:
            if len(value) == 1 and not isinstance(value[0], (Mapping, list, tuple)):
                flat.setdefault(name, value[0])
                continue
            flat.setdefault(name, value)
            items = list(enumerate(value[:200])) if depth < 64 else []
        else:
            flat.setdefault(name, value)
            continue
        for key, item in reversed(items):
            stack.append((f"{name}.{key}" if name else str(key), item, depth + 1))
    return flat


def recognise(config: Mapping[str, Any], model_config: Mapping[str, Any]) -> TrainingFacts:
    """`training_facts` of `trainwarden.evidence.config`, which see."""
    return _Facts(config, model_config).collect()


def _number(value: Any) -> float | None:
    """The finite number a value stands for, if it is one."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        text = value.strip().replace("_", "").replace(",", "")
        if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", text[:40]) or (
            len(text) > 40
        ):
            return None
        value = float(text)
    if not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _count(value: Any) -> int | None:
    """A positive whole number."""
    number = _number(value)
    return int(number) if number is not None and 0 < number < 1e15 and number % 1 == 0 else None


def _duration(value: Any, units: tuple[str, ...]) -> Any:
    """`4800ba` or `3ep` without its unit, if the unit is one of `units`; None if another."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([\d_.]+(?:e\d+)?)\s*([a-zA-Z]+)\s*", value[:60])
        if match:
            return match[1] if match[2].lower() in units else None
    return value


def _word(value: Any, limit: int = 60) -> str | None:
    """A name in the safe charset, or None for what is no name."""
    if not isinstance(value, str) or not value.strip():
        return None
    return re.sub(r"[^a-z0-9_./-]+", "_", clean(value, limit).lower()).strip("_") or None


class _Facts:
    """One config being read: looks keys up by the names of `config_keys`, keeps what it cites."""

    def __init__(self, config: Mapping[str, Any], model_config: Mapping[str, Any]) -> None:
        self.flat = flatten(config)
        self.model = flatten(model_config)
        self.found: dict[str, Any] = {}
        self.keys: dict[str, str] = {}
        self.by_tail: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self.model_tails: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for flat, tails in ((self.flat, self.by_tail), (self.model, self.model_tails)):
            for key in flat:
                parts = tuple(_normal(part) for part in key.split("."))
                tails.setdefault(parts[-1], []).append((parts, key))

    def matches(self, fact: str, *, model: bool = False) -> Iterable[tuple[str, Any]]:
        """Keys (as written) and values under any name of the fact, the most telling first."""
        from trainwarden.evidence.config_keys import NAMES, OTHER_SECTIONS

        flat, tails = (self.model, self.model_tails) if model else (self.flat, self.by_tail)
        ranked: list[tuple[bool, int, int, str]] = []
        for place, name in enumerate(NAMES[fact]):
            wanted = tuple(name.lstrip("^").split("."))
            for parts, key in tails.get(wanted[-1], ()):
                if parts[-len(wanted) :] == wanted and (name[0] != "^" or len(parts) == 1):
                    aside = any(part in OTHER_SECTIONS for part in parts[:-1])
                    ranked.append((aside, place, len(parts), key))
        for _, _, _, key in sorted(ranked, key=lambda entry: entry[:3]):
            yield key, flat[key]

    def first(
        self, fact: str, read: Callable[[Any], Value | None], *, model: bool = False
    ) -> tuple[str, Value] | None:
        """Key and reading of the first value that `read` accepts (not None)."""
        for key, value in self.matches(fact, model=model):
            result = read(value)
            if result is not None:
                return key, result
        return None

    def take(
        self, fact: str, read: Callable[[Any], Value | None], *, model: bool = False
    ) -> Value | None:
        """`first`, kept and cited as the fact's."""
        found = self.first(fact, read, model=model)
        if found is None:
            return None
        self.cite(fact, found[1], f"model config: {found[0]}" if model else found[0])
        return found[1]

    def cite(self, fact: str, value: Any, key: str) -> None:
        self.found[fact] = value
        self.keys[fact] = clean(key, 120)

    def get(self, *names: str) -> Any:
        """The value under one of these last key parts, wherever it is nested."""
        for name in names:
            for _, key in self.by_tail.get(name, ()):
                return self.flat[key]
        return None

    def collect(self) -> TrainingFacts:
        self._length()
        self._batch()
        self._rate()
        self._cadence()
        self._kind()
        self.take("output_dir", lambda v: v if isinstance(v, str) and 0 < len(v) < 4096 else None)
        return TrainingFacts(**self.found, keys=self.keys)

    def _length(self) -> None:
        batches = ("ba", "batches", "steps", "step", "it", "iters", "iter")
        self.take("max_steps", lambda v: _count(_duration(v, batches)))
        self.take("steps_per_epoch", _count)

        def epochs(value: Any) -> float | None:
            number = _number(_duration(value, ("ep", "epoch", "epochs")))
            return number if number is not None and 0 < number < 1e9 else None

        # `max_duration: 4800` without a unit is of steps and must not be read twice.
        for key, value in self.matches("epochs"):
            bare = key.endswith("max_duration") and not isinstance(value, str)
            result = None if bare else epochs(value)
            if result is not None:
                self.cite("epochs", result, key)
                break

    def _batch(self) -> None:
        self.take("accumulation", _count)
        world = self.take("world_size", _count)
        device = self.first("devices_per_node", _count)
        if world is None and device:
            nodes = self.first("nodes", _count)
            world = device[1] * (nodes[1] if nodes else 1)
            self.cite("world_size", world, f"{device[0]} × {nodes[0]}" if nodes else device[0])
        total, each = self.first("global_batch", _count), self.first("device_batch", _count)
        if total:
            self.cite("batch_size", total[1], total[0])
        elif each and world is None:
            self.cite("batch_size", each[1], each[0])
        elif each and world is not None:
            product = each[1] * world * self.found.get("accumulation", 1)
            factors = (self.keys.get(fact) for fact in ("accumulation", "world_size"))
            self.cite("batch_size", product, " × ".join([each[0], *filter(None, factors)]))

    def _rate(self) -> None:
        def rate(value: Any) -> float | None:
            if isinstance(value, str):
                # Stable-Baselines3's zoo writes `lin_0.00025` for one that falls to zero.
                value = re.sub(r"^lin_", "", value)
            number = _number(value)
            return number if number is not None and 0 < number < 1e6 else None

        peak = self.take("learning_rate", rate)
        least = self.take(
            "min_learning_rate",
            lambda v: n if (n := _number(v)) is not None and 0 <= n < (peak or math.inf) else None,
        )
        if least is None and peak is not None:
            for key, value in self.matches("min_lr_ratio"):
                ratio = _number(value)
                if ratio is not None and 0 <= ratio <= 1:
                    self.cite(
                        "min_learning_rate", ratio * peak, f"{key} × {self.keys['learning_rate']}"
                    )
                    break
        self._warmup()
        self._schedule()

    def _warmup(self) -> None:
        def share(value: Any) -> float | None:
            number = _number(value)
            return number if number is not None and 0 <= number < 1 else None

        for key, value in self.matches("warmup_steps"):
            number = _number(_duration(value, ("ba", "steps", "it")))
            if number is not None and number >= 0 and number % 1 == 0:
                self.cite("warmup_steps", int(number), key)
                break
            if number is not None and 0 < number < 1:
                # Newer transformers take a share of all steps under the same name.
                self.cite("warmup_ratio", number, key)
                break
        if not self.found.get("warmup_steps") and "warmup_ratio" not in self.found:
            ratio = self.take("warmup_ratio", share)
            if ratio:
                # A default of 0 steps beside a ratio stands for "not set" everywhere.
                self.found.pop("warmup_steps", None)
                self.keys.pop("warmup_steps", None)
        if self.found.get("warmup_steps") or self.found.get("warmup_ratio"):
            return
        epochs = self.first("warmup_epochs", lambda v: n if (n := _number(v)) and n > 0 else None)
        each, total = self.found.get("steps_per_epoch"), self.found.get("epochs")
        if epochs and each:
            key = f"{epochs[0]} × {self.keys['steps_per_epoch']}"
            self.cite("warmup_steps", round(epochs[1] * each), key)
        elif epochs and total and epochs[1] < total:
            self.cite("warmup_ratio", epochs[1] / total, f"{epochs[0]} / {self.keys['epochs']}")

    def _schedule(self) -> None:
        from trainwarden.evidence.config_keys import SCHEDULES

        def named(value: Any) -> str | None:
            word = _word(value)
            if word is None or word in {"none", "null", "auto"}:
                return None
            ours = (ours for theirs, ours in SCHEDULES if theirs in word)
            return next(ours, word)

        self.take("schedule", named)
        chain = self.get("param_scheduler")
        if isinstance(chain, (list, tuple)) and chain and isinstance(chain[-1], Mapping):
            # mmengine: the last of the chain decays, those before it warm up.
            name = named(chain[-1].get("type"))
            if name:
                self.cite("schedule", name, f"param_scheduler.{len(chain) - 1}.type")
            first = chain[0] if isinstance(chain[0], Mapping) else {}
            end = _count(first.get("end"))
            if len(chain) > 1 and end and first.get("by_epoch") is False:
                self.cite("warmup_steps", end, "param_scheduler.0.end")
        rate = self.get("learning_rate")
        decays = self.get("decay_lr", "cos_lr")
        if "schedule" not in self.found and isinstance(rate, str) and rate.startswith("lin_"):
            self.cite("schedule", "linear", "learning_rate")
        elif "schedule" not in self.found and isinstance(decays, bool):
            key = "decay_lr" if self.get("decay_lr") is not None else "cos_lr"
            falls = "cosine" if decays else ("constant" if key == "decay_lr" else "linear")
            self.cite("schedule", falls, key)
        elif "schedule" not in self.found and self.get("lr_decay_iters") is not None:
            self.cite("schedule", "cosine", "lr_decay_iters")
        if self.found.get("schedule") in {"cosine", "linear"} and self.get("decay_ratio"):
            # torchtitan: the rate is held until the last `decay_ratio` of the steps.
            self.cite("schedule", "wsd", "decay_ratio")

    def _cadence(self) -> None:
        total = self.found.get("max_steps")

        def every(value: Any) -> int | None:
            number = _number(_duration(value, ("ba", "steps", "it")))
            if number is not None and 0 < number < 1 and total:
                # Hugging Face takes a share of all steps under the same name.
                return max(1, math.ceil(number * int(total)))
            return _count(number)

        strategies = {
            "log_every": ("logging_strategy",),
            "save_every": ("save_strategy", "checkpointing_strategy"),
            "eval_every": ("eval_strategy", "evaluation_strategy"),
        }
        # mmengine counts in epochs unless told otherwise.
        loop = str(self.flat.get("train_cfg.type", "")).lower()
        hook = self.flat.get("default_hooks.checkpoint.type")
        by_epoch = self.flat.get("default_hooks.checkpoint.by_epoch", True)
        in_epochs = {
            "save_every": hook == "CheckpointHook" and by_epoch is not False,
            "eval_every": "epoch" in loop or self.flat.get("train_cfg.by_epoch") is True,
        }
        for fact, names in strategies.items():
            if in_epochs.get(fact):
                continue
            if str(self.get(*names) or "steps").lower() not in {
                "epoch",
                "epochs",
                "no",
                "never",
                "best",
            }:
                self.take(fact, every)

    def _kind(self) -> None:
        def size(value: Any) -> int | None:
            if isinstance(value, (list, tuple, Mapping)):
                return len(value) if len(value) > 1 else None
            return count if (count := _count(value)) and count > 1 else None

        if self.take("vocab_size", _count) is None:
            self.take("vocab_size", _count, model=True)
        if self.take("num_classes", size) is None:
            self.take("num_classes", size, model=True)
        self.take("sequence_length", _count)
        self._precision()
        self.take("metric_for_best_model", _word)
        self.take("greater_is_better", lambda v: v if isinstance(v, bool) else None)
        if "greater_is_better" not in self.found:
            mode = self.get("monitor_mode", "mode")
            if mode in ("max", "min") and "metric_for_best_model" in self.found:
                self.cite("greater_is_better", mode == "max", "mode")
        self._task()

    def _precision(self) -> None:
        for names, value in (
            (("bf16", "bf16.enabled", "bf16_enabled"), "bf16"),
            (("fp16", "fp16.enabled", "fp16_enabled"), "fp16"),
        ):
            for name in names:
                if self.flat.get(name) is True or str(self.flat.get(name)).lower() == "true":
                    self.cite("precision", value, name)
                    return
        self.take("precision", lambda v: str(v) if v in (16, 32, 64) else _word(v, 20))

    def _task(self) -> None:
        from trainwarden.evidence.config_keys import TASKS

        def named(value: Any) -> str | None:
            word = _word(value, 40)
            return TASKS.get(word or "")

        if self.take("task", named):
            return
        for keys, task in (
            (
                (
                    "num_generations",
                    "reward_funcs",
                    "total_timesteps",
                    "n_timesteps",
                    "adv_estimator",
                ),
                "rl",
            ),
            (("rl",), named(self.get("rl"))),
        ):
            key = next((name for name in keys if self.get(name) is not None), None)
            if key and task:
                self.cite("task", task, key)
                return
        architectures = self.model.get("architectures") or self.get("architectures")
        for part in ("causallm", "sequenceclassification", "imageclassification"):
            if part in str(architectures or "")[:200].lower():
                self.cite("task", TASKS[part], "model config: architectures")
                return
        if "num_classes" in self.found:
            self.cite("task", "classification", self.keys["num_classes"])
        elif "vocab_size" in self.found or "block_size" in self.by_tail:
            self.cite("task", "lm", self.keys.get("vocab_size", "block_size"))


def _normal(part: str) -> str:
    return part.strip().lstrip("-").replace("-", "_").lower()
