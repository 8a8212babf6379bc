"""Step 4 by rules: the status follows from findings and from a test for progress."""

from __future__ import annotations

from dataclasses import dataclass

from trainwarden.analysts.rules.words import Writer, choose_indicator, cited, listed, one_sentence
from trainwarden.diagnosis.base import as_number
from trainwarden.diagnosis.course import Course, course_of, even, moved
from trainwarden.metrics.trend import LEAST, Progress, progress
from trainwarden.procedure.roles import Briefing
from trainwarden.records.assessment import Assessment, Deferral, KeyIndicator, Status
from trainwarden.records.finding import Severity
from trainwarden.records.observation import Observation

ALPHA = 0.01
"""Level of the test for progress."""
ALPHA_BEYOND = 0.05
"""Its level where the loss already lies beyond what a model that learnt nothing would show."""
LOSSES = ("loss", "eval_loss")
_NOTHING = KeyIndicator(
    quantity="loss",
    direction="decrease",
    why="No metric of learning was found in what was read; the loss is what one would judge by.",
)


@dataclass
class Judged:
    """What the test for progress says of the indicator."""

    verdict: str
    """yes, no, against or undecided."""
    course: Course | None
    tested: Progress | None
    beyond: bool
    """Whether the present level lies beyond the baseline."""
    citations: tuple[str, ...]


def assess(briefing: Briefing) -> Assessment:
    """The status, with what it owes."""
    writer = Writer(briefing)
    chosen = choose_indicator(briefing)
    indicator = chosen or _NOTHING
    judged = _judge(writer, indicator)
    critical = [f for f in writer.loud if f.severity is Severity.CRITICAL]
    early = _in_warmup(writer)
    if critical or writer.ended == "crashed":
        status = Status.CRITICAL
    elif chosen is None or judged.verdict == "undecided":
        status = Status.WARNING if writer.loud else Status.UNCERTAIN
    elif writer.loud or writer.ended == "interrupted":
        status = Status.WARNING
    elif judged.verdict == "yes" and judged.beyond:
        status = Status.HEALTHY
    elif early is not None or judged.verdict == "yes":
        status = Status.UNCERTAIN
    else:
        status = Status.WARNING
    _reason(writer, indicator, judged, status)
    more: dict[str, object] = {}
    if status is Status.HEALTHY:
        more["progress"] = judged.citations
    elif status is Status.CRITICAL:
        shown = [name for finding in critical for name in finding.observations]
        ended = writer.one("log.ended")
        shown += [ended.id] if ended and not shown else []
        more["failure"] = tuple(dict.fromkeys(shown))
    elif status is Status.WARNING:
        more["process"] = (
            f"Examined were the trend of {indicator.quantity} over the whole run and over its "
            "last half, its level against the baseline, all other logged metrics for values that "
            "are no numbers and for shifts, the text of the log, processes, GPUs, memory, disks "
            "and the kernel log."
        )
    else:
        more |= _uncertain(writer, indicator, judged)
        more["deferral"] = early
    return Assessment(
        status=status,
        indicator=indicator,
        expected=_expected(writer, indicator),
        baseline=_baseline(writer, indicator),
        reasoning=writer.text,
        **more,  # type: ignore[arg-type]
    )


def _judge(writer: Writer, indicator: KeyIndicator) -> Judged:
    found = writer.series(indicator.quantity)
    if found is None:
        return Judged("undecided", None, None, False, ())
    points = even(found[1])
    course = course_of(points, indicator.direction)
    reference = _reference(writer, indicator)
    margin = 3 * course.level_error if course is not None else 0.0
    past = course is not None and (
        reference is None or course.sign * (reference - course.recent) > margin
    )
    alpha = ALPHA_BEYOND if reference is not None and past else ALPHA
    tested = progress(points, indicator.direction, alpha)
    verdict: str = tested.verdict
    better = 1 if indicator.direction == "increase" else -1
    if verdict in ("no", "undecided") and len(points) >= LEAST:
        # The trend test is safe against wandering and so misses some jumps between two levels.
        way = moved(points, ALPHA)
        verdict = "yes" if way == better else "against" if way == -better else verdict
    beyond = course is not None and course.net > margin and past
    names = [
        seen.id
        for stat in ("last", "median_recent", "median_early", "trend_slope", "trend_p", "first")
        if (seen := writer.one(indicator.quantity, stat)) is not None
    ]
    return Judged(verdict, course, tested, beyond, tuple(names))


