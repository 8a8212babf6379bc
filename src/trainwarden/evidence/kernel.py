"""The kernel's log, where it may be read: what the kernel did to the run or saw fail."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

from trainwarden.evidence.base import Target, absent
from trainwarden.evidence.kernel_log import KernelEvent, parse_kernel_log
from trainwarden.evidence.rows import unix_seconds
from trainwarden.records.hostile import clean
from trainwarden.records.observation import Observation, Place, SourceReport, Trust

__all__ = ["KernelEvent", "KernelSource", "parse_kernel_log"]

MAX_RECORDS = 200_000
SLACK = 60.0
"""Seconds: the kernel's clock drifts from the wall's over a long uptime."""
LOOK_BACK = 24 * 3600.0
"""Seconds before the log's last write, where nothing tells when the job began."""
SHOWN = 20
"""Events reported of one quantity; more are counted."""
_FATAL = {"kernel.oom_kill", "kernel.segfault", "kernel.xid"}
_OF_PROCESSES = {"kernel.oom_kill", "kernel.segfault"}
AFTERMATH = 1800.0
"""Seconds after its log's last write within which a process that nobody knows may have been the
job's: logs are written at intervals."""
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("dmesg",),
    ("journalctl", "-k", "-b", "-o", "short-unix", "--no-pager", "-q", "-n", "200000"),
)


class KernelSource:
    """Xid, OOM kills, I/O errors, lock-ups and their like from /dev/kmsg, dmesg or the journal.

    Only messages since the job's last session count (since its beginning in the first one), and
    for what hit the job's own processes all since its beginning.
    """

    name: ClassVar[str] = "kernel"
    trust: ClassVar[Trust] = Trust.HARDWARE
    timeout: ClassVar[float] = 10.0

    def __init__(
        self,
        path: Path = Path("/dev/kmsg"),
        *,
        commands: Sequence[Sequence[str]] = COMMANDS,
        proc: Path = Path("/proc"),
        boot_time: float | None = None,
    ) -> None:
        """`path` may be a plain file of log lines; `boot_time` is in Unix seconds."""
        self.path = path
        self.commands = commands
        self.proc = proc
        self.boot_time = boot_time

    def read(self, target: Target) -> SourceReport:
        """Read the log without waiting; where it may not be read, say exactly why."""
        begun = time.perf_counter()
        if not target.live:
            return absent(self, "a replay: this machine's kernel says nothing of the run")
        lines, origin, problems = self._lines()
        now = target.now().timestamp()
        readable = Observation(
            quantity="kernel.readable",
            value=lines is not None,
            source=self.name,
            trust=self.trust,
            time=target.now(),
            place=Place(file=str(self.path), api=origin or None),
            text="; ".join(problems) or None,
        )
        if lines is None:
            return SourceReport(
                source=self.name,
                trust=self.trust,
                status="absent",
                message="the kernel log cannot be read: " + "; ".join(problems),
                seconds=time.perf_counter() - begun,
                observations=(readable,),
            )
        # The kernel stamps its lines with a clock that stands still while the machine sleeps.
        boot = self.boot_time if self.boot_time is not None else now - time.monotonic()
        living = target.census.living(target)
        recent, start, said = self._since(target, now, living)
        own = _own_pids(target, living)
        end = self._end(target, now)

        def counts(event: KernelEvent) -> bool:
            if event.kind in _OF_PROCESSES and event.pid not in own:
                if living or event.time is None:
                    # Of one that lives, what died elsewhere is only told where memory ran out.
                    return event.kind == "kernel.oom_kill" and (event.time or now) >= recent
                # Nothing tells whose it was but that the log ended then.
                return recent <= event.time and end - SLACK <= event.time <= end + AFTERMATH
            return (
                event.time is None
                or event.time >= recent
                or (event.kind in _FATAL and event.pid in own)
            )

        events = [event for event in parse_kernel_log(lines, boot, start) if counts(event)]
        return SourceReport(
            source=self.name,
            trust=self.trust,
            status="ok",
            message=f"{origin}, {said}" + ("" if events else ": nothing of note"),
            seconds=time.perf_counter() - begun,
            observations=(readable, *self._observations(events, own, origin)),
        )

    @staticmethod
    def sample_row(report: SourceReport) -> dict[str, Any]:
        """What a later session needs of this one: nothing beside the row's own time."""
        del report
        return {}

    def _observations(
        self, events: Sequence[KernelEvent], own: frozenset[int], origin: str
    ) -> list[Observation]:
        groups: dict[tuple[str, int | str, str | None], list[KernelEvent]] = {}
        for event in events:
            subject = _subject(event, own)
            groups.setdefault((event.kind, event.value, subject), []).append(event)
        found: list[Observation] = []
        counts: dict[str, int] = {}
        for (kind, value, subject), same in groups.items():
            counts[kind] = counts.get(kind, 0) + 1
            if counts[kind] > SHOWN:
                continue
            first = same[0]
            times = f" (×{len(same)})" if len(same) > 1 else ""
            found.append(
                Observation(
                    quantity=kind,
                    value=value if isinstance(value, int) else clean(value, 60),
                    subject=subject,
                    time=_moment(first.time),
                    source=self.name,
                    trust=self.trust,
                    place=Place(
                        file=str(self.path) if origin == str(self.path) else None,
                        pid=first.pid,
                        device=clean(first.device, 60) if first.device else None,
                        api=origin,
                    ),
                    text=clean(first.text, 280) + times,
                )
            )
        for kind, count in counts.items():
            if count > SHOWN:
                found.append(
                    Observation(
                        quantity=kind,
                        stat="count",
                        value=count,
                        source=self.name,
                        trust=self.trust,
                        place=Place(api=origin),
                        text=f"{count} different ones; the first {SHOWN} are listed",
                    )
                )
        return found

    def _end(self, target: Target, now: float) -> float:
        """Unix seconds of the last write to the job's logs; now where they don't tell."""
        ends = [_modified(path) for path in target.logs]
        return max((moment for moment in ends if moment is not None), default=now)

    def _since(
        self, target: Target, now: float, living: Mapping[int, float]
    ) -> tuple[float, float, str]:
        """Unix seconds from which all counts, from which the job's own counts, and the reason."""
        rows = [
            moment
            for row in target.earlier
            if (moment := unix_seconds(row.get("time"))) is not None
        ]
        starts = [s for pid in target.pids if (s := _started(self.proc, pid, now)) is not None]
        starts += living.values()
        starts += [began for row in target.earlier for began in _pids_of(row).values() if began]
        begin = min([*rows, *starts], default=None)
        if begin is None:
            begin = self._end(target, now) - LOOK_BACK
            said = "messages since a day before the log's last write"
        else:
            said = "messages since the job's beginning"
        recent = begin
        if rows:
            recent = max(rows)
            said = "messages since the last session"
        return recent - SLACK, begin - SLACK, said

    def unreadable(self) -> str:
        """Why the log cannot be read here; empty where it can."""
        lines, _, problems = self._lines()
        return "" if lines is not None else "; ".join(problems)

    def _lines(self) -> tuple[list[str] | None, str, list[str]]:
        problems: list[str] = []
        try:
            return read_kmsg(self.path), str(self.path), problems
        except OSError as error:
            problems.append(f"{self.path}: {self._why(error)}")
        for command in self.commands:
            program = shutil.which(command[0])
            if program is None:
                problems.append(f"{command[0]}: not installed")
                continue
            try:
                done = subprocess.run(  # noqa: S603 - a fixed command, no shell
                    [program, *command[1:]],
                    capture_output=True,
                    timeout=4,
                    stdin=subprocess.DEVNULL,
                    env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                )
            except (OSError, subprocess.SubprocessError) as error:
                problems.append(f"{command[0]}: {clean(str(error), 120)}")
                continue
            text = done.stdout.decode("utf-8", "replace")
            if done.returncode == 0 and text.strip():
                return text.splitlines()[-MAX_RECORDS:], command[0], problems
            reason = clean(done.stderr.decode("utf-8", "replace"), 120)
            problems.append(f"{command[0]}: {reason or 'shows no kernel messages to this user'}")
        return None, "", problems

    def _why(self, error: OSError) -> str:
        if error.errno in (errno.EPERM, errno.EACCES):
            try:
                restricted = (self.proc / "sys/kernel/dmesg_restrict").read_text().strip() == "1"
            except OSError:
                restricted = False
            hint = " (kernel.dmesg_restrict is 1)" if restricted else ""
            return f"permission denied{hint}; root or CAP_SYSLOG may read it"
        return error.strerror or str(error)


