"""How fast logs and run files are read, against what an engineer would use instead.

`make bench`, or `python benchmarks/log_speed.py [--size MB] [--scalars N] [--runs N]`. Each figure
is the median of whole processes, taken in turns with its baselines. A reader's rate is that of its
file, start-up included, by the clock and by processor time (on a busy machine only the second one
means much; trainwarden may use two processors at once). Memory is the largest resident size of one
process. `--size 1000 --only text` and `--size 5000 --only known` are the large logs; they need the
disk for it.

losslint is compared as its users run it, `losslint check FILE` with all its checks, and what it
takes for reading alone (`load_run`) is shown beside it: `trainwarden read` judges nothing either.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import training_logs
from run import Cost, in_turns, measure

OURS = "trainwarden"
READ = "import sys; from pathlib import Path; path = sys.argv[1]\n"
TEXT = {
    "wc -l": ["wc", "-l"],
    "re.findall on each line": (
        "import re\nfound = re.compile(r'([\\w./-]+)[ =:]+([-+.\\deE]+)').findall\n"
        "for line in open(path, errors='replace'): found(line)"
    ),
}
LINES = {
    "wc -l": ["wc", "-l"],
    "json.loads on each line": "import json\nfor line in open(path): json.loads(line)",
    "losslint check": "from losslint.cli import main\nsys.exit(main(['check', path]))",
    "losslint load_run": "from losslint.parsing import load_run\nload_run(Path(path))",
}
EVENTS = {
    "EventAccumulator": (
        "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
        "one = EventAccumulator(path, size_guidance={'scalars': 0}); one.Reload()\n"
        "for tag in one.Tags()['scalars']: one.Scalars(tag)"
    ),
    "tbparse": "from tbparse import SummaryReader\nSummaryReader(path).scalars",
}
RECORDS = {
    "wandb": (
        "import json\nfrom wandb.proto import wandb_internal_pb2 as pb\n"
        "from wandb.sdk.internal.datastore import DataStore\n"
        "store = DataStore(); store.open_for_scan(path)\n"
        "while (data := store.scan_data()) is not None:\n"
        "    record = pb.Record(); record.ParseFromString(data)\n"
        "    for item in record.history.item: json.loads(item.value_json)"
    ),
}
PACKAGES = {
    "losslint check": "losslint",
    "losslint load_run": "losslint",
    "EventAccumulator": "tensorboard",
    "tbparse": "tbparse",
}
SMALL = 48 << 20
"""Bytes at most of what losslint is given, which keeps all in memory."""
KNOWN = """
import sys, time
from pathlib import Path
from trainwarden.evidence.base import Target
from trainwarden.evidence.logs import LogSource
from trainwarden.records.job import Job
path = Path(sys.argv[1])
target = Target(Job(id="j", logs=(str(path),)), path.parent, logs=(path,),
                cache_dir=Path(sys.argv[2]))
