"""Speed and memory of whole commands, as ratios against a baseline taken in the same run.

`make bench`, or `python benchmarks/run.py [--runs N] [--megabytes N] [--json]`. Times are medians
of wall-clock seconds of whole processes, taken in turns with their baselines, since machines drift;
memory is the largest resident size of one process as the kernel accounts it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support import nvml  # noqa: E402

TRAINWARDEN = [sys.executable, "-m", "trainwarden.faces.cli"]
BASELINE = [sys.executable, "-c", "import pydantic"]
MODELS = [sys.executable, "-c", "from pydantic import BaseModel"]
"""`import pydantic` alone loads next to nothing; whoever has a model pays for this."""


@dataclass(frozen=True)
class Cost:
    """What one process took."""

    seconds: float
    megabytes: float
    cpu: float
    """Seconds of processor time, those of the processes that it waited for included."""


_RUN = """
import os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(time.perf_counter() - began, used.ru_maxrss / 1024, used.ru_utime + used.ru_stime)
print(os.waitstatus_to_exitcode(status))
"""
"""A process of its own that is small: the size of whoever starts one counts as that one's too."""


def measure(command: Sequence[str], environment: dict[str, str] | None = None) -> Cost:
    """Run a command to its end; its exit code may be a verdict, so only a failure (1, 2) stops."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _RUN, *command],
        capture_output=True,
        text=True,
        env=environment or os.environ,
        check=False,
    )
    *figures, code = done.stdout.split() or ["1"]
    if int(code) in (1, 2) or int(code) < 0:
        raise SystemExit(f"{' '.join(command)} failed ({code}): {done.stderr}")
    return Cost(*map(float, figures))


def in_turns(runs: int, *measures: Callable[[], Cost]) -> list[Cost]:
    """Medians of several measures taken A B A B, after one warm-up of each."""
    for one in measures:
        one()
    taken = [[one() for one in measures] for _ in range(runs)]
    return [
        Cost(
            statistics.median(row[index].seconds for row in taken),
            max(row[index].megabytes for row in taken),
            statistics.median(row[index].cpu for row in taken),
        )
        for index in range(len(measures))
    ]


def write_log(path: Path, megabytes: float, start: int = 0) -> int:
    """Append step lines like a usual trainer's; returns the step after the last."""
    noise = random.Random(start)
    wanted = megabytes * 2**20
    step, written = start, 0
    with path.open("a", encoding="utf-8") as file:
        while written < wanted:
            loss = 2 + 2.2 * math.exp(-step / 60_000) + noise.gauss(0, 0.02)
            line = (
                f"2026-01-{1 + step // 86_400 % 28:02d} {step // 3600 % 24:02d}:"
                f"{step // 60 % 60:02d}:{step % 60:02d} | step {step} | loss {loss:.4f} | "
                f"grad_norm {0.8 + noise.random() / 5:.3f} | lr {3e-4:.2e} | "
                f"{noise.gauss(61_234, 300):,.0f} tok/s\n"
            )
            written += file.write(line)
            step += 1
    return step


def new_job(folder: Path, megabytes: float) -> tuple[Path, int]:
    """A root with a config and a log of that size."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("max_steps: 2000000\nlearning_rate: 3.0e-4\n")
    return folder, write_log(folder / "train.log", megabytes)


def watch(root: Path) -> list[str]:
    """The command that is measured: all nine steps with the built-in rules."""
    files = ["--log", str(root / "train.log"), "--config", str(root / "config.yaml")]
    return [*TRAINWARDEN, "run", "--root", str(root), *files]


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trainwarden-bench-") as temporary:
        rows = benchmark(Path(temporary), options.runs, options.megabytes)
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{row['what']:<58} {row['value']:>10.2f} {row['unit']:<6} {row['limit']}")
    if any(not row["within"] for row in rows):
        raise SystemExit("a figure is beyond its limit")


def benchmark(folder: Path, runs: int, megabytes: float) -> list[dict[str, object]]:
    """All figures; each row says whether it is within its limit, where it has one."""
    environment = dict(os.environ)
    gpus = 0
    if nvml.compiler():
        library = nvml.build(folder)
        configuration = nvml.write(folder / "nvml.conf", [dict(nvml.BUSY)] * 8, None)
        environment |= {"LD_LIBRARY_PATH": str(library.parent), "NVML_STANDIN": str(configuration)}
        gpus = 8
    rows: list[dict[str, object]] = []

    def add(what: str, value: float, unit: str, most: float | None = None) -> None:
        limit = f"(limit {most:g})" if most is not None else ""
        within = most is None or value <= most
        rows.append({"what": what, "value": value, "unit": unit, "limit": limit, "within": within})

    start, bare, status, models = in_turns(
        max(runs, 9),
        lambda: measure([*TRAINWARDEN, "--version"]),
        lambda: measure(BASELINE),
        lambda: measure([*TRAINWARDEN, "status", "--root", str(folder)]),
        lambda: measure(MODELS),
    )
    add("interpreter start and import pydantic", bare.seconds, "s")
    add("start-up of the command line", start.seconds, "s")
    add(
        "start-up / (interpreter start and import pydantic)", start.seconds / bare.seconds, "x", 2.5
    )

    ratio = status.seconds / models.seconds
    add("status / (interpreter start and pydantic's BaseModel)", ratio, "x", 2.5)

    numbers = iter(range(10_000))

    def first_run(size: float) -> Cost:
        root, _ = new_job(folder / f"first-{next(numbers)}", size)
        cost = measure(watch(root), environment)
        shutil.rmtree(root)
        return cost

    grown, step = new_job(folder / "grown", megabytes)
    measure(watch(grown), environment)

    def after_growth() -> Cost:
        nonlocal step
        step = write_log(grown / "train.log", 1, step)
        return measure(watch(grown), environment)

    whole, added, small, tiny = in_turns(
        runs,
        lambda: first_run(megabytes),
        after_growth,
        lambda: first_run(1),
        lambda: first_run(0.01),
    )
    log = f"{megabytes:g} MB log, {gpus} GPUs"
    add(f"run, {log}", whole.seconds, "s")
    add("run, 10 KB log: start-up and sources alone", tiny.seconds, "s")
    add("run, 1 MB log", small.seconds, "s")
    add(f"run after 1 MB was added to {megabytes:g} MB", added.seconds, "s")
    add("run after 1 MB more / first run of a 1 MB log", added.seconds / small.seconds, "x", 1.5)
    add("run after 1 MB more / first run of the whole", added.seconds / whole.seconds, "x")
    reading = whole.seconds - tiny.seconds
    add("reading speed of a whole run", megabytes / reading if reading > 0 else math.inf, "MB/s")
    add(f"peak memory, {log}", whole.megabytes, "MB", 200)
    large = first_run(4 * megabytes)
    add(f"peak memory, {4 * megabytes:g} MB log", large.megabytes, "MB", 200)
    return rows


if __name__ == "__main__":
    main()
