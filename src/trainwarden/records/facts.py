"""The facts of a run that its config fixes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


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
