"""Faults of GPUs and of reading them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainwarden.diagnosis.base import View, as_number
from trainwarden.diagnosis.text import figure
from trainwarden.records.finding import Finding, Role, Severity
from trainwarden.records.hostile import clean
from trainwarden.records.observation import Observation

XIDS: dict[int, tuple[Severity, str]] = {
    13: (Severity.WARNING, "graphics engine exception, mostly a program's own fault"),
    31: (Severity.WARNING, "memory page fault, mostly a program's own fault"),
    43: (Severity.WARNING, "the GPU stopped a program's channel"),
    45: (Severity.INFO, "clean-up after an earlier error"),
    48: (Severity.CRITICAL, "uncorrectable memory error"),
    62: (Severity.CRITICAL, "internal micro-controller halt"),
    63: (Severity.INFO, "a memory row was remapped"),
    64: (Severity.CRITICAL, "a memory row could not be remapped"),
    68: (Severity.WARNING, "video processor exception"),
    69: (Severity.WARNING, "graphics engine class error"),
    74: (Severity.CRITICAL, "NVLink error"),
    79: (Severity.CRITICAL, "the GPU fell off the bus"),
    92: (Severity.WARNING, "many corrected memory errors"),
    94: (Severity.CRITICAL, "contained uncorrectable memory error: the program was ended"),
    95: (Severity.CRITICAL, "uncontained uncorrectable memory error"),
    109: (Severity.WARNING, "context switch timeout"),
    119: (Severity.CRITICAL, "the GPU's system processor does not answer"),
    120: (Severity.CRITICAL, "error of the GPU's system processor"),
    140: (Severity.CRITICAL, "unrecovered memory error"),
    154: (Severity.WARNING, "the GPU asks for recovery"),
    158: (Severity.CRITICAL, "fatal timeout"),
    171: (Severity.CRITICAL, "uncorrectable memory error (DRAM)"),
    172: (Severity.CRITICAL, "uncorrectable memory error (SRAM)"),
}
"""What NVIDIA's Xid catalogue says of them, in short; 144 to 150 are NVLink faults."""


def _finding(
    seen: Observation,
    severity: Severity,
    summary: str,
    meaning: str,
    action: str,
    role: Role = Role.INITIATING,
    more: tuple[str, ...] = (),
) -> Finding:
    return Finding(
        kind="gpu_hardware",
        severity=severity,
        role=role,
        observations=(seen.id, *more),
        since_time=seen.time,
        summary=summary,
        meaning=meaning,
        alternatives=("A fault from before this run", "The driver rather than the card"),
        first_action=action,
        evidence_type="observation",
        confidence=0.9,
    )


def detect_xid(view: View) -> Iterator[Finding]:
    """Xids in the kernel log; one finding a number."""
    by_number: dict[int, list[Observation]] = {}
    for seen in view.find("kernel.xid"):
        number = as_number(seen.value)
        if number is None and (found := re.search(r"\d+", str(seen.value))):
            number = float(found[0])
        if number is not None and not view.before_run(seen.time):
            by_number.setdefault(int(number), []).append(seen)
    for number, times in by_number.items():
        if 144 <= number <= 150:
            severity, what = Severity.CRITICAL, "NVLink fault"
        else:
            severity, what = XIDS.get(number, (Severity.WARNING, "not in the catalogue used here"))
        first = times[0]
        where = {_at(view, seen.place.device) for seen in times}
        if None not in where and not any(of_job(view, subject) for subject in where):
            severity = Severity.INFO
        yield _finding(
            first,
            severity,
            f"The kernel log has Xid {number} ({what})"
            + (f", {len(times)} times" if len(times) > 1 else "")
            + (f": “{clean(first.text, 160)}”." if first.text else "."),
            "An Xid is the driver's report of a GPU error.",
            "Match its time and PCI address with the run; take no new job on that GPU until "
            "it is read.",
            Role.TEARDOWN if number == 45 else Role.INITIATING,
        )


def detect_lost(view: View) -> Iterator[Finding]:
    """GPUs that the kernel says are gone, also where it gives no Xid."""
    lost = [seen for seen in view.find("kernel.gpu_lost") if not view.before_run(seen.time)]
    if lost and not view.find("kernel.xid"):
        yield _finding(
            lost[0],
            Severity.CRITICAL,
            "The kernel log says that a GPU has fallen off the bus"
            + (f": “{clean(lost[0].text, 160)}”." if lost[0].text else "."),
            "The card no longer answers; whatever ran on it is lost or hangs.",
            "Take the node out of use until power, seating and the card were checked.",
        )


def of_job(view: View, subject: str | None) -> bool:
    """Whether the GPU works for this job; True where that cannot be told."""
    parts = [
        memory
        for seen in view.find("gpu.job_memory")
        if seen.subject == subject or (seen.subject or "").startswith(f"{subject} MIG ")
        if (memory := as_number(seen.value)) is not None
    ]
    if parts:
        return sum(parts) > 0
    for row in reversed(view.earlier):
        past = row.get("gpu.job_memory")
        if isinstance(past, Mapping) and (before := as_number(past.get(subject))) is not None:
            return before > 0
    holders = view.one("gpu.processes", subject=subject)
    pids = {
        str(seen.place.pid)
        for seen in view.observations.values()
        if seen.quantity.startswith("process.") and seen.place.pid
    }
    if holders is None or not pids:
        return True
    return "(job)" in str(holders.value) or "(unknown)" in str(holders.value)


