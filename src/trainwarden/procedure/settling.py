"""What a finished session adds to its job's state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainwarden.files import locked, write_atomically
from trainwarden.procedure.state import StateStore
from trainwarden.records.assessment import KeyIndicator, Status
from trainwarden.records.hostile import clean
from trainwarden.records.hypothesis import Strategy
from trainwarden.records.prediction import Calibration
from trainwarden.records.review import Review
from trainwarden.records.session import Gate, SessionHeader
from trainwarden.records.state import JobState, StatusEntry

KEPT_SAMPLES = 500
MOST_LEARNINGS = 256 * 1024
"""Characters of `learnings.md` that are read."""


def settlement(header: SessionHeader, gates: Mapping[str, Gate]) -> Callable[[JobState], None]:
    """The change of the state that a session's newest gates make; twice is the same as once."""
    summary, collected = gates["summary"].content, gates["collect"].content
    compared = gates["compare"].content
    review = Review.model_validate(gates["review"].content["review"])
    deferral = gates["metrics"].content["assessment"]["deferral"]
    plan = Strategy.model_validate(gates["strategy"].content["strategy"])

    def settle(state: JobState) -> None:
        monitor, strategy = state.monitor, state.strategy
        monitor.open_session = None
        if any(entry.session == header.session for entry in monitor.status_history):
            return
        monitor.status = Status(summary["status"])
        monitor.status_history.append(
            StatusEntry(
                session=header.session,
                time=gates["summary"].sealed_at,
                status=monitor.status,
                step=summary["step"],
                indicator=KeyIndicator.model_validate(summary["indicator"]),
                value=summary["value"],
                findings=[finding["kind"] for finding in summary["findings"]],
                head=gates["summary"].seal,
                deferred_until=deferral["until_step"] if deferral else None,
            )
        )
        monitor.calibration = {
            name: Calibration.model_validate(count)
            for name, count in compared["calibration"].items()
        }
        monitor.reading_positions = collected["positions"]
        monitor.samples = [*monitor.samples, collected["sample"]][-KEPT_SAMPLES:]
        monitor.learnings += [
            learning.text
            for learning in review.learnings
            if learning.scope == "job" and learning.text not in monitor.learnings
        ]
        done = {score.hypothesis for score in plan.scores}
        strategy.hypotheses = [
            *(waiting for waiting in strategy.hypotheses if waiting.id not in done),
            *(
                # Each keeps its own moment, so that later plans cannot put its judgement off.
                chosen.model_copy(update={"evaluate_after": plan.evaluate_after})
                for chosen in plan.hypotheses
                if chosen.id == plan.chosen
            ),
        ]
        strategy.outcomes += plan.scores
        strategy.decisions.append(
            {"session": header.session, "chosen": plan.chosen, "by": plan.chosen_by}
        )
        strategy.plan = plan.plan
        strategy.evaluate_after = plan.evaluate_after

    return settle


def known_learnings(store: StateStore) -> list[str]:
    """The learnings for all jobs, from `monitoring-logs/learnings.md`."""
    try:
        with (store.logs / "learnings.md").open(encoding="utf-8", errors="replace") as file:
            text = file.read(MOST_LEARNINGS)
    except OSError:
        return []
    lines = (clean(line[2:], 2_000) for line in text.splitlines() if line.startswith("- "))
    return [line for line in lines if line]


def keep_learnings(store: StateStore, learnings: Sequence[Mapping[str, Any]]) -> None:
    """Add a review's learnings for all jobs to `learnings.md`, each once. Raises Trouble."""
    texts = [clean(item["text"], 2_000) for item in learnings if item["scope"] == "all"]
    if not texts:
        return
    with locked(store.logs / ".learnings.lock", wait=10, purpose="keep learnings"):
        known = known_learnings(store)
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            path = store.logs / "learnings.md"
            # What people wrote there stays as it is, byte for byte.
            kept = path.read_bytes() if path.exists() else b"# Learnings for all jobs\n\n"
            kept += b"" if kept.endswith(b"\n") else b"\n"
            lines = "".join(f"- {text}\n" for text in new)
            write_atomically(path, kept + lines.encode("utf-8", "replace"))
