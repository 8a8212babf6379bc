"""Does it keep its pace: step time, and what holds the GPUs back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from trainwarden.diagnosis.base import View, as_number, whole
from trainwarden.diagnosis.course import current_run, spread
from trainwarden.diagnosis.hardware import of_job, weighed
from trainwarden.diagnosis.text import figure, share
from trainwarden.metrics.changepoint import EDGE, Shift, level_shift
from trainwarden.metrics.series import Point, Series
from trainwarden.records.finding import Finding, Severity

SLOWER = 1.25
"""A lasting slow-down from this factor on is told; on shared machines it comes and goes."""
MUCH_SLOWER = 1.5
"""From here on it is a warning. Both are rules of thumb."""
RATES = ("tokens_per_second", "samples_per_second", "steps_per_second")


def pace(view: View) -> tuple[Series, bool] | None:
    """What tells the run's pace, and whether it is a time (True) or a rate."""
    for name in ("step_time", *RATES):
        series = view.series(name)
        if series is not None and series.count >= 20:
            return series, name == "step_time"
    return None


def pace_shift(series: Series, is_time: bool) -> tuple[Shift, float] | None:
    """The last lasting shift of pace, with the factor by which steps became slower."""
    points = [p for p in current_run(series.points()) if math.isfinite(p.value) and p.value > 0]
    # The first steps compile, warm caches and fill queues.
    points = points[max(2, len(points) // 20) :]
    if len(points) < 20:
        return None
    shift = level_shift(points, 0.001, 0.1) or _two_levels(points)
    if shift is None or not shift.before > 0 or not shift.after > 0:
        return None
    slower = shift.after / shift.before if is_time else shift.before / shift.after
    return shift, slower


def _two_levels(points: list[Point]) -> Shift | None:
    """A shift to a level that hardly overlaps the old one, also in a short log.

    Split by least squares of the logarithms; nine tenths of the values on one side must lie beyond
    nine tenths of those on the other, and the medians apart by `MUCH_SLOWER`. With at least eight
    values on either side, chance gives that less than once in ten thousand logs.
    """
    logs = [math.log(point.value) for point in points]
    n, total = len(logs), sum(logs)
    best, at, running = 0.0, 0, sum(logs[: EDGE - 1])
    for k in range(EDGE, n - EDGE + 1):
        running += logs[k - 1]
        between = (running - total * k / n) ** 2 * n / (k * (n - k))
        if between > best:
            best, at = between, k
    if not at:
        return None
    left = sorted(point.value for point in points[:at])
    right = sorted(point.value for point in points[at:])
    before, after = median(left), median(right)
    if max(after / before, before / after) < MUCH_SLOWER:
        return None
    # A steady ramp splits into two halves as well, but those are as wide as they are apart.
    if abs(after - before) < 3 * max(spread(left), spread(right)):
        return None
    low, high = (left, right) if after > before else (right, left)
    if low[int(0.9 * (len(low) - 1))] >= high[math.ceil(0.1 * (len(high) - 1))]:
        return None
    chance = 1 / math.comb(min(n, 60), min(at, n - at, 30))
    return Shift(points[at].step, before, after, after / before, chance, at, n - at)


def detect_slower(view: View) -> Iterator[Finding]:
    """Steps that take longer than they did, from a step on and until now."""
    found = pace(view)
    if found is None:
        return
    series, is_time = found
    shifted = pace_shift(series, is_time)
    if shifted is None or shifted[1] < SLOWER:
        return
    shift, slower = shifted
    # Where steps now scatter as widely as they slowed down, others use the machine as well.
    now = [p.value for p in series.points() if p.step >= shift.step and math.isfinite(p.value)]
    apart = abs(shift.after - shift.before) >= 3 * spread(now)
    yield Finding(
        kind="step_time_regression",
        severity=Severity.WARNING if slower >= MUCH_SLOWER and apart else Severity.INFO,
        observations=view.cite(series.name, "shift_before", "shift_after", "last"),
        since_step=whole(shift.step),
        summary=f"{series.name} went from {figure(shift.before)} to {figure(shift.after)} "
        f"(medians) at step {figure(shift.step)}: steps take {figure(slower)} times as long.",
        meaning="The run still advances, at a lower pace that has lasted since.",
        alternatives=(
            "Slower input (storage, fewer loader workers, longer samples)",
            "A GPU that is throttled or shared",
            "Another job on the host",
            "More work a step by design (longer sequences, larger batches, more logging)",
        ),
        first_action="Compare GPU clocks, utilisation and data-loading time with those before "
        "that step.",
        evidence_type="observation",
        confidence=0.85,
    )


_HARMFUL = ("thermal", "hw_slowdown", "hw slowdown", "brake", "hardware slowdown")


LEAST_LINES = 10
"""Values from which on a slow-down by far can be told in a log too short for `pace`."""
FAR_SLOWER = 4.0
"""Times the usual step that is by far."""


def detect_much_slower(view: View) -> Iterator[Finding]:
    """In a short log: the last steps each take several times as long as any of the first half."""
    series = view.series("step_time")
    if series is None or not LEAST_LINES <= series.count < 30 or pace_shift(series, True):
        return
    points = [p for p in current_run(series.points()) if math.isfinite(p.value) and p.value > 0]
    values = [point.value for point in points[1:]]
    if len(values) < LEAST_LINES:
        return
    usual, last = values[: len(values) // 2], values[-3:]
    before = median(usual)
    if min(last) < FAR_SLOWER * before or min(last) <= max(usual):
        return
    yield Finding(
        kind="step_time_regression",
        severity=Severity.WARNING,
        observations=view.cite("step_time", "last", "max"),
        since_step=whole(points[-3].step),
        summary=f"Each of the last {len(last)} steps took {figure(min(last))} s or more, where "
        f"{figure(before)} s had been usual (median of the first half).",
        meaning="The run still advances, at a far lower pace.",
        alternatives=(
            "Slower input (storage, fewer loader workers, longer samples)",
            "A GPU that is throttled or shared",
            "Memory that is swapped",
        ),
        first_action="Compare GPU clocks, utilisation, memory and data-loading time with those "
        "before that step.",
        evidence_type="observation",
        confidence=0.75,
    )


def detect_throttling(view: View) -> Iterator[Finding]:
    """GPUs whose clocks are held down by heat or by the power supply."""
    for seen in view.find("gpu.throttle"):
        reasons = str(seen.value).lower()
        if not any(harm in reasons for harm in _HARMFUL):
            continue
        clock = view.one("gpu.clock_sm", subject=seen.subject)
        heat = view.one("gpu.temperature", subject=seen.subject)
        extra = [o.id for o in (clock, heat) if o is not None]
        at = f" at {figure(heat.value)} °C" if heat is not None else ""
        yield Finding(
            kind="throttling",
            severity=weighed(view, seen.subject, Severity.WARNING),
            observations=(seen.id, *extra),
            since_time=seen.time,
            summary=f"{seen.subject or 'A GPU'} is held down ({reasons}){at}.",
            meaning="Heat or the power supply slows this GPU, and with it every rank that waits "
            "for it.",
            alternatives=("A short peak", "A power limit set on purpose"),
            first_action="Read temperature and reasons again in a minute; compare with its peers.",
            evidence_type="observation",
            confidence=0.9,
        )


def detect_idle_gpu(view: View) -> Iterator[Finding]:
    """GPUs that hold the job's memory and do nothing: a remark, since one look is one moment."""
    if not view.live or view.alive is not True:
        return
    idle = []
    for seen in view.find("gpu.utilization"):
        used = as_number(seen.value)
        memory = view.number("gpu.memory_used", subject=seen.subject)
        total = view.number("gpu.memory_total", subject=seen.subject)
        power = view.number("gpu.power_share", subject=seen.subject)
        if used is None or memory is None or not total:
            continue
        resting = used <= 0.05 and (power is None or power < 0.15)
        if resting and memory >= 0.05 * total and of_job(view, seen.subject):
            idle.append((seen, memory / total))
    if not idle:
        return
    names = ", ".join(seen.subject or "GPU" for seen, _ in idle)
    yield Finding(
        kind="idle_gpu",
        severity=Severity.INFO,
        observations=tuple(seen.id for seen, _ in idle),
        since_time=idle[0][0].time,
        summary=f"{names}: memory is held ({share(idle[0][1])} on the first) but nothing is "
        "computed at this moment.",
        meaning="Between batches, in evaluation or a checkpoint this is normal; lasting, it is a "
        "stall or slow input.",
        alternatives=("A pause between batches", "Slow input", "A hang"),
        first_action="Look again in a minute, together with the log's age.",
        evidence_type="observation",
        confidence=0.6,
    )