def weighed(view: View, subject: str | None, severity: Severity) -> Severity:
    """The severity where the job works on that GPU; elsewhere it is only told."""
    return severity if of_job(view, subject) else Severity.INFO


def _at(view: View, address: str | None) -> str | None:
    """Which GPU has a PCI address: the kernel has `0000:3b:00`, NVML `00000000:3B:00.0`."""
    if address is None:
        return None
    wanted = address.lower().partition(".")[0].split(":")[-2:]
    for seen in view.find("gpu.pci_bus_id"):
        if str(seen.value).lower().partition(".")[0].split(":")[-2:] == wanted:
            return seen.subject
    return None


def detect_gpu_faults(view: View) -> Iterator[Finding]:
    """Uncorrectable errors, failed remaps, lost links."""
    for seen in view.find("gpu.ecc_uncorrected"):
        count = as_number(seen.value)
        if count:
            yield _finding(
                seen,
                weighed(view, seen.subject, Severity.CRITICAL),
                f"{seen.subject or 'A GPU'} counts {figure(count)} uncorrected memory errors "
                "since the driver was loaded.",
                "Results computed there since then cannot be trusted.",
                "Check pending row remaps; keep the job's last checkpoint and move off this GPU.",
            )
    for seen in view.find("gpu.remap_failed"):
        if seen.value is True or (as_number(seen.value) or 0) > 0:
            yield _finding(
                seen,
                weighed(view, seen.subject, Severity.CRITICAL),
                f"{seen.subject or 'A GPU'} could not remap a bad memory row.",
                "The card's spare rows are used up or broken.",
                "Have the card replaced; move the job off it at its next checkpoint.",
            )
    for seen in view.find("gpu.remap_pending"):
        if seen.value is True or (as_number(seen.value) or 0) > 0:
            yield _finding(
                seen,
                weighed(view, seen.subject, Severity.WARNING),
                f"{seen.subject or 'A GPU'} waits for a reset to remap a bad memory row.",
                "Until then the bad row stays in use.",
                "Plan a reset of this GPU after the run's next checkpoint.",
            )
    yield from _links(view)


def _links(view: View) -> Iterator[Finding]:
    for quantity, most in (
        ("gpu.pcie_width", "gpu.pcie_width_max"),
        ("gpu.pcie_gen", "gpu.pcie_gen_max"),
    ):
        for seen in view.find(quantity):
            now, top = as_number(seen.value), view.number(most, subject=seen.subject)
            limit = view.one(most, subject=seen.subject)
            busy = view.number("gpu.utilization", subject=seen.subject)
            # An idle link is powered down to a lower generation; its width stays.
            if now is None or top is None or now >= top or limit is None or now <= 0:
                continue
            if busy is None or busy < 0.3:
                continue
            what = "lanes" if quantity.endswith("width") else "generation"
            yield _finding(
                seen,
                weighed(view, seen.subject, Severity.WARNING),
                f"{seen.subject or 'A GPU'} runs its PCIe link at {what} {figure(now)} of "
                f"{figure(top)} while busy.",
                "Transfers to and from this GPU are slower than they could be.",
                "Compare with its peers; a seating or riser fault shows on one card only.",
                more=(limit.id,),
            )


def detect_unreadable(view: View) -> Iterator[Finding]:
    """GPUs that NVML lists but cannot read."""
    told = view.find("gpu.readable")
    for seen in view.find("source.gpu"):
        # Without a driver, or without a GPU, there is nothing to miss.
        if not told and seen.value in ("failed", "timed_out"):
            yield _no_gpus(seen)
    for seen in told:
        if seen.value is not False:
            continue
        why = clean(seen.text or "", 200)
        lost = "lost" in why.lower() or "fallen off" in why.lower()
        of_others = not of_job(view, seen.subject)
        usual = Severity.CRITICAL if lost else Severity.WARNING
        yield Finding(
            kind="gpu_hardware" if lost else "gpu_unreadable",
            severity=Severity.INFO if of_others else usual,
            observations=(seen.id,),
            since_time=seen.time,
            summary=f"{seen.subject or 'A GPU'} cannot be read{': ' + why if why else ''}.",
            meaning="Nothing is known of this GPU; a job on it may hang.",
            alternatives=("No permission or a driver mismatch", "A card lost to the bus"),
            first_action="Read the kernel log for Xid lines; ask the driver for this device alone.",
            evidence_type="observation",
            confidence=0.9,
        )


def _no_gpus(seen: Observation) -> Finding:
    return Finding(
        kind="gpu_unreadable",
        severity=Severity.WARNING,
        observations=(seen.id,),
        since_time=seen.time,
        summary=f"No GPU can be read: {clean(seen.text or str(seen.value), 240)}.",
        meaning="Nothing is known of any GPU: what holds or harms them stays unseen, and a run "
        "that starts anew may not find them.",
        alternatives=("A driver that was upgraded or hangs", "No permission for this user"),
        first_action="Follow what the message says; run nvidia-smi as the job's user.",
        evidence_type="observation",
        confidence=0.9,
    )
