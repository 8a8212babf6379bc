"""Step 8 by rules: due hypotheses scored, three new ones, a plan, and when to look again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from importlib.resources import files
from statistics import median
from typing import Any

from trainwarden.analysts.rules.words import Writer, choose_indicator
from trainwarden.diagnosis.base import as_number
from trainwarden.diagnosis.text import duration, figure
from trainwarden.metrics.pace import PRINTED_SPREAD, printed_looks, step_rate, time_to_finish
from trainwarden.procedure.roles import Briefing
from trainwarden.records.assessment import Status
from trainwarden.records.finding import Role, Severity
from trainwarden.records.hypothesis import (
    Hypothesis,
    HypothesisScore,
    Measure,
    Outcome,
    Plan,
    Strategy,
    When,
)

SHARES = {Status.HEALTHY: 0.1, Status.WARNING: 0.05, Status.UNCERTAIN: 0.05, Status.CRITICAL: 0.02}
"""How much of what remains of the run passes until the next look."""
SOONEST = timedelta(minutes=1)
LATEST = timedelta(hours=12)
AFTER_END = timedelta(hours=1)


def strategize(briefing: Briefing) -> Strategy:
    """What follows from the assessment."""
    assessment = briefing.assessment
    if assessment is None:
        raise ValueError("a strategy needs the assessment of step 4")
    writer = Writer(briefing)
    scores = tuple(score(writer, hypothesis) for hypothesis in briefing.due)
    after = evaluate_after(writer, assessment.status)
    if assessment.status is Status.HEALTHY:
        return Strategy(scores=scores, plan=_keep_watching(writer), evaluate_after=after)
    hypotheses = propose(writer)
    chosen = hypotheses[0]
    found = writer.loud[0].first_action if writer.loud and writer.loud[0].first_action else ""
    actions = tuple(dict.fromkeys(part for part in (found, chosen.action) if part))
    return Strategy(
        scores=scores,
        hypotheses=hypotheses,
        chosen="1",
        plan=Plan(
            actions=actions,
            success_criteria=(chosen.expected_outcome,),
            failure_criteria=(chosen.failure_criterion,),
        ),
        evaluate_after=after,
    )


def score(writer: Writer, hypothesis: Hypothesis) -> HypothesisScore:
    """CONFIRMED or REFUTED where its own measure says so, else INCONCLUSIVE."""
    success, won = _check(writer, hypothesis.success)
    failure, lost = _check(writer, hypothesis.failure)
    ids = tuple(dict.fromkeys(name for name in (success, failure) if name))
    outcome: Outcome
    if lost and not won:
        outcome, why = "REFUTED", "its criterion of failure is met"
    elif won and not lost:
        outcome, why = "CONFIRMED", "its criterion of success is met"
    elif won and lost:
        outcome, why = "INCONCLUSIVE", "both of its criteria are met, so they do not tell apart"
    elif hypothesis.success is None and hypothesis.failure is None:
        outcome, why = "INCONCLUSIVE", "it has no criterion that can be checked from here"
    elif won is None and lost is None:
        outcome, why = "INCONCLUSIVE", "what its criteria need was not observed"
    elif won is False and hypothesis.failure is None:
        outcome, why = "REFUTED", "its criterion of success is not met at the moment it was due"
    else:
        outcome, why = "INCONCLUSIVE", "neither of its criteria is met"
    cited = f" [{', '.join(ids)}]" if ids else ""
    return HypothesisScore(
        hypothesis=hypothesis.id,
        outcome=outcome,
        observations=ids,
        reasoning=f"Of the hypothesis on {hypothesis.dimension}, {why}{cited}.",
    )


def _check(writer: Writer, measure: Measure | None) -> tuple[str | None, bool | None]:
    """The observation a measure is held against, and whether it holds; None for not seen."""
    if measure is None:
        return None, None
    recent = writer.one(measure.quantity, "median_recent")
    seen = recent if recent is not None else writer.one(measure.quantity)
    value = as_number(seen.value) if seen is not None else None
    if seen is None or value is None:
        return (seen.id if seen else None), None
    bound = measure.threshold
    holds = {
        "<": value < bound,
        "<=": value <= bound,
        ">": value > bound,
        ">=": value >= bound,
    }[measure.comparison]
    return seen.id, holds


@lru_cache(maxsize=1)
def playbook() -> dict[str, Any]:
    """`playbook.yaml` as plain data."""
    import yaml

    text = (files("trainwarden.analysts.rules") / "playbook.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def group_of(kind: str) -> str:
    """The playbook's group for a kind of finding."""
    groups: Mapping[str, list[str]] = playbook()["groups"]
    return next((name for name, kinds in groups.items() if kind in kinds), "unclear")


