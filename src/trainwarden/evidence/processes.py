"""The job's whole process tree: what lives, what it does, what it holds, and what is gone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trainwarden.evidence import commands, discovery, openfiles, proctable
from trainwarden.evidence.base import Target
from trainwarden.evidence.lineage import Past, Sighting, launcher_state, ranks_in
from trainwarden.evidence.proctable import Proc
from trainwarden.records.base import isoformat
from trainwarden.records.hostile import clean, mask_command
from trainwarden.records.observation import Observation, Place, SourceReport, Trust

if TYPE_CHECKING:
    from trainwarden.evidence.vitals import Vitals

MAX_DETAILED = 24
"""Processes reported one by one; the job's sums are over all."""
MAX_TREE = 256
MAX_TREE_TEXT = 1_900

_STATES = {
    "stopped": "stopped by a signal (SIGSTOP, SIGTSTP): makes no progress until SIGCONT",
    "disk-sleep": "waits in the kernel, deaf to signals: a disk, network file system or driver "
    "does not answer",
    "zombie": "has ended; its parent has not taken note of it",
}


class ProcessSource:
    """Looks at the job's process tree over a short window.

    Its roots are `target.pids`, else what discovery finds for the job, plus whatever of earlier
    sessions' processes still lives.
    """

    name: ClassVar[str] = "process"
    trust: ClassVar[Trust] = Trust.PROCESS
    timeout: ClassVar[float] = 8.0

    def __init__(self, window: float = 1.6, samples: int = 9) -> None:
        self.window = window
        self.samples = samples

    def read(self, target: Target) -> SourceReport:
        """Look once; takes `window` seconds where something lives."""
        started = time.monotonic()
        try:
            status, message, seen = self._read(target)
        except TimeoutError as error:
            status, message, seen = "timed_out", f"{error}: /proc does not answer", []
        except Exception as error:
            status, message, seen = "failed", f"processes cannot be read: {error!r}", []
        return SourceReport(
            source=self.name,
            trust=self.trust,
            status=status,  # type: ignore[arg-type]
            message=clean(message, 1_000),
            seconds=round(time.monotonic() - started, 3),
            observations=tuple(seen),
        )

    def _read(self, target: Target) -> tuple[str, str, list[Observation]]:
        if not target.live:
            return "absent", "a replay: no process of this machine belongs to the run", []
        found = target.census.family(target)
        table, past, family, notes = found.table, found.past, list(found.procs), list(found.notes)
        account = _Account(target, family)
        if not family and not past.sightings and not target.pids:
            return (
                "absent",
                "no process of this job was found on this machine, now or earlier: it may have "
                "ended, or run elsewhere" + _not_root(),
                [],
            )
        gone = past.gone(table)
        restarted = past.sightings and family and not any(past.knows(proc) for proc in family)
        living = [proc for proc in family if not proc.zombie]
        vitals: dict[int, Vitals] = {}
        if living:
            from trainwarden.evidence.vitals import sample

            vitals = sample(living, self.window, self.samples)
            living = [proc for proc in living if vitals[proc.pid].alive]
        account.alive(living, gone, target.pids)
        # Single ones first: who asks for the latest of a quantity is given the job's sum.
        account.each(living, vitals)
        if living:
            account.sums(living, vitals, past)
        launcher = launcher_state(table, living, past)
        if launcher:
            alive, text, pid = launcher
            account.add("process.launcher_alive", alive, text=text, pid=pid)
            if not alive:
                notes.insert(0, text)
        if restarted and living:
            text = "the job runs in other processes than when it was last seen: it was restarted"
            account.add("process.restarted", True, pid=living[0].pid, text=text)
            notes.append(text)
        dead = [proc for proc in family if proc not in living]
        account.ended(dead, [] if restarted and living else gone)
        denied = account.logs(living) + [
            f"{what} of {len(pids)} processes" for what, pids in _denied(vitals).items() if pids
        ]
        count = {0: "no process of the job lives", 1: "1 process lives"}.get(
            len(living), f"{len(living)} processes live"
        )
        notes = [count, *notes, *(sight.told for sight in gone if sight.notable)][:12]
        if denied:
            notes.append("could not be read: " + ", ".join(denied))
        return "partial" if denied else "ok", "; ".join(notes), account.seen


def _not_root() -> str:
    if os.geteuid() == 0:
        return ""
    return ", or as another user, whose processes' files this one may not look at"


def _denied(vitals: Mapping[int, Vitals]) -> dict[str, list[int]]:
    return {
        "I/O counters": [pid for pid, vital in vitals.items() if vital.alive and not vital.io],
        "memory": [pid for pid, vital in vitals.items() if vital.alive and not vital.rss],
    }


