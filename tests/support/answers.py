"""An analyst's answers that are accepted, to be spoilt one field at a time by the tests."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from trainwarden.evidence.base import Source
from trainwarden.evidence.logs import LogSource
from trainwarden.procedure.session import Session
from trainwarden.procedure.state import StateStore
from trainwarden.records.assessment import Assessment, Troubleshooting
from trainwarden.records.hypothesis import Strategy
from trainwarden.records.job import Job, job_id
from trainwarden.records.prediction import Prediction
from trainwarden.records.review import Review

MOMENT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=timezone.utc)


def write_log(path: Path, steps: range, start: float = 4.2, append: bool = False) -> None:
    """Step lines of a run that learns."""
    lines = [
        f"step {step} | loss {start * math.exp(-step / 900) + 0.8 + 0.01 * (step % 7):.4f} "
        f"| grad_norm {0.9 + 0.01 * (step % 5):.3f} | lr 3.0e-04\n"
        for step in steps
    ]
    with path.open("a" if append else "w", encoding="utf-8") as file:
        file.writelines(lines)


def make_job(root: Path) -> Job:
    """A job with a config and a log of 400 steps."""
    config, log = root / "config.yaml", root / "train.log"
    config.write_text("max_steps: 2000\nlearning_rate: 3.0e-4\nvocab_size: 64\n")
    write_log(log, range(0, 400, 10))
    return Job(id=job_id(str(config), None), config=str(config), logs=(str(log),))


def begin(root: Path, job: Job | None = None, **options: Any) -> Session:
    """A session by an analyst of the tests; the job's log is the only source."""
    options.setdefault("analyst", "tester")
    return Session.begin(StateStore(root), job or make_job(root), **options)


SOURCES: list[Source] = [LogSource()]


def predictions() -> list[Prediction]:
    """Progress, learning and resources."""
    return [
        Prediction(quantity="step", low=0, high=2000, level=0.9, basis="max_steps [C1]"),
        Prediction(quantity="loss", low=0.5, high=5, level=0.9, basis="below a uniform guess"),
        Prediction(quantity="process.alive", one_of=(True,), level=0.9, basis="just started"),
    ]


def find(session: Session, quantity: str, stat: str = "last") -> Any:
    """An observation of the session."""
    return next(
        item
        for item in session.observations.values()
        if (item.quantity, item.stat) == (quantity, stat)
    )


def assessment(session: Session, **changes: Any) -> Assessment:
    """HEALTHY with all that it owes."""
    first, last = find(session, "loss", "first"), find(session, "loss")
    fields: dict[str, Any] = {
        "status": "HEALTHY",
        "indicator": {
            "quantity": "loss",
            "direction": "decrease",
            "why": "the run logs the loss that it minimises",
        },
        "expected": "The loss should fall from the beginning on, fast at first.",
        "baseline": "A model that does not learn would stay at its first loss for ever.",
        "reasoning": f"The loss fell from {first.value:.4f} [{first.id}] to {last.value:.4f} "
        f"[{last.id}].",
        "progress": (first.id, last.id),
    }
    return Assessment.model_validate(fields | changes)


RESOURCES = "Only the log was read here, so nothing is known of the machine."


def review(session: Session, **changes: Any) -> Review:
    """An approval with a claim re-read."""
    last = find(session, "loss")
    fields: dict[str, Any] = {
        "reviewer": "second pair of eyes",
        "verdict": "approve",
        "seals": session.reviewed_seals(),
        "reread": [
            {"observation": last.id, "found": last.value, "agrees": True, "how": "last line"}
        ],
    }
    return Review.model_validate(fields | changes)


def skip() -> Troubleshooting:
    """Step 7 skipped."""
    return Troubleshooting(skipped="no finding and no deviation asks for it")


def strategy(**changes: Any) -> Strategy:
    """A plan without hypotheses, for a healthy run."""
    fields: dict[str, Any] = {
        "plan": {
            "actions": ["look again at step 800"],
            "success_criteria": ["the loss is lower by then"],
            "failure_criteria": ["the loss is not lower by then"],
        },
        "evaluate_after": {"step": 800},
    }
    return Strategy.model_validate(fields | changes)


def hypothesis(dimension: str, **changes: Any) -> dict[str, Any]:
    """One hypothesis, complete."""
    return {
        "dimension": dimension,
        "statement": f"The {dimension} is what holds the run back.",
        "action": f"Change the {dimension} in a short run of its own.",
        "expected_outcome": "The loss falls within fifty steps of that.",
        "failure_criterion": "The loss does not fall within fifty steps.",
        "counter_hypothesis": "Something else, the data, holds it back instead.",
        "cost": "fifty steps",
        "learnt_if_confirmed": "that it was the cause",
        "learnt_if_refuted": "that it was not the cause",
    } | changes


def walk_to(session: Session, step: str) -> Session:
    """Seal every step before the one named."""
    moves = {
        "predict": lambda: session.predict(predictions()),
        "collect": lambda: session.collect(SOURCES),
        "compare": session.compare,
        "metrics": lambda: session.assess(assessment(session)),
        "resources": lambda: session.resources(RESOURCES),
        "review": lambda: session.review(review(session)),
        "troubleshoot": lambda: session.troubleshoot(skip()),
        "strategy": lambda: session.strategize(strategy()),
        "summary": session.finish,
    }
    for name, move in moves.items():
        if name == step:
            break
        move()
    return session
