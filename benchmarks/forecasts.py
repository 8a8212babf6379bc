"""How well forecasts know their error: `python benchmarks/forecasts.py CORPUS [--cuts 10]`.

Each log of a corpus (a folder with `manifest.jsonl`) is cut at `--cuts` moments. At each but the
last, every metric read so far is forecast for the step at which the next cut shows it, at the
levels 0.5 and 0.9, and compared with the value printed there. Two peers forecast the same from the
same points: the last value, and a line through the last tenth; the width of either comes from its
own errors at earlier points of the series, as far ahead, so that none is punished for having no
error of its own.

Printed by kind of quantity: how many forecasts, the share that each interval held, and the median
over each run's metrics of the mean interval score (T. Gneiting and A. E. Raftery, "Strictly proper
scoring rules, prediction, and estimation", JASA 102, 2007; lower is better) over that of each peer.
Runs are halved by a hash of their name: what is tuned on one half is judged on the other.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainwarden.analysts.rules.history import History
from trainwarden.analysts.rules.predict import is_share, may_be_negative
from trainwarden.analysts.rules.rates import rate_at
from trainwarden.evidence.log_readings import read_log
from trainwarden.metrics.forecast import Interval, current, forecast, printed_precision
from trainwarden.metrics.indicator import is_reinforcement
from trainwarden.metrics.pace import (
    PRINTED_SPREAD,
    forecast_step,
    printed_looks,
    step_rate,
    time_to_finish,
)
from trainwarden.metrics.reading import Reading
from trainwarden.procedure.replay import cut_points
from trainwarden.records.facts import TrainingFacts

LEVELS = (0.5, 0.9)
KINDS = {
    "loss": "loss",
    "learning_rate": "learning rate",
    "tokens_per_second": "throughput",
    "samples_per_second": "throughput",
    "steps_per_second": "throughput",
    "step_time": "throughput",
}
"""What a metric's name is counted as; those of evaluations are one kind, others are left out."""
LEAST = 2
"""Points that a series must have before it is forecast."""


@dataclass(frozen=True)
class Made:
    """One forecast at one level, and what came of it."""

    run: str
    name: str
    """The metric's name."""
    level: float
    held: bool
    score: float
    last: float
    """The score of the last value as a forecast."""
    line: float
    """The score of a line through the last tenth."""

    @property
    def kind(self) -> str:
        """What the metric is counted as."""
        return "evaluation" if self.name.startswith("eval_") else KINDS.get(self.name, self.name)


def interval_score(low: float, high: float, value: float, level: float) -> float:
    """Width, and what missing costs: 2/alpha times the distance (Gneiting and Raftery, eq. 43)."""
    alpha = 1 - level
    return (high - low) + 2 / alpha * (max(0.0, low - value) + max(0.0, value - high))


def by_last(x: Any, y: Any, at: float) -> float:  # noqa: ARG001
    """The last value again."""
    return float(y[-1])


def by_line(x: Any, y: Any, at: float) -> float:
    """A least-squares line through the last tenth (three points at the least)."""
    count = max(3, math.ceil(len(x) / 10))
    xs, ys = x[-count:], y[-count:]
    if len(xs) < 2 or float(np.ptp(xs)) == 0:
        return float(y[-1])
    slope, height = np.polyfit(xs - xs[-1], ys, 1)
    return float(height + slope * (at - xs[-1]))


def by_pace(x: Any, y: Any, at: float) -> float:
    """On at the pace between the last two points."""
    gap = x[-1] - x[-2] if len(x) > 1 else 0.0
    return float(y[-1] + (at - x[-1]) * (y[-1] - y[-2]) / gap) if gap > 0 else float(y[-1])


def peer(predict: Any, x: Any, y: Any, at: float, level: float) -> tuple[float, float]:
    """A peer's interval: its forecast, as wide as its own errors at up to 40 earlier origins were.

    An origin's target lies as many steps ahead as `at` does, and as few as there are where the
    past is shorter than that.
    """
    ahead = at - x[-1]
    origins = np.unique(np.linspace(1, len(x) - 1, min(40, len(x) - 1)).astype(int))
    errors = []
    for end in origins:
        target = min(int(np.searchsorted(x, x[end - 1] + ahead)), len(x) - 1)
        if target >= end:
            errors.append(abs(y[target] - predict(x[:end], y[:end], float(x[target]))))
    said = predict(x, y, at)
    half = float(np.quantile(errors, level)) if errors else 0.0
    half = max(half, 0.5 * printed_precision(y[-20:]), 1e-9 * abs(said))
    return said - half, said + half


def expected(before: Reading, name: str, at: float, level: float) -> Interval | None:
    """The forecast as the built-in rules make it, the step of the next look being known."""
    facts = TrainingFacts()
    if name == "learning_rate":
        return rate_at(History((before,), facts), facts, Interval(at, at, at, ""), level)
    series = before.series[name]
    signed = may_be_negative(series, is_reinforcement(before.series, None))
    return forecast(series.finite(), at, level, signed=signed, share=is_share(name))


