"""What steps 4 and 7 owe: the contracts as checks that return what is missing. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from trainwarden.procedure.compare import matters
from trainwarden.procedure.grounding import Citable
from trainwarden.procedure.progress import progress_complaints
from trainwarden.procedure.wording import alike, substance
from trainwarden.records.assessment import (
    Assessment,
    Criterion,
    KeyIndicator,
    Status,
    Troubleshooting,
)
from trainwarden.records.finding import CEILINGS, Finding, Severity
from trainwarden.records.observation import Observation
from trainwarden.records.prediction import Comparison, Prediction

MACHINE_PREFIXES = (
    "process.",
    "gpu.",
    "host.",
    "disk.",
    "kernel.",
    "checkpoint.",
    "log.",
    "source.",
)


def assessment_complaints(
    assessment: Assessment,
    observations: Mapping[str, Observation],
    criteria: Sequence[Criterion],
    predictions: Sequence[Prediction],
    comparisons: Sequence[Comparison],
    findings: Sequence[Finding],
    runtime: KeyIndicator | None = None,
    deferred: int | None = None,
) -> list[str]:
    """Step 4: each status has its own duties, and every number its source.

    `runtime` is the key indicator that the runtime would choose, whose direction config or
    guidance may have set; `deferred` the step at which an earlier session's deferral ends.
    """
    citable = Citable(observations.values(), criteria, predictions, comparisons, findings)
    problems: list[str] = []
    texts = {
        "indicator.why": assessment.indicator.why,
        "expected": assessment.expected,
        "baseline": assessment.baseline,
        "reasoning": assessment.reasoning,
    }
    optional = {
        "process": assessment.process,
        "tried": assessment.tried,
        "why_failed": assessment.why_failed,
        "would_resolve": assessment.would_resolve,
        "question": assessment.question,
        "deferral.signal": assessment.deferral.signal if assessment.deferral else "",
    } | {f"disputed {name}": reason for name, reason in assessment.disputed.items()}
    for label, text in texts.items():
        problems += substance(label, text)
    for label, text in (texts | {k: v for k, v in optional.items() if v}).items():
        problems += citable.complaints(label, text)
    if alike(texts):
        problems.append("indicator.why, expected, baseline and reasoning must differ")
    if not any(name in observations for name in citable.cited(assessment.reasoning)):
        problems.append("reasoning: cite at least one observation, e.g. [E1]")
    for name in (*assessment.progress, *assessment.failure):
        if name not in observations:
            problems.append(f"{name} is no observation of this session")
    known = {finding.id for finding in findings}
    problems += [
        f"disputed: {name} is no finding" for name in assessment.disputed if name not in known
    ]
    problems += [
        f"disputed {name}: {problem}"
        for name, reason in assessment.disputed.items()
        for problem in substance("reason", reason)
    ]
    problems += [
        f"disputed {name}: cite the observation that speaks against it, e.g. [E1]"
        for name, reason in assessment.disputed.items()
        if not any(cited in observations for cited in citable.cited(reason))
    ]
    problems += _status_complaints(assessment, findings)
    if assessment.status is Status.HEALTHY:
        problems += progress_complaints(assessment, observations, criteria, runtime)
    return problems + _deferral_complaints(assessment, observations, criteria, deferred)


def _status_complaints(assessment: Assessment, findings: Sequence[Finding]) -> list[str]:
    status = assessment.status
    undisputed = [f for f in findings if f.id not in assessment.disputed]
    critical = [f for f in undisputed if f.severity is Severity.CRITICAL]
    listed = ", ".join(f"{f.id} {f.kind}" for f in critical)
    problems: list[str] = []
    if status in (Status.HEALTHY, Status.WARNING) and critical:
        problems.append(
            f"{status.value}: these findings are critical: {listed}; another status, or dispute "
            "them one by one with reasons (disputed)"
        )
    if status is Status.HEALTHY:
        mentioned = Citable().cited(assessment.reasoning)
        problems += [
            f"HEALTHY: the finding {f.id} ({f.kind}) stands: answer it in the reasoning with "
            f"[{f.id}], or dispute it"
            for f in undisputed
            if f.severity is Severity.WARNING and f.id not in mentioned
        ]
    if status is Status.WARNING:
        problems += substance(
            "WARNING: process (what was examined, and found no progress)", assessment.process
        )
    if status is Status.CRITICAL and not assessment.failure:
        problems.append("CRITICAL: failure must cite the observation that shows it")
    if status is Status.UNCERTAIN:
        owed = {
            name: getattr(assessment, name)
            for name in ("tried", "why_failed", "would_resolve", "question")
        }
        for name, text in owed.items():
            problems += substance(f"UNCERTAIN: {name}", text)
        if not problems:
            problems += [f"UNCERTAIN: {pair} say the same" for pair in alike(owed)]
    return problems


def _deferral_complaints(
    assessment: Assessment,
    observations: Mapping[str, Observation],
    criteria: Sequence[Criterion],
    deferred: int | None,
) -> list[str]:
    deferral = assessment.deferral
    if deferral is None:
        return []
    until, reached, problems = deferral.until_step, last_step(observations.values()), []
    total = next((c.value for c in criteria if c.name == "max_steps"), None)
    if assessment.status is not Status.UNCERTAIN:
        status = assessment.status.value
        problems.append("deferral: judgement put off is UNCERTAIN, not " + status)
    if reached is not None and until <= reached:
        problems.append(f"deferral: step {until} is past (the run is at {reached})")
    if isinstance(total, (int, float)) and until > max(total, reached or 0) + 1:
        problems.append(f"deferral: step {until} is never reached, the run ends at {total:g}")
    if deferred is not None and until > deferred:
        problems.append(
            f"deferral: an earlier session put judgement off until step {deferred}, and that binds"
        )
    return problems


def last_step(observations: Iterable[Observation]) -> int | None:
    """How far the run is, by the observations of `step`."""
    steps = [
        int(item.value)
        for item in observations
        if item.quantity == "step"
        and item.stat == "last"
        and isinstance(item.value, (int, float))
        and math.isfinite(item.value)
    ]
    return max(steps, default=None)


def may_skip_troubleshooting(
    assessment: Assessment, findings: Iterable[Finding], comparisons: Iterable[Comparison]
) -> list[str]:
    """Why step 7 may not be skipped; empty when it may."""
    reasons = []
    if assessment.status in (Status.CRITICAL, Status.UNCERTAIN):
        reasons.append(f"the status is {assessment.status.value}")
    anomalies = [f for f in findings if f.severity is not Severity.INFO]
    if anomalies:
        reasons.append("there are findings: " + ", ".join(f"{f.id} {f.kind}" for f in anomalies))
    deviations = [c.prediction for c in comparisons if matters(c, assessment.indicator)]
    if deviations:
        reasons.append(
            f"{', '.join(deviations)} missed where it matters: a process or run that ended, or the "
            "indicator on its bad side"
        )
    return reasons


def troubleshooting_complaints(
    report: Troubleshooting,
    assessment: Assessment,
    citable: Citable,
    observations: Mapping[str, Observation],
    findings: Sequence[Finding],
    comparisons: Sequence[Comparison],
) -> list[str]:
    """Step 7: causes with evidence, the initiating one first; or a skip that is allowed."""
    if report.skipped and report.causes:
        return ["step 7: give causes or skipped with the reason, not both"]
    if report.skipped:
        forced = may_skip_troubleshooting(assessment, findings, comparisons)
        problems = [f"step 7 cannot be skipped: {reason}" for reason in forced]
        problems += ["give causes instead: `trainwarden step 7` shows how"] if forced else []
        problems += citable.complaints("skipped", report.skipped)
        return problems + substance("skipped (the reason)", report.skipped)
    if not report.causes:
        return ["step 7: give causes, or skipped with the reason"]
    problems = []
    if report.causes[0].role == "cascade":
        problems.append("causes: the first in causal order cannot be a cascade of another")
    for number, cause in enumerate(report.causes, 1):
        label = f"cause {number}"
        ceiling = CEILINGS[cause.evidence_type]
        if cause.confidence > ceiling:
            problems.append(
                f"{label}: confidence {cause.confidence} is above the ceiling {ceiling} of "
                f"evidence type {cause.evidence_type}"
            )
        problems += [
            f"{label}: {name} is no observation"
            for name in cause.observations
            if name not in observations
        ]
        problems += substance(f"{label}: statement", cause.statement)
        problems += citable.complaints(f"{label}: statement", cause.statement)
    return problems
