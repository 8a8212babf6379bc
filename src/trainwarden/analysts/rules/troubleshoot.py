"""Step 7 by rules: findings in causal order become root causes."""

from __future__ import annotations

from trainwarden.analysts.rules.words import Writer, one_sentence
from trainwarden.procedure.duties import may_skip_troubleshooting
from trainwarden.procedure.roles import Briefing
from trainwarden.records.assessment import RootCause, Status, Troubleshooting
from trainwarden.records.finding import Role


def troubleshoot(briefing: Briefing) -> Troubleshooting:
    """The causes behind what was found, or why there is nothing to look into."""
    assessment = briefing.assessment
    if assessment is None:
        raise ValueError("troubleshooting needs the assessment of step 4")
    if not may_skip_troubleshooting(assessment, briefing.findings, briefing.comparisons):
        return Troubleshooting(
            skipped=f"{assessment.status.value}: no finding above information, and no prediction "
            "deviates in a way that would change the assessment."
        )
    writer = Writer(briefing)
    order = {Role.INITIATING: 0, Role.CASCADE: 1, Role.TEARDOWN: 2, Role.ADVICE: 3}
    causes: list[RootCause] = []
    for finding in sorted(writer.loud, key=lambda f: order[f.role]):
        role = finding.role
        if not causes and role is Role.CASCADE:
            role = Role.INITIATING  # as far back as the evidence goes
        plain = f"A {finding.severity.value} finding of kind {finding.kind} stands [{finding.id}]."
        meant = f" {finding.meaning}" if finding.meaning else ""
        statement = writer.grounded(one_sentence(finding), plain)
        causes.append(
            RootCause(
                statement=writer.grounded(statement + meant, statement),
                role=role.value,
                observations=finding.observations,
                evidence_type=finding.evidence_type,
                confidence=finding.confidence,
                alternatives=finding.alternatives,
                first_action=finding.first_action or "Read what the finding cites once more.",
            )
        )
    return Troubleshooting(causes=tuple(causes or _without_findings(writer, assessment.status)))


def _without_findings(writer: Writer, status: Status) -> list[RootCause]:
    """A deviation or an open question without a finding still has a most likely reason."""
    observations = writer.briefing.observations
    indicator = writer.briefing.assessment.indicator if writer.briefing.assessment else None
    shown = [
        seen
        for stat in ("last", "trend_p", "first")
        if indicator and (seen := writer.one(indicator.quantity, stat))
    ]
    shown = shown or [s for q in ("log.ended", "source.log", "step") if (s := writer.one(q))]
    shown = shown or list(observations.values())[:1]
    if not shown:
        return []
    ids = tuple(seen.id for seen in shown)
    missed = [c for c in writer.briefing.comparisons if c.outcome == "missed"]
    if missed and status is not Status.UNCERTAIN:
        names = ", ".join(f"{c.quantity} [{c.prediction}]" for c in missed[:4])
        more = tuple(c.observation for c in missed if c.observation in observations)
        return [
            RootCause(
                statement=f"The run left what its own past and config led to expect: {names}.",
                role="initiating",
                observations=tuple(dict.fromkeys((*[m for m in more if m], *ids))),
                evidence_type="inference",
                confidence=0.4,
                alternatives=(
                    "The prediction was too narrow, and the run is as it should be",
                    "The schedule or the data change at this stage",
                ),
                first_action="See whether the next points come back to what was predicted.",
            )
        ]
    return [
        RootCause(
            statement=f"What was read does not yet decide whether the run learns [{ids[0]}].",
            role="initiating",
            observations=ids,
            evidence_type="inference",
            confidence=0.5,
            alternatives=(
                "The run is too young or logs too seldom for a test",
                "It does not learn, and more points would show it",
            ),
            first_action="Wait for as many points again, and look at the run's own log meanwhile.",
        )
    ]