def read_kmsg(path: Path) -> list[str]:
    """All records at hand in /dev/kmsg (or the lines of a plain file), without waiting.

    Raises OSError where it may not be opened or read.
    """
    # Non-blocking: at the end of the log a read would else wait for the next message.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        records: list[str] = []
        rest = b""
        deadline = time.monotonic() + 4
        while len(records) < MAX_RECORDS and time.monotonic() < deadline:
            try:
                chunk = os.read(handle, 65536)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.EPIPE:  # records were overwritten before they were read
                    continue
                raise
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            records.extend(line.decode("utf-8", "replace") for line in lines)
            if len(rest) > 1 << 20:
                rest = b""
        if rest:
            records.append(rest.decode("utf-8", "replace"))
        return records
    finally:
        os.close(handle)


def _subject(event: KernelEvent, own: frozenset[int]) -> str | None:
    if event.pid is not None:
        return "job" if event.pid in own else f"pid {event.pid}"
    return clean(event.device, 60) if event.device else None


def _own_pids(target: Target, living: Mapping[int, float]) -> frozenset[int]:
    """The job's processes now and at the last session that saw any."""
    pids = {*target.pids, *living}
    for row in reversed(target.earlier):
        if seen := _pids_of(row):
            pids.update(seen)
            break
    return frozenset(pids)


def _pids_of(row: Mapping[str, Any]) -> dict[int, float | None]:
    """The processes of a row, each with when it began (Unix seconds) where the row tells."""
    listed = row.get("pids")
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(listed, Mapping):
        items = listed.items()
    elif isinstance(listed, (list, tuple)):
        items = ((pid, None) for pid in listed)
    return {
        int(pid): unix_seconds(began)
        for pid, began in items
        if re.fullmatch(r"[1-9]\d{0,8}", str(pid))
    }


def _started(proc: Path, pid: int, now: float) -> float | None:
    """Unix seconds at which a process began, from the 22nd field of its `stat`."""
    try:
        fields = (proc / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        uptime = float((proc / "uptime").read_text().split()[0])
        return now - uptime + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def _modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _moment(seconds: float | None) -> datetime | None:
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None
