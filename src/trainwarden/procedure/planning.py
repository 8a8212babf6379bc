"""What step 8 owes: due hypotheses scored by evidence, new ones that can fail, a plan. Pure."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from trainwarden.procedure.duties import last_step
from trainwarden.procedure.grounding import Citable
from trainwarden.procedure.wording import alike, gist, substance
from trainwarden.records.assessment import Criterion, Status
from trainwarden.records.hypothesis import Hypothesis, HypothesisScore, Measure, Strategy, When
from trainwarden.records.observation import Observation

FARTHEST = timedelta(days=366)
_HOLDS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def strategy_complaints(
    strategy: Strategy,
    status: Status,
    due: Sequence[Hypothesis],
    observations: Mapping[str, Observation],
    now: datetime,
    citable: Citable | None = None,
    criteria: Iterable[Criterion] = (),
) -> list[str]:
    """Step 8: due hypotheses scored, three that can fail where not all is well, a plan, a time."""
    problems = _score_complaints(strategy.scores, due, observations, citable)
    if status is not Status.HEALTHY:
        if len(strategy.hypotheses) != 3:
            problems.append(
                f"hypotheses: {status.value} gets three, on different dimensions "
                f"({len(strategy.hypotheses)} given)"
            )
        if strategy.chosen is None:
            problems.append("chosen: say which hypothesis is followed (its number: 1, 2 or 3)")
    dimensions = {str(n): h.dimension for n, h in enumerate(strategy.hypotheses, 1)}
    if alike(dimensions):
        given = ", ".join(dimensions.values())
        problems.append(f"hypotheses: each on another dimension, given: {given}")
    for part in ("statement", "action"):
        texts = {str(n): getattr(h, part) for n, h in enumerate(strategy.hypotheses, 1)}
        problems += [
            f"hypotheses {pair} differ in the wording of their {part} only" for pair in alike(texts)
        ]
    for number, hypothesis in enumerate(strategy.hypotheses, 1):
        problems += _hypothesis_complaints(f"hypothesis {number}", hypothesis)
    if strategy.chosen is not None and choice(strategy) is None:
        problems.append(f"chosen: {strategy.chosen} is none of the hypotheses given")
    return problems + _moment_complaints(strategy.evaluate_after, observations, now, criteria)


def choice(strategy: Strategy) -> int | None:
    """The place (from 0) of the hypothesis chosen by its number or by the id given with it."""
    chosen = (strategy.chosen or "").strip()
    numbers = [str(number) for number in range(1, len(strategy.hypotheses) + 1)]
    ids = [hypothesis.id for hypothesis in strategy.hypotheses]
    if chosen in numbers:
        return numbers.index(chosen)
    return ids.index(chosen) if chosen and ids.count(chosen) == 1 else None


def _hypothesis_complaints(label: str, hypothesis: Hypothesis) -> list[str]:
    problems = []
    for name in (
        "statement",
        "action",
        "expected_outcome",
        "failure_criterion",
        "counter_hypothesis",
    ):
        problems += substance(f"{label}: {name}", getattr(hypothesis, name))
    if gist(hypothesis.counter_hypothesis) == gist(hypothesis.statement):
        problems.append(f"{label}: the counter-hypothesis must be another mechanism")
    if hypothesis.expected_outcome.split() == hypothesis.failure_criterion.split():
        problems.append(f"{label}: what is expected cannot be what shows it false")
    if hypothesis.success is not None and hypothesis.success == hypothesis.failure:
        problems.append(f"{label}: one measure cannot mean success and failure")
    return problems


def _moment_complaints(
    when: When,
    observations: Mapping[str, Observation],
    now: datetime,
    criteria: Iterable[Criterion],
) -> list[str]:
    problems = []
    reached = last_step(observations.values())
    ends = [c.value for c in criteria if c.name == "max_steps"]
    total = max((int(end) for end in ends if isinstance(end, (int, float))), default=None)
    if when.time is not None and when.time <= now:
        problems.append("evaluate_after: the time must be in the future")
    if when.time is not None and when.time > now + FARTHEST:
        problems.append("evaluate_after: that time is more than a year away, which is never")
    if when.step is not None and reached is not None and when.step <= reached:
        problems.append(
            f"evaluate_after: step {when.step} is past (the run is at {reached}); give a later "
            "one, or a time where the run is to go back"
        )
    elif when.time is None and when.step is not None and when.step > (total or when.step):
        problems.append(
            f"evaluate_after: step {when.step} is never reached, the run ends at {total}; "
            "give an earlier one or a time"
        )
    return problems


def _score_complaints(
    scores: Sequence[HypothesisScore],
    due: Sequence[Hypothesis],
    observations: Mapping[str, Observation],
    citable: Citable | None,
) -> list[str]:
    problems = []
    waiting = {hypothesis.id: hypothesis for hypothesis in due}
    scored = [score.hypothesis for score in scores]
    missing = waiting.keys() - set(scored)
    if missing:
        problems.append(
            "scores: these hypotheses are due and must be scored first: "
            + ", ".join(sorted(missing))
        )
    problems += [f"scores: {name} is not due" for name in scored if name not in waiting]
    problems += [
        f"scores: {name} is scored twice" for name in set(scored) if scored.count(name) > 1
    ]
    for score in scores:
        label = f"score of {score.hypothesis}"
        problems += [
            f"{label}: {name} is no observation"
            for name in score.observations
            if name not in observations
        ]
        problems += citable.complaints(label, score.reasoning) if citable else []
        if score.outcome == "INCONCLUSIVE":
            problems += substance(f"{label}: reasoning (what was missing)", score.reasoning)
        elif not score.observations:
            problems.append(f"{label}: {score.outcome} must cite observations")
        elif score.hypothesis in waiting:
            problems += _against_measures(label, score, waiting[score.hypothesis], observations)
    return problems


def _against_measures(
    label: str,
    score: HypothesisScore,
    hypothesis: Hypothesis,
    observations: Mapping[str, Observation],
) -> list[str]:
    """An outcome is held against the measures that the hypothesis was proposed with."""
    won = _state(hypothesis.success, observations)
    lost = _state(hypothesis.failure, observations)
    if score.outcome == "CONFIRMED":
        contrary = won is False or (lost is True and won is not True)
    else:
        contrary = (won is True and lost is not True) or (won is None and lost is False)
    if not contrary:
        return []
    words = {True: "is met", False: "is not met", None: "was not observed"}
    return [
        f"{label}: {score.outcome} stands against its own measures: success {words[won]}, "
        f"failure {words[lost]}"
    ]


def _state(measure: Measure | None, observations: Mapping[str, Observation]) -> bool | None:
    """Whether a measure is met; None where it cannot be told or last and median disagree."""
    if measure is None:
        return None
    readings = {holds(measure, item) for item in observations.values() if _fits(measure, item)}
    return readings.pop() if len(readings) == 1 else None


def _fits(measure: Measure, item: Observation) -> bool:
    numeric = isinstance(item.value, (int, float)) and not isinstance(item.value, bool)
    return numeric and item.quantity == measure.quantity and item.stat in {"last", "median_recent"}


def holds(measure: Measure, item: Observation) -> bool:
    """Whether an observed number satisfies a measure."""
    return bool(_HOLDS[measure.comparison](float(item.value), measure.threshold))
