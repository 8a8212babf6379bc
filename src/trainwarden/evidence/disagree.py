"""Where sources say different things of one matter: listed, and the lower-level one believed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import combinations

from trainwarden.records.observation import Disagreement, Observation

TOLERANCE = {
    "step": 0.05,
    "gpu_memory": 0.05,
    "memory": 0.10,
    "tokens_per_second": 0.10,
    "samples_per_second": 0.10,
    "steps_per_second": 0.10,
    "step_time": 0.10,
}
"""Share of the larger value up to which two sources agree (rules of thumb: a tracker uploads late,
rates are averaged over different windows); 0.01 for all others, which covers rounding."""

ENDINGS = ("finished", "crashed", "interrupted")
SAME_STEP = 0.01
"""Share by which steps may differ for their values to be compared."""
FRESH = 60.0
"""Seconds; a log written within that, or within three of its own intervals, is being written."""


def disagreements(observations: Iterable[Observation]) -> list[Disagreement]:
    """Compare what different sources say of one thing. Pure; observations carry their ids.

    The source with the higher trust is believed; between equals the one that is further on.
    """
    seen = list(observations)
    found: list[Disagreement] = []
    for rule in (
        _same_quantity,
        _alive_and_ended,
        _exit_and_ended,
        _checkpoint,
        _gpu_memory,
    ):
        found += rule(seen)
    return found


def _dispute(quantity: str, believed: Observation, doubted: Observation, why: str) -> Disagreement:
    return Disagreement(quantity=quantity, believed=believed.id, doubted=doubted.id, remark=why)


def _find(seen: list[Observation], quantity: str) -> Observation | None:
    """What is said of the run itself, or of the job; of several logs the main one comes first."""
    for one in seen:
        if one.quantity == quantity and one.stat == "last" and one.subject in (None, "job"):
            return one
    return None


def _number(observation: Observation | None) -> float | None:
    if observation is None or isinstance(observation.value, bool | str):
        return None
    return float(observation.value)


def _agree(quantity: str, a: Observation, b: Observation) -> bool:
    x, y = _number(a), _number(b)
    if x is None or y is None:
        return a.value == b.value
    if not (math.isfinite(x) and math.isfinite(y)):
        return x == y or (math.isnan(x) and math.isnan(y))
    return abs(x - y) <= TOLERANCE.get(quantity, 0.01) * max(abs(x), abs(y))


def _comparable(quantity: str, a: Observation, b: Observation) -> bool:
    """Whether both speak of the same moment of the run."""
    if quantity.startswith("log.") or a.unit != b.unit:
        # Each log ends, ages and grows by itself; units that differ are not ours to convert.
        return False
    if quantity == "step" or a.step is None or b.step is None:
        return True
    return abs(a.step - b.step) <= SAME_STEP * max(abs(a.step), abs(b.step))


def _ended(seen: list[Observation]) -> bool:
    alive, ended = _find(seen, "process.alive"), _find(seen, "log.ended")
    return (alive is not None and alive.value is False) or (
        ended is not None and ended.value in ENDINGS
    )


def _same_quantity(seen: list[Observation]) -> Iterator[Disagreement]:
    groups: dict[tuple[str, str, str | None], dict[str, Observation]] = {}
    for one in seen:
        # Of several logs the main one comes first.
        groups.setdefault((one.quantity, one.stat, one.subject), {}).setdefault(one.source, one)
    for (quantity, _, _), by_source in groups.items():
        for a, b in combinations(by_source.values(), 2):
            if not _comparable(quantity, a, b) or _agree(quantity, a, b):
                continue
            believed, doubted = sorted((a, b), key=lambda o: (o.trust, o.step or 0), reverse=True)
            yield _dispute(
                quantity,
                believed,
                doubted,
                f"{believed.source} says {believed.value}, {doubted.source} says {doubted.value}; "
                + (
                    f"{believed.source} is believed as the lower-level source"
                    if believed.trust > doubted.trust
                    else f"both are trusted alike, {believed.source} is further on"
                ),
            )


def _alive_and_ended(seen: list[Observation]) -> Iterator[Disagreement]:
    alive, ended, age = (_find(seen, q) for q in ("process.alive", "log.ended", "log.age"))
    if alive is None:
        return
    interval = _number(_find(seen, "log.interval")) or 0.0
    quiet = _number(age)
    if ended is not None and alive.value is True:
        if ended.value in ENDINGS:
            why = (
                f"the log says {ended.value} while the job's process lives: it hangs in its own "
                "ending, or another process of the job goes on"
            )
            yield _dispute("process.alive", alive, ended, why)
        return
    # A log that was just written agrees with a process that has just died.
    stale = quiet is not None and quiet > max(FRESH, 3 * interval)
    if alive.value is False and stale and ended is not None and ended.value == "running":
        why = "the log tells of no ending, but no process of the job lives"
        yield _dispute("process.alive", alive, ended, why)


def _exit_and_ended(seen: list[Observation]) -> Iterator[Disagreement]:
    alive, ended = _find(seen, "process.alive"), _find(seen, "log.ended")
    exits = [one for one in seen if one.quantity == "process.exit"]
    if not exits or ended is None or (alive is not None and alive.value is True):
        # While the job lives, what has ended is a helper of it.
        return
    failed = [one for one in exits if str(one.value) != "0"]
    if not failed and ended.value == "crashed":
        why = "the log shows a crash, yet the process ended with exit code 0: a swallowed error"
        yield _dispute("process.exit", exits[0], ended, why)
    elif failed and ended.value == "finished":
        why = f"the log says finished, yet a process of the job ended with {failed[0].value}"
        yield _dispute("process.exit", failed[0], ended, why)


def _checkpoint(seen: list[Observation]) -> Iterator[Disagreement]:
    """A checkpoint written after the log's last line, at a step that the log has not reached."""
    step, quiet = _find(seen, "step"), _number(_find(seen, "log.age"))
    reached = _number(step)
    if step is None or reached is None or quiet is None:
        return
    ages = {one.subject: _number(one) for one in seen if one.quantity == "checkpoint.age"}
    for saved in (one for one in seen if one.quantity == "checkpoint.step"):
        at, age = _number(saved), ages.get(saved.subject)
        if at is None or age is None or age > quiet or at <= reached * (1 + TOLERANCE["step"]):
            continue
        why = (
            f"a checkpoint of step {at:.0f} is newer than the log, which ends at step "
            f"{reached:.0f}: the log is held in a buffer, or it is not this run's"
        )
        yield _dispute("step", saved, step, why)


