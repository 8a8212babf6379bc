"""How right verdicts are: `python benchmarks/verdicts.py [--incidents DIR] [--corpus DIR]`.

Incidents are folders of `log.txt`, `context.json` and `answer.json` (`kind`, `expected_status`,
`can_be_told_from_log`; the kind `healthy_false_alarm` means that nothing above info may be found).
A corpus is a folder of logs with `manifest.jsonl`, whose labels tell `fault` (none for a sound
run) and `fault_line`. Each log of it is judged as it stood at `--cuts` moments: a sound one must
be met with silence at each, a fault be named at the first moment after it shows.

Everything is judged by `trainwarden diagnose`'s own function. Prints counts and the misses.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainwarden.analysts.examination import examine
from trainwarden.procedure.replay import cut_points
from trainwarden.records.finding import Severity

HEALTHY = "healthy_false_alarm"
FAULTS: Mapping[str, frozenset[str]] = {
    "nan": frozenset({"nan_loss"}),
    "interrupted": frozenset({"user_cancelled"}),
    "loss_scale_min": frozenset({"loss_scale"}),
    "oom": frozenset({"cuda_oom"}),
    "host_oom": frozenset({"host_oom"}),
    "preemption": frozenset({"preempted"}),
    "time_limit": frozenset({"time_limit"}),
    "cuda_error": frozenset({"gpu_hardware", "crash_user_code"}),
    "overfit": frozenset({"overfitting"}),
    "assertion": frozenset({"crash_user_code"}),
    "exception": frozenset({"crash_user_code"}),
    "nccl_invalid_usage": frozenset({"rank_crash", "environment_mismatch"}),
    "nccl_timeout": frozenset({"collective_hang"}),
    "sigabrt": frozenset({"rank_crash"}),
    "reward_hacking": frozenset({"rl_reward_hacking", "rl_length"}),
}
"""Which kinds name a corpus' fault rightly."""
TRACEBACK = 60
"""Lines that a traceback may have."""
_LAST = re.compile(rb"^\S{0,80}(?:Error|Exception|Interrupt)\b")


@dataclass
class Tally:
    """What was right, of how many, and what was not."""

    title: str
    right: int = 0
    total: int = 0
    misses: list[str] = field(default_factory=list)

    def count(self, right: bool, miss: str) -> None:
        """One more case."""
        self.total += 1
        self.right += right
        if not right:
            self.misses.append(miss)

    def text(self) -> str:
        """The figures, then the misses."""
        share = f" ({self.right / self.total:.3f})" if self.total else ""
        return "\n".join(
            [f"{self.title}: {self.right} of {self.total}{share}", *(f"  {m}" for m in self.misses)]
        )


def loud(logs: list[Path], context: Mapping[str, Any] | None = None) -> tuple[list[str], str]:
    """Kinds found above info, the initiating one first, and the status."""
    seen = examine(logs, context)
    kinds = [one.kind for one in seen.findings if one.severity is not Severity.INFO]
    return kinds, seen.assessment.status.value


def judge_incidents(folder: Path) -> Iterator[Tally]:
    """Kinds, those that the log can tell, statuses, and alarms on what is healthy."""
    kinds, told = Tally("incidents, kind"), Tally("  of those that the log can tell")
    statuses, silent = Tally("incidents, status"), Tally("healthy incidents without an alarm")
    for answer in sorted(folder.glob("*/answer.json")):
        wanted = json.loads(answer.read_text())
        context = json.loads(answer.with_name("context.json").read_text())
        found, status = loud([answer.with_name("log.txt")], context)
        first = found[0] if found else HEALTHY
        miss = f"{answer.parent.name}: {wanted['kind']}, found {', '.join(found) or 'nothing'}"
        kinds.count(first == wanted["kind"], miss)
        if wanted["can_be_told_from_log"]:
            told.count(first == wanted["kind"], answer.parent.name)
        statuses.count(
            status == wanted["expected_status"],
            f"{answer.parent.name}: {wanted['expected_status']}, given {status}",
        )
        if wanted["kind"] == HEALTHY:
            silent.count(not found, miss)
    yield from (kinds, told, statuses, silent)


def moments(log: Path, cuts: int, folder: Path) -> Iterator[tuple[int, Path]]:
    """The log as it stood at so many moments: its length in bytes then, and a copy so far."""
    # The same name, because a name can tell what a file is.
    copy = folder / log.name
    data = log.read_bytes()
    for end in cut_points(log, cuts):
        copy.write_bytes(data[:end])
        yield end, copy


def onset(log: Path, line: int | None) -> int:
    """The byte at which the fault shows: after its line, or after the end of a traceback there.

    The whole file where its line is not known.
    """
    lines = [part + b"\n" for part in log.read_bytes().split(b"\n")]
    if line is None:
        return log.stat().st_size
    ends = (n for n in range(line - 1, min(line + TRACEBACK, len(lines))) if _LAST.search(lines[n]))
    shown = sum(map(len, lines[: max(line, next(ends, 0) + 1)]))
    return min(shown, log.stat().st_size)


def judge_corpus(folder: Path, cuts: int) -> Iterator[Tally]:
    """Sound runs met with silence; faults named at the first moment after they show."""
    quiet = Tally("cuts of sound logs without an alarm")
    calm = Tally("cuts of sound logs without CRITICAL")
    named = Tally("faults named at the first cut after they show")
    entries = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    for entry in entries:
        log, fault = folder / entry["file"], entry["labels"].get("fault")
        shown: list[str] | None = None
        with tempfile.TemporaryDirectory() as place:
            for end, copy in moments(log, cuts, Path(place)):
                if fault in (None, "none"):
                    found, status = loud([copy])
                    miss = f"{entry['file']} at byte {end}: {', '.join(found)} ({status})"
                    quiet.count(not found, miss)
                    calm.count(status != "CRITICAL", miss)
                elif end >= onset(log, entry["labels"].get("fault_line")) and shown is None:
                    shown, _ = loud([copy])
        if shown is not None:
            wanted = FAULTS.get(fault, frozenset({fault}))
            miss = f"{entry['file']}: {fault}, found {', '.join(shown) or 'nothing'}"
            named.count(bool(wanted & set(shown)), miss)
    yield from (quiet, calm, named)


def main() -> None:
    """Judge what was given, print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--incidents", type=Path, help="folder of incidents")
    parser.add_argument("--corpus", type=Path, help="folder of logs with manifest.jsonl")
    parser.add_argument("--cuts", type=int, default=20)
    given = parser.parse_args()
    if given.incidents is None and given.corpus is None:
        parser.error("nothing to judge: give --incidents, --corpus or both")
    tallies = [
        *(judge_incidents(given.incidents) if given.incidents else ()),
        *(judge_corpus(given.corpus, given.cuts) if given.corpus else ()),
    ]
    print("\n".join(one.text() for one in tallies))


if __name__ == "__main__":
    main()
