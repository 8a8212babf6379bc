"""Host memory: what grows, how long it will last, and who was killed for it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainwarden.diagnosis.base import View, as_moment, as_number, whole
from trainwarden.diagnosis.course import even, order_chance
from trainwarden.diagnosis.text import duration, figure, share, size
from trainwarden.metrics.series import Series
from trainwarden.metrics.trend import trend
from trainwarden.records.finding import Finding, Severity
from trainwarden.records.hostile import clean
from trainwarden.records.observation import Observation

WARMUP = 60.0
"""Seconds from a process's start in which memory may grow for good reasons, at the least."""


def sample_value(row: Mapping[str, Any], *names: str) -> float | None:
    """The first of the names that a past session's sample has as a number."""
    return next((v for name in names if (v := as_number(row.get(name))) is not None), None)


def past_rss(view: View) -> list[tuple[float, float]]:
    """(seconds ago, bytes) of earlier sessions of this very process, oldest first."""
    started = view.one("process.started")
    birth = as_moment(started.value) if started is not None else None
    rows = []
    for row in view.earlier:
        when, rss = as_moment(row.get("time")), sample_value(row, "process.rss", "rss")
        if when is None or rss is None or when >= view.now:
            continue
        if birth is not None and (when - birth).total_seconds() < 0:
            continue
        rows.append(((view.now - when).total_seconds(), rss))
    return sorted(rows, reverse=True)


def detect_leak(view: View) -> Iterator[Finding]:
    """Host memory of the job that grows and grows."""
    found = _printed_growth(view)
    if found is None and view.live:
        found = _session_growth(view) if view.alive is not False else _growth_until_end(view)
    if found is not None:
        yield found


def _leak(
    view: View,
    cited: tuple[str, ...],
    since: float | None,
    summary: str,
    rate: float | None,
    confidence: float,
) -> Finding:
    available = view.number("host.memory_available") if view.live else None
    left = ""
    severity = Severity.WARNING
    if available is not None and rate:
        seconds = available / rate
        seen = view.one("host.memory_available")
        cited = (*cited, seen.id) if seen else cited
        left = f" At this pace the host's free memory lasts {duration(seconds)}."
        if seconds < 900 and available < 0.3 * (view.number("host.memory_total") or 0):
            severity = Severity.CRITICAL
    return Finding(
        kind="memory_leak",
        severity=severity,
        observations=cited,
        since_step=whole(since),
        summary=summary + left,
        meaning="Memory that only grows ends in a kill by the kernel, often at an evaluation.",
        alternatives=(
            "A cache that will reach its limit",
            "Data held on purpose (metrics, predictions, replay buffer)",
            "Loader workers copying shared objects page by page",
        ),
        first_action="Follow the resident memory of parent and workers over some hundred steps; "
        "note which of them grows.",
        evidence_type="inference",
        confidence=confidence,
    )


_HOST = re.compile(
    r"(?:^|[_/.])(?:rss|uss|host_mem(?:ory)?|cpu_mem(?:ory)?|ram|sys(?:tem)?_mem(?:ory)?)(?:$|[_/.])"
)


def _printed_memory(view: View) -> Series | None:
    """Host memory as the run itself prints it."""
    known = view.series("memory")
    if known is not None:
        return known
    for reading in view.readings:
        for name, series in reading.series.items():
            if _HOST.search(name) and not re.search("gpu|cuda|percent|free|avail", name):
                return series
    return None


