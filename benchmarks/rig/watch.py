"""One run with a watch beside it: start, look again and again, note what was told and when."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from rig.cases import NOT_FOR_THE_CONFIG, Case
from rig.mounts import Disk, small_disk

TRAINERS = Path(__file__).with_name("trainers")
TRAINWARDEN = Path(sys.executable).with_name("trainwarden")
VERDICTS = (0, 10, 20, 30)


class RigError(Exception):
    """A run or a look could not be carried out; says why."""


@dataclass
class Look:
    """One session of the watch."""

    began: float
    """Unix time, as all moments here."""
    ended: float
    progress: int
    """The run's last logged step when the look began."""
    step: float | None
    """The step as the watch read it."""
    status: str
    findings: list[dict[str, Any]]

    @property
    def kinds(self) -> list[str]:
        """Kinds of the findings above information."""
        return [str(f["kind"]) for f in self.findings if f["severity"] != "info"]


@dataclass
class Outcome:
    """What became of a case."""

    case: Case
    looks: list[Look] = field(default_factory=list)
    onset: dict[str, float] | None = None
    """Step and time at which the fault set in."""
    seconds: float = 0.0
    exit_code: int | None = None
    disk: str = ""
    problem: str = ""

    def caught(self) -> Look | None:
        """The first look that ended after the onset and named the fault."""
        names = self.case.names
        return next((look for look in self._late() if names & set(look.kinds)), None)

    def alerted(self) -> Look | None:
        """The first look after the onset that told of anything at all, if by its status alone."""
        bad = ("WARNING", "CRITICAL")
        return next((look for look in self._late() if look.kinds or look.status in bad), None)

    def _late(self) -> Iterator[Look]:
        since = self.onset["time"] if self.onset else float("inf")
        return (look for look in self.looks if look.ended >= since)

    def false_alarms(self) -> list[str]:
        """Kinds told above information although nothing was wrong (yet)."""
        since = self.onset["time"] if self.onset else float("inf")
        told = (kind for look in self.looks if look.ended < since for kind in look.kinds)
        return sorted(set(told))

    def data(self) -> dict[str, Any]:
        """All of it, for JSON."""
        caught, alerted = self.caught(), self.alerted()
        told: dict[str, Any] = {
            "case": self.case.name,
            "trainer": self.case.trainer,
            "fault": self.case.fault or None,
            "names": sorted(self.case.names),
            "log_style": self.case.settings.get("log_style"),
            "onset": self.onset,
            "exit_code": self.exit_code,
            "seconds": round(self.seconds, 1),
            "disk": self.disk or None,
            "problem": self.problem or None,
            "false_alarms": self.false_alarms(),
            "statuses": [look.status for look in self.looks],
            "looks": [asdict(look) for look in self.looks],
        }
        if self.case.fault:
            told["caught"] = self._delay(caught, named=True)
            told["alerted"] = self._delay(alerted, named=False)
        return told

    def _delay(self, look: Look | None, named: bool) -> dict[str, Any] | None:
        if look is None or self.onset is None:
            return None
        shown = [
            finding
            for finding in look.findings
            if finding["severity"] != "info" and (not named or finding["kind"] in self.case.names)
        ]
        return {
            "kinds": sorted({str(finding["kind"]) for finding in shown}),
            "steps": max(0, look.progress - int(self.onset["step"])),
            "seconds": round(look.ended - self.onset["time"], 1),
            "since_step": shown[0].get("since_step"),
            "status": look.status,
        }


def run_case(case: Case, folder: Path, python: Path, interval: float, to_end: bool) -> Outcome:
    """Train and watch. A fault that was named ends the run, unless it is to go on `to_end`."""
    outcome = Outcome(case)
    run, side = folder / "run", folder / "side"
    run.mkdir(parents=True)
    side.mkdir()
    (folder / "watch").mkdir()
    config = case.config()
    with small_disk(run / str(config.get("output_dir", "checkpoints")), case.small_disk) as disk:
        outcome.disk = disk.kind
        try:
            with training(case, folder, python, disk) as process:
                _watch(outcome, process, folder, interval, to_end, disk)
        except RigError as error:
            outcome.problem = str(error)
    outcome.onset = _note(side / "onset.json")
    (folder / "outcome.json").write_text(json.dumps(outcome.data(), indent=1), encoding="utf-8")
    return outcome


@contextmanager
def training(
    case: Case, folder: Path, python: Path, disk: Disk
) -> Iterator[subprocess.Popen[bytes]]:
    """The run in a process group of its own, which is gone afterwards with all it started."""
    run, config = folder / "run", case.config()
    hidden = {key: config[key] for key in NOT_FOR_THE_CONFIG & config.keys()}
    shown = {key: value for key, value in config.items() if key not in hidden}
    (run / "config.json").write_text(json.dumps(shown, indent=1), encoding="utf-8")
    (folder / "side" / "hidden.json").write_text(json.dumps(hidden), encoding="utf-8")
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "RIG_SIDE": str(folder / "side"),
        "RIG_FAULT": case.fault,
        "RIG_PREEMPT_AT": str(case.preempt_at),
    }
    command = [str(python), "-u", str(TRAINERS / f"{case.trainer}.py"), str(run / "config.json")]
    if case.preempt_at:
        # As a launcher that starts a preempted job anew.
        command = ["sh", "-c", '"$@" || "$@"', "sh", *command]
    with (run / "train.log").open("ab") as log:
        process = subprocess.Popen(
            [*disk.prefix, *command],
            cwd=run,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    try:
        below = psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        below = []
    for one in below:
        try:
            one.kill()
        except psutil.Error:
            continue
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _watch(
    outcome: Outcome,
    process: subprocess.Popen[bytes],
    folder: Path,
    interval: float,
    to_end: bool,
    disk: Disk,
) -> None:
    case, began = outcome.case, time.time()
    log = folder / "run" / "train.log"
    while log.stat().st_size == 0 and process.poll() is None:
        time.sleep(0.1)
    while True:
        next_look = time.time() + interval
        ended = process.poll() is not None
        outcome.looks.append(_look(folder, disk))
        outcome.onset = _note(folder / "side" / "onset.json")
        outcome.seconds = time.time() - began
        if ended:
            outcome.exit_code = process.returncode
            return
        if case.fault and outcome.onset:
            still = time.time() - max(log.stat().st_mtime, outcome.onset["time"])
            if still > case.patience or (outcome.caught() and not to_end):
                return
        while time.time() < next_look and process.poll() is None:
            time.sleep(0.1)


def _look(folder: Path, disk: Disk) -> Look:
    began, note = time.time(), _note(folder / "side" / "progress.json")
    command = [*disk.prefix, str(TRAINWARDEN), "run", "--json", "--root", str(folder / "watch")]
    command += ["--log", str(folder / "run" / "train.log")]
    command += ["--config", str(folder / "run" / "config.json")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, timeout=300
    )
    if done.returncode not in VERDICTS:
        said = re.sub(r"\s+", " ", done.stderr)[-400:]
        raise RigError(f"trainwarden run exited with {done.returncode}: {said}")
    answer = json.loads(done.stdout)
    step = int(note["step"]) if note else 0
    return Look(began, time.time(), step, answer["step"], str(answer["status"]), answer["findings"])


def _note(path: Path) -> dict[str, float] | None:
    try:
        found: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found