def propose(writer: Writer) -> tuple[Hypothesis, ...]:
    """Three hypotheses on what was found first in causal order, with the run's own values."""
    loud = sorted(
        writer.loud,
        key=lambda f: (f.role is not Role.INITIATING, f.severity is not Severity.CRITICAL),
    )
    leading = loud[0] if loud else None
    group = group_of(leading.kind) if leading else "unclear"
    values = _values(writer, leading.since_step if leading else None)
    return tuple(_fill(entry, values) for entry in playbook()["hypotheses"][group])


_TEXTS = (
    "dimension", "statement", "action", "expected_outcome", "failure_criterion",
    "counter_hypothesis", "cost", "learnt_if_confirmed", "learnt_if_refuted",
)  # fmt: skip


def _fill(entry: Mapping[str, Any], values: Mapping[str, str]) -> Hypothesis:
    def put(text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda m: values.get(m[1], _UNKNOWN.get(m[1], m[1])), text)

    measures = {}
    for name in ("success", "failure"):
        raw = [
            re.sub(r"\{(\w+)\}", lambda m: values.get(m[1], "?"), str(part))
            for part in entry.get(name, ())
        ]
        if raw and "?" not in raw:
            quantity, comparison, threshold = raw
            measures[name] = Measure.model_validate(
                {"quantity": quantity, "comparison": comparison, "threshold": float(threshold)}
            )
    return Hypothesis.model_validate({key: put(str(entry[key])) for key in _TEXTS} | measures)


_UNKNOWN = {
    "since": "at which it began",
    "level": "its present level",
    "best": "its best level",
    "indicator": "the key indicator",
    "step": "the present step",
}
"""What stands for a value that is not known."""


def _values(writer: Writer, since: int | None) -> dict[str, str]:
    values: dict[str, str] = {}

    def put(name: str, value: float | int | None) -> None:
        if value is not None:
            values[name] = figure(value)

    chosen = choose_indicator(writer.briefing)
    if chosen is not None:
        name = chosen.quantity
        down = chosen.direction == "decrease"
        values |= {
            "indicator": name,
            "better": "<" if down else ">",
            "worse": ">" if down else "<",
        }
        level = writer.number(name, "median_recent")
        level = level if level is not None else writer.number(name)
        best = writer.number(name, "best")
        put("level", level)
        put("best", best)
        put("level_or_best", best if best is not None else level)
        if best is not None and level is not None:
            # Back at the best level means within a tenth of what had been lost.
            put("best_reached", best + 0.1 * (level - best))
    put("since", since)
    put("step", writer.step)
    put("eval_best", writer.number("eval_loss", "min"))
    memory = writer.number("process.rss", subject="job")
    put("memory", memory)
    put("memory_more", 1.1 * memory if memory is not None else None)
    for pace in ("step_time", "tokens_per_second", "samples_per_second", "steps_per_second"):
        before, now = writer.number(pace, "shift_before"), writer.number(pace, "shift_after")
        if before is not None and now is not None:
            slow = pace == "step_time"
            values |= {
                "pace": pace,
                "pace_better": "<" if slow else ">",
                "pace_worse": ">=" if slow else "<=",
            }
            put("pace_before", before)
            put("pace_after", now)
            put("pace_midway", 0.5 * (before + now))
            break
    return values


