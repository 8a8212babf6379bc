"""All nine steps with an analyst and a reviewer, unattended."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainwarden.errors import Refusal, Trouble
from trainwarden.evidence.base import Source
from trainwarden.procedure.roles import Analyst, Reviewer
from trainwarden.procedure.session import Session
from trainwarden.records.session import Gate


def walk(
    session: Session,
    analyst: Analyst,
    reviewer: Reviewer,
    sources: Sequence[Source] | None = None,
    on_gate: Callable[[Gate], None] | None = None,
) -> Gate:
    """Walk a session that has just begun to its last gate, and return that.

    A rejected review has the analyst go through steps 2 to 5 once more. Raises Trouble where the
    machine does not allow it, or where an analyst without a user to ask gave what is refused.
    """
    told = on_gate or (lambda _: None)
    try:
        told(session.predict(analyst.predict(session.briefing())))
        while True:
            told(session.collect(sources))
            told(session.compare())
            told(session.assess(analyst.assess(session.briefing())))
            told(session.resources(analyst.resources(session.briefing())))
            root = session.store.logs.parent
            gate = session.review(reviewer.review(session.record, root))
            told(gate)
            if gate.content["outcome"] != "rejected":
                break
        told(session.troubleshoot(analyst.troubleshoot(session.briefing())))
        told(session.strategize(analyst.strategize(session.briefing())))
        last = session.finish()
    except Refusal as refusal:
        raise Trouble(
            f"the analyst {analyst.name!r} gave an answer that was refused, so session "
            f"{session.header.session} stays open at its last seal.\n{refusal}"
        ) from refusal
    told(last)
    return last