def _reference(writer: Writer, indicator: KeyIndicator) -> float | None:
    """The indicator's value for a model that learnt nothing, where that can be computed."""
    baseline = writer.criterion("baseline_loss")
    if baseline is not None and indicator.quantity in LOSSES:
        return as_number(baseline.value)
    return None


def _warmup_end(writer: Writer) -> int | None:
    facts = writer.briefing.facts
    if facts.warmup_steps:
        return facts.warmup_steps
    total = writer.total_steps
    if facts.warmup_ratio and total:
        return int(facts.warmup_ratio * total)
    return None


def _in_warmup(writer: Writer) -> Deferral | None:
    """Judgement may wait while the learning rate still rises, up to a step known beforehand."""
    step, end = writer.step, _warmup_end(writer)
    rates = writer.series("learning_rate")
    last, first = writer.one("learning_rate"), writer.one("learning_rate", "first")
    if step is None or end is None or step > end or rates is None or last is None:
        return None
    recent = [point.value for point in rates[1].recent[-5:]]
    rising = len(recent) >= 2 and recent[-1] > recent[0]
    if not rising or first is None:
        return None
    steps = [point.step for point in rates[1].recent[-2:]]
    until = int(end + max(20 * (steps[-1] - steps[0]), 0.5 * end, 1))
    total = writer.total_steps
    if total is not None:
        until = min(until, max(total, step + 1))
    history = writer.briefing.state.monitor.status_history if writer.briefing.state else []
    # The step once given binds: judgement is not put off again and again.
    bound = next((e.deferred_until for e in history if e.deferred_until is not None), until)
    until = min(until, bound)
    if until <= step:
        return None
    return Deferral(
        signal=f"The learning rate still rises in its warm-up: {cited(last)} after {cited(first)}.",
        until_step=until,
    )


def _reason(writer: Writer, indicator: KeyIndicator, judged: Judged, status: Status) -> None:
    name = indicator.quantity
    for finding in writer.loud:
        writer.say(
            one_sentence(finding),
            f"There is a {finding.severity.value} finding of kind {finding.kind} [{finding.id}].",
        )
    last, first = writer.one(name), writer.one(name, "first")
    step = writer.one("step")
    if last is not None:
        at = f" at step {cited(step)}" if step is not None else ""
        since = f", after {cited(first)} at the start" if first is not None else ""
        writer.say(f"The key indicator {name} stands at {cited(last)}{at}{since}.")
    _medians(writer, name)
    _trend(writer, indicator, judged)
    reference = writer.criterion("baseline_loss")
    recent = writer.one(name, "median_recent") or last
    if reference is not None and recent is not None and name in LOSSES:
        side = "beyond" if judged.beyond else "not clearly beyond"
        writer.say(
            f"With {cited(recent)} the present level is {side} the baseline of {cited(reference)}."
        )
    _against(writer, name, status)
    if not any(seen in writer.text for seen in ("[E",)):
        seen = next(iter(writer.briefing.observations.values()), None)
        where = f" [{seen.id}]" if seen is not None else ""
        writer.say(f"What was read tells nothing of how the model learns{where}.")
    writer.say(_conclusion(status, judged, bool(writer.loud)))


def _medians(writer: Writer, name: str) -> None:
    early, recent = writer.one(name, "median_early"), writer.one(name, "median_recent")
    if early is not None and recent is not None:
        writer.say(
            f"Its median was {cited(early)} over the first tenth of the points and is "
            f"{cited(recent)} over the last."
        )


def _trend(writer: Writer, indicator: KeyIndicator, judged: Judged) -> None:
    name = indicator.quantity
    slope, chance = writer.one(name, "trend_slope"), writer.one(name, "trend_p")
    wanted = "fall" if indicator.direction == "decrease" else "rise"
    if slope is not None and chance is not None:
        said = {
            "yes": f"shows the {wanted} that is wanted",
            "no": f"shows no {wanted}",
            "against": f"shows the opposite of the {wanted} that is wanted",
        }.get(judged.verdict, "decides nothing")
        writer.say(
            f"A Mann-Kendall test corrected for autocorrelation {said}: Theil-Sen slope "
            f"{cited(slope, '')} a step, p {cited(chance, '')}."
        )
    later, odds = writer.one(name, "recent_slope"), writer.one(name, "recent_p")
    if later is not None and odds is not None:
        writer.say(
            f"Over the last half alone the slope is {cited(later, '')} a step with p "
            f"{cited(odds, '')}."
        )


