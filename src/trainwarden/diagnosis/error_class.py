"""The coarse class of the error that ended a run, in a word that others count by.

One of `CLASSES`, from the most particular line of the first failure: what followed from it (a
watchdog, a closed connection, the launcher's report) has no say, nor has what the run survived.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trainwarden.diagnosis.base import View
from trainwarden.diagnosis.crash import exception_lines
from trainwarden.diagnosis.signatures import (
    Signature,
    bare_line,
    classify,
    counts,
    habitual,
    is_habit,
    kept_lines,
    went_on,
)
from trainwarden.metrics.reading import Reading
from trainwarden.records.finding import Role

CLASSES = (
    "cuda_oom", "nccl", "cuda_runtime", "ram_oom", "segfault", "file_not_found", "permission",
    "missing_module", "div_zero", "device_mismatch", "nan_loss", "oom_killer", "traceback",
    "assertion", "runtime_error",
)  # fmt: skip
GENERIC = frozenset({"traceback", "runtime_error", "assertion"})
"""Classes that give way to any closer one of the same failure."""
REPORTS = frozenset({"launcher_report", "terminated", "network_failure"})
"""Signatures of lines that only pass on how another process ended."""
_NOT_OWN = ("KeyboardInterrupt", "SystemExit", "ChildFailedError", "SignalException")
"""Exceptions that tell of no error of the process's own."""


@dataclass(frozen=True)
class _Word:
    """What one line says of a failure."""

    name: str
    rank: int | None
    time: float
    """Unix seconds, infinite where the line has none."""
    cause: bool
    """Whether such a line can be the first of a failure."""


def error_class_of(seen: View | Sequence[Reading]) -> str | None:
    """The class of the initiating error of a run's logs; None where nothing failed.

    Several readings are those of the ranks of one run: the first that failed is asked, by the
    time of its first error, else in the order given.
    """
    readings = seen.readings if isinstance(seen, View) else tuple(seen)
    failed = [words for reading in readings if (words := _words(reading))]
    failed.sort(key=lambda words: words[0].time)
    # A rank that only timed out or was killed says less than one that raised.
    failed.sort(key=lambda words: not any(word.cause for word in words))
    if not failed:
        return "nan_loss" if any(_lost(reading, 2) for reading in readings) else None
    name = _closest(failed[0])
    lost = name in GENERIC and any(_lost(reading, 1) for reading in readings)
    return "nan_loss" if lost else name


def _words(reading: Reading) -> list[_Word]:
    """What tells of a failure that the run did not survive, in order of place."""
    lines = list(kept_lines(reading))
    raised = {offset for offset, _, _ in exception_lines(reading)}
    survived = {offset for offset, _, _ in lines if went_on(reading, offset)}
    habits = habitual(text for offset, text, _ in lines if offset in survived)
    found = []
    for offset, text, event in lines:
        if offset in survived or is_habit(text, habits):
            continue
        owner = classify(text)
        if owner is not None and not counts(owner, reading, offset):
            continue
        name, cause = _named(owner, text, offset in raised)
        if name is not None:
            time = event.time if event is not None and event.time is not None else math.inf
            found.append(_Word(name, event.rank if event is not None else None, time, cause))
    if not found and reading.ended == "crashed":
        stopped = any(event.kind == "traceback" for event in reading.events)
        return [_Word("traceback", None, math.inf, True)] if stopped else []
    return found


def _named(owner: Signature | None, text: str, raised: bool) -> tuple[str | None, bool]:
    """The class of a line, and whether such a line can be the first of a failure."""
    if owner is not None and (owner.role is Role.ADVICE or owner.name in REPORTS):
        return None, False
    if owner is not None and owner.error_class is not None:
        return owner.error_class, owner.role is Role.INITIATING
    if not raised or any(name in text for name in _NOT_OWN):
        return None, False
    said = bare_line(text).lstrip()
    plain = {"RuntimeError": "runtime_error", "AssertionError": "assertion"}
    named = next((plain[name] for name in plain if said.startswith(name)), "traceback")
    return named, owner is None or owner.role is Role.INITIATING


def _closest(words: list[_Word]) -> str:
    """The closest class of the rank that failed first."""
    first = next((word for word in words if word.cause), words[0])
    mine = [w for w in words if first.rank is None or w.rank in (None, first.rank)]
    close = [w.name for w in mine if w.cause and w.name not in GENERIC]
    # What finds a process dead says how it died, unless that had words of its own.
    echoes = [w.name for w in words[: words.index(first)]]
    return next(iter((*close, *echoes)), first.name)


def _lost(reading: Reading, least: int) -> bool:
    """Whether the loss was no number in the last values of the log, `least` at the least."""
    loss = reading.series.get("loss") or reading.series.get("train_loss_total")
    recent = loss.recent[-least:] if loss is not None else []
    return len(recent) == least and all(not math.isfinite(point.value) for point in recent)
