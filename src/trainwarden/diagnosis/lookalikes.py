"""What looks like a fault to a reader of few lines and is none: told, and why.

Each explanation asks for what tells the fault apart, so that none speaks where the fault is as
likely. All are findings of the kind that they are taken for, as information. Long logs get none
but those that still hold at their end: what has passed worries nobody.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median

from trainwarden.diagnosis.base import View, whole
from trainwarden.diagnosis.rl import is_rl
from trainwarden.diagnosis.text import figure
from trainwarden.metrics.series import Point, Series
from trainwarden.records.finding import Finding, FindingKind, Role, Severity

FEW = 40
"""Up to so many points a log is an excerpt, or of a run that has just begun."""
LN2 = math.log(2)


def detect_look_alikes(view: View) -> Iterator[Finding]:
    """What would worry a reader and is harmless, as far as the log shows it to be."""
    if view.ended == "crashed":
        return
    looks: tuple[Callable[[View], Finding | None], ...] = (
        _loss_of_rewards,
        _even_preference,
        _scale_search,
        _single_episodes,
        _first_steps_compile,
        _pauses,
        _warm_up,
    )
    for look in looks:
        if (found := look(view)) is not None:
            yield found


def is_explained(finding: Finding) -> bool:
    """Whether the finding is one of these: an explanation, no trace of a fault."""
    return finding.severity is Severity.INFO and finding.summary.startswith(MARK)


MARK = "Looks like a fault and is none: "


def _explain(
    view: View,
    kind: FindingKind,
    names: tuple[str, ...],
    since: Point | None,
    told: str,
    meaning: str,
    fault: str,
) -> Finding | None:
    cited = tuple(dict.fromkeys(one for name in names for one in view.cite(name, "last", "first")))
    cited = cited or view.cite_log()
    if not cited:
        return None
    return Finding(
        kind=kind,
        severity=Severity.INFO,
        role=Role.ADVICE,
        observations=cited,
        since_step=whole(since.step) if since else None,
        summary=MARK + told,
        meaning=meaning,
        alternatives=(fault,),
        first_action="Nothing for now.",
        evidence_type="inference",
        confidence=0.7,
    )


def _few(series: Series | None, least: int) -> list[Point]:
    """All points of a series that has few, all finite; else none."""
    if series is None or not least <= series.count <= FEW:
        return []
    points = series.points()
    return points if all(math.isfinite(point.value) for point in points) else []


def _loss_of_rewards(view: View) -> Finding | None:
    """Policy optimisation against its own samples: the loss is near 0 by construction."""
    points = _few(view.series("loss"), 2)
    if not points or not is_rl(view) or max(abs(point.value) for point in points) > 1e-2:
        return None
    norms, spread = view.series("grad_norm"), view.series_like("reward_std", "rewards/std")
    if norms is None or not all(point.value > 0 for point in norms.points()):
        return None
    if spread is not None and not any(point.value > 0 for point in spread.recent[-3:]):
        return None
    return _explain(
        view,
        "zero_loss",
        ("loss", "grad_norm"),
        points[0],
        f"the loss is {figure(points[-1].value)}, but the gradient norm is "
        f"{figure(norms.recent[-1].value)}.",
        "With advantages centred in each group and one update a sample, the loss is the weighted "
        "KL alone, about 0 at first; its gradient is not. Reward, spread and KL tell of progress.",
        "A gradient norm of 0, or rewards without spread, would be a fault",
    )


def _even_preference(view: View) -> Finding | None:
    """Preference learning begins at ln 2: policy and reference are still the same."""
    points = _few(view.series("loss"), 2)
    marked = view.series_like("rewards/margins", "rewards/chosen", "rewards/accuracies")
    said = (view.facts.task or "").lower() in {"dpo", "ipo", "cpo", "orpo", "preference"}
    if not points or not (marked is not None or said) or len(points) > 20:
        return None
    if any(abs(point.value - LN2) > 0.05 for point in points):
        return None
    return _explain(
        view,
        "plateau",
        ("loss",),
        points[0],
        f"the loss is {figure(points[-1].value)}, about ln 2, as preference learning begins.",
        "While policy and reference are the same, either answer is as likely as the other, which "
        "costs ln 2. With a small learning rate or in a warm-up it stays there for some steps.",
        "If it still stands there after the warm-up, with margins of 0, nothing is learnt",
    )


_SCALE = re.compile(r"(?:reducing|to|scale:?)\s+(?:to )?(\d{1,12}(?:\.\d{1,6})?(?:e[+-]?\d{1,3})?)")
MOST_SKIPPED = 16
"""From 65536, where scalers begin, so many halvings lead to 1: as many overflows are a search."""


def _scale_search(view: View) -> Finding | None:
    """Overflows while a loss scaler searches for its scale."""
    for reading in view.readings:
        told = [event for event in reading.events if event.kind == "overflow"]
        longest = max((one.count for one in reading.series.values()), default=0)
        if not told or len(told) > MOST_SKIPPED or (longest > FEW and len(told) > 0.02 * longest):
            continue
        scales = [float(n) for event in told for n in _SCALE.findall(event.text)[-1:]]
        if (scales and min(scales) <= 1) or (not scales and longest < 2):
            continue
        cited = view.cite_event(reading, told[0].offset)
        found = _explain(
            view,
            "loss_scale",
            ("loss_scale",),
            None,
            f"{len(told)} steps were skipped for an overflow"
            + (f", and the loss scale is {figure(scales[-1])} now." if scales else "."),
            "Dynamic loss scaling searches for the largest scale that fits: it begins too high on "
            "purpose, and a skipped step changes no weight.",
            "An overflow at every step, with a scale that falls to 1 or below, would be a fault",
        )
        return found.model_copy(update={"observations": cited}) if found and cited else found
    return None


def _single_episodes(view: View) -> Finding | None:
    """A spread of exactly 0 over single episodes, while their rewards differ."""
    for name in ("std_of_reward", "reward_std", "episode_reward_std"):
        spread, reward = view.series(name), view.series("reward")
        points = _few(spread, 2)
        if not points or any(point.value != 0 for point in points) or reward is None:
            continue
        # Where answers are compared in groups, no spread means no signal.
        if view.series_like("completions/", "clip_ratio", "clipped_ratio", "response_length", "kl"):
            continue
        if view.series("grad_norm") is not None or reward.count < 2:
            continue
        values = [point.value for point in reward.points()]
        if any(a == b for a, b in pairwise(values)):
            continue
        return _explain(
            view,
            "rl_zero_signal",
            (name, "reward"),
            points[0],
            f"{name} is 0 in all {len(points)} summaries, but the reward differs from each to "
            "the next.",
            "Each summary covers a single episode, and one value has no spread. The reward tells "
            "of progress.",
            "Rewards that are all the same would be no signal",
        )
    return None


def _first_steps_compile(view: View) -> Finding | None:
    points = _few(view.series("step_time"), 3)
    if not points:
        return None
    rest = [point.value for point in points[1:]]
    usual = median(rest)
    if usual <= 0 or points[0].value < 5 * usual or max(rest[1:]) > 3 * usual:
        return None
    return _explain(
        view,
        "step_time_regression",
        ("step_time",),
        points[0],
        f"the first step took {figure(points[0].value)} s; later ones take {figure(usual)} s.",
        "The first step compiles, tunes kernels and fills caches and queues.",
        "If it comes back with new shapes of input, these are compiled anew each time",
    )


def _pauses(view: View) -> Finding | None:
    """Single long steps where the run evaluates or saves."""
    points = _few(view.series("step_time"), 6)
    usual = median([point.value for point in points]) if points else 0.0
    if usual <= 0:
        return None
    long = [k for k, point in enumerate(points) if k and point.value > 4 * usual]
    if not long or len(long) > len(points) / 4 or long[-1] == len(points) - 1:
        return None
    if any(points[k + 1].value > 2 * usual for k in long):
        return None
    held = view.series("eval_loss") or view.series("eval_accuracy")
    at = {point.step for point in held.points()} if held else set()
    at |= {
        event.step
        for reading in view.readings
        for event in reading.events
        if event.kind in ("checkpoint", "evaluation") and event.step is not None
    }
    near = [any(points[k - 1].step <= step <= points[k].step for step in at) for k in long]
    gaps = {b - a for a, b in pairwise(long)}
    if not all(near) and not (len(long) > 2 and len(gaps) == 1):
        return None
    return _explain(
        view,
        "stall",
        ("step_time",),
        points[long[0]],
        f"{len(long)} single steps took up to {figure(max(points[k].value for k in long))} s "
        f"where {figure(usual)} s is usual, each time followed by usual ones.",
        "The run evaluates or saves there.",
        "If they grow from time to time, look at the storage or the size of the evaluation",
    )


def _warm_up(view: View) -> Finding | None:
    """No progress yet, while the learning rate still rises from next to nothing."""
    rates, losses = _few(view.series("learning_rate"), 3), _few(view.series("loss"), 3)
    if not rates or not losses or is_rl(view):
        return None
    if any(b.value <= a.value for a, b in pairwise(rates)):
        return None
    first, last = losses[0].value, losses[-1].value
    if last < 0.98 * first or last > 1.1 * abs(first):
        return None
    return _explain(
        view,
        "lr_schedule",
        ("learning_rate", "loss"),
        rates[0],
        f"the loss has hardly moved ({figure(first)} to {figure(last)}), while the learning rate "
        f"still rises in its warm-up ({figure(rates[0].value)} to {figure(rates[-1].value)}).",
        "Steps are tiny until the warm-up is over.",
        "If the loss stays there after the warm-up, nothing is learnt",
    )
