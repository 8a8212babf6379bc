"""How often a file that is no training log is taken for one: `python benchmarks/false_series.py`.

Reads files that lie on any machine (by default the standard library's sources, the packages
beside it, and what lies in /usr/share, /usr/include, /var/log and /etc) and counts the series of a
loss, an accuracy, a reward and the like that were found where there are none. Exit code 1 where
more than `--most` of them came of 1,000 files.
"""

from __future__ import annotations

import argparse
import random
import sys
import sysconfig
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.plain import false_series, files, read

PLACES = (sysconfig.get_path("stdlib"), "/usr/share", "/usr/include", "/var/log", "/etc")


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
