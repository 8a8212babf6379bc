"""What of a job the guard is told: where its evidence lies, and what may be read before."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwarden.procedure import whereabouts
from trainwarden.records.job import Job


@pytest.mark.parametrize("name", ["trainer_state.json", "metrics.yaml", "run.jsonl", "train.log"])
def test_results_named_as_config_are_evidence(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("{}\n")
    job = Job(id="job", config=str(path), logs=(str(tmp_path / "other.log"),))
    assert str(path) in whereabouts.evidence(job, tmp_path)
    assert str(path) not in whereabouts.readable(job)


@pytest.mark.parametrize("name", ["config.yaml", "run.json", "train.py", "log_config.toml"])
def test_a_config_may_be_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("")
    job = Job(id="job", config=str(path), logs=(str(tmp_path / "train.log"),))
    assert whereabouts.readable(job) == [str(path)]
    assert str(path) not in whereabouts.evidence(job, tmp_path)
