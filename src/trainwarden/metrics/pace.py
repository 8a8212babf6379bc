"""How fast a run goes: steps a second, the step at a moment, and the time until its end."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from trainwarden.metrics.forecast import Interval, current
from trainwarden.metrics.trend import Pairs, t_quantile

PRIOR_SPREAD = 0.12
"""Relative spread of a run's rate from check to check where nothing is known of it: a rule of
thumb, given the weight of two observations."""
PRINTED_SPREAD = 0.01
"""The same for a log's own step times, which leave out what comes between the steps."""
LOOKS = 8
"""Moments that a log's own step times are gathered into."""


@dataclass(frozen=True)
class Rate:
    """Steps a second."""

    low: float
    high: float
    center: float
    pairs: int
    """Pairs of looks that it rests on."""


def step_rate(rows: Pairs, level: float = 0.9, prior: float = PRIOR_SPREAD) -> Rate | None:
    """Steps a second over the next while, from looks (unix seconds, step) in order of time.

    The spread is that of the rates between successive looks, pauses for evaluation and
    checkpoints included, joined with the `prior` one. None where no two looks show any progress.
    """
    looks: list[tuple[float, float]] = []
    for time, step in ((row[0], row[1]) for row in rows):
        while looks and step < looks[-1][1]:
            looks.pop()
        if not looks or time > looks[-1][0]:
            looks.append((time, step))
    rates = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(looks)]
    if not rates:
        return None
    moving = [rate for rate in rates if rate > 0][-8:]
    if not moving:
        return None
    # The latest look weighs most: what slowed down stays slow until seen otherwise.
    weights = [2.0 ** (index - len(moving)) for index in range(len(moving))]
    middle = sum(w * math.log(r) for w, r in zip(weights, moving, strict=True)) / sum(weights)
    squares = [math.log(b / a) ** 2 for a, b in itertools.pairwise(moving)]
    spread = math.sqrt((2 * prior**2 + sum(squares)) / (2 + len(squares)))
    reach = t_quantile(level, 2 + len(squares)) * spread
    # Pauses and ends slow a run down; nothing speeds it up so much.
    low = 0.0 if rates[-1] == 0 else math.exp(middle - 1.5 * reach)
    return Rate(low, math.exp(middle + reach), math.exp(middle), len(rates))


def forecast_step(
    rows: Pairs,
    now: float,
    total: float | None = None,
    cadence: float = 1.0,
    rate: Rate | None = None,
    level: float = 0.9,
) -> Interval | None:
    """The last printed step at the moment `now`, for a run that goes on.

    `rows` are looks (unix seconds, step), `cadence` the steps between printed lines, `total` the
    planned length, never exceeded; `rate` stands in where fewer than two looks were made. None
    without a look or a rate.
    """
    rate = step_rate(rows, level) or rate
    if not rows or rate is None:
        return None
    then, step = rows[-1][0], rows[-1][1]
    elapsed = max(0.0, now - then)
    low = max(step, step + rate.low * elapsed - cadence)
    high = step + rate.high * elapsed + cadence
    center = step + rate.center * elapsed
    basis = (
        f"step {step:g} then, {rate.low:.3g} to {rate.high:.3g} steps/s "
        f"over {elapsed:.0f} s ({rate.pairs} intervals between looks)"
    )
    if total is not None and total >= step:
        # Counting from 0, or every so many steps, the last line printed is short of the total.
        low = min(low, max(step, total - cadence - 1))
        high, center = min(high, total), min(center, total)
        basis += f", at most {total:g} planned"
    return Interval(low, high, center, basis)


def printed_looks(step_times: Pairs, count: int = LOOKS) -> list[tuple[float, float]]:
    """(seconds since the first, step) at `count` moments, from (step, seconds a step, …).

    Only the latter half of the points counts: the first steps compile and warm caches up. Empty
    where there are fewer than four of them.
    """
    x, y = current(step_times)
    x, y = x[len(x) // 2 :], y[len(y) // 2 :]
    if len(x) < 4:
        return []
    times = list(
        itertools.accumulate(
            max(0.0, float(v)) * g for v, g in zip(y[1:], x[1:] - x[:-1], strict=True)
        )
    )
    rows = [(0.0, float(x[0])), *zip(times, map(float, x[1:]), strict=True)]
    kept = {round(k * (len(rows) - 1) / count) for k in range(count + 1)}
    return [rows[k] for k in sorted(kept)]


def time_to_finish(rate: Rate, step: float, total: float) -> Interval | None:
    """Seconds from `step` to `total` at a pace; None where it may not move at all."""
    left = total - step
    if left < 0 or rate.low <= 0:
        return None
    basis = (
        f"{left:g} steps at {rate.low:.3g} to {rate.high:.3g} steps/s "
        f"({rate.pairs} intervals between looks)"
    )
    return Interval(left / rate.high, left / rate.low, left / rate.center, basis)
