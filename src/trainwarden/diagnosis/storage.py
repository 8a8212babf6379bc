"""Disks and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from trainwarden.diagnosis.base import View, as_number
from trainwarden.diagnosis.text import duration, figure, share, size
from trainwarden.records.finding import Finding, Severity
from trainwarden.records.hostile import clean

STALE = 3.0
"""A checkpoint older than this many of its own intervals is told."""


def _disk(
    seen_ids: tuple[str, ...], severity: Severity, summary: str, confidence: float
) -> Finding:
    return Finding(
        kind="disk_full",
        severity=severity,
        observations=seen_ids,
        summary=summary,
        meaning="The next checkpoint or log line may fail, and with it the run.",
        alternatives=("Another job fills the disk", "Old checkpoints are deleted in time"),
        first_action="List what grew last in that folder; move or delete nothing of this run "
        "without asking.",
        evidence_type="inference" if confidence <= 0.7 else "observation",
        confidence=confidence,
    )


def detect_disk(view: View) -> Iterator[Finding]:
    """Too little room for the next checkpoint, or for the run's remaining ones."""
    if not view.live:
        return
    told: set[str | None] = set()
    checkpoint = view.one("checkpoint.size")
    needed = as_number(checkpoint.value) if checkpoint else None
    for seen in view.find("disk.free"):
        free = as_number(seen.value)
        total = view.number("disk.total", subject=seen.subject)
        if free is None or seen.subject in told:
            continue
        where = clean(seen.subject or "the disk", 120)
        if checkpoint and needed and free < 1.1 * needed and view.ended not in {"finished"}:
            told.add(seen.subject)
            yield _disk(
                (seen.id, checkpoint.id),
                Severity.CRITICAL if free < needed else Severity.WARNING,
                f"{where} has {size(free)} free, and a checkpoint takes {size(needed)}.",
                0.9,
            )
        elif total and free < 0.01 * total and free < 2**30:
            told.add(seen.subject)
            yield _disk(
                (seen.id,),
                Severity.WARNING,
                f"{where} has {size(free)} free ({share(free / total)}).",
                0.85,
            )
    for seen in view.find("disk.inodes_free"):
        if as_number(seen.value) == 0 and seen.subject not in told:
            told.add(seen.subject)
            yield _disk(
                (seen.id,),
                Severity.WARNING,
                f"{clean(seen.subject or 'The disk', 120)} has no inodes left.",
                0.9,
            )
    for seen in view.find("disk.full_in") if _running(view) else ():
        left = as_number(seen.value)
        if left is None or left <= 0 or left > 6 * 3600 or seen.subject in told:
            continue
        told.add(seen.subject)
        yield _disk(
            (seen.id, *(o.id for o in view.find("disk.free") if o.subject == seen.subject)),
            # A pace of minutes may be a burst: with room left it is no emergency yet.
            Severity.CRITICAL if left < 1800 and _scarce(view, seen.subject) else Severity.WARNING,
            f"{clean(seen.subject or 'The disk', 120)} will be full in {duration(left)} at its "
            "present growth.",
            0.65,
        )


def _running(view: View) -> bool:
    return view.alive is True and view.ended not in {"finished", "crashed", "interrupted"}


def _scarce(view: View, folder: str | None) -> bool:
    """Whether less than a tenth of the folder's disk is free."""
    free, total = (
        view.number("disk.free", subject=folder),
        view.number("disk.total", subject=folder),
    )
    return free is not None and total is not None and free < 0.1 * total


