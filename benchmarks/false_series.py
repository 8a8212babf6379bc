"""How often a file that is no training log is taken for one: `python benchmarks/false_series.py`.

Reads files that lie on any machine (by default the standard library's sources, the packages
beside it, and what lies in /usr/share, /usr/include, /var/log and /etc) and counts the series of a
loss, an accuracy, a reward and the like that were found where there are none. Exit code 1 where
more than `--most` of them came of 1,000 files.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainwarden.metrics.names import canonical
from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.reading import Reading

LARGEST = 1 << 20
"""Of larger files only so many bytes are read."""
MEASURES = frozenset(
    {"loss", "accuracy", "perplexity", "reward", "kl", "entropy", "grad_norm", "learning_rate"}
)
PLACES = (sysconfig.get_path("stdlib"), "/usr/share", "/usr/include", "/var/log", "/etc")


def files(places: Iterable[str | Path]) -> Iterator[Path]:
    """The regular files below some folders, each once."""
    for place in places:
        for folder, _folders, names in os.walk(place):
            for name in names:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    yield path


def false_series(reading: Reading) -> list[str]:
    """Names of the series that claim to measure a training."""
    return [
        name
        for name in reading.series
        if name.removeprefix("eval_") in MEASURES or canonical(name)[0].name in MEASURES
    ]


def read(path: Path) -> Reading | None:
    """What is read of a file; None where it is binary or cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST)
    except OSError:
        return None
    if b"\0" in data[:4096] or not data:
        return None
    reader = LogReader(path.name)
    reader.feed(data)
    reader.finish(complete=True)
    return reader.reading


def main() -> int:
    """Read, count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("places", nargs="*", default=list(PLACES))
    parser.add_argument("--sample", type=int, default=5000, help="so many files, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="name the files and their series")
    parser.add_argument("--most", type=float, default=float("inf"))
    options = parser.parse_args()
    found = sorted(set(files(options.places)))
    if len(found) > options.sample:
        found = random.Random(options.seed).sample(found, options.sample)
    total, series, taken = 0, Counter[str](), 0
    for path in found:
        reading = read(path)
        if reading is None:
            continue
        total += 1
        names = false_series(reading)
        series.update(names)
        taken += bool(names)
        if names and options.list:
            print(f"{path}: {', '.join(names)}")
    if not total:
        print("no text files there", file=sys.stderr)
        return 2
    rate = 1000 * sum(series.values()) / total
    print(f"{total} text files, {taken} with a false series, {sum(series.values())} series, "
          f"{rate:.2f} per 1,000 files")  # fmt: skip
    print(", ".join(f"{name} {count}" for name, count in series.most_common(12)))
    return int(rate > options.most)


if __name__ == "__main__":
    raise SystemExit(main())