def _gpu_memory(seen: list[Observation]) -> Iterator[Disagreement]:
    """A run cannot hold more memory than NVML sees in use on all devices together."""
    printed = _find(seen, "gpu_memory")
    claimed = _number(printed)
    readable = [one for one in seen if one.quantity == "gpu.readable"]
    if printed is None or claimed is None or not readable:
        return
    if _ended(seen) or not all(one.value for one in readable):
        return
    # An instance's memory is part of its device's.
    devices = [one for one in seen if "MIG" not in (one.subject or "")]
    held = [one for one in devices if one.quantity == "gpu.job_memory"]
    # Where processes cannot be told apart, all that is used bounds what the job can hold.
    if {one.subject for one in held} < {one.subject for one in readable}:
        held = [one for one in devices if one.quantity == "gpu.memory_used"]
    if {one.subject for one in held} != {one.subject for one in readable}:
        return
    total = sum(_number(one) or 0.0 for one in held)
    if claimed > total * (1 + TOLERANCE["gpu_memory"]):
        largest = max(held, key=lambda one: _number(one) or 0.0)
        why = (
            f"the run prints {claimed:.3g} bytes of GPU memory, NVML sees {total:.3g} bytes in use "
            "on all devices: it is a peak of the past, or the run is on other devices"
        )
        yield _dispute("gpu_memory", largest, printed, why)
