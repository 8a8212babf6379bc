"""Is it still running, and if not, what ended it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from trainwarden.diagnosis.base import View, as_number
from trainwarden.diagnosis.memory import job_pids
from trainwarden.diagnosis.text import duration, figure
from trainwarden.records.finding import Finding, Role, Severity
from trainwarden.records.hostile import clean

RHYTHMS = 10.0
"""A log is silent for too long when it is so for this many times its usual interval …"""
GAPS = 3.0
"""… and this many times its own longest gap (evaluations and checkpoints make gaps)."""
SHORTEST = 10.0
"""Seconds below which no silence is called a stall."""

SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    15: "SIGTERM",
    19: "SIGSTOP",
    20: "SIGTSTP",
    24: "SIGXCPU",
}


def silence_limit(view: View) -> tuple[float, str] | None:
    """Seconds of silence that this log's own past makes a stall, and why; None if unknown."""
    interval = view.number("log.interval", "median") or view.number("log.interval")
    longest = view.number("log.interval", "max")
    if interval is None or interval <= 0:
        step_time = view.series("step_time")
        every = view.facts.log_every or 1
        if step_time is None or step_time.count < 5 or step_time.last is None:
            return None
        interval = step_time.last.value * every
        if not 0 < interval < 1e6:
            return None
    ages = [a for row in view.earlier if (a := as_number(row.get("log.age"))) is not None]
    gap = max([longest or 0.0, *ages])
    limit = max(SHORTEST, RHYTHMS * interval, GAPS * gap)
    return limit, f"usual interval {figure(interval)} s" + (
        f", longest gap {figure(gap)} s" if gap else ""
    )


def detect_stall(view: View) -> Iterator[Finding]:
    """A process stopped by a signal, or a log silent for longer than it ever was."""
    if not view.live or view.alive is False or view.ended in {"finished", "crashed"}:
        return
    age = view.one("log.age")
    silent = as_number(age.value) if age else None
    since = view.now - timedelta(seconds=silent) if silent is not None else None
    ids = (age.id,) if age else ()
    states = [s for s in view.find("process.state") if s.value not in ("dead", "zombie")]
    stopped = [s for s in states if s.value == "stopped"]
    if stopped:
        limit = silence_limit(view)
        # Of many, one that is stopped may be a helper, as long as the log goes on.
        goes_on = len(stopped) < len(states) and (
            silent is not None and limit is not None and silent < limit[0]
        )
        quiet = silent is not None and silent >= SHORTEST
        yield Finding(
            kind="stall",
            severity=Severity.WARNING if goes_on else Severity.CRITICAL,
            observations=(*(s.id for s in stopped[:4]), *ids),
            since_step=view.step,
            since_time=since,
            summary=f"{stopped[0].subject or 'The process'} is stopped by a signal (SIGSTOP or "
            "SIGTSTP, or a debugger): it is alive but does not run"
            + (f"; its log is silent for {duration(silent)}." if quiet and silent else "."),
            meaning="The run makes no step until it is continued.",
            alternatives=("Somebody suspended it on purpose", "A debugger holds it"),
            first_action="Ask who stopped it; continuing it (SIGCONT) loses nothing.",
            evidence_type="observation",
            confidence=0.95,
        )
        return
    limit = silence_limit(view)
    if silent is None or limit is None or silent <= limit[0] or view.alive is None:
        return
    waiting = [s for s in states if s.value == "disk-sleep"]
    io = " A process waits for the disk." if waiting else ""
    more = [*view.cite("log.interval"), *(s.id for s in waiting[:2]), *view.cite("process.cpu")]
    yield Finding(
        kind="stall",
        severity=Severity.CRITICAL,
        observations=(*ids, *more),
        since_step=view.step,
        since_time=since,
        summary=f"The process lives, but its log is silent for {duration(silent)} "
        f"({limit[1]}).{io}",
        meaning="No step is completed: a hang in a collective, the data loader or storage, or a "
        "logger that died.",
        alternatives=(
            "An evaluation or checkpoint longer than any before",
            "Only the log stopped while training goes on",
            "A collective that waits for a dead rank",
        ),
        first_action="Take the stacks of all ranks (py-spy dump) before ending anything.",
        evidence_type="inference",
        confidence=0.7,
    )


