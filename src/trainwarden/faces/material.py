"""What a reviewer is given: the sealed gates 1 to 5 in one digest, every claim whole."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from trainwarden.errors import Refusal
from trainwarden.faces import tables
from trainwarden.records.assessment import Assessment

if TYPE_CHECKING:
    from trainwarden.procedure.session import Session

WIDEST = 4_000
OWED = ("process", "tried", "why_failed", "would_resolve", "question")


def require_five(session: Session) -> dict[str, str]:
    """The seals of gates 1 to 5. Raises Refusal where one is missing."""
    seals = session.reviewed_seals()
    if len(seals) < 5:
        raise Refusal(f"review: gates 1 to 5 are not all sealed. {session.next_line()}")
    return seals


def short(seal: str) -> str:
    """The first twelve digits of a seal or more: until one is a letter, lest YAML read a number."""
    letter = next((at for at, digit in enumerate(seal) if digit.isalpha()), 0)
    return seal[: max(12, letter + 1)]


def data(session: Session) -> dict[str, Any]:
    """The same for machines: seals, files, what the verdict rests on."""
    seals = require_five(session)
    files = {name: str(session.folder / gate.file) for name, gate in _gates(session, seals)}
    return {"seals": seals, "files": files, "load_bearing": session.load_bearing()}


def _gates(session: Session, seals: dict[str, str]) -> list[tuple[str, Any]]:
    return [(name, gate) for name in seals if (gate := session.latest(name))]


def digest(session: Session) -> list[str]:
    """Seals, the assessment word for word, what it cites, and what could speak against it."""
    seals = require_five(session)
    assessment = session.assessment
    reasoning = session.content("resources")["reasoning"]
    lines = [f"gates in {session.folder}, seals by their first digits:"]
    lines.append(", ".join(f"{name}: {short(seals[name])}" for name in seals))
    lines += _claims(assessment)
    lines.append(f"resources: {reasoning}")
    lines += _cited(session, assessment, reasoning)
    lines += _against(session)
    lines.append(
        "the verdict rests on (`trainwarden reread` at least one): "
        + ", ".join(session.load_bearing())
    )
    return [part for line in lines for part in _whole(line)]


def _whole(line: str) -> list[str]:
    """A text in parts that are printed uncut; what follows its first line is set in."""
    first, *rest = [part for row in line.split("\n") for part in wrap(row, WIDEST) or [""]]
    return [first, *(f"  {row}" for row in rest)]


def _claims(assessment: Assessment) -> list[str]:
    chosen = assessment.indicator
    lines = [
        f"status {assessment.status.value}; indicator {chosen.quantity} ({chosen.direction}): "
        f"{chosen.why}",
        f"expected: {assessment.expected}",
        f"baseline: {assessment.baseline}",
        f"reasoning: {assessment.reasoning}",
    ]
    lines += [f"{name}: {text}" for name in OWED if (text := getattr(assessment, name))]
    if assessment.deferral:
        deferral = assessment.deferral
        lines.append(f"deferral until step {deferral.until_step}: {deferral.signal}")
    lines += [f"disputed {name}: {why}" for name, why in assessment.disputed.items()]
    for name in ("progress", "failure"):
        shown = getattr(assessment, name)
        lines += [f"{name}: {', '.join(shown)}"] if shown else []
    return lines


def _cited(session: Session, assessment: Assessment, reasoning: str) -> list[str]:
    """Everything that the texts cite, with its value and its place."""
    texts = [assessment.expected, assessment.baseline, assessment.reasoning, reasoning]
    texts += assessment.disputed.values()
    texts += [getattr(assessment, name) for name in OWED]
    named = list(session.load_bearing())
    for text in texts:
        named += session.citable.cited(text)
    cited = set(named)
    observations = session.observations
    lines = [tables.observation(observations[n]) for n in dict.fromkeys(named) if n in observations]
    own = [c for c in session.header.criteria if c.id in cited]
    lines = [*tables.criteria(own, session.job.config), *lines]
    return ["cited:", *lines] if lines else []


def _against(session: Session) -> list[str]:
    """Predictions (also those that held: they must have been able to miss), findings, silence."""
    predictions = session.predictions
    explained = session.content("compare")["explanations"]
    lines = ["predictions (level, basis):"]
    compared = tables.comparisons(session.comparisons, predictions)
    for made, line in zip(predictions, compared, strict=True):
        lines.append(f"{line} ({made.level:g}, {made.basis})")
        if made.id in explained:
            lines.append(f"  explained: {explained[made.id]}")
    lines += tables.findings(session.findings)
    if before := session.latest("review"):
        given = before.content["review"]["objections"]
        lines += [f"objected to the revision before: {objection}" for objection in given]
    lines += [
        f"not read: {report['source']} {report['status']}: {report['message']}"
        for report in session.content("collect")["reports"]
        if report["status"] != "ok"
    ]
    return lines
