"""The reasoning of step 4: a short judgment, what decides it first."""

from __future__ import annotations

from dataclasses import dataclass

from trainwarden.analysts.rules.words import Writer, cited, listed, one_sentence
from trainwarden.diagnosis.base import as_number
from trainwarden.diagnosis.course import Course
from trainwarden.metrics.trend import Progress
from trainwarden.records.assessment import KeyIndicator, Status
from trainwarden.records.finding import Role

ALPHA = 0.01
"""Level of the test for progress."""
ALPHA_BEYOND = 0.05
"""Its level where the loss already lies beyond what a model that learnt nothing would show."""
LOSSES = ("loss", "eval_loss")


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


def reason(writer: Writer, indicator: KeyIndicator, judged: Judged, status: Status) -> None:
    """A short judgment: what decides it first, then what bears it out or speaks against it."""
    _state(writer)
    if writer.loud:
        _found(writer)
    name = indicator.quantity
    if status is Status.HEALTHY or not writer.loud:
        _progress(writer, indicator, judged)
        _level(writer, name, judged)
        _later(writer, indicator)
        _evaluation(writer, name)
    else:
        _stands(writer, name)
    _missed(writer, name)
    if "[E" not in writer.text:
        seen = next(iter(writer.briefing.observations.values()), None)
        where = f" [{seen.id}]" if seen is not None else ""
        writer.say(f"What was read tells nothing of how the model learns{where}.")
    writer.say(_conclusion(status, judged, bool(writer.loud), writer.ended))


def _state(writer: Writer) -> None:
    """Where the run is, and whether it still goes on."""
    ended, step, alive = writer.one("log.ended"), writer.one("step"), writer.one("process.alive")
    at = f" at step {cited(step)}" if step is not None else ""
    said = {
        "finished": "The run has finished",
        "crashed": "The run has crashed",
        "interrupted": "The run was stopped from outside",
    }.get(writer.ended)
    if said is not None:
        where = f" [{ended.id}]" if ended is not None else ""
        writer.say(f"{said}{at}{where}.", f"{said}{where}.")
    elif alive is not None and alive.value is False:
        writer.say(
            f"No process of the job lives any more [{alive.id}]; its log stops{at}.",
            f"No process of the job lives any more [{alive.id}].",
        )
    elif step is not None:
        planned = writer.criterion("total_steps") or writer.criterion("max_steps")
        of = f" of {cited(planned)}" if planned is not None else ""
        writer.say(f"The run is at step {cited(step)}{of}.", f"The run is at step {cited(step)}.")


def _found(writer: Writer) -> None:
    """The first finding in causal order in full, the others by name, and what to do first."""
    first, *others = writer.loud
    writer.say(
        one_sentence(first),
        f"There is a {first.severity.value} finding of kind {first.kind} [{first.id}].",
    )
    if first.since_step is not None and str(first.since_step) not in first.summary:
        writer.say(f"That is since step {first.since_step} [{first.id}].")
    follow = [f for f in others if f.role in (Role.CASCADE, Role.TEARDOWN)]
    beside = [f for f in others if f not in follow]
    if follow:
        names = listed(f"{f.kind} [{f.id}]" for f in follow[:4])
        writer.say(f"From it most likely follows {names}.")
    for finding in beside[:2]:
        writer.say(
            "Besides: " + one_sentence(finding), f"Besides, there is {finding.kind} [{finding.id}]."
        )
    if len(beside) > 2:
        rest = listed(f"{f.kind} [{f.id}]" for f in beside[2:6])
        writer.say(f"Also found: {rest}.")
    if first.first_action:
        writer.say(f"First: {first.first_action}")


def _stands(writer: Writer, name: str) -> None:
    last, first = writer.one(name), writer.one(name, "first")
    if last is not None:
        since = f", after {cited(first)} at the start" if first is not None else ""
        writer.say(f"The key indicator {name} stands at {cited(last)}{since}.")


def _progress(writer: Writer, indicator: KeyIndicator, judged: Judged) -> None:
    """From where to where the indicator went, and by which test."""
    name = indicator.quantity
    early, recent = writer.one(name, "median_early"), writer.one(name, "median_recent")
    chance = writer.one(name, "trend_p")
    if early is None or recent is None:
        _stands(writer, name)
        return
    up = indicator.direction == "increase"
    how = {
        "yes": "rises" if up else "falls",
        "no": "shows no rise" if up else "shows no fall",
        "against": "falls, though it should rise" if up else "rises, though it should fall",
    }.get(judged.verdict, "does not tell yet")
    tested = f" (Mann-Kendall p {cited(chance, '')})" if chance is not None else ""
    writer.say(
        f"{name} {how}: its median was {cited(early)} over the first tenth of the points and is "
        f"{cited(recent)} over the last{tested}.",
        f"{name} {how} [{recent.id}].",
    )


def _level(writer: Writer, name: str, judged: Judged) -> None:
    reference = writer.criterion("baseline_loss")
    recent = writer.one(name, "median_recent") or writer.one(name)
    if reference is not None and recent is not None and name in LOSSES:
        side = "beyond" if judged.beyond else "not clearly beyond"
        writer.say(
            f"With {cited(recent)} it is {side} the {cited(reference)} that knowing nothing gives."
        )


def _later(writer: Writer, indicator: KeyIndicator) -> None:
    slope = writer.one(indicator.quantity, "recent_slope")
    odds = writer.one(indicator.quantity, "recent_p")
    value = as_number(odds.value) if odds is not None else None
    rate = as_number(slope.value) if slope is not None else None
    if odds is None or value is None or rate is None:
        return
    better = (rate > 0) is (indicator.direction == "increase")
    if value < ALPHA_BEYOND:
        way = "goes on" if better else "has turned around"
    else:
        way = "is too small to be told from scatter"
    writer.say(f"Over the last half alone the progress {way} (p {cited(odds, '')}).")


def _evaluation(writer: Writer, name: str) -> None:
    for other in ("eval_loss", "eval_accuracy"):
        last, first = writer.one(other), writer.one(other, "first")
        if other != name and last is not None:
            since = f", after {cited(first)} at first" if first is not None else ""
            writer.say(f"{other} is {cited(last)}{since}.")
            return


def _missed(writer: Writer, name: str) -> None:
    """Predictions that missed: of the indicator first, and no more than three."""
    missed = [c for c in writer.briefing.comparisons if c.outcome == "missed"]
    missed.sort(key=lambda c: c.quantity != name)
    if missed:
        names = listed(f"{c.quantity} [{c.prediction}]" for c in missed[:3])
        more = " among others" if len(missed) > 3 else ""
        writer.say(f"Not as predicted{more}: {names}.")


def _conclusion(status: Status, judged: Judged, found: bool, ended: str) -> str:
    if status is Status.HEALTHY:
        done = "did what it should" if ended == "finished" else "goes as it should"
        return f"The run {done}: nothing above information was found."
    if status is Status.CRITICAL:
        over = ended in ("crashed", "finished", "interrupted")
        return (
            "The run did not get where it was meant to."
            if over
            else "Going on as it is would only cost time."
        )
    if status is Status.WARNING and found:
        return "No failure is shown, but this should be looked at now."
    if status is Status.WARNING:
        return "A change of a size that matters would have been seen, and none was."
    if judged.verdict == "yes":
        return "It moves the right way, but that is not enough yet to call it learning."
    return "This does not decide whether the run learns."