source = LogSource()
source.timeout = 1e6
source.read(target)
"""


def command(told: str | list[str], *arguments: object) -> list[str]:
    """A program, or what Python is to do with a path, on arguments."""
    start = [sys.executable, "-c", READ + told] if isinstance(told, str) else told
    return [*start, *map(str, arguments)]


def ours(path: Path) -> list[str]:
    """The command that reads a file."""
    return [sys.executable, "-m", "trainwarden.faces.cli", "read", str(path), "--json"]


def compare(path: Path, others: dict[str, str | list[str]], runs: int) -> None:
    """Print the rates of all readers of a file."""
    names = [OURS]
    commands = [ours(path)]
    sizes = [path.stat().st_size]
    for name, told in others.items():
        package = PACKAGES.get(name, name)
        if isinstance(told, str) and name in {*PACKAGES, "wandb"}:
            if importlib.util.find_spec(package) is None:
                print(f"  {name:<26}not measured: {package} is not installed")
                continue
        elif isinstance(told, list) and shutil.which(told[0]) is None:
            continue
        size, given = path.stat().st_size, path
        if package == "losslint" and size > SMALL:
            given = path.with_name(f"part-{path.name}")
            with path.open("rb") as whole, given.open("wb") as part:
                block = whole.read(SMALL)
                part.write(block[: block.rfind(b"\n") + 1])
            size = given.stat().st_size
        names.append(name)
        commands.append(command(told, given))
        sizes.append(size)
    costs = in_turns(runs, *(measurer(one) for one in commands))
    rates = [size / 1e6 / cost.seconds for size, cost in zip(sizes, costs, strict=True)]
    for name, rate, cost in zip(names, rates, costs, strict=True):
        worked = rate * cost.seconds / cost.cpu
        ratio = "" if name == OURS else f"  {OURS} is {rates[0] / rate:.2f} times as fast"
        figures = f"{rate:8.1f} MB/s {worked:8.1f} MB/s of CPU {cost.megabytes:7.0f} MB"
        print(f"  {name:<26}{figures}{ratio}", flush=True)


def measurer(one: list[str]) -> Callable[[], Cost]:
    """What measures a command."""
    return lambda: measure(one)


def text(folder: Path, megabytes: int, runs: int) -> None:
    """Text and JSON lines, read cold."""
    for kind in training_logs.KINDS:
        path = folder / f"{kind}.log"
        training_logs.write(path, kind, megabytes << 20)
        print(f"{kind}: {path.stat().st_size / 1e6:.0f} MB")
        compare(path, LINES if kind == "jsonl" else TEXT, runs)
        path.unlink()


def known(folder: Path, megabytes: int, runs: int) -> None:
    """A log that an earlier session has read and that has not grown."""
    costs = {}
    for name, size in (("small", 1 << 20), ("large", megabytes << 20)):
        path = folder / f"{name}.log"
        training_logs.write(path, "nanogpt", size)
        one = command(KNOWN, path, folder / "cache")
        measure(one)
        costs[name] = one
    few, many = in_turns(runs, *(measurer(one) for one in costs.values()))
    more = 1000 * (many.seconds - few.seconds)
    print(f"unchanged log of {megabytes} MiB, known: {more:.0f} ms more than one of 1 MiB")


def events(folder: Path, scalars: int, runs: int) -> None:
    """A TensorBoard event file of many scalars."""
    from tensorboardX import SummaryWriter

    with SummaryWriter(str(folder / "events")) as writer:
        for step in range(scalars // 8):
            for tag in range(8):
                writer.add_scalar(f"train/metric_{tag}", 1 / (1 + step + tag), step)
    (path,) = (folder / "events").iterdir()
    print(f"tfevents: {scalars} scalars, {path.stat().st_size / 1e6:.0f} MB")
    compare(path, dict(EVENTS), runs)


RUN = """
import wandb
with wandb.init(project="p", dir=path, mode="offline", settings={"silent": True}) as run:
    for step in range(int(sys.argv[2])):
        run.log({f"train/metric_{tag}": 1 / (1 + step + tag) for tag in range(8)})
"""


def records(folder: Path, scalars: int, runs: int) -> None:
    """A run file of W&B."""
    measure(command(RUN, folder, scalars // 8))
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    print(f"wandb: {scalars} scalars, {path.stat().st_size / 1e6:.0f} MB")
    compare(path, dict(RECORDS), runs)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100, help="megabytes of each text log")
    parser.add_argument("--scalars", type=int, default=200_000, help="of each run file")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=("text", "known", "events", "records"))
    asked = parser.parse_args()
    parts: dict[str, tuple[Callable[[Path, int, int], None], int]] = {
        "text": (text, asked.size),
        "known": (known, asked.size),
        "events": (events, asked.scalars),
        "records": (records, asked.scalars),
    }
    for name, (part, size) in parts.items():
        if asked.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                part(Path(folder), size, asked.runs)


if __name__ == "__main__":
    main()
