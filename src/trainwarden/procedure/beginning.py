"""What a session starts from: the config's facts, its folder, the hypotheses that are due."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from trainwarden.errors import Trouble
from trainwarden.evidence.config import ConfigError, load_config, load_model_config, training_facts
from trainwarden.files import make_folder, trouble
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.hypothesis import Hypothesis, When
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
    if state is None:
        return []
    moment = state.strategy.evaluate_after
    return [
        hypothesis
        for hypothesis in state.strategy.hypotheses
        if (when := hypothesis.evaluate_after or moment) is not None and _has_come(when, state, now)
    ]


def _has_come(when: When, state: JobState, now: datetime) -> bool:
    if when.time is not None and now >= when.time:
        return True
    if when.step is None:
        return False
    expected = _expected_step(state, now)
    return expected is None or expected >= when.step


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
    if rate <= 0:
        # A run that stands still never comes to the step, so nobody may wait for it.
        return None
    return float(last["step"]) + rate * (now - ended).total_seconds()