def judged(run: str, name: str, before: Reading, after: Reading) -> Iterator[Made]:
    """The forecasts of one metric from one cut to the next."""
    series, later = before.series[name], after.series[name]
    points = series.finite()
    x, y = current(points)
    if len(x) < LEAST or not later.finite():
        return
    due = later.finite()[-1]
    if due.step <= x[-1]:
        return
    if len(x) > 2000:
        kept = np.unique(np.append(np.linspace(0, len(x) - 1, 1500).astype(int), len(x) - 1))
        x, y = x[kept], y[kept]
    for level in LEVELS:
        said = expected(before, name, due.step, level)
        if said is None:
            continue
        others = [peer(predict, x, y, due.step, level) for predict in (by_last, by_line)]
        yield Made(
            run,
            name,
            level,
            said.low <= due.value <= said.high,
            interval_score(said.low, said.high, due.value, level),
            *(interval_score(*other, due.value, level) for other in others),
        )


def paced(run: str, readings: list[Reading]) -> Iterator[Made]:
    """Where a run is at the next cut's moment, and how long it takes to its last step.

    Times are those of the log's own step times, so that any log that has them counts.
    """
    whole = readings[-1].series.get("step_time")
    if whole is None or len(whole.finite()) < 20:
        return
    x, y = current(whole.finite())
    clock = np.append(0.0, np.cumsum(np.diff(x) * y[1:]))
    for before, after in itertools.pairwise(readings):
        series = before.series.get("step_time")
        if series is None or not series.finite() or not after.series["step_time"].finite():
            continue
        past = x <= series.finite()[-1].step
        end = min(int(np.searchsorted(x, after.series["step_time"].finite()[-1].step)), len(x) - 1)
        now = int(past.sum()) - 1
        if now < 4 or end <= now:
            continue
        xs, times = x[past], clock[past]
        for level in LEVELS:
            looks = printed_looks([*zip(xs, y[past], strict=True)])
            rate = step_rate(looks, level, PRINTED_SPREAD)
            if rate is None:
                continue
            # The pace of the last line, and of the last tenth, each as uncertain as it was so far.
            step = forecast_step([(0.0, xs[-1])], clock[end] - clock[now], None, 0.0, rate)
            left = time_to_finish(rate, xs[-1], x[-1])
            for name, said, truth, past_x, past_y, at in (
                ("step", step, x[end], times, xs, clock[end]),
                ("time to finish", left, clock[-1] - clock[now], xs, times, x[-1]),
            ):
                if said is None:
                    continue
                shift = past_y[-1] if name == "time to finish" else 0.0
                others = [peer(by, past_x, past_y, at, level) for by in (by_pace, by_line)]
                yield Made(
                    run,
                    name,
                    level,
                    bool(said.low <= truth <= said.high),
                    interval_score(said.low, said.high, truth, level),
                    *(interval_score(*other, truth + shift, level) for other in others),
                )


def replayed(log: Path, cuts: int) -> Iterator[Made]:
    """Every forecast of a log that grows from cut to cut."""
    data = log.read_bytes()
    before: Reading | None = None
    readings: list[Reading] = []
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / log.name
        for end in cut_points(log, cuts):
            copy.write_bytes(data[:end])
            after = read_log(copy)
            if before is not None and before.runs == after.runs:
                for name in before.series.keys() & after.series.keys():
                    if name not in KINDS and not name.startswith("eval_"):
                        continue
                    yield from judged(log.name, name, before, after)
            before = after
            readings.append(after)
    yield from paced(log.name, readings)


def ratio(made: list[Made], other: str) -> float:
    """Median over metrics of runs: summed score over a peer's; NaN without any."""
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for one in made:
        total = sums[one.run, one.name]
        total[0] += one.score
        total[1] += getattr(one, other)
    ratios = [own / theirs for own, theirs in sums.values() if theirs > 0]
    return statistics.median(ratios) if ratios else math.nan


def rows(made: list[Made]) -> Iterator[tuple[str, str]]:
    """A line for each kind and for all of them."""
    for kind in (*sorted({one.kind for one in made}), "all"):
        chosen = [one for one in made if kind in ("all", one.kind)]
        cells = []
        for level in LEVELS:
            those = [one for one in chosen if one.level == level]
            held = statistics.fmean(one.held for one in those) if those else math.nan
            cells.append(f"{held:6.1%} {ratio(those, 'last'):6.2f} {ratio(those, 'line'):6.2f}")
        yield kind, f"{len(chosen) // len(LEVELS):6d}  " + "   ".join(cells)


def main() -> None:
    """Replay the corpus, print the table for each half and for the whole."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("corpus", type=Path, help="folder of logs with manifest.jsonl")
    parser.add_argument("--cuts", type=int, default=10)
    given = parser.parse_args()
    made: list[Made] = []
    for line in (given.corpus / "manifest.jsonl").read_text().splitlines():
        made += replayed(given.corpus / json.loads(line)["file"], given.cuts)
    halves: dict[str, list[Made]] = {"first half": [], "second half": [], "whole": made}
    for one in made:
        halves["second half" if zlib.crc32(one.run.encode()) % 2 else "first half"].append(one)
    title = "".join(f"   held {level:.0%}  /last  /line" for level in LEVELS)
    for half, chosen in halves.items():
        print(f"{half}, {len({one.run for one in chosen})} runs\n{'':14s}     n{title}")
        for kind, text in rows(chosen):
            print(f"{kind:14s}{text}")


if __name__ == "__main__":
    main()
