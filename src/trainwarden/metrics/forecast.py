"""What will be seen next: intervals for a metric at a later step.

A forecast here is judged before it is made: each of a handful of simple predictors (last level,
lines and logarithmic curves over shorter and longer pasts) is asked, at many earlier points of
the series' own history, for what was then still to come at the same relative distance
(rolling-origin evaluation, as in R. Hyndman and G. Athanasopoulos, "Forecasting: principles and
practice", ch. 5.10). Their mixture, weighted by how well each did, gives the centre; the quantile
of the mixture's own errors, raised for the few independent origins there are (as in split
conformal prediction) and joined with the predictors' disagreement, gives the width. A short
history's width comes from the differences of values as far apart, as Student's t has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from trainwarden.metrics.trend import Pairs, _arrays, inflation, t_quantile

if TYPE_CHECKING:
    from trainwarden.metrics.trend import Array

PREDICTORS = (
    ("level", 0.02),
    ("level", 0.1),
    ("level", 0.4),
    ("line", 0.2),
    ("line", 0.6),
    ("log", 0.5),
    ("log", 0.9),
    ("damped", 0.3),
)
"""Kind, and the share of the past (by count) that it looks at."""
ORIGINS = 24
BLOCKS = 24
"""Longer windows are gathered into so many blocks before a line is fitted."""
LEAST = 9
"""Fewer equal values (or shares) than this do not show at nine tenths that they stay so."""
FEW_ORIGINS = 14
"""With fewer back-tests than this, differences of values as far apart count, too."""
PRIOR_CHANGE = 0.05
"""Relative change to the next look where nothing is known of it: a rule of thumb, given the weight
of `PRIOR_WEIGHT` observations: small, for most metrics move little, and heavy in its tails, for
some leap."""
PRIOR_WEIGHT = 1.0
LEAST_CHANGE = 0.001
"""No interval of nine tenths is narrower than this share of the value on either side."""


@dataclass(frozen=True)
class Interval:
    """Where a value is expected, and why."""

    low: float
    high: float
    center: float
    basis: str

    @property
    def width(self) -> float:
        """`high` minus `low`."""
        return self.high - self.low


def printed_precision(values: Iterable[float]) -> float:
    """The unit of the last decimal place that the finest of `values` shows."""

    def unit(value: float) -> float:
        mantissa, _, exponent = repr(float(value)).partition("e")
        decimals = mantissa.partition(".")[2]
        return 10.0 ** (int(exponent or 0) - (0 if decimals == "0" else len(decimals)))

    # A zero looks the same however it is printed.
    return min((unit(value) for value in values if math.isfinite(value) and value), default=1e-12)


def current(points: Pairs) -> tuple[Array, Array]:
    """Steps and values of the finite points that no later one supersedes, steps rising.

    A run resumed from an earlier checkpoint prints steps again: the later ones count.
    """
    import numpy as np

    x, y = _arrays(points)
    if not len(x):
        return x, y
    coming = np.minimum.accumulate(x[::-1])[::-1]
    kept = np.append(x[:-1] < coming[1:], True)
    return x[kept], y[kept]


@lru_cache(maxsize=64)
def _pairs(n: int) -> tuple[Any, Any]:
    import numpy as np

    return np.triu_indices(n, 1)


def _median(values: Array) -> float:
    """The median, without the overhead of numpy's own on short arrays."""
    import numpy as np

    ordered = np.sort(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    return float(ordered[middle - 1] + ordered[middle]) / 2


def _predict(kind: str, share: float, x: Array, y: Array, at: float) -> float:
    """What one predictor says of `at` from the past `x`, `y`."""
    import numpy as np

    n = len(x)
    window = max(1 if kind == "level" else 3, math.ceil(share * n))
    if kind == "level" or n < 4:
        return _median(y[-(window if kind == "level" else 3) :])
    xs, ys = x[-window:], y[-window:]
    if (size := window // BLOCKS) > 1:
        xs = xs[-size * BLOCKS :].reshape(BLOCKS, size).mean(axis=1)
        ys = np.median(ys[-size * BLOCKS :].reshape(BLOCKS, size), axis=1)
    elif window > BLOCKS:
        xs, ys = xs[window % 2 :: 2], ys[window % 2 :: 2]
    if kind == "log":
        xs, at = np.log(xs), math.log(at)
    i, j = _pairs(len(xs))
    slope = _median((ys[j] - ys[i]) / (xs[j] - xs[i]))
    if kind == "damped":
        # Half of the recent slope, from the latest level.
        return _median(y[-max(1, window // 3) :]) + 0.5 * slope * (at - float(xs[-1]))
    return _median(ys - slope * xs) + slope * at


def _backtest(x: Array, y: Array, ratio: float) -> tuple[Array, Array, int]:
    """Errors of each predictor (row) at earlier origins, their weights, the number of origins.

    `ratio` is how many times farther from the start the target is than the origin. Several
    points around each target count, since one noisy value tells little.
    """
    import numpy as np

    n = len(x)
    first = max(4, int(np.searchsorted(x, 0.06 * x[-1])))
    last = min(int(np.searchsorted(x, x[-1] / ratio, side="right")) - 1, n - 2)
    if last < first:
        return np.empty((len(PREDICTORS), 0)), np.empty(0), 0
    if ratio > 1.3:
        spaced = np.geomspace(first, last, ORIGINS)
    else:
        spaced = np.linspace(max(first, 0.15 * last), last, ORIGINS)
    origins = np.unique(np.round(spaced).astype(int))
    errors: list[list[float]] = [[] for _ in PREDICTORS]
    weights: list[float] = []
    for origin in origins:
        target = int(np.clip(np.searchsorted(x, x[origin] * ratio), origin + 1, n - 1))
        reach = max(1, (target - origin) // 6)
        around = np.arange(max(origin + 1, target - reach), min(n, target + reach + 1))
        if len(around) > 5:
            around = around[np.linspace(0, len(around) - 1, 5).astype(int)]
        for row, (kind, share) in zip(errors, PREDICTORS, strict=True):
            said = _predict(kind, share, x[: origin + 1], y[: origin + 1], float(x[target]))
            row.extend(float(value) - said for value in y[around])
        # The latest origins say most of what is to come: noise and slopes change over a run.
        near = (float(x[origin]) * ratio / float(x[-1])) ** 3
        weights += [near / len(around)] * len(around)
    return np.array(errors), np.array(weights), len(origins)


def _by_lag(x: Array, y: Array, at: float, level: float, unit: float) -> float:
    """How far the value at `at` may lie from the last one, by what values as far apart did.

    Early values count less. `unit` is the size of `y` that `PRIOR_CHANGE` is a share of.
    """
    import numpy as np

    spread, weight = PRIOR_CHANGE * unit, PRIOR_WEIGHT
    if len(x) > 1:
        ahead = max(1.0, (at - float(x[-1])) / float(np.median(np.diff(x))))
        lag = int(min(ahead, max(1, len(x) // 2)))
        moved = np.abs(y[lag:] - y[:-lag])
        weights = 0.8 ** np.arange(len(moved))[::-1]
        total = float(weights.sum())
        # 1.25 times the mean deviation is the standard deviation of a normal distribution.
        seen = 1.25 * float(weights @ moved) / total * min(ahead / lag, 4) ** 0.25
        spread = math.hypot(math.sqrt(weight) * spread, math.sqrt(total) * seen)
        weight += total
        spread /= math.sqrt(weight)
    return t_quantile(level, weight) * spread


def _reach(level: float) -> float:
    """The level's quantile of a normal distribution over that of nine tenths."""
    return t_quantile(level, 1e6) / 1.6449


def _interval(x: Array, y: Array, at: float, level: float, unit: float | None) -> Interval:
    """The forecast on the scale of `y`, `x` counted from the run's start; `unit` as in `_by_lag`.

    Without `unit`, the size of the values is.
    """
    import numpy as np

    ratio = at / float(x[-1])
    errors, weights, origins = _backtest(x, y, ratio)
    few = 0.0
    if origins < FEW_ORIGINS:
        few = _by_lag(x, y, at, level, float(np.abs(y).mean()) if unit is None else unit)
    if origins < 3:
        center, half = float(y[-1]), few
        basis = f"last value, wide for want of history ({len(y)} points): partly a rule of thumb"
    else:
        score = np.abs(errors) @ weights / weights.sum()
        share = 1 / (score + 0.02 * score.min() + 1e-15) ** 3
        share /= share.sum()
        said = np.array([_predict(kind, part, x, y, at) for kind, part in PREDICTORS])
        center = float(share @ said)
        disagreement = math.sqrt(float(share @ (said - center) ** 2))
        missed = np.abs(share @ errors)
        order = np.argsort(missed)
        mass = np.cumsum(weights[order]) / weights.sum()
        effective = float(weights.sum() ** 2 / (weights**2).sum())
        rank = min(1.0, level + level * (0.2 * (1 - level) + 0.5 / effective))
        at_rank = min(int(np.searchsorted(mass, rank)), len(missed) - 1)
        # Errors of one sign for many origins in a row are worth few independent ones.
        independent = max(1.0, len(missed) / inflation(share @ errors, 1))
        half = float(missed[order][at_rank]) * (1 + 1 / math.sqrt(min(independent, origins)))
        # A share of the run's range at the least: noiseless curves bend, too.
        reach = _reach(level)
        half = max(math.hypot(half, 1.3 * reach * disagreement), 0.004 * reach * float(np.ptp(y)))
        trust = min(1.0, origins / FEW_ORIGINS)
        half = trust * half + (1 - trust) * few
        kind, part = PREDICTORS[int(np.argmin(score))]
        basis = (
            f"own history of {len(y)} points, mostly {kind} over its last {part:.0%}; width from "
            f"{origins} back-tests at {ratio:.3g} times the distance"
        )
    least = LEAST_CHANGE * _reach(level) * (abs(center) if unit is None else unit)
    half = max(half, least, math.ulp(center))  # the smallest numbers have no share
    return Interval(center - half, center + half, center, basis)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))


def forecast(
    points: Pairs,
    at_step: float,
    level: float = 0.9,
    *,
    signed: bool = False,
    share: bool = False,
) -> Interval | None:
    """Where the metric's value printed at about `at_step` should be, with probability `level`.

    `points` are (step, value, …) in order of arrival; NaN and infinities are left out. The result
    is for a single observed value, noise included, and is never without width. What was never
    negative is not expected to become so, unless it is `signed`; what was always positive is also
    looked at on a log scale, and that counts where it
    is clearly narrower, or where zero would be reached. A `share` stays between 0 and 1.
    An `at_step` at or before the last step means the next value. None where there is no finite
    point.
    """
    import numpy as np

    x, y = current(points)
    n = len(x)
    if n == 0:
        return None
    if n > 600:
        thinned = np.arange(0, n, n // 400 + 1)
        kept = np.unique(np.concatenate([thinned, np.arange(n - 100, n)]))
        x, y = x[kept], y[kept]
    last = float(y[-1])
    precision = 0.5 * printed_precision(y[-20:])
    if n >= 3 and float(np.ptp(y)) == 0:
        size = abs(last)
        half = 0.02 * _reach(level) * size if n < LEAST else min(0.001 * size, precision)
        half = half or precision or math.ulp(last)
        return Interval(last - half, last + half, last, f"constant over {n} points")
    gap = float(np.median(np.diff(x))) if n > 1 else 1.0
    # Distances are relative to the run's length so far, counted from one gap before its start.
    start = float(x[0]) - gap
    x, at = x - start, max(at_step, float(x[-1]) + min(gap, 1.0)) - start
    lowest = -math.inf if signed or float(y.min()) < 0 else 0.0
    share = share and lowest == 0 and float(y.max()) <= 1
    highest = 1.0 if share else math.inf
    found = _interval(x, y, at, level, 1.0 if share else None)
    # The few first values of an accuracy may be next to nothing: no factor tells what follows.
    if lowest == 0 and float(y.min()) > 0 and not (share and n < LEAST):
        log = _interval(x, np.log(y), at, level, 1.0)
        low, high, center = (_exp(bound) for bound in (log.low, log.high, log.center))
        # Near zero an even interval on the plain scale would go below it and be cut off.
        if 0 < high - low < (1.3 if found.low <= 0 else 0.9) * (found.high - max(found.low, 0.0)):
            found = Interval(low, high, center, log.basis + ", on a log scale")
    center = min(max(found.center, lowest), highest)
    # Rounded values lie up to half a digit off.
    low = max(min(found.low, center - precision), lowest)
    high = min(max(found.high, center + precision), highest)
    return Interval(low, high, center, found.basis)
