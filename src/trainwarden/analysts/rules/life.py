"""Whether the run goes on and what it takes of the machine, as far as earlier sessions tell."""

from __future__ import annotations

from collections.abc import Iterator

from trainwarden.analysts.rules.history import History
from trainwarden.metrics.forecast import Interval
from trainwarden.records.prediction import Prediction

STEADY = 6
"""After so many looks at a living run, Laplace's rule of succession is near nine tenths."""


def life(history: History, step: Interval, paced: bool) -> Iterator[Prediction]:
    """Whether the run has ended by now, as its log and its processes will tell."""
    ended, total, looks = history.ended, history.total, max(1, len(history.looks))
    end = None if total is None else total - history.cadence - 1
    steady = 0.9 if looks >= STEADY else 0.8
    states: tuple[str, ...]
    if ended == "finished" and history.complete:
        states, level, alive = ("finished",), 0.9, False
        basis = "its log had ended as finished, at its planned length"
    elif ended == "finished":
        states, level, alive = ("finished", "running", "unknown"), 0.9, False
        basis = "its log had ended as finished, but no plan tells that nothing is to follow"
    elif ended in {"crashed", "interrupted"}:
        states, level, alive = (ended, "running", "unknown"), 0.9, False
        basis = f"its log had ended as {ended}; it stays so, or is started again"
    elif end is None or not paced:
        states, level, alive = ("running", "unknown", "finished"), steady, True
        basis = f"it ran at {looks} looks; when it is due to end is not known"
    elif step.high < end:
        states, level, alive = ("running", "unknown"), steady, True
        basis = f"it ran at {looks} looks and is not due to end by now"
    elif step.low >= end:
        states, level, alive = ("finished",), 0.7, False
        basis = f"step {step.low:g} to {step.high:g} of {total}: due to have ended"
    else:
        states, level = ("running", "unknown", "finished"), 0.9
        basis = (
            f"step {step.low:g} to {step.high:g} of {total}: may have ended by now, so that "
            "nothing is said of its process"
        )
        yield Prediction(quantity="log.ended", one_of=states, level=level, basis=basis)
        return
    yield Prediction(quantity="log.ended", one_of=states, level=level, basis=basis)
    if not alive and states != ("finished",):
        level = 0.7
    elif alive is False:
        level = min(level, 0.8)
    yield Prediction(quantity="process.alive", one_of=(alive,), level=level, basis=basis)


def machine(history: History) -> Iterator[Prediction]:
    """What is left of the host, and the draw of the GPUs where earlier sessions saw any."""
    if history.available:
        low = 0.25 * min(history.available)
        yield Prediction(
            quantity="host.memory_available",
            low=low,
            unit="bytes",
            level=0.9,
            basis=f"at least a quarter of the least seen at {len(history.available)} looks; less "
            "would mean that something takes the host's memory",
        )
    if history.has_gpu:
        yield power()


def power() -> Prediction:
    """The share of its power that a GPU draws, where all that is known is that there is one."""
    return Prediction(
        quantity="gpu.power_share",
        low=0.0,
        high=1.05,
        level=0.95,
        basis="rated power: between idle and the enforced limit, which is held to within some "
        "per cent; what share this run draws is not known beforehand",
    )
