"""What a session starts from: the config's facts, its folder, the hypotheses that are due."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from trainwarden.errors import Trouble
from trainwarden.evidence.config import (
    ConfigError,
    TrainingFacts,
    load_config,
    load_model_config,
    training_facts,
)
from trainwarden.files import make_folder, trouble
from trainwarden.records.hypothesis import Hypothesis
from trainwarden.records.job import Job
from trainwarden.records.state import JobState


def read_facts(job: Job) -> tuple[TrainingFacts, str | None]:
    """The facts of a job's config, and what was wrong with it where it could not be read."""
    raw, problem = read_config(job)
    return training_facts(raw, load_model_config(job.model)), problem


def read_config(job: Job) -> tuple[dict[str, Any], str | None]:
    """A job's config as plain data, empty where it cannot be read, and then why."""
    if not job.config:
        return {}, None
    try:
        return load_config(Path(job.config)), None
    except ConfigError as error:
        return {}, f"the config says nothing: {error}"


def new_folder(logs: Path, now: datetime) -> tuple[Path, datetime]:
    """A folder named by the moment; two sessions of one second get two seconds."""
    make_folder(logs)
    for later in range(3_600):
        moment = now + timedelta(seconds=later)
        folder = logs / moment.strftime("%Y-%m-%d_%H%M%S")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise trouble("create the folder", folder, error) from error
        return folder, now
    raise Trouble(f"no free session name in {logs}: thousands of sessions carry this hour")


def due_hypotheses(state: JobState | None, now: datetime) -> list[Hypothesis]:
    """Hypotheses whose moment has come. A step cannot be known before looking, so it counts as
    come once the earlier sessions' own step rate says so, or when no rate is known."""
    if state is None or not state.strategy.hypotheses or state.strategy.evaluate_after is None:
        return []
    when = state.strategy.evaluate_after
    if when.time is not None and now >= when.time:
        return list(state.strategy.hypotheses)
    if when.step is None:
        return []
    expected = _expected_step(state, now)
    reached = expected is None or expected >= when.step
    return list(state.strategy.hypotheses) if reached else []


def _expected_step(state: JobState, now: datetime) -> float | None:
    rows = [row for row in state.monitor.samples if row.get("step") is not None and row.get("time")]
    if len(rows) < 2:
        return None
    first, last = rows[-2], rows[-1]
    began, ended = (datetime.fromisoformat(str(row["time"])) for row in (first, last))
    seconds = (ended - began).total_seconds()
    if seconds <= 0:
        return None
    rate = (float(last["step"]) - float(first["step"])) / seconds
    return float(last["step"]) + rate * (now - ended).total_seconds()