def _keep_watching(writer: Writer) -> Plan:
    chosen = choose_indicator(writer.briefing)
    name = chosen.quantity if chosen else "the key indicator"
    if writer.ended == "finished":
        return Plan(
            actions=("Keep the final and the best checkpoint; evaluate both on held-out data.",),
            success_criteria=("The evaluation agrees with what was logged during the run.",),
            failure_criteria=("The evaluation is clearly worse than what was logged.",),
        )
    return Plan(
        actions=(
            "Let the run go on and look again at the moment given; change nothing."
            + _time_left(writer),
        ),
        success_criteria=(
            f"{name} has moved further in its direction, within what is predicted for then.",
        ),
        failure_criteria=(
            f"{name} lies on the bad side of its prediction, or a finding above information "
            "appears.",
        ),
    )


def _time_left(writer: Writer) -> str:
    """When the run should be at its end, by the pace of the log's own step times."""
    step, total = writer.step, writer.total_steps
    if step is None or total is None or total <= step:
        return ""
    for reading in writer.briefing.readings:
        series = reading.series.get("step_time")
        looks = printed_looks(series.finite()) if series is not None else []
        said = [
            time_to_finish(rate, step, total)
            for level in (0.5, 0.9)
            if (rate := step_rate(looks, level, PRINTED_SPREAD)) is not None
        ]
        half, most = (said[0], said[-1]) if said else (None, None)
        if half is not None and most is not None:
            return (
                f" By its printed step times the {total - step} steps that are left take "
                f"{duration(half.center)} (even odds: {duration(half.low)} to "
                f"{duration(half.high)}; nine in ten: {duration(most.low)} to "
                f"{duration(most.high)}), pauses between steps not counted."
            )
    return ""


def seconds_per_step(writer: Writer) -> float | None:
    """How long a step takes, from the log's times or its own step times."""
    for reading in writer.briefing.readings:
        steps = reading.series.get("step") or next(iter(reading.series.values()), None)
        if (
            reading.first_time is not None
            and reading.last_time is not None
            and steps is not None
            and steps.first is not None
            and steps.last is not None
            and steps.last.step > steps.first.step
            and reading.last_time > reading.first_time
        ):
            return (reading.last_time - reading.first_time) / (steps.last.step - steps.first.step)
        times = reading.series.get("step_time")
        if times is not None and times.recent:
            return median(point.value for point in times.recent)
    return None


def evaluate_after(writer: Writer, status: Status) -> When:
    """The next moment to look: a share of what remains, as a step and as a time."""
    now, step, total = writer.briefing.now, writer.step, writer.total_steps
    over = writer.ended in ("finished", "crashed", "interrupted")
    alive = writer.one("process.alive")
    gone = alive is not None and alive.value is False
    if over or gone or step is None:
        return When(time=now + AFTER_END)
    every = writer.briefing.facts.log_every or _cadence(writer) or 1
    remaining = total - step if total is not None and total > step else None
    ahead = SHARES[status] * (remaining if remaining is not None else step)
    target = step + max(int(ahead), 10 * every)
    evaluation = writer.briefing.facts.eval_every
    if status is Status.HEALTHY and evaluation:
        coming = (step // evaluation + 1) * evaluation
        if step + 10 * every < coming <= 2 * target - step:
            target = coming
    if total is not None:
        target = max(step + 1, min(target, total))
    pace = seconds_per_step(writer)
    if pace is None or not pace > 0:
        return When(step=target, time=now + timedelta(hours=1))
    wait = timedelta(seconds=min(pace * (target - step) * 1.5, LATEST.total_seconds()))
    return When(step=target, time=now + max(SOONEST, wait))


def _cadence(writer: Writer) -> int | None:
    """Steps between two points of the most often logged metric."""
    for reading in writer.briefing.readings:
        longest = max(reading.series.values(), key=lambda s: s.count, default=None)
        if longest is not None and len(longest.recent) >= 2:
            a, b = longest.recent[-2:]
            return max(1, int(b.step - a.step))
    return None
