"""What each step owes: the contracts as checks that return what is missing. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from trainwarden.procedure.compare import matters
from trainwarden.procedure.grounding import Citable
from trainwarden.records.assessment import Assessment, Criterion, Status, Troubleshooting
from trainwarden.records.finding import CEILINGS, Finding, Severity
from trainwarden.records.hypothesis import Hypothesis, Strategy
from trainwarden.records.observation import Observation, Trust
from trainwarden.records.prediction import Comparison, Prediction
from trainwarden.records.review import Review

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
FEWEST_WORDS = 5


def is_training_signal(observation: Observation) -> bool:
    """Whether it tells of learning at all: a metric of the run, not its machine or its process."""
    return observation.trust <= Trust.LOG and not observation.quantity.startswith(MACHINE_PREFIXES)


def _substance(label: str, text: str) -> list[str]:
    if len(text.split()) < FEWEST_WORDS:
        return [f"{label}: say it in a sentence ({len(text.split())} words are no reasoning)"]
    return []


def prediction_complaints(predictions: Sequence[Prediction]) -> list[str]:
    """Step 1: something on progress, on learning and on resources must be predicted."""
    problems = []
    quantities = {prediction.quantity for prediction in predictions}
    if not quantities & {"step", "epoch"}:
        problems.append("predict how far the run is: quantity step (or epoch)")
    if not any(
        not quantity.startswith(MACHINE_PREFIXES) and quantity not in {"step", "epoch"}
        for quantity in quantities
    ):
        problems.append("predict what the run has learnt: e.g. quantity loss or eval_loss")
    if not any(quantity.startswith(MACHINE_PREFIXES) for quantity in quantities):
        problems.append("predict the resources: e.g. process.alive or gpu.power_share")
    keys = [(p.quantity, p.stat, p.subject) for p in predictions]
    problems += [
        f"{quantity} ({stat}) is predicted twice"
        for quantity, stat, _ in dict.fromkeys(key for key in keys if keys.count(key) > 1)
    ]
    return problems


def assessment_complaints(
    assessment: Assessment,
    observations: Mapping[str, Observation],
    criteria: Sequence[Criterion],
    predictions: Sequence[Prediction],
    comparisons: Sequence[Comparison],
    findings: Sequence[Finding],
) -> list[str]:
    """Step 4: each status has its own duties, and every number its source."""
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
    } | {f"disputed {name}": reason for name, reason in assessment.disputed.items()}
    for label, text in texts.items():
        problems += _substance(label, text)
    for label, text in (texts | {k: v for k, v in optional.items() if v}).items():
        problems += citable.complaints(label, text)
    if len({text.strip().lower() for text in texts.values()}) < len(texts):
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
        for problem in _substance("reason", reason)
    ]
    if problems:
        return problems
    return _status_complaints(assessment, observations, findings)


def _status_complaints(
    assessment: Assessment, observations: Mapping[str, Observation], findings: Sequence[Finding]
) -> list[str]:
    status, indicator = assessment.status, assessment.indicator
    undisputed = [f for f in findings if f.id not in assessment.disputed]
    critical = [f for f in undisputed if f.severity is Severity.CRITICAL]
    problems: list[str] = []
    if status is Status.HEALTHY:
        cited = [observations[name] for name in assessment.progress]
        signals = [item for item in cited if is_training_signal(item)]
        if not any(item.quantity == indicator.quantity for item in signals):
            problems.append(
                f"HEALTHY: progress must cite observations of {indicator.quantity} that show it "
                "beyond the baseline; a process that lives and a GPU that is busy show nothing"
            )
        elif not shows_progress(assessment, observations):
            problems.append(
                f"HEALTHY: {indicator.quantity} has not moved in the direction "
                f"{indicator.direction!r} by what was read; choose another status"
            )
        if critical:
            problems.append(
                "HEALTHY: these findings are critical: "
                + ", ".join(f"{f.id} {f.kind}" for f in critical)
                + "; another status, or dispute them one by one with reasons (disputed)"
            )
    if status is Status.WARNING:
        problems += _substance(
            "WARNING: process (what was examined, and found no progress)", assessment.process
        )
        if critical:
            problems.append(
                "WARNING: critical findings stand: "
                + ", ".join(f"{f.id} {f.kind}" for f in critical)
            )
    if status is Status.CRITICAL and not assessment.failure:
        problems.append("CRITICAL: failure must cite the observation that shows it")
    if status is Status.UNCERTAIN:
        for label in ("tried", "why_failed", "would_resolve", "question"):
            problems += _substance(f"UNCERTAIN: {label}", getattr(assessment, label))
    if assessment.deferral:
        reached = last_step(observations.values())
        if status is not Status.UNCERTAIN:
            problems.append("deferral: judgement put off is UNCERTAIN, not " + status.value)
        if reached is not None and assessment.deferral.until_step <= reached:
            problems.append(
                f"deferral: step {assessment.deferral.until_step} is past (the run is at {reached})"
            )
    return problems


def shows_progress(assessment: Assessment, observations: Mapping[str, Observation]) -> bool:
    """Whether the key indicator moved the right way, by the runtime's own reading of it.

    From its first to its last value, or by the sign of its trend where only that is known.
    """
    stats: dict[str, float] = {}
    for item in observations.values():
        numeric = isinstance(item.value, (int, float)) and not isinstance(item.value, bool)
        if item.quantity == assessment.indicator.quantity and numeric:
            stats.setdefault(item.stat, float(item.value))
    sign = -1.0 if assessment.indicator.direction == "decrease" else 1.0
    changes = [
        stats[late] - stats[early]
        for early, late in (("first", "last"), ("median_early", "median_recent"))
        if early in stats and late in stats
    ]
    changes += [stats["trend_slope"]] if "trend_slope" in stats else []
    return any(math.isfinite(change) and sign * change > 0 for change in changes)


def last_step(observations: Iterable[Observation]) -> int | None:
    """How far the run is, by the observations of `step`."""
    steps = [
        int(item.value)
        for item in observations
        if item.quantity == "step" and item.stat == "last" and isinstance(item.value, (int, float))
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
        reasons.append("predictions deviate: " + ", ".join(deviations))
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
    if report.skipped:
        forced = may_skip_troubleshooting(assessment, findings, comparisons)
        problems = [f"step 7 cannot be skipped: {reason}" for reason in forced]
        return problems + _substance("skipped (the reason)", report.skipped)
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
        problems += _substance(f"{label}: statement", cause.statement)
        problems += citable.complaints(f"{label}: statement", cause.statement)
    return problems


def strategy_complaints(
    strategy: Strategy,
    status: Status,
    due: Sequence[Hypothesis],
    observations: Mapping[str, Observation],
    now: datetime,
) -> list[str]:
    """Step 8: due hypotheses scored, three that can fail where not all is well, a plan, a time."""
    problems = []
    waiting = {hypothesis.id for hypothesis in due}
    scored = [score.hypothesis for score in strategy.scores]
    missing = waiting - set(scored)
    if missing:
        problems.append(
            "scores: these hypotheses are due and must be scored first: "
            + ", ".join(sorted(missing))
        )
    problems += [f"scores: {name} is not due" for name in scored if name not in waiting]
    problems += [
        f"scores: {name} is scored twice" for name in set(scored) if scored.count(name) > 1
    ]
    for score in strategy.scores:
        problems += [
            f"score of {score.hypothesis}: {name} is no observation"
            for name in score.observations
            if name not in observations
        ]
        if score.outcome != "INCONCLUSIVE" and not score.observations:
            problems.append(f"score of {score.hypothesis}: {score.outcome} must cite observations")
    if status is not Status.HEALTHY:
        if len(strategy.hypotheses) != 3:
            problems.append(
                f"hypotheses: {status.value} gets three, on different dimensions "
                f"({len(strategy.hypotheses)} given)"
            )
        if strategy.chosen is None:
            problems.append("chosen: say which hypothesis is followed (its number: 1, 2 or 3)")
    dimensions = [hypothesis.dimension.strip().lower() for hypothesis in strategy.hypotheses]
    if len(set(dimensions)) < len(dimensions):
        problems.append("hypotheses: each on another dimension, given: " + ", ".join(dimensions))
    for number, hypothesis in enumerate(strategy.hypotheses, 1):
        label = f"hypothesis {number}"
        for name in (
            "statement",
            "action",
            "expected_outcome",
            "failure_criterion",
            "counter_hypothesis",
        ):
            problems += _substance(f"{label}: {name}", getattr(hypothesis, name))
        if hypothesis.counter_hypothesis.strip().lower() == hypothesis.statement.strip().lower():
            problems.append(f"{label}: the counter-hypothesis must be another mechanism")
    if strategy.chosen is not None and strategy.chosen not in {
        name
        for number, hypothesis in enumerate(strategy.hypotheses, 1)
        for name in (str(number), hypothesis.id)
        if name
    }:
        problems.append(f"chosen: {strategy.chosen} is none of the hypotheses given")
    reached = last_step(observations.values())
    due_at = strategy.evaluate_after
    if due_at.time is not None and due_at.time <= now:
        problems.append("evaluate_after: the time must be in the future")
    if due_at.step is not None and reached is not None and due_at.step <= reached:
        problems.append(f"evaluate_after: step {due_at.step} is past (the run is at {reached})")
    return problems


def review_complaints(
    review: Review,
    analyst: str,
    seals: Mapping[str, str],
    load_bearing: Iterable[str],
    observations: Mapping[str, Observation],
) -> list[str]:
    """Step 6: a verdict by another, on exactly these gates, with a load-bearing claim re-read."""
    problems = []
    if review.reviewer.strip().lower() == analyst.strip().lower():
        problems.append(f"the reviewer cannot be the analyst ({analyst})")
    if dict(review.seals) != dict(seals):
        wrong = [name for name in seals if review.seals.get(name) != seals[name]]
        wrong += [name for name in review.seals if name not in seals]
        problems.append(
            "seals: the verdict must name the latest seals of gates 1 to 5; not so: "
            + ", ".join(wrong)
        )
    bearing = set(load_bearing)
    reread = [item.observation for item in review.reread]
    problems += [f"reread: {name} is no observation" for name in reread if name not in observations]
    if not bearing & set(reread):
        problems.append(
            "reread: re-read at least one observation that the verdict rests on: "
            + ", ".join(sorted(bearing, key=lambda name: (len(name), name))[:12])
        )
    if review.verdict == "approve" and any(not item.agrees for item in review.reread):
        problems.append("an observation that was re-read does not agree: that is a rejection")
    if review.verdict == "approve" and any(not check.passed for check in review.checks):
        problems.append("a check failed: that is a rejection")
    if review.verdict == "reject" and not review.objections:
        problems.append("objections: a rejection says what is wrong and how to mend it")
    return problems