def find_roots(target: Target, table: proctable.Table, past: Past) -> tuple[list[int], list[str]]:
    """The roots of the job's tree among the processes of `table`, and remarks on how found."""
    notes: list[str] = []
    given = [pid for pid in target.pids if pid in table and not past.replaced(table[pid])]
    missing = [pid for pid in target.pids if pid not in given]
    roots = list(given)
    if missing:
        notes.append(f"given processes {', '.join(map(str, missing))} are not there")
    if not any(not table[pid].zombie for pid in given):
        job = target.job
        logs = tuple(dict.fromkeys((*job.logs, *map(str, target.logs))))
        if logs != job.logs:
            job = job.model_copy(update={"logs": logs})
        match = discovery.match_job(job, discovery.find_jobs(gpus=False, table=table))
        found = match.pids if match else openfiles.writers_of(map(Path, logs), table)
        if found and target.pids:
            notes.append(f"found again as {', '.join(map(str, found))}")
        roots += found
    roots += [pid for pid, proc in table.items() if past.knows(proc)]
    return _topmost(table, roots), notes


def _topmost(table: proctable.Table, pids: Iterable[int]) -> list[int]:
    wanted = dict.fromkeys(pids)
    own = {os.getpid(), *(proc.pid for proc in proctable.ancestors(table, os.getpid()))}
    return [
        pid
        for pid in wanted
        if pid not in own
        and not any(proc.pid in wanted for proc in proctable.ancestors(table, pid))
    ]


