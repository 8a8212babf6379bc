"""How often detectors err: `python benchmarks/false_alarms.py [CORPUS] [--write FILE]`.

False alarms: of sound runs by seed (`curves.py`) and of the sound logs of a corpus, one that
`verdicts.py` reads, each looked at at so many moments, the share of runs in which a kind is found
above info at any of them. Looks at one run hang together, so runs are counted, with the exact
interval of Clopper and Pearson (95 %). Recall: the share of runs with a fault of a size put in
that are named at their end. `--write` keeps the figures where findings are explained by them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from curves import CLASSES, EVERY, FAULTS, PER_EVALUATION, SHAPES, Values, sound, sound_rl
from verdicts import loud, moments

from support.views import reading, series, view
from trainwarden.diagnosis import diagnose
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.finding import Severity

CUTS = 10
"""Moments at which a run by seed is looked at."""
PLANNED = 400
"""Logged values that the runs with a fault are planned to have: more than they have."""
COMMAND = "python benchmarks/false_alarms.py [CORPUS] --write src/trainwarden/diagnosis/rates.json"


def interval(hits: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Exact bounds of a share, after Clopper and Pearson."""
    rest = (1 - level) / 2

    def at_most(count: int, share: float) -> float:
        return sum(
            math.comb(total, k) * share**k * (1 - share) ** (total - k) for k in range(count + 1)
        )

    def solve(count: int, wanted: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if at_most(count, middle) > wanted else (low, middle)
        return low

    low = solve(hits - 1, 1 - rest) if hits else 0.0
    high = solve(hits, rest) if hits < total else 1.0
    return low, high


def kinds(values: Values, upto: int, planned: int, rl: bool) -> set[str]:
    """Kinds found above info when so many values had been logged."""
    parts = []
    for name, all_values in values.items():
        every = EVERY * (PER_EVALUATION if name == "eval_loss" else 1)
        parts.append(series(name, all_values[: upto * EVERY // every], every=every))
    facts = TrainingFacts(
        max_steps=planned * EVERY,
        task="grpo" if rl else None,
        num_classes=None if rl else CLASSES,
        log_every=EVERY,
    )
    run = reading(*(p for p in parts if p.count), total=planned * EVERY)
    found = diagnose(view(run, facts=facts, live=False))
    return {one.kind for one in found if one.severity is not Severity.INFO}


def looks(points: int) -> Iterator[int]:
    """So many values each time, more of them early, where little is known."""
    for k in range(1, CUTS + 1):
        yield max(3, round(points * (k / CUTS) ** 1.5))


def false_alarms(seeds: Iterable[int]) -> tuple[Counter[str], Counter[str], int]:
    """Runs by seed with a false alarm, by kind and by shape; and how many runs there were."""
    by_kind, by_shape, runs = Counter[str](), Counter[str](), 0
    for seed in seeds:
        for shape in (*SHAPES, "rewards"):
            rl = shape == "rewards"
            values = sound_rl(seed) if rl else sound(seed, shape)
            points = len(values["loss"])
            found = set().union(*(kinds(values, upto, points, rl) for upto in looks(points)))
            by_kind.update(found)
            by_shape.update(f"{shape}: {kind}" for kind in found)
            runs += 1
    return by_kind, by_shape, runs


def recall(seeds: Iterable[int]) -> Iterator[tuple[str, str, float, int, int]]:
    """Of each fault and size: its kind, how many runs were named rightly, of how many."""
    for name, (kind, put, sizes, rl) in FAULTS.items():
        for size in sizes:
            hits = total = 0
            for seed in seeds:
                shapes = ("rewards",) if rl else ("power law", "step decay", "converged")
                for shape in shapes:
                    values = sound_rl(seed) if rl else sound(seed, shape)
                    at = int(0.6 * len(values["loss"]))
                    put(values, at, size, np.random.default_rng((seed, 7)))
                    hits += kind in kinds(values, len(values["loss"]), PLANNED, rl)
                    total += 1
            yield name, kind, size, hits, total


def corpus_alarms(folder: Path, cuts: int = 20) -> tuple[Counter[str], int, int]:
    """Sound logs with a false alarm by kind, how many logs, at how many moments in all."""
    by_kind, logs, seen = Counter[str](), 0, 0
    for line in (folder / "manifest.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["labels"].get("fault") not in (None, "none"):
            continue
        found: set[str] = set()
        with tempfile.TemporaryDirectory() as place:
            for _, copy in moments(folder / entry["file"], cuts, Path(place)):
                found.update(loud([copy])[0])
                seen += 1
        by_kind.update(found)
        logs += 1
    return by_kind, logs, seen


def main() -> None:
    """Measure, print, and keep the figures where told to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("corpus", nargs="?", type=Path)
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--write", type=Path, help="JSON file for the figures")
    given = parser.parse_args()
    seeds = range(given.seeds)
    by_kind, by_shape, runs = false_alarms(seeds)
    for text, count in sorted(by_shape.items()):
        print(f"  {text}: {count}")
    named = list(recall(range(max(4, given.seeds // 3))))
    of_logs, logs, seen = corpus_alarms(given.corpus) if given.corpus else (Counter[str](), 0, 0)
    figures: dict[str, Any] = {
        "command": COMMAND,
        "sound_runs": runs,
        "looks_per_run": CUTS,
        "sound_logs": logs,
        "looks_at_logs": seen,
        "kinds": {},
    }
    for kind in sorted({*by_kind, *of_logs, *(one[1] for one in named)}):
        hits, total = by_kind[kind] + of_logs[kind], runs + logs
        low, high = interval(hits, total)
        figures["kinds"][kind] = {
            "alarms": hits,
            "of_runs": total,
            "rate": round(hits / total, 5),
            "interval": [round(low, 5), round(high, 5)],
            "recall": {
                f"{name}, size {size:g}": f"{right} of {of}"
                for name, its, size, right, of in named
                if its == kind
            },
        }
        print(f"{kind}: {hits} of {total} sound runs ({low:.4f} to {high:.4f})")
        for text, share in figures["kinds"][kind]["recall"].items():
            print(f"    {text}: {share}")
    if given.write:
        given.write.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
