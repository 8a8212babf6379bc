"""Train for about a minute, watch it three times, and tell whether the watch was right.

    python demo/run.py [--fault KIND] [--seconds 60] [--runs FOLDER]

Two sessions look while the run trains, one after it has ended. Exits with 1 when an injected
fault was not named, was named before it had set in, or when a run without a fault was given
anything but HEALTHY.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml
from faults import ONSET

HERE = Path(__file__).resolve().parent
TRAINWARDEN = Path(sys.executable).with_name("trainwarden")
VERDICTS = (0, 10, 20, 30)
PATIENCE = 240.0
"""Seconds after which a run that does not get on is given up."""

NAMES = {
    "nan": {"nan_loss"},
    "divergence": {"divergence"},
    "plateau": {"plateau"},
    "stall": {"stall"},
    "crash": {"crash_user_code"},
    "oom": {"host_oom", "killed"},
    "slow": {"step_time_regression", "slow_input"},
    "leak": {"memory_leak"},
}
"""The kinds of finding that name each fault."""

ENDS_THE_RUN = {"crash", "oom"}


class DemoError(Exception):
    """The demo could not be carried out; says why."""


@dataclass
class Look:
    """One session, as `trainwarden run --json` answered it."""

    answer: dict[str, Any]
    sound: bool
    """Whether it was made before the fault set in."""

    @property
    def status(self) -> str:
        """HEALTHY, WARNING, UNCERTAIN or CRITICAL."""
        return str(self.answer["status"])

    @property
    def kinds(self) -> list[str]:
        """Kinds of the findings that are more than information."""
        return [f["kind"] for f in self.answer["findings"] if f["severity"] != "info"]


@dataclass
class Training:
    """A launched run: its folder, its launcher, and how far its log is."""

    folder: Path
    launcher: subprocess.Popen[bytes]
    max_steps: int
    began: float = field(default_factory=time.monotonic)

    @property
    def log(self) -> Path:
        """Where the launcher lets the worker write."""
        return self.folder / "train.log"

    def step(self) -> int:
        """The last step in the log, 0 before the first."""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - 20_000))
            found = re.findall(rb"\| step (\d+)/\d+ \| loss", file.read())
        return int(found[-1]) if found else 0

    def ended(self) -> bool:
        """Whether the launcher has gone."""
        return self.launcher.poll() is not None

    def stopped(self) -> bool:
        """Whether a signal stopped the worker and nothing was written for five seconds."""
        try:
            workers = psutil.Process(self.launcher.pid).children()
            states = {worker.status() for worker in workers}
        except psutil.Error:
            return False
        return psutil.STATUS_STOPPED in states and time.time() - self.log.stat().st_mtime > 5

    def wait(self, share: float) -> None:
        """Until the run has made this share of its steps, stopped or ended."""
        while not (self.ended() or self.stopped() or self.step() >= share * self.max_steps):
            self._pause()

    def wait_for_end(self) -> None:
        """Until the run has ended or stands still."""
        while not (self.ended() or self.stopped()):
            self._pause()

    def _pause(self) -> None:
        if time.monotonic() - self.began > PATIENCE:
            raise DemoError(f"the run made no end within {PATIENCE:.0f} s; see {self.log}")
        time.sleep(0.2)

    def close(self) -> None:
        """Leave no process behind, whatever state the run is in."""
        for number in (signal.SIGCONT, signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.launcher.pid, number)
                self.launcher.wait(timeout=0 if number == signal.SIGCONT else 5)
            except (ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
                continue
        self.launcher.wait()


def steps_for(seconds: float, config: Path) -> int:
    """How many steps this machine makes in `seconds`, from sixty timed ones."""
    command = [sys.executable, str(HERE / "train.py"), str(config), "--max-steps", "60"]
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    pace = re.findall(r"([\d.]+) ms/step", done.stdout)
    if done.returncode or not pace:
        raise DemoError(f"the training does not start:\n{done.stderr.strip()}")
    return round(int(min(max(seconds * 1000 / float(pace[-1]), 1000), 9000)), -2)


def prepare(folder: Path, seconds: float) -> dict[str, Any]:
    """A fresh run folder with a config whose length fits this machine."""
    config: dict[str, Any] = yaml.safe_load((HERE / "config.yaml").read_text(encoding="utf-8"))
    training = config["training"]
    training["max_steps"] = steps = steps_for(seconds, HERE / "config.yaml")
    training["warmup_steps"] = steps // 20
    training["eval_every"] = training["save_every"] = steps // 6
    training["log_every"] = max(1, steps // 180)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return config


def launch(folder: Path, fault: str | None, max_steps: int) -> Training:
    """Start the launcher in a process group of its own."""
    (folder / "train.log").touch()
    options = ["--fault", fault] if fault else []
    launcher = subprocess.Popen(
        [sys.executable, str(HERE / "launch.py"), str(folder), *options],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
    )
    return Training(folder, launcher, max_steps)


def look(folder: Path) -> dict[str, Any]:
    """One session of the built-in analyst on this run."""
    command = [str(TRAINWARDEN), "run", "--json", "--root", str(folder)]
    command += ["--log", str(folder / "train.log"), "--config", str(folder / "config.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in VERDICTS:
        raise DemoError(f"trainwarden run exited with {done.returncode}:\n{done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def watch(training: Training, fault: str | None) -> list[Look]:
    """Two sessions while it trains, the second after a fault had time to show; one at the end."""
    looks: list[Look] = []

    def session(label: str, sound: bool) -> None:
        step = training.step()
        print(f"  looking {label}, step {step}/{training.max_steps} …", file=sys.stderr, flush=True)
        looks.append(Look(look(training.folder), sound))

    onset = ONSET[fault] if fault else 1.0
    training.wait(0.2)
    session("early on", True)
    if fault == "crash":
        training.wait(0.4)
    elif fault == "oom":
        training.wait(onset + 0.02)
    else:
        training.wait(0.75)
    session("again", fault is None or fault in ENDS_THE_RUN)
    training.wait_for_end()
    session("at the end", fault is None)
    return looks


def short(path: Path) -> str:
    """Relative to the current folder where it lies below."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def table(looks: list[Look]) -> str:
    """One line a session."""
    rows = [("session", "step", "status", "indicator", "predictions", "findings", "gates")]
    for item in looks:
        answer = item.answer
        indicator, counts = answer["indicator"], answer["predictions"]
        value = indicator["value"]
        shown = f"{value:.4g}" if isinstance(value, (int, float)) else str(value)
        rows.append(
            (
                answer["session"],
                str(answer["step"]),
                item.status,
                f"{indicator['quantity']} {shown} ({indicator['direction']})",
                f"{counts['held']} of {counts['made'] - counts['unobserved']} held",
                ", ".join(item.kinds) or "none",
                short(Path(answer["gates"])),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def judge(looks: list[Look], fault: str | None) -> tuple[bool, str]:
    """Whether the watch was right, and the line that says so."""
    if fault is None:
        wrong = [item.answer["session"] for item in looks if item.status != "HEALTHY"]
        if wrong:
            return False, f"FAILED: no fault was injected, but not HEALTHY: {', '.join(wrong)}"
        return True, "OK: no fault was injected, and every session was HEALTHY"
    names = NAMES[fault]
    if any(item.sound and names & set(item.kinds) for item in looks):
        return False, f"FAILED: fault {fault} was named before it had set in"
    for item in looks:
        named = sorted(names & set(item.kinds))
        if named and item.status != "HEALTHY":
            session = item.answer["session"]
            return True, f"OK: fault {fault} was named {', '.join(named)} by session {session}"
    return False, f"FAILED: fault {fault} was not named ({' or '.join(sorted(names))})"


def main() -> int:
    """Read the command line, run, print."""
    parser = argparse.ArgumentParser(description="Watch a real small training run.")
    parser.add_argument("--fault", choices=sorted(ONSET))
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to train, about")
    parser.add_argument("--runs", type=Path, default=Path("demo-runs"))
    options = parser.parse_args()
    suffix = f"-{options.fault}" if options.fault else ""
    folder = options.runs.resolve() / (time.strftime("%Y-%m-%d_%H%M%S") + suffix)
    # A signal to the demo must not leave the training behind: it becomes an exception.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        config = prepare(folder, options.seconds)
        print(f"training in {short(folder)}", file=sys.stderr, flush=True)
        training = launch(folder, options.fault, config["training"]["max_steps"])
        try:
            looks = watch(training, options.fault)
        finally:
            training.close()
    except DemoError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    right, line = judge(looks, options.fault)
    print(f"{table(looks)}\n{line}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