def _against(writer: Writer, name: str, status: Status) -> None:
    """What else bears on it, also what speaks against the status."""
    for other in ("eval_loss", "eval_accuracy", "grad_norm", "learning_rate"):
        last = writer.one(other)
        if other == name or last is None:
            continue
        extreme = writer.one(other, "max" if other == "grad_norm" else "first")
        word = "at most" if other == "grad_norm" else "at first"
        also = f", {word} {cited(extreme)}" if extreme is not None else ""
        writer.say(f"{other} is {cited(last)}{also}.")
    missed = [c for c in writer.briefing.comparisons if c.outcome == "missed"]
    if missed:
        names = listed(f"{c.quantity} [{c.prediction}]" for c in missed[:6])
        writer.say(f"Predictions that missed: {names}.")
    elif writer.briefing.comparisons and status is Status.HEALTHY:
        held = [c.prediction for c in writer.briefing.comparisons if c.outcome == "held"]
        if held:
            writer.say(f"What was predicted and could be observed held [{', '.join(held[:8])}].")


def _conclusion(status: Status, judged: Judged, found: bool) -> str:
    if status is Status.HEALTHY:
        return (
            "The indicator moves as it should, beyond what no learning would give, and nothing "
            "above information was found."
        )
    if status is Status.CRITICAL:
        return "A failure is shown, so the run does not go on as intended."
    if status is Status.WARNING and found:
        return "This needs attention, though no failure is shown."
    if status is Status.WARNING:
        return "All was examined, and progress beyond the baseline was not found."
    if judged.verdict == "yes":
        return "It moves the right way but not yet beyond the baseline, so nothing is decided."
    return "The evidence does not decide whether the run learns."


def _uncertain(writer: Writer, indicator: KeyIndicator, judged: Judged) -> dict[str, str]:
    name = indicator.quantity
    found = writer.series(name)
    if found is None:
        why = "No metric that tells of learning could be read from the job's logs."
        need = "A log with losses, rewards or evaluations, or its path if it lies elsewhere."
        ask = "Where does this run log its loss or reward, and what should tell its progress?"
    elif judged.course is None or found[1].count < LEAST:
        why = f"There are too few points of {name} for a test whose error rate is known."
        need = f"Some twenty more points of {name} [rule]."
        ask = "By when must it be known whether this run learns, and can it log more often?"
    elif judged.verdict == "yes":
        why = f"{name} moves the right way but is not clearly beyond the baseline yet."
        need = "As many steps again, or an evaluation on held-out data."
        ask = f"What level of {name} would you expect at this point of the run?"
    else:
        why = f"The scatter of {name} is larger than the change that was looked for."
        need = "As many steps again, or an evaluation on held-out data."
        ask = "Is another metric a better sign of progress for this run?"
    return {
        "tried": f"A trend test of {name} over all points and its last half, its level against "
        "the baseline, all findings and all sources.",
        "why_failed": why,
        "would_resolve": need,
        "question": ask,
    }


def _expected(writer: Writer, indicator: KeyIndicator) -> str:
    name = indicator.quantity
    way = "fall" if indicator.direction == "decrease" else "rise"
    about = next((p for p in writer.briefing.predictions if p.quantity == name), None)
    parts = [f"{name} should {way} over the run, steeply at first and slowly later."]
    if about is not None and about.low is not None and about.high is not None:
        sentence = (
            f"For this moment it was predicted between {about.low:.4g} and {about.high:.4g} "
            f"[{about.id}]."
        )
        parts.append(writer.grounded(sentence, f"For this moment see the prediction [{about.id}]."))
    end = writer.criterion("warmup_steps")
    if end is not None and as_number(end.value):
        parts.append(writer.grounded(f"Its warm-up lasts until step {cited(end)}.", ""))
    return " ".join(part for part in parts if part)


def _baseline(writer: Writer, indicator: KeyIndicator) -> str:
    name = indicator.quantity
    reference = writer.criterion("baseline_loss")
    if reference is not None and name in LOSSES:
        return writer.grounded(
            f"A model that learns nothing stays near {cited(reference)}, the cross-entropy of a "
            f"uniform guess, and its {name} shows no trend.",
            f"A model that learns nothing stays at the level of a uniform guess [{reference.id}].",
        )
    start: Observation | None = writer.one(name, "median_early") or writer.one(name, "first")
    if start is not None:
        return writer.grounded(
            f"Without learning {name} would stay where it began, at {cited(start)}, and show no "
            "trend.",
            f"Without learning {name} would stay where it began [{start.id}], without a trend.",
        )
    return f"Without learning {name} would stay where it begins and show no trend."
