"""How much of real logs is read right: `python benchmarks/log_accuracy.py CORPUS [--misses]`.

CORPUS is a folder of logs with an answer key, `manifest.jsonl` (tests/support/accuracy.py says what
stands in it). Each file is read as `trainwarden read` does; a field counts where what was read is
what the key says. Exit code 1 where less than `--least` of all fields is right.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.accuracy import FIELDS, Score, Table, entries, measure


def rows_of(title: str, scores: Mapping[str, Score], order: list[str]) -> list[str]:
    """A table: name, right of total, share."""
    width = max([len(title), *map(len, order)])
    lines = [f"{title:<{width}}  right      share"]
    for name in order:
        one = scores[name]
        lines.append(f"{name:<{width}}  {one.right:>4}/{one.total:<4}  {one.share:.3f}")
    return lines


def text_of(table: Table, misses: bool) -> str:
    """The whole report."""
    fields = [name for name in FIELDS if name in table.by_field]
    lines = rows_of("field", table.by_field, fields)
    lines += ["", *rows_of("framework", table.by_framework, sorted(table.by_framework))]
    lines += ["", f"all fields: {table.overall.right}/{table.overall.total}, "
                  f"{table.overall.share:.4f}"]  # fmt: skip
    if misses:
        lines += ["", "read wrong (file, field, read, wanted):"]
        lines += [
            f"{file}  {one.name}  {one.found!s:.120}  {one.wanted!s:.120}"
            for file, one in table.misses
        ]
    return "\n".join(lines)


def json_of(table: Table) -> str:
    """The same for machines."""
    data = {
        "overall": table.overall.share,
        "fields": {name: vars(one) for name, one in table.by_field.items()},
        "frameworks": {name: vars(one) for name, one in table.by_framework.items()},
        "misses": [
            {"file": file, "field": one.name, "read": str(one.found), "wanted": str(one.wanted)}
            for file, one in table.misses
        ],
    }
    return json.dumps(data, indent=2)


def main() -> int:
    """Measure a corpus and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--misses", action="store_true", help="list every field read wrong")
    parser.add_argument("--format", action="append", help="only files of this format")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--least", type=float, default=0.0, help="share of fields that is owed")
    options = parser.parse_args()
    try:
        rows = entries(options.corpus, options.format)
    except (OSError, ValueError) as failure:
        print(f"{options.corpus} is no corpus: {failure}", file=sys.stderr)
        return 2
    table = measure(options.corpus, rows)
    print(json_of(table) if options.json else text_of(table, options.misses))
    return int(table.overall.share < options.least)


if __name__ == "__main__":
    raise SystemExit(main())
