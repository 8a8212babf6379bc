"""What step 1 owes: predictions of what matters, each able to miss. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from trainwarden.procedure.duties import MACHINE_PREFIXES
from trainwarden.procedure.grounding import Citable
from trainwarden.records.assessment import Criterion
from trainwarden.records.prediction import Prediction

MOST = 200
ENDLESS = 1e14
"""A bound beyond this bounds nothing that a run has."""
TIMES = 20.0
"""From nothing to this many times what the config or the last session says holds anything."""
NOT_LEARNING = re.compile(
    r"step|epoch|learning_rate|grad_norm|(?:tokens|samples|steps)_per_second|step_time|mfu|"
    r"loss_scale|gpu_memory|memory|num_tokens|eta|lr.*|time.*|throughput.*"
)
"""Metrics of the run that move by schedule, machine or clock."""
FIXED = re.compile(
    r"gpu\.(?:count|name|uuid|memory_total|power_limit|clock_sm_max|pcie_\w+_max|mig)|"
    r"host\.(?:cores|memory_total|shm_total|uptime)|disk\.total|kernel\.readable|log\.runs|"
    r"process\.started"
)
"""What does not change while a run goes on, so that predicting it says nothing of the run."""
_ALL_OF: dict[str, frozenset[str]] = {
    "log.ended": frozenset({"finished", "crashed", "interrupted", "running", "unknown"}),
    "process.state": frozenset({"running", "sleeping", "disk-sleep", "stopped", "zombie", "dead"}),
}
_BELOW_ZERO = ("loss", "reward", "score", "return", "kl", "growth", "margin", "temperature")
_SCALES = {
    "step": ("max_steps", "previous_step"),
    "epoch": ("epochs",),
    "learning_rate": ("learning_rate",),
    "loss": ("baseline_loss", "previous_loss"),
    "eval_loss": ("baseline_loss", "previous_eval_loss"),
}


def prediction_complaints(
    predictions: Sequence[Prediction], criteria: Iterable[Criterion] = ()
) -> list[str]:
    """Step 1: something on progress, on learning and on resources must be predicted."""
    if len(predictions) > MOST:
        return [f"{len(predictions)} predictions are given; say at most {MOST} that matter"]
    problems = []
    criteria = tuple(criteria)
    # Of the run itself, so that it can be held against something.
    plain = {p.quantity for p in predictions if p.stat == "last" and p.subject is None}
    if not plain & {"step", "epoch"}:
        problems.append("predict how far the run is: quantity step (or epoch)")
    if not any(tells_learning(quantity) for quantity in plain):
        problems.append("predict what the run has learnt: e.g. quantity loss or eval_loss")
    machine = {p.quantity for p in predictions if p.quantity.startswith(MACHINE_PREFIXES)}
    if all(FIXED.fullmatch(quantity) for quantity in machine):
        problems.append("predict the resources: e.g. process.alive or gpu.power_share")
    keys = [(p.quantity, p.stat, p.subject) for p in predictions]
    twice = (
        dict.fromkeys(key for key in keys if keys.count(key) > 1)
        if len(set(keys)) < len(keys)
        else {}
    )
    problems += [f"{quantity} ({stat}) is predicted twice" for quantity, stat, _ in twice]
    citable = Citable(criteria=criteria)
    for prediction in predictions:
        name = prediction.quantity
        if (why := emptiness(prediction, criteria)) is not None:
            problems.append(f"{name}: {why}")
        if prediction.level < 0.5:
            problems.append(
                f"{name}: a level of {prediction.level:g} expects the opposite: predict that"
            )
        problems += [
            f"{name}: its basis cites [{cited}], which is not known before looking"
            for cited in citable.cited(prediction.basis)
            if cited[0] in "EFP"
        ]
    return problems


def tells_learning(quantity: str) -> bool:
    """Whether a quantity may tell what the run has learnt, by all that is known of its name."""
    # A run may log a measure whose name nobody here knows, so only what is known is left out.
    return not quantity.startswith(MACHINE_PREFIXES) and not NOT_LEARNING.fullmatch(quantity)


def emptiness(prediction: Prediction, criteria: Iterable[Criterion]) -> str | None:
    """Why a prediction could not miss, or None where it could."""
    options = prediction.one_of
    if options is not None:
        named = {option for option in options if isinstance(option, str)}
        if {True, False} <= {option for option in options if isinstance(option, bool)}:
            return "true or false is all there is"
        if named >= _ALL_OF.get(prediction.quantity, {""}):
            return "that is every value it can have"
        return None
    low = -math.inf if prediction.low is None else prediction.low
    high = math.inf if prediction.high is None else prediction.high
    floor = -math.inf
    if not any(part in prediction.quantity for part in _BELOW_ZERO):
        floor = 0.0
    if low <= max(floor, -ENDLESS) and high >= ENDLESS:
        return f"from {low:g} to {high:g} nothing can miss: say where surprise would begin"
    names = _SCALES.get(prediction.quantity, ()) if prediction.stat == "last" else ()
    scales = [c for c in criteria if c.name in names and _is_number(c.value)]
    if scales and low <= 0:
        most = max(scales, key=lambda c: abs(float(c.value)))
        if high > TIMES * abs(float(most.value)) > 0:
            return (
                f"from {low:g} to {high:g} hardly anything can miss, with {most.name} "
                f"{float(most.value):.4g} [{most.id}]: say where surprise would begin"
            )
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
