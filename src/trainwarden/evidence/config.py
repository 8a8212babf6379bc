"""Training configs as plain data, and the facts of a run that they fix."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainwarden.evidence.config_files import ConfigError, load_config, load_model_config
from trainwarden.records.facts import TrainingFacts

__all__ = [
    "ConfigError",
    "find_config",
    "load_config",
    "load_model_config",
    "training_facts",
]


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
