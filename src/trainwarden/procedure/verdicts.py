"""Where a verdict comes from in Claude Code: from the reviewer that the guard saw."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trainwarden.errors import Refusal
from trainwarden.procedure.intake import data_in, parse
from trainwarden.procedure.witness import AGENT, Heard, Witness
from trainwarden.records.review import Review

if TYPE_CHECKING:
    from trainwarden.procedure.session import Session
STILL = "the reviewer is still at work: wait until it has ended, then run `trainwarden review`"

_FENCED = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?:ya?ml|json)?[ \t]*\n"
    r"(?P<text>.*?)^[ \t]*(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
ASK = (
    f"start the sub-agent {AGENT}, wait until it has ended with its verdict, and run "
    "`trainwarden review` again"
)


def block_in(message: str) -> Any:
    """The last fenced block of a message that is a verdict, as data. Raises Refusal."""
    problem = "its last message has no fenced ```yaml block with a `verdict`"
    for found in reversed(list(_FENCED.finditer(message))):
        if "verdict" not in found["text"]:
            continue
        data = data_in(found["text"])
        if isinstance(data, dict) and "verdict" in data:
            return data
    raise Refusal(problem)


def _review(session: Session, heard: Heard) -> Review:
    """A reviewer's verdict, if it can be sealed. Raises Refusal."""
    if not heard.read:
        raise Refusal("it read nothing before it gave its verdict")
    data = {**block_in(heard.message), "reviewer": heard.name}
    review = session.full_seals(parse(Review, data, "its verdict"))
    session.refuse_review(review)
    return review


def from_reviewer(session: Session, witness: Witness) -> Review:
    """The first usable verdict on the newest gates; a later one does not replace it.

    Raises Refusal where there is none: with what is wrong with the newest reviewer's.
    """
    session.expect("review")
    if not witness.live:
        raise Refusal(
            "review: the guard did not see this call, so it cannot vouch for a reviewer: "
            "`trainwarden review --builtin` audits instead, and the gate says that nobody guarded "
            "it. `trainwarden doctor` finds out what is wrong"
        )
    reviewers, at_work = witness.reviewers(session.header.session)
    problem = "no reviewer of the plugin has given a verdict since gate 5 was sealed"
    for heard in reviewers:
        try:
            return _review(session, heard)
        except Refusal as refusal:
            problem = f"the verdict of {heard.name} cannot be used: {refusal}"
    if at_work:
        raise Refusal(f"review: {STILL}")
    raise Refusal(f"review: {problem}\nTo have one, {ASK}.")


def refuse_builtin(session: Session, witness: Witness) -> None:
    """In a guarded client the built-in audit is for where a reviewer failed. Raises Refusal."""
    session.expect("review")
    if not witness.live:
        return
    heard, at_work = witness.reviewers(session.header.session)
    for one in heard:
        try:
            found = _review(session, one)
        except Refusal:
            continue
        raise Refusal(
            f"review: {found.reviewer} has given its verdict ({found.verdict}); "
            "run `trainwarden review` without --builtin, which takes it"
        )
    if at_work:
        raise Refusal(f"review: {STILL}")
    if not heard:
        raise Refusal(
            f"review: the reviewer here is the plugin's own sub-agent: {ASK}. "
            "--builtin is for where it ended without a usable verdict"
        )
