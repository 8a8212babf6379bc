"""A session that is under way, for whoever goes on with it and knows nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwarden.faces import tables
from trainwarden.procedure.ledger import next_step

if TYPE_CHECKING:
    from trainwarden.procedure.session import Session


def steps(listed: list[dict[str, Any]]) -> list[str]:
    """The nine steps as a list of tasks."""
    lines = []
    for step in listed:
        said = [f"revision {step['revision']}"] if step["revision"] > 1 else []
        said += ["skipped"] if step["skipped"] else []
        said += ["not guarded"] if step["done"] and step["guarded"] is False else []
        more = f" ({', '.join(said)})" if said else ""
        lines.append(f"[{'x' if step['done'] else ' '}] {step['task']}{more}")
    return lines


def recap(session: Session) -> list[str]:
    """Job, authority, criteria, what is sealed with the ids that can be cited, what is next."""
    header = session.header
    lines = [
        f"session {header.session} (number {header.number}) of job {header.job.id}, analyst "
        f"{header.analyst}, authority {header.authority}",
        f"config {header.job.config or '-'}; logs {', '.join(header.job.logs) or '-'}",
    ]
    lines += [f"guidance: {header.job.guidance}"] if header.job.guidance else []
    lines += [f"learning: {learning}" for learning in header.learnings]
    lines += tables.criteria(header.criteria, header.job.config)
    lines += _sealed(session)
    for due in session.due:
        lines.append(f"due {due.id}: {due.statement}; fails if: {due.failure_criterion}")
    return [*lines, *steps(session.steps()), session.next_line()]


def _sealed(session: Session) -> list[str]:
    following, _ = next_step(session.record)
    predicted = session.latest("predict") is not None
    lines: list[str] = []
    if session.latest("compare") is not None and following > 3:
        lines += tables.comparisons(session.comparisons, session.predictions)
        lines += tables.findings(session.findings)
    elif predicted:
        for made in session.predictions:
            stat = "" if made.stat == "last" else f"({made.stat})"
            lines.append(f"{made.id} {made.quantity}{stat} {tables.expected(made)}")
    if following > 2:
        lines.append(f"{len(session.observations)} observations: `trainwarden show --table`")
    if session.latest("metrics") is not None and following > 4:
        assessment, seen = session.assessment, session.observations
        lines.append(f"status {assessment.status.value}: {assessment.reasoning}")
        lines += [tables.observation(seen[name]) for name in session.load_bearing()]
    if (review := session.latest("review")) is not None:
        lines.append(f"review: {review.content['outcome']}")
        lines += [f"objection: {text}" for text in review.content["review"]["objections"]]
    return lines