def detect_checkpoints(view: View) -> Iterator[Finding]:
    """Checkpoints that are overdue or cut off."""
    if not view.live:
        return
    age, interval = view.one("checkpoint.age"), view.number("checkpoint.interval")
    old = as_number(age.value) if age else None
    count = view.number("checkpoint.count")
    enough = _running(view) and (count is None or count >= 3)
    if age and old and interval and enough and old > max(STALE * interval, 60):
        yield Finding(
            kind="checkpoint_stale",
            severity=Severity.WARNING,
            observations=(age.id, *view.cite("checkpoint.interval")),
            since_step=view.step,
            summary=f"The newest checkpoint is {duration(old)} old, though one is usual every "
            f"{duration(interval)}.",
            meaning="A crash now would lose more work than intended.",
            alternatives=("Saving fails quietly", "Only better models are saved", "A stall"),
            first_action="Look for errors of the last save, and whether the folder can be written.",
            evidence_type="inference",
            confidence=0.7,
        )
    yield from _never_saved(view, _running(view))
    seen = view.one("checkpoint.incomplete")
    broken = as_number(seen.value) if seen else None
    if seen and broken:
        # What is being written right now is incomplete as well.
        writing = _running(view) and old is not None and old < max(60.0, 0.1 * (interval or 0))
        yield Finding(
            kind="checkpoint_corrupt",
            severity=Severity.INFO if writing else Severity.WARNING,
            observations=(seen.id,),
            summary=f"{figure(broken)} checkpoints look incomplete"
            + (f": {clean(seen.text, 160)}." if seen.text else "."),
            meaning="A resume from such a checkpoint fails or silently starts afresh.",
            alternatives=("It is being written at this moment",),
            first_action="Load the newest checkpoint on a CPU, reading only.",
            evidence_type="inference",
            confidence=0.6,
        )


def _never_saved(view: View, running: bool) -> Iterator[Finding]:
    """No checkpoint where the config says when and where to save, and twice that has passed."""
    none, facts, step = view.says("checkpoint.count", 0), view.facts, view.step
    every, folder = facts.save_every, facts.output_dir
    if none is None or not running or not every or not folder or step is None or step < 2 * every:
        return
    yield Finding(
        kind="checkpoint_stale",
        severity=Severity.WARNING,
        observations=(none.id, *view.cite("step")),
        since_step=every,
        summary=f"No checkpoint is in {clean(none.subject or folder, 120)}, though the config "
        f"saves every {every} steps and the run is at step {step}.",
        meaning="A crash now would lose the whole run.",
        alternatives=("It saves in another folder", "Saving fails quietly"),
        first_action="Look for errors of saving in the log, and where its files are written.",
        evidence_type="inference",
        confidence=0.7,
    )


def detect_read_only(view: View) -> Iterator[Finding]:
    """File systems that can no longer be written, and devices with I/O errors."""
    if not view.live:
        return
    for seen in view.find("disk.read_only"):
        if seen.value is not True:
            continue
        # Where the run is not seen, or its log goes on there, it is so for the watch alone.
        log = view.main.file if view.main else ""
        age = view.number("log.age")
        written = seen.subject is not None and log.startswith(seen.subject.rstrip("/") + "/")
        elsewhere = view.alive is None or (written and age is not None and age < 60)
        yield Finding(
            kind="disk_full",
            severity=Severity.INFO if elsewhere else Severity.CRITICAL,
            observations=(seen.id,),
            since_time=seen.time,
            summary=f"{clean(seen.subject or 'A folder of the job', 120)} is on a file system that "
            "is mounted read-only.",
            meaning="No checkpoint and no log line can be written there.",
            alternatives=("It was remounted after I/O errors", "It was mounted so on purpose"),
            first_action="Read the kernel log for errors of that device before remounting it.",
            evidence_type="observation",
            confidence=0.9,
        )
    for fault in [s for s in view.find("kernel.io_error", "last") if not view.before_run(s.time)][
        :1
    ]:
        yield Finding(
            kind="checkpoint_corrupt",
            severity=Severity.INFO,
            observations=(fault.id,),
            since_time=fault.time,
            summary=f"The kernel log has an I/O error: “{clean(fault.text or str(fault.value))}”.",
            meaning="Checkpoints or data on that device may not be readable.",
            alternatives=("A device that has nothing to do with this job",),
            first_action="Find out which device it is, and whether the job writes there.",
            evidence_type="inference",
            confidence=0.4,
        )