class _Account:
    """Collects the observations of one look."""

    def __init__(self, target: Target, family: Sequence[Proc]) -> None:
        self.time = target.now()
        self.seen: list[Observation] = []
        self.ranks = ranks_in(family)
        self.family = family

    def add(
        self,
        quantity: str,
        value: bool | int | float | str,
        *,
        stat: str = "last",
        unit: str | None = None,
        pid: int | None = None,
        subject: str = "job",
        text: str | None = None,
        api: str | None = None,
        file: str | None = None,
    ) -> None:
        self.seen.append(
            Observation(
                quantity=quantity,
                stat=stat,
                subject=subject,
                value=round(value, 4) if isinstance(value, float) else value,
                unit=unit,
                time=self.time,
                source=ProcessSource.name,
                trust=ProcessSource.trust,
                place=Place(pid=pid, api=api, file=file),
                text=text if text is None else clean(text),
            )
        )

    def describe(self, proc: Proc) -> str:
        rank = self.ranks.get(proc.pid)
        command = " ".join(mask_command(proc.argv)) or proc.name
        return clean((f"rank {rank}: " if rank is not None else "") + command, 160)

    def alive(self, living: Sequence[Proc], gone: Sequence[Sighting], given: Sequence[int]) -> None:
        if living:
            self.add("process.alive", True, pid=living[0].pid, text=self.describe(living[0]))
            self.add("process.count", len(living), pid=living[0].pid)
            oldest = min(living, key=lambda proc: proc.created)
            moment = datetime.fromtimestamp(oldest.created, timezone.utc)
            self.add("process.started", isoformat(moment), pid=oldest.pid)
            return
        pid = next((one.pid for one in gone if one.notable), None) or next(iter(given), None)
        told = next((one.told for one in gone if one.notable), None)
        zombie = next((proc.pid for proc in self.family), None)
        if told is None and zombie is not None:
            told = f"process {zombie} has ended"
        if told is None:
            told = f"process {pid} is not there"
        self.add("process.alive", False, pid=pid or zombie, text=told)

    def sums(self, living: Sequence[Proc], vitals: Mapping[int, Vitals], past: Past) -> None:
        from trainwarden.evidence.vitals import slope

        lead = living[0].pid
        known = [vitals[proc.pid] for proc in living]
        rss = sum(vital.rss[-1][1] for vital in known if vital.rss)
        self.add(
            "process.rss",
            rss,
            unit="bytes",
            pid=lead,
            api="/proc/[pid]/statm",
            text="resident memory of the whole tree; pages that processes share count for each",
        )
        steady = [vital.rss for vital in known if len(vital.rss) == max(len(v.rss) for v in known)]
        if steady and len(steady[0]) >= 3:
            totals = [(row[0][0], sum(at[1] for at in row)) for row in zip(*steady, strict=True)]
            self.add(
                "process.rss_growth",
                slope(totals),
                unit="bytes/s",
                pid=lead,
                text=f"Theil-Sen slope of {len(totals)} samples over "
                f"{totals[-1][0] - totals[0][0]:.1f} s",
            )
        history = past.memory(living, self.time)
        if history:
            points = [*history, (self.time.timestamp(), float(rss))]
            self.add(
                "process.rss",
                slope(points),
                stat="growth",
                unit="bytes/s",
                pid=lead,
                text=f"Theil-Sen slope over {len(points)} sessions, "
                f"{points[-1][0] - points[0][0]:.0f} s, in which these processes lived",
            )
        self.add("process.cpu", sum(vital.cpu or 0.0 for vital in known), unit="cores", pid=lead)
        self.add("process.threads", sum(vital.threads for vital in known), pid=lead)
        counted = [vital.io for vital in known if vital.io]
        for at, quantity in enumerate(("process.read_bytes", "process.write_bytes")):
            if counted:
                self.add(quantity, sum(io[at][-1] for io in counted), unit="bytes", pid=lead)
                rates = [
                    (io[at][-1] - io[at][0]) / vital.seconds
                    for vital in known
                    if (io := vital.io) and vital.seconds > 0
                ]
                self.add(quantity, sum(rates), stat="growth", unit="bytes/s", pid=lead)
        self.add("process.tree", self._tree(living), pid=lead, text="pid@start, in Unix seconds")

    def _tree(self, living: Sequence[Proc]) -> str:
        pids = {proc.pid for proc in living}
        items = []
        for proc in living[:MAX_TREE]:
            marks = "" if proc.ppid in pids else " root"
            kind = commands.launcher_of(proc.argv, general=True)
            if not kind and commands.is_wrapper(proc.argv) and proc.ppid not in pids:
                kind = "shell"
            marks += f" launcher={kind}" if kind else ""
            rank = self.ranks.get(proc.pid)
            marks += f" rank={rank}" if rank is not None else ""
            items.append(f"{proc.pid}@{proc.created:.2f}{marks}")
        # Whole items only, in less than a value may have; what is left out are the outermost.
        while sum(map(len, items)) + 2 * len(items) > MAX_TREE_TEXT:
            items.pop()
        return "; ".join(items)

    def each(self, living: Sequence[Proc], vitals: Mapping[int, Vitals]) -> None:
        pids = {proc.pid for proc in living}

        def weight(proc: Proc) -> tuple[bool, bool, bool, float]:
            vital = vitals[proc.pid]
            return (
                vital.state not in ("stopped", "disk-sleep"),
                proc.ppid in pids,
                proc.pid not in self.ranks,
                -(vital.rss[-1][1] if vital.rss else 0),
            )

        chosen = set(sorted(living, key=weight)[:MAX_DETAILED])
        for proc in living:
            if proc not in chosen:
                continue
            vital, subject, pid = vitals[proc.pid], f"pid {proc.pid}", proc.pid
            text = self.describe(proc)
            if vital.state in _STATES:
                text = f"{_STATES[vital.state]} ({vital.state_share}); {text}"
            self.add("process.state", vital.state, subject=subject, pid=pid, text=text)
            if vital.rss:
                last = vital.rss[-1][1]
                self.add("process.rss", last, unit="bytes", subject=subject, pid=pid)
            if vital.cpu is not None:
                self.add("process.cpu", vital.cpu, unit="cores", subject=subject, pid=pid)

    def ended(self, dead: Sequence[Proc], gone: Sequence[Sighting]) -> None:
        for proc in dead[:MAX_DETAILED]:
            subject = f"pid {proc.pid}"
            state = "zombie" if proc.zombie else "dead"
            text = f"{clean(proc.name, 60)} {_STATES.get(state, 'ended while it was looked at')}"
            self.add("process.state", state, subject=subject, pid=proc.pid, text=text)
            how = proctable.exit_of(proc.pid) if proc.zombie else None
            if how is not None:
                code = int(how) if how.isdigit() else how
                self.add(
                    "process.exit", code, subject=subject, pid=proc.pid, api="/proc/[pid]/stat"
                )
        notable = [sight for sight in gone if sight.notable]
        for sight in notable[:MAX_DETAILED]:
            self.add(
                "process.state",
                "dead",
                subject=f"pid {sight.pid}",
                pid=sight.pid,
                text=f"{sight.told}; how it ended is not known",
            )
        if len(gone) > len(notable):
            self.add(
                "process.gone",
                len(gone) - len(notable),
                text="helpers seen earlier that are gone (such as data loaders come and go)",
            )

    def logs(self, living: Sequence[Proc]) -> list[str]:
        """Which files they hold open for writing; what could not be read is answered."""
        held: dict[str, int] = {}
        refused = 0
        for proc in living[:MAX_TREE]:
            files = proctable.open_for_writing(proc.pid)
            if files is None:
                refused += 1
            for _, path in files or ():
                held.setdefault(path, proc.pid)
        chosen = sorted(held, key=lambda path: (not openfiles.is_log(path), path))
        for path in chosen[:16]:
            self.add(
                "process.open_log",
                clean(path, 500),
                subject=f"pid {held[path]}",
                pid=held[path],
                file=path if path.isprintable() else None,
            )
        return [f"open files of {refused} processes"] if refused else []


def sample_row(report: SourceReport) -> dict[str, Any]:
    """What later sessions need of this one: `time`, `rss`, `pids` with their start times, `roots`,
    `ranks`, `launcher`, and on which boot of which host. Empty where nothing lived.
    """
    return Past.row(report)


__all__ = ["ProcessSource", "find_roots", "sample_row"]
