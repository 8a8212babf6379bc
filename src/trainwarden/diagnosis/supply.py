"""What the steps wait for: input data, or the slowest rank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from trainwarden.diagnosis.base import View, whole
from trainwarden.diagnosis.text import figure, share
from trainwarden.metrics.series import Point, Series
from trainwarden.records.finding import Finding, Severity

DATA_TIMES = (
    "data_time", "data_loading_time", "data_load_time", "dataloader_time", "dataload_time",
    "data_wait", "data_wait_time", "reader_cost", "time/data", "time/data_loading",
    "time_metrics/data_loading(s)", "fetch_time", "load_time", "batch_load_time", "input_time",
)  # fmt: skip
"""Seconds a step waits for its batch, as trainers name them."""
BOUND = 0.5
"""A run that waits for data for more than this share of its time is bound by its input."""
_MIDDLES = ("_med", "_median", "_mean", "_avg", "_p50", "/median", "/mean", "/avg")
_TIMED = ("time", "dt", "latency", "duration", "elapsed")


def _paired(one: Series, other: Series) -> list[tuple[Point, Point]]:
    """Points of the same step, in order."""
    by_step = {point.step: point for point in other.points()}
    return [
        (point, by_step[point.step])
        for point in one.points()
        if point.step in by_step
        and math.isfinite(point.value)
        and math.isfinite(by_step[point.step].value)
    ]


def detect_slow_input(view: View) -> Iterator[Finding]:
    """Steps that mostly wait for data."""
    step_time = view.series("step_time")
    data = next((found for name in DATA_TIMES if (found := view.series(name))), None)
    if step_time is None or data is None:
        return
    pairs = [(d, t) for d, t in _paired(data, step_time) if t.value > 0]
    # Workers start and caches fill in the beginning.
    pairs = pairs[max(2, len(pairs) // 20) :]
    if len(pairs) < 8:
        return
    shares = [min(1.0, d.value / t.value) for d, t in pairs]
    recent = shares[-max(8, len(shares) // 4) :]
    waits = median(recent)
    # Waiting in most steps: a long one at each epoch's start is how loaders start.
    if waits < BOUND or sum(value > 0.5 * BOUND for value in recent) < 0.7 * len(recent):
        return
    start = len(shares)
    while start > 0 and median(shares[max(0, start - 5) : start]) >= BOUND:
        start -= 1
    # Many a run is bound by its input from its first step on and does what it is meant to do.
    became = start > max(8, len(shares) // 10) and median(shares[:start]) < 0.8 * waits
    yield Finding(
        kind="slow_input",
        severity=Severity.WARNING if became else Severity.INFO,
        observations=(*view.cite(data.name, "last"), *view.cite("step_time", "last")),
        since_step=whole(pairs[min(start, len(pairs) - 1)][0].step),
        summary=f"Steps wait for data for {share(waits)} of their time"
        + (f", {share(median(shares[:start]))} before" if became else ", ever since the start")
        + f": {data.name} is "
        f"{figure(pairs[-1][0].value)} of {figure(pairs[-1][1].value)} s in the last one.",
        meaning="The devices idle while the input is prepared; the run takes longer than its "
        "computation needs.",
        alternatives=(
            "Too few loader workers, or too many for the cores there are",
            "Slow or remote storage",
            "Decoding or augmentation that is heavy for the CPU",
            "A trainer whose timer counts more than waiting as data time",
        ),
        first_action="Run the loader alone with the same workers, and compare its rate with what "
        "the steps need.",
        evidence_type="observation",
        confidence=0.85,
    )


def detect_straggler(view: View) -> Iterator[Finding]:
    """Ranks that take far longer than the usual one, where the log tells both."""
    step_time = view.series("step_time")
    for reading in view.readings:
        for name, slowest in reading.series.items():
            base, usual = _usual_of(name, reading.series)
            if usual is None or not any(mark in base for mark in _TIMED):
                continue
            pairs = _paired(slowest, usual)[-20:]
            held = [(s, u) for s, u in pairs if _holds_up(s, u, base, step_time)]
            if len(held) < 2 or len(held) < 0.5 * len(pairs):
                continue
            worst, typical = held[-1]
            yield Finding(
                kind="straggler",
                severity=Severity.WARNING,
                observations=tuple(
                    dict.fromkeys((*view.cite(name, "last", "max"), *view.cite(usual.name, "last")))
                )
                or view.cite_log(),
                since_step=whole(held[0][0].step),
                summary=f"The slowest rank's {base.strip('_/.')} is {figure(worst.value)} s at "
                f"step {figure(worst.step)} where the usual rank's is {figure(typical.value)} s; "
                f"so it is in {len(held)} of the last {len(pairs)} values.",
                meaning="All ranks wait for the slowest one in every collective, so one slow "
                "rank or host slows the whole run.",
                alternatives=(
                    "Input data arrive late on that host (storage, long samples)",
                    "A GPU that is throttled or failing",
                    "Another job on that host",
                ),
                first_action="Find out which ranks it is and whether they share a host; compare "
                "their data time, clocks and network with the others'.",
                evidence_type="observation",
                confidence=0.8,
            )
            return


def _usual_of(name: str, series: dict[str, Series]) -> tuple[str, Series | None]:
    """What a maximum over ranks is a maximum of, and the series of its usual value."""
    for mark in ("_max", "/max", "max_"):
        if mark == "max_" and name.startswith(mark):
            base = name.removeprefix(mark)
            names = [f"{middle.strip('_/')}_{base}" for middle in _MIDDLES]
        elif mark != "max_" and name.endswith(mark):
            base = name.removesuffix(mark)
            names = [base + middle for middle in _MIDDLES]
        else:
            continue
        return base, next((series[one] for one in names if one in series), None)
    return name, None


def _holds_up(slowest: Point, usual: Point, base: str, step_time: Series | None) -> bool:
    excess = slowest.value - usual.value
    if usual.value < 0 or slowest.value < 1.5 * usual.value or excess <= 0:
        return False
    if "step" in base or "iter" in base or step_time is None:
        return True
    step = next((p.value for p in step_time.points() if p.step == slowest.step), None)
    # What a part of the step takes matters by its share of the step.
    return step is not None and step > 0 and excess >= 0.25 * step
