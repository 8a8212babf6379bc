"""From what the detectors found, one by one, to findings in causal order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timezone

from trainwarden.diagnosis.base import View, as_number
from trainwarden.diagnosis.memory import past_rss, sample_value
from trainwarden.diagnosis.signatures import went_on
from trainwarden.records.finding import CEILINGS, Finding, Role, Severity

_RANK = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
_ROLE = {Role.INITIATING: 0, Role.CASCADE: 1, Role.TEARDOWN: 2, Role.ADVICE: 3}
_PER_DEVICE = {"gpu_hardware", "gpu_unreadable", "throttling", "source_disagreement", "disk_full"}

CLOSE = 0.86
"""An exception named less surely than this says that something failed, not what."""

ENDINGS = frozenset(
    {
        "cuda_oom", "host_oom", "k8s_oomkilled", "disk_full", "gpu_hardware", "crash_user_code",
        "loss_scale", "nan_loss", "time_limit", "preempted", "user_cancelled",
        "dataloader_failure", "checkpoint_corrupt", "bad_resume", "environment_mismatch",
        "silent_wrong", "rank_crash", "collective_hang", "network_failure", "killed",
        "unexpected_end", "k8s_scheduling",
    }
)  # fmt: skip
"""Kinds that can be what ended a run."""
_FOLLOW = ("unexpected_end", "killed", "launcher_died", "stall")
"""What any known ending explains."""
_CONSEQUENCES = {
    "zero_loss": ("loss_scale",),
    "dataloader_failure": ("host_oom", "rank_crash"),
    "plateau": ("rl_zero_signal", "rl_length", "zero_loss", "silent_wrong", "lr_schedule"),
    "idle_gpu": ("stall",),
    "straggler": ("gpu_hardware", "throttling"),
    "divergence": ("nan_loss", "bad_resume", "accumulation_scaling", "loss_scale"),
    "loss_spike": ("nan_loss", "bad_resume", "divergence"),
    "step_time_regression": ("slow_input", "throttling", "straggler"),
}
"""What some kinds follow from, where both are seen."""


def in_causal_order(view: View, findings: Iterable[Finding]) -> list[Finding]:
    """Merged, with causal roles settled, numbered: causes first, then what followed."""
    merged = _settle(view, _merge(findings))
    order = sorted(
        range(len(merged)),
        key=lambda i: (
            _RANK[merged[i].severity] if merged[i].severity is Severity.INFO else 0,
            _ROLE[merged[i].role],
            _RANK[merged[i].severity],
            merged[i].kind == "crash_user_code" and merged[i].confidence < CLOSE,
            merged[i].since_time or datetime.max.replace(tzinfo=timezone.utc),
            i,
        ),
    )
    return [merged[i].model_copy(update={"id": f"F{number}"}) for number, i in enumerate(order, 1)]


def _merge(findings: Iterable[Finding]) -> list[Finding]:
    """One finding a kind (a device for hardware): the worst, then the surest, then the first."""
    kept: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.kind, finding.observations[0] if finding.kind in _PER_DEVICE else "")
        known = kept.get(key)
        if known is None:
            kept[key] = finding
            continue
        better, other = known, finding
        if (_RANK[finding.severity], _ROLE[finding.role], -finding.confidence) < (
            _RANK[known.severity],
            _ROLE[known.role],
            -known.confidence,
        ):
            better, other = finding, known
        cited = tuple(dict.fromkeys((*better.observations, *other.observations)))
        kept[key] = better.model_copy(update={"observations": cited})
    return list(kept.values())


def _recast(finding: Finding, role: Role) -> Finding:
    return finding if finding.role is role else finding.model_copy(update={"role": role})


def _settle(view: View, findings: list[Finding]) -> list[Finding]:
    kinds = {f.kind for f in findings if f.severity is not Severity.INFO}
    findings = [
        _recast(f, Role.CASCADE) if kinds & set(_CONSEQUENCES.get(f.kind, ())) else f
        for f in findings
    ]
    if "accumulation_scaling" in kinds:
        # Two scales of one loss are no rise of it.
        findings = [
            f.model_copy(update={"severity": Severity.WARNING})
            if f.kind == "divergence" and f.severity is Severity.CRITICAL
            else f
            for f in findings
        ]
    ended = [f for f in findings if f.kind in ENDINGS and f.severity is not Severity.INFO]
    causes = [
        f for f in ended if f.role is Role.INITIATING and f.kind not in (*_FOLLOW, "memory_leak")
    ]
    if causes:
        result = []
        for finding in findings:
            if finding.kind in _FOLLOW and not (
                finding.kind == "stall" and finding.confidence > 0.7
            ):
                finding = _recast(finding, Role.CASCADE)
                if all(c.kind == "user_cancelled" for c in causes):
                    # Ended as somebody wished, so no worse than the wish.
                    finding = finding.model_copy(update={"severity": causes[0].severity})
            elif finding.kind == "user_cancelled" and any(
                c.severity is Severity.CRITICAL and c.kind not in ("nan_loss",) for c in causes
            ):
                finding = _recast(finding, Role.TEARDOWN)
            result.append(finding)
        return result
    followers = [f for f in ended if f.role in (Role.CASCADE, Role.TEARDOWN)]
    killed = [f for f in ended if f.kind in ("killed", "unexpected_end")]
    if killed:
        cited, sure = _memory_story(view, findings), 0.65
        if not cited and _killed_by_shell(view):
            cited, sure = killed[0].observations, 0.5
        if cited:
            guess = _probable_oom(killed[0], cited, sure if killed[0].kind == "killed" else 0.5)
            return [guess, *(_recast(f, Role.CASCADE) if f in ended else f for f in findings)]
    if followers and not any(f.role is Role.INITIATING for f in ended):
        # Nothing tells what came before it, so the first of them is as far back as one can see.
        first = min(followers, key=lambda f: (_ROLE[f.role], ended.index(f)))
        kept = first.model_copy(
            update={
                "role": Role.INITIATING,
                "alternatives": tuple(
                    dict.fromkeys((*first.alternatives, "An earlier error that was not logged"))
                ),
            }
        )
        return [kept if f is first else f for f in findings]
    return findings


def _memory_story(view: View, findings: list[Finding]) -> tuple[str, ...]:
    """What speaks for want of host memory behind a kill: observation ids, empty for nothing."""
    for finding in findings:
        if finding.kind == "memory_leak":
            return finding.observations
    free, total = view.one("host.memory_available"), view.number("host.memory_total")
    left = as_number(free.value) if free else None
    if view.live and free and left is not None and total and left < 0.05 * total:
        return (free.id,)
    rows = [v for row in view.earlier if (v := sample_value(row, "process.rss", "rss")) is not None]
    grew = len(rows) >= 2 and rows[-1] > 1.2 * rows[0] and rows[-1] - rows[0] > 32 * 2**20
    if view.live and (grew or _grew_within(view)):
        return (free.id,) if free else view.cite("process.alive")
    return ()


def _grew_within(view: View) -> bool:
    past = past_rss(view)
    return len(past) >= 2 and past[-1][1] > 1.2 * past[0][1]


_BARE_KILL = re.compile(r"^(?:.{0,200}\s)?Killed(?:\s{2,}\S.{0,2000})?\s*$")


def _killed_by_shell(view: View) -> bool:
    """Whether a shell reports a SIGKILL as the last word, which nothing of the log explains.

    People and schedulers ask first (SIGINT, SIGTERM); the kernel's out-of-memory killer does not.
    """
    for reading in view.readings:
        last = [(offset, text) for offset, text in reading.tail if text.strip()][-6:]
        if any(_BARE_KILL.match(t) and not went_on(reading, offset) for offset, t in last):
            return True
    return False


def _probable_oom(killed: Finding, cited: tuple[str, ...], sure: float) -> Finding:
    grew = cited != killed.observations
    story = (
        "while its memory had been growing or the host's was short, and nothing else explains "
        "the kill"
        if grew
        else "without a warning (SIGKILL), and nothing in the log explains it, which is no proof"
    )
    return Finding(
        kind="host_oom",
        severity=Severity.CRITICAL if grew else Severity.WARNING,
        role=Role.INITIATING,
        observations=tuple(dict.fromkeys((*killed.observations, *cited))),
        since_step=killed.since_step,
        since_time=killed.since_time,
        summary=f"The process was killed from outside {story}: most likely want of memory.",
        meaning="The kernel ends the largest process when memory runs out; its own line was not "
        "to be seen, so this is an inference.",
        alternatives=(
            "A person, a script or the scheduler killed it",
            "A container's or cgroup's memory limit rather than the host's",
        ),
        first_action="Read the kernel log (or the cgroup's memory events) of that minute; compare "
        "memory limit and use over the job's life.",
        evidence_type="inference",
        confidence=min(sure, CEILINGS["inference"]),
    )
