"""Step 4 by rules: the status follows from findings and from a test for progress."""

from __future__ import annotations

from trainwarden.analysts.rules.reasoning import ALPHA, ALPHA_BEYOND, LOSSES, Judged, reason
from trainwarden.analysts.rules.words import Writer, choose_indicator, cited
from trainwarden.diagnosis.base import as_number
from trainwarden.diagnosis.course import course_of, even, moved
from trainwarden.metrics.trend import LEAST, progress
from trainwarden.procedure.progress import progress_complaints
from trainwarden.procedure.roles import Briefing
from trainwarden.records.assessment import Assessment, Deferral, KeyIndicator, Status
from trainwarden.records.finding import Severity
from trainwarden.records.observation import Observation

_NOTHING = KeyIndicator(
    quantity="loss",
    direction="decrease",
    why="No metric of learning was found in what was read; the loss is what one would judge by.",
)


def assess(briefing: Briefing) -> Assessment:
    """The status, with what it owes."""
    writer = Writer(briefing)
    chosen = choose_indicator(briefing)
    indicator = chosen or _NOTHING
    judged = _judge(writer, indicator)
    critical = [f for f in writer.loud if f.severity is Severity.CRITICAL]
    early = _in_warmup(writer)
    status = _status(writer, indicator, judged, chosen is not None, early is not None)
    reason(writer, indicator, judged, status)
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


def _status(
    writer: Writer, indicator: KeyIndicator, judged: Judged, measured: bool, early: bool
) -> Status:
    loud = writer.loud
    survived = [
        f
        for f in writer.briefing.findings
        if f.severity is Severity.INFO and "Training went on after it" in f.summary
    ]
    crashed = writer.ended == "crashed" and not (survived and not loud)
    if any(f.severity is Severity.CRITICAL for f in loud) or crashed:
        return Status.CRITICAL
    if loud or writer.ended == "interrupted":
        return Status.WARNING
    if not measured or judged.verdict == "undecided":
        return Status.UNCERTAIN
    if judged.verdict == "yes":
        owed = _owed(writer, indicator, judged)
        return Status.HEALTHY if judged.beyond and not owed else Status.UNCERTAIN
    if early or (judged.verdict == "no" and not _would_have_seen(writer, judged)):
        return Status.UNCERTAIN
    return Status.WARNING


def _owed(writer: Writer, indicator: KeyIndicator, judged: Judged) -> list[str]:
    """What the runtime would find lacking for HEALTHY."""
    claim = Assessment(
        status=Status.HEALTHY,
        indicator=indicator,
        expected="-",
        baseline="-",
        reasoning="-",
        progress=judged.citations,
    )
    briefing = writer.briefing
    return progress_complaints(claim, briefing.observations, briefing.header.criteria, indicator)


def _would_have_seen(writer: Writer, judged: Judged) -> bool:
    """Whether the absence of a trend says anything: enough points, late enough in the run.

    A change of two scatters over the run is what the eye would see as well.
    """
    tested, course = judged.tested, judged.course
    if tested is None or tested.trend is None or course is None:
        return False
    step, total = writer.step, writer.total_steps
    if step is not None and total and step < 0.1 * total:
        return False
    return tested.trend.detectable * tested.trend.span <= 2 * course.noise


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


def _uncertain(writer: Writer, indicator: KeyIndicator, judged: Judged) -> dict[str, str]:
    name = indicator.quantity
    found = writer.series(name)
    if found is None:
        why = "No metric that tells of learning could be read from the job's logs."
        need = "A log with losses, rewards or evaluations, or its path if it lies elsewhere."
        ask = "Into which file does this run write its loss or reward, and under which name?"
    elif judged.course is None or found[1].count < LEAST or judged.tested is None:
        why = f"There are too few points of {name} for a test whose error rate is known."
        need = f"About twenty points of {name} [rule]."
        ask = f"Does {name} look as you expect it at this stage, or is it to be judged later?"
    elif judged.verdict == "yes":
        why = f"{name} moves the right way but is not clearly beyond the baseline yet."
        need = "As many steps again, or an evaluation on held-out data."
        ask = f"Which level of {name} do you expect at this point of the run?"
    else:
        why = f"The scatter of {name} is larger than the change that was looked for."
        need = "As many steps again, or an evaluation on held-out data."
        ask = f"Is {name} the right sign of progress here, or does an evaluation tell it better?"
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
            f"Without learning {name} would stay at its early level, {cited(start)}, and show no "
            "trend.",
            f"Without learning {name} would stay at its early level [{start.id}], without a trend.",
        )
    return f"Without learning {name} would stay where it begins and show no trend."