def _printed_growth(view: View) -> Finding | None:
    series = _printed_memory(view)
    if series is None or series.count < 9:
        return None
    points = even(series)
    if len(points) < 9:
        return None
    long = len(points) >= 40
    points = points[len(points) // 4 if long else 1 :]  # caches and pools fill in the beginning
    half = points[len(points) // 2 :]
    if long:
        moving, later = trend(points, 0.001), trend(half, 0.01)
        grows = moving is not None and moving.direction == 1
        ongoing = later is not None and later.direction == 1
    else:
        # So few values can only be judged by their order.
        grows = order_chance([p.value for p in points], rising=True) < 0.002
        ongoing = half[-1].value > 1.02 * half[0].value
    first, last = points[0].value, points[-1].value
    if first <= 0 or last < 1.1 * first or not (grows and ongoing):
        return None
    if series.unit == "bytes":
        told = f"from {size(first)} to {size(last)}"
    else:
        told = f"from {figure(first)} to {figure(last)} ({series.original})"
    found = _leak(
        view,
        view.cite(series.name, "first", "last", "max"),
        points[0].step,
        f"The memory that the run prints grew {told} after its beginning, and goes on growing.",
        None,
        0.7 if long else 0.5,
    )
    # A few values that rise can be a cache on its way to its limit.
    little = not long and last < 1.5 * first
    return found.model_copy(update={"severity": Severity.INFO}) if little else found


def _session_growth(view: View) -> Finding | None:
    rss = view.one("process.rss", subject="job") or view.one("process.rss")
    now = as_number(rss.value) if rss else None
    if rss is None or now is None or view.alive is False:
        return None
    seen = view.one("process.rss_growth", stat="last") or next(
        iter(view.find("process.rss_growth")), None
    )
    rate = as_number(seen.value) if seen else None
    over_sessions = view.one("process.rss", "growth")
    cited = tuple(o.id for o in (rss, over_sessions, seen) if o is not None)
    past = past_rss(view)
    started = view.one("process.started")
    birth = as_moment(started.value) if started else None
    age = (view.now - birth).total_seconds() if birth else None
    steps = view.step or 0
    if past and steps > 0:
        ago, before = past[-1]
        oldest_ago, oldest = past[0]
        growing = now > 1.1 * before and now - before > 32 * 2**20
        steady = all(b > a for (_, a), (_, b) in itertools.pairwise(past))
        pace = (now - before) / ago if ago > 0 else 0.0
        # Growth that still goes on within this session, at a like pace, is no warm-up step.
        ongoing = rate is not None and rate > 0.2 * pace
        if growing and steady and (ongoing or (len(past) >= 2 and before > 1.1 * oldest)):
            return _leak(
                view,
                cited,
                None,
                f"The job's resident memory grew from {size(oldest)} to {size(now)} within "
                f"{duration(oldest_ago)} over {len(past) + 1} sessions"
                + (" and goes on growing." if ongoing else "."),
                rate if rate and rate > 0 else pace,
                0.7,
            )
    available = view.number("host.memory_available")
    if rate is None or rate <= 0 or available is None or steps <= 0:
        return None
    if age is None or age < WARMUP or available / rate > 3600:
        return None
    return _leak(
        view,
        cited,
        None,
        f"The job's resident memory stands at {size(now)} and grew throughout this session by "
        f"{size(rate)} a second.",
        rate,
        0.5,
    )


def _growth_until_end(view: View) -> Finding | None:
    """What earlier looks saw of the memory of a process that is gone by now: a remark."""
    gone = view.one("process.alive")
    rows = [
        (step, rss)
        for row in view.earlier
        if (rss := sample_value(row, "process.rss", "rss")) is not None
        and (step := sample_value(row, "step")) is not None
    ]
    if gone is None or len(rows) < 2:
        return None
    (first_step, first), (last_step, last) = rows[0], rows[-1]
    steady = all(b > a for (_, a), (_, b) in itertools.pairwise(rows))
    if not steady or last < 1.2 * first or last - first < 64 * 2**20:
        return None
    return Finding(
        kind="memory_leak",
        severity=Severity.INFO,
        observations=(gone.id,),
        since_step=whole(first_step),
        summary=f"Before the process ended, its resident memory had grown from {size(first)} at "
        f"step {figure(first_step)} to {size(last)} at step {figure(last_step)} over "
        f"{len(rows)} looks; it can no longer be followed.",
        meaning="A longer run of the same kind would need ever more memory.",
        alternatives=("Memory that fills up in the beginning and then stays",),
        first_action="Follow the resident memory over some hundred steps when it runs again.",
        evidence_type="inference",
        confidence=0.6,
    )


def detect_low_memory(view: View) -> Iterator[Finding]:
    """A host with practically no memory left."""
    if not view.live:
        return
    yield from _full_group(view)
    seen, total = view.one("host.memory_available"), view.number("host.memory_total")
    free = as_number(seen.value) if seen else None
    if seen is None or free is None or not total or free > 0.03 * total:
        return
    yield Finding(
        kind="host_oom",
        severity=Severity.WARNING,
        observations=(seen.id,),
        since_time=seen.time,
        summary=f"The host has {size(free)} of {size(total)} memory left ({share(free / total)}).",
        meaning="The kernel is about to kill something, mostly the largest process.",
        alternatives=("Another job on the host holds it", "Page cache counted as used"),
        first_action="See which processes hold memory before the next evaluation or checkpoint.",
        evidence_type="observation",
        confidence=0.8,
    )


def _full_group(view: View) -> Iterator[Finding]:
    """The memory limit of the job's control group: used up, or killed for."""
    limit, used = view.one("host.cgroup_memory_limit"), view.one("host.cgroup_memory_used")
    most, now = (as_number(seen.value) if seen else None for seen in (limit, used))
    if limit and used and most and now and now > 0.97 * most and view.alive is not False:
        yield Finding(
            kind="host_oom",
            severity=Severity.WARNING,
            observations=(used.id, limit.id),
            since_time=used.time,
            summary=f"{size(now)} of the {size(most)} that the memory limit of the "
            f"{used.text or 'group'} allows are in use ({share(now / most)}).",
            meaning="The kernel is about to kill something of that group, mostly its largest "
            "process.",
            alternatives=("Another job in the same group holds it",),
            first_action="See which processes hold memory before the next evaluation or "
            "checkpoint.",
            evidence_type="observation",
            confidence=0.8,
        )
    kills = view.one("host.cgroup_oom_kills", "growth")
    count = as_number(kills.value) if kills else None
    of_job = kills is not None and "job" in (kills.text or "")
    if kills is not None and count and of_job and not view.find("kernel.oom_kill"):
        yield Finding(
            kind="host_oom",
            severity=Severity.WARNING,
            observations=(kills.id,),
            since_time=kills.time,
            summary=f"{count:.0f} processes in the job's memory group were killed for want of "
            "memory since the last session.",
            meaning="The group's memory limit, or the host's memory, ran out.",
            alternatives=("A process of another job in the same group",),
            first_action="See whether all workers and loaders still live; compare limit and use.",
            evidence_type="observation",
            confidence=0.8,
        )


def job_pids(view: View) -> set[int]:
    """Pids known to belong to the job, dead or alive."""
    pids = set()
    for seen in view.observations.values():
        if seen.quantity.startswith("process."):
            if seen.place.pid is not None:
                pids.add(seen.place.pid)
            if seen.subject and (found := re.fullmatch(r"pid (\d+)", seen.subject)):
                pids.add(int(found[1]))
    return pids


def detect_oom_kill(view: View) -> Iterator[Finding]:
    """Kills by the kernel for want of memory, of this job's processes or others'."""
    pids = job_pids(view)
    others: list[Observation] = []
    for seen in view.find("kernel.oom_kill"):
        text = f"{seen.value} {seen.text or ''}"
        named = {
            int(n) for n in re.findall(r"(?:[Pp]rocess|pid[=: ]|task=\S{1,40},pid=)\s*(\d+)", text)
        }
        named |= {int(n) for n in (as_number(seen.value), seen.place.pid) if n is not None}
        if named & pids or seen.subject == "job":
            yield _killed((seen.id,), seen, Severity.CRITICAL, "a process of this job", 0.95)
        elif view.ended != "finished" and not view.before_run(seen.time):
            others.append(seen)
    if others:
        # Once, however many: on a shared machine they are mostly other people's.
        many = f"{len(others)} processes" if len(others) > 1 else "a process"
        ids = tuple(seen.id for seen in others[-5:])
        whose = f"{many}, not known to be this job's,"
        yield _killed(ids, others[-1], Severity.INFO, whose, 0.4)


def _killed(
    ids: tuple[str, ...], seen: Observation, severity: Severity, whose: str, confidence: float
) -> Finding:
    return Finding(
        kind="host_oom",
        severity=severity,
        observations=ids,
        since_time=seen.time,
        summary=f"The kernel killed {whose} for want of memory"
        + (f": “{clean(seen.text, 160)}”." if seen.text else "."),
        meaning="Host memory, or the job's memory limit, ran out.",
        alternatives=("Another job on the host used the memory up",),
        first_action="Compare memory limit and use over the job's life; see which process grew.",
        evidence_type="observation" if severity is Severity.CRITICAL else "inference",
        confidence=confidence,
    )