def detect_zombies(view: View) -> Iterator[Finding]:
    """Processes that ended and were not collected, and workers without their launcher."""
    if not view.live:
        return
    launcher = view.says("process.launcher_alive", False)
    if launcher is not None and view.alive is True:
        yield Finding(
            kind="launcher_died",
            severity=Severity.WARNING,
            role=Role.CASCADE,
            observations=(launcher.id, *view.cite("process.alive")),
            since_time=launcher.time,
            summary="The launcher is gone while workers of the job live on.",
            meaning="Nobody will restart or end these workers; they may hold GPUs for ever.",
            alternatives=("The launcher was meant to leave (nohup, detached)",),
            first_action="See whether steps still advance before ending anything.",
            evidence_type="observation",
            confidence=0.9,
        )


def exit_signal(value: object) -> int | None:
    """The number in "signal 9", or that of a shell's 128 + n; None for anything else."""
    found = re.fullmatch(r"signal (\d+)", str(value))
    if found:
        return int(found[1])
    code = as_number(value)
    if code is None and str(value).lstrip("-").isdigit():
        code = float(str(value))
    if code is None:
        return None
    if code < 0:
        return int(-code)
    return int(code - 128) if 128 < code < 160 else None


def detect_end(view: View) -> Iterator[Finding]:
    """A run whose process is gone before its end: killed, failed, or nobody knows how."""
    if not view.live or view.ended in {"finished"}:
        return
    exits = [(s, exit_signal(s.value)) for s in view.find("process.exit")]
    for seen, number in exits:
        if number in (9, 15, 2):
            name = SIGNALS[number]
            yield Finding(
                kind="user_cancelled" if number == 2 else "killed",
                severity=Severity.WARNING if number == 2 else Severity.CRITICAL,
                role=Role.INITIATING,
                observations=(seen.id, *view.cite_log()),
                since_step=view.step,
                since_time=seen.time,
                summary=f"{seen.subject or 'The process'} was ended by {name} (signal {number}).",
                meaning="Something outside the run ended it; the signal alone does not say what.",
                alternatives=(
                    "The kernel's out-of-memory killer (its own line is not to be seen)",
                    "A person, a script or the scheduler",
                    "A container's or cgroup's memory limit",
                ),
                first_action="Read the kernel log and the scheduler's record of that minute.",
                evidence_type="observation",
                confidence=0.9,
            )
            return
        if number in (4, 6, 7, 8, 11):
            yield Finding(
                kind="rank_crash",
                severity=Severity.CRITICAL,
                observations=(seen.id, *view.cite_log()),
                since_step=view.step,
                since_time=seen.time,
                summary=f"{seen.subject or 'The process'} died of {SIGNALS[number]}.",
                meaning="A process died in native code.",
                alternatives=("A native extension", "Memory or GPU hardware"),
                first_action="Keep the core file and the kernel log of that minute.",
                evidence_type="observation",
                confidence=0.9,
            )
            return
    if view.alive is not False or view.ended == "crashed":
        return
    total, step = view.total_steps, view.step
    if total is not None and step is not None and step >= total:
        return
    alive = view.one("process.alive")
    far = f" at step {figure(step)}" if step is not None else ""
    far += f" of {figure(total)}" if total is not None and step is not None else ""
    codes = [s for s, _ in exits]
    yield Finding(
        kind="unexpected_end",
        severity=Severity.CRITICAL,
        observations=(
            *((alive.id,) if alive else ()),
            *(s.id for s in codes),
            *view.cite("step"),
            *view.cite("log.ended"),
        ),
        since_step=step,
        summary=f"The process is gone and its log stops{far} without an ending or an error"
        + (f" (exit {codes[0].value})." if codes else "."),
        meaning="A process that leaves no last word was mostly killed from outside.",
        alternatives=(
            "The kernel's out-of-memory killer or a memory limit",
            "A person, a script or the scheduler",
            "The node rebooted",
            "Its last output was lost in a buffer",
            "It runs on under another name or on another machine, if its log goes on",
        ),
        first_action="Read the kernel log, the scheduler's record and the uptime of the host.",
        evidence_type="observation",
        confidence=0.9,
    )


def detect_segfault(view: View) -> Iterator[Finding]:
    """Segmentation faults of this job's processes in the kernel log."""
    pids = job_pids(view)
    for seen in view.find("kernel.segfault"):
        if seen.place.pid not in pids or seen.place.pid is None:
            continue
        yield Finding(
            kind="rank_crash",
            severity=Severity.CRITICAL,
            observations=(seen.id,),
            since_step=view.step,
            since_time=seen.time,
            summary="The kernel log has a segmentation fault of this job"
            + (f": “{clean(seen.text, 160)}”." if seen.text else "."),
            meaning="A process died in native code.",
            alternatives=("A native extension", "Memory or GPU hardware"),
            first_action="Keep the core file; see which library the address belongs to.",
            evidence_type="observation",
            confidence=0.9,
        )
