"""Observations read again from their sources, by other code than the collector's.

Files are opened and searched with a plain number search, processes are looked at in `/proc`.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

from trainwarden.evidence import excerpts
from trainwarden.evidence.pieces import successors
from trainwarden.records.observation import Observation
from trainwarden.records.review import Reread

WINDOW = 64 * 1024
"""Bytes read around a place when it is read again."""

NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?i:nan|inf)")
_GROUPED = re.compile(rb"(?<![\d,.])[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])")
_FAILED = re.compile(
    rb"(?i)error|exception|traceback|killed|abort|fault|fatal|signal|exit|oom|out of memory|cancel"
)
BLOCK = 2_000
"""Bytes behind a line that may belong to it, where values are printed one a line."""
_FACTORS = (1.0, 1e-3, 1e3, 1e6, 1e9, 1e-2, 60.0, 3600.0, 2.0**10, 2.0**20, 2.0**30)
"""Units in which a run may have printed what is kept in base units."""


_STATES = {
    "R": "running",
    "D": "disk-sleep",
    "T": "stopped",
    "t": "stopped",
    "Z": "zombie",
    "X": "dead",
}


def reread(item: Observation) -> Reread | None:
    """Read one observation again from its source by other code; None where there is no way."""
    if item.quantity.startswith("source."):
        return Reread(
            observation=item.id, found=item.value, agrees=True, how="the source's own report"
        )
    place = item.place
    if item.stat in {"last", "first", "min", "max"} and place.file and place.offset is not None:
        path = Path(place.file)
        again = _reread_line(item, path, place.offset)
        if again is None or again.agrees:
            return again
        # Its log may have been rotated since.
        moved = (_reread_line(item, other, place.offset) for other in successors(path))
        return next((found for found in moved if found and found.agrees), again)
    if item.quantity in {"process.alive", "process.state"} and place.pid is not None:
        return _reread_process(item, place.pid)
    if item.quantity == "disk.free" and item.subject:
        return _reread_disk(item, item.subject)
    if item.quantity == "log.size" and place.file:
        return _reread_size(item, Path(place.file))
    return None


def line_at(path: Path, offset: int) -> bytes | None:
    """The line that begins at a byte offset, None where the file cannot be read."""
    try:
        return excerpts.line_at(path, offset)
    except OSError:
        return None


def _block_at(path: Path, offset: int) -> bytes:
    return excerpts.text_at(path, offset, BLOCK)


def _reread_line(item: Observation, path: Path, offset: int) -> Reread | None:
    line = line_at(path, offset)
    if line is None:
        how = f"{path} could not be opened again"
        return Reread(observation=item.id, found=None, agrees=False, how=how)
    how = f"bytes from {offset} of {path.name}, searched for the number"
    if isinstance(item.value, str):
        if item.text is None:
            failed = item.value in {"crashed", "interrupted"} and _FAILED.search(line)
            how = f"bytes from {offset} of {path.name}, searched for the words of a failure"
            return (
                Reread(observation=item.id, found=item.value, agrees=True, how=how)
                if failed
                else None
            )
        words = re.findall(rb"[A-Za-z]{4,}", line)
        agrees = not words or any(word.decode() in item.text for word in words[:40])
        return Reread(observation=item.id, found=item.value, agrees=agrees, how=how)
    if isinstance(item.value, bool):
        return None
    value = float(item.value)
    found = closest(line, value)
    if found is None and len(re.sub(r"e.*|\D", "", f"{value:.9g}").strip("0")) >= 4:
        # Four digits in a row are no chance, on whichever line of a block they stand.
        found = closest(_block_at(path, offset), value)
    if found is None and item.quantity == "step":
        # Where no line prints its step, lines were counted, and there is nothing to read again.
        return None
    return Reread(observation=item.id, found=found, agrees=found is not None, how=how)


def closest(line: bytes, wanted: float) -> float | None:
    """The number in a line that is `wanted`, in whatever unit it was printed."""
    for text in [*NUMBER.findall(line), *_GROUPED.findall(line)]:
        try:
            number = float(text.replace(b",", b""))
        except ValueError:
            continue
        if math.isnan(wanted) or math.isinf(wanted):
            if str(number) == str(wanted):
                return number
            continue
        if any(
            math.isclose(number * factor, wanted, rel_tol=1e-6, abs_tol=1e-300)
            for factor in _FACTORS
        ):
            return wanted
        # Times per step printed as a rate, and the other way round.
        if number and math.isclose(1 / number, wanted, rel_tol=1e-6):
            return wanted
    return None


def _reread_process(item: Observation, pid: int) -> Reread:
    how = f"/proc/{pid}/stat"
    try:
        stat = Path(how).read_text(encoding="utf-8", errors="replace")
        letter = stat.rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        letter = "X"
    alive = letter not in "XZ"
    if item.quantity == "process.alive":
        return Reread(observation=item.id, found=alive, agrees=alive is item.value, how=how)
    # Running and sleeping change by the moment; what matters is whether it can run at all.
    can_run = {"running", "sleeping", "disk-sleep"}
    state = _STATES.get(letter, "sleeping")
    agrees = state == item.value or {state, str(item.value)} <= can_run
    found = item.value if agrees else state
    return Reread(observation=item.id, found=found, agrees=agrees, how=f"{how}: {letter}")


def _reread_disk(item: Observation, folder: str) -> Reread | None:
    try:
        numbers = os.statvfs(folder)
    except OSError:
        return None
    free = numbers.f_bavail * numbers.f_frsize
    agrees = abs(free - float(item.value)) <= 0.1 * max(free, float(item.value)) + 64 * 2**20
    return Reread(observation=item.id, found=free, agrees=agrees, how=f"statvfs of {folder}")


def _reread_size(item: Observation, path: Path) -> Reread | None:
    try:
        size = path.stat().st_size
    except OSError:
        return None
    agrees = size >= float(item.value)
    return Reread(observation=item.id, found=size, agrees=agrees, how=f"stat of {path.name}")
