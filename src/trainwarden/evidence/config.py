"""Training configs as plain data, and the facts of a run that they fix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainwarden.evidence.config_files import ConfigError, load_config, load_model_config

__all__ = [
    "ConfigError",
    "TrainingFacts",
    "find_config",
    "load_config",
    "load_model_config",
    "planned_steps",
    "training_facts",
]


@dataclass(frozen=True)
class TrainingFacts:
    """What a config says of a run, under canonical names; None where it does not say.

    `keys` maps each fact that is set to the config's own key (dotted), to be cited.
    """

    max_steps: int | None = None
    epochs: float | None = None
    steps_per_epoch: int | None = None
    batch_size: int | None = None
    """Samples per optimizer step over all ranks, where it can be told; else per device."""
    accumulation: int | None = None
    sequence_length: int | None = None
    learning_rate: float | None = None
    min_learning_rate: float | None = None
    warmup_steps: int | None = None
    warmup_ratio: float | None = None
    schedule: str | None = None
    """constant, linear, cosine, constant_with_warmup, polynomial, inverse_sqrt, wsd, …"""
    vocab_size: int | None = None
    num_classes: int | None = None
    log_every: int | None = None
    save_every: int | None = None
    eval_every: int | None = None
    output_dir: str | None = None
    precision: str | None = None
    world_size: int | None = None
    task: str | None = None
    """What is trained where the config tells: lm, classification, regression, rl, …"""
    metric_for_best_model: str | None = None
    greater_is_better: bool | None = None
    keys: Mapping[str, str] = field(default_factory=dict)


def planned_steps(facts: TrainingFacts) -> int | None:
    """Optimizer steps the run is to take: as said, or epochs times steps per epoch."""
    if facts.max_steps is not None:
        return facts.max_steps
    if facts.epochs is not None and facts.steps_per_epoch is not None:
        return math.ceil(facts.epochs * facts.steps_per_epoch)
    return None


def training_facts(
    config: Mapping[str, Any], model_config: Mapping[str, Any] | None = None
) -> TrainingFacts:
    """Recognise the facts of a run in its config and, for what it lacks, its model's config.

    Values are only read: numbers written as text ("1e-4", "5_000", "4800ba") count as numbers,
    "auto", expressions and negative "unset" marks count as not said. Never raises.
    """
    from trainwarden.evidence.config_facts import recognise

    return recognise(config, model_config or {})


def find_config(root: Path, log: Path | None = None) -> Path | None:
    """The most plausible training config near a log or a root folder; None if that isn't clear."""
    from trainwarden.evidence.config_finder import find_near

    return find_near(root, log)
