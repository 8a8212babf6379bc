"""Whether a metric moves: Mann-Kendall made safe for autocorrelated noise, and Theil-Sen slopes.

Values of a training log are not independent: a plain Mann-Kendall test calls slow wandering a
trend far more often than its level says. The variance of its statistic is therefore inflated by
the autocorrelation of the detrended ranks (K. H. Hamed and A. R. Rao, "A modified Mann-Kendall
trend test for autocorrelated data", J. Hydrology 204, 1998), taken as the largest of three
estimates, and the result is judged by a t distribution with the effective sample size. Where a
curve is smooth, what a fitted line leaves looks like wandering and hides even a plain fall; a sign
test of the differences of a few blocks, which holds for anything from white noise to a random
walk, therefore gets two fifths of the level, and one of the unbroken run that a curve opens with
the last fifth. On stationary AR(1) noise with coefficients up to 0.9 the false-positive rate stays
below `alpha` (measured by the tests).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Pairs = Sequence[Sequence[float]]
"""Points as (step, value, …) in order; what follows the value is ignored."""

BLOCKS = 400
"""More points than this are gathered into so many blocks: bounds the cost of all pairs."""
LEAST = 8
"""Fewer points than this decide nothing."""
COARSE = 16
"""Blocks of the sign test."""


@dataclass(frozen=True)
class Kendall:
    """The Mann-Kendall statistic `s`, its inflated variance, and what they say."""

    s: float
    variance: float
    inflation: float
    """Variance over that of independent values; at least 1."""
    effective_n: float
    p_value: float
    """Two-sided."""


@dataclass(frozen=True)
class Slope:
    """Theil-Sen slope in units a step, its confidence interval, and the line's height at 0."""

    slope: float
    low: float
    high: float
    intercept: float


@dataclass(frozen=True)
class Trend:
    """Whether and how fast a metric moves."""

    direction: Literal[-1, 0, 1]
    """-1 falls, +1 rises, 0 where no trend was shown at `alpha`."""
    p_value: float
    slope: float
    """Units a step (Theil-Sen)."""
    slope_low: float
    slope_high: float
    """Bounds of the slope's (1 - alpha) interval."""
    n: int
    """Finite points given."""
    effective_n: float
    """Independent points that they are worth."""
    alpha: float
    detectable: float
    """Smallest absolute slope that would have been seen with a probability of about 0.8."""
    span: float
    """Steps from the first to the last point."""


@dataclass(frozen=True)
class Progress:
    """Whether a metric improves, and what the test could have seen."""

    verdict: Literal["yes", "no", "against", "undecided"]
    """`no` means that no trend was found, `against` that it moves the wrong way."""
    trend: Trend | None
    remark: str


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularized incomplete beta function by Lentz's continued fraction (Numerical Recipes)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    total = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            total *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return front * total / a


def t_two_sided(t: float, dof: float) -> float:
    """P(|T| > |t|) of Student's t with `dof` degrees of freedom (any positive number)."""
    return _incomplete_beta(dof / 2, 0.5, dof / (dof + t * t))


def t_quantile(level: float, dof: float) -> float:
    """The t with P(|T| <= t) = `level`."""
    low, high = 0.0, 1.0
    while t_two_sided(high, dof) > 1 - level and high < 1e9:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_two_sided(middle, dof) > 1 - level else (low, middle)
    return high


def _arrays(points: Pairs) -> tuple[Array, Array]:
    import numpy as np

    table = np.array([(point[0], point[1]) for point in points], dtype=float).reshape(-1, 2)
    table = table[np.isfinite(table).all(axis=1)]
    return table[:, 0], table[:, 1]


def ranks(values: Array) -> Array:
    """Ranks from 1, ties sharing their mean."""
    import numpy as np

    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle = ends - (counts - 1) / 2
    return np.asarray(middle[inverse.reshape(-1)], dtype=float)


def autocorrelation(values: Array, lags: int) -> Array:
    """Sample autocorrelation at lags 1 to `lags`; zeros for a constant series."""
    import numpy as np

    centred = values - values.mean()
    power = float(centred @ centred)
    if power <= 0:
        return np.zeros(lags)
    return np.array([float(centred[lag:] @ centred[:-lag]) / power for lag in range(1, lags + 1)])


def inflation(residuals: Array, fitted: int = 2) -> float:
    """By how much autocorrelation inflates the variance of a mean or trend; at least 1.

    The largest of three estimates, each of which is too small somewhere: Hamed and Rao's sum over
    the significant lags, the sum over the initial positive lags (long weak memory), and that of a
    first-order process whose coefficient is corrected for the bias that fitting `fitted`
    parameters leaves in short series.
    """
    import numpy as np

    n = len(residuals)
    if n < 4:
        return 1.0
    lags = max(1, n // 4)
    rho = autocorrelation(ranks(residuals), lags)
    lag = np.arange(1, lags + 1)
    weight = (n - lag) * (n - lag - 1) * (n - lag - 2) / (n * (n - 1.0) * (n - 2.0))
    significant = np.abs(rho) > 1.96 / math.sqrt(n)
    hamed_rao = 1 + 2 * float((weight * rho)[significant].sum())
    negative = np.flatnonzero(rho <= 0)
    initial = 1 + 2 * float(rho[: negative[0] if len(negative) else lags].sum())
    phi = (float(rho[0]) + fitted / n) / (1 - 2 * fitted / n) if n > 2 * fitted + 1 else 1.0
    # One standard error more, since an underestimated coefficient is what makes false alarms.
    phi += math.sqrt(max(0.0, 1 - phi * phi) / n) if significant[0] or n < 64 else 0.0
    phi = min(max(phi, 0.0), 1 - 2 / n)
    # The finite sum of a first-order process, as in Bayley and Hammersley's effective number.
    first_order = 1 + 2 * float((weight * phi**lag).sum()) if phi < 0.5 else (1 + phi) / (1 - phi)
    return max(1.0, hamed_rao, initial, first_order)


def theil_sen(steps: Sequence[float], values: Sequence[float], alpha: float = 0.05) -> Slope:
    """Median of all pairwise slopes, with Sen's (1 - alpha) interval for independent noise.

    Raises ValueError where no two points differ in step. Cost is quadratic: gather long series
    into blocks first, as `trend` does.
    """
    import numpy as np

    x, y = np.asarray(steps, dtype=float), np.asarray(values, dtype=float)
    kendall = mann_kendall(y, correct=False)
    return _slope(x, y, kendall.variance, alpha, math.inf)


def _slope(x: Array, y: Array, variance: float, alpha: float, dof: float) -> Slope:
    import numpy as np

    i, j = np.triu_indices(len(x), 1)
    run = x[j] - x[i]
    apart = run != 0
    if not apart.any():
        raise ValueError("a slope needs points at different steps")
    slopes = np.sort((y[j] - y[i])[apart] / run[apart])
    slope = float(np.median(slopes))
    reach = t_quantile(1 - alpha, min(dof, 1e6)) * math.sqrt(variance)
    low = int(max(0, math.floor((len(slopes) - reach) / 2)))
    high = int(min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2)))
    return Slope(slope, float(slopes[low]), float(slopes[high]), float(np.median(y - slope * x)))


def _detrended(y: Array) -> Array:
    """What the best of a few monotonic curves leaves, each fitted by the median of its slopes.

    Losses fall steeply, then slowly: against a straight line alone a smooth curve would leave
    residuals as correlated as those of a random walk.
    """
    import numpy as np

    n = len(y)
    position = np.arange(1, n + 1, dtype=float)
    i, j = np.triu_indices(n, 1)
    rise = y[j] - y[i]
    best, least = y, math.inf
    bends = (np.sqrt(position), np.log(position), -1 / position)
    falls = (-np.exp(-rate * position / n) for rate in (4, 12))
    for x in (position, *bends, *falls):
        residuals = y - float(np.median(rise / (x[j] - x[i]))) * x
        spread = float(np.abs(residuals - np.median(residuals)).mean())
        if spread < least:
            best, least = residuals, spread
    return best


def sign_test(values: Sequence[float] | Array) -> float:
    """Two-sided p-value of the signs of successive differences (exact binomial; ties left out).

    It holds for a random walk without drift and, more than needed, for anything less persistent.
    """
    import numpy as np

    rises = np.sign(np.diff(np.asarray(values, dtype=float)))
    n = int((rises != 0).sum())
    extreme = max(int((rises > 0).sum()), int((rises < 0).sum()))
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(extreme, n + 1)) / 2.0**n)


def opening_run(values: Sequence[float] | Array, way: float) -> float:
    """Two-sided p-value of how many differences from the first on have the sign of `way`.

    As the sign test it holds for a random walk and anything less persistent; it sees a curve that
    falls steeply and then lies flat, whose later differences are noise.
    """
    import numpy as np

    if not way:
        return 1.0
    against = np.flatnonzero(np.sign(np.diff(np.asarray(values, dtype=float))) != np.sign(way))
    run = int(against[0]) if len(against) else len(values) - 1
    return min(1.0, 2.0 ** (1 - run))


def mann_kendall(values: Sequence[float] | Array, correct: bool = True) -> Kendall:
    """The Mann-Kendall test of values in order (at most some hundreds: cost is quadratic).

    With `correct`, the variance is inflated by the autocorrelation of the detrended values.
    """
    import numpy as np

    y = np.asarray(values, dtype=float)
    n = len(y)
    if n < 3:
        return Kendall(0.0, 0.0, 1.0, float(n), 1.0)
    s = float(np.sign(y[None, :] - y[:, None])[np.triu_indices(n, 1)].sum())
    _, ties = np.unique(y, return_counts=True)
    tied = float((ties * (ties - 1.0) * (2.0 * ties + 5)).sum())
    variance = (n * (n - 1.0) * (2.0 * n + 5) - tied) / 18
    factor = 1.0
    if correct:
        factor = inflation(_detrended(y), 3)
    effective = n / factor
    variance *= factor
    if variance <= 0:
        return Kendall(s, 0.0, factor, effective, 1.0)
    z = max(0.0, abs(s) - 1) / math.sqrt(variance)
    return Kendall(s, variance, factor, effective, t_two_sided(z, max(effective - 2, 1.0)))


def blocks(points: Pairs, most: int = BLOCKS) -> tuple[Array, Array]:
    """Steps and values of finite `points`, gathered into at most `most` blocks of equal count.

    A block's value is its mean without its lowest and highest value (where it has five or more).
    """
    import numpy as np

    x, y = _arrays(points)
    if len(x) <= most:
        return x, y
    edges = np.linspace(0, len(x), most + 1).astype(int)
    middle = [float(x[a:b].mean()) for a, b in itertools.pairwise(edges)]
    level = []
    for a, b in itertools.pairwise(edges):
        part = np.sort(y[a:b])
        level.append(float((part[1:-1] if len(part) >= 5 else part).mean()))
    return np.array(middle), np.array(level)


def trend(points: Pairs, alpha: float = 0.01) -> Trend | None:
    """Test `points` for a monotonic trend at level `alpha` (two-sided).

    None where there are fewer than `LEAST` finite points, or all at one step.
    """
    import numpy as np

    n = len(_arrays(points)[0])
    x, y = blocks(points)
    if n < LEAST or float(np.ptp(x)) <= 0:
        return None
    kendall = mann_kendall(y)
    dof = max(kendall.effective_n - 2, 1.0)
    slope = _slope(x, y, kendall.variance, alpha, dof)
    residuals = y - slope.slope * x
    spread = 1.4826 * float(np.median(np.abs(residuals - np.median(residuals))))
    leverage = math.sqrt(float(((x - x.mean()) ** 2).sum()))
    error = spread * math.sqrt(kendall.inflation) / leverage
    _, coarse = blocks(points, COARSE)
    shares = (2.5 * kendall.p_value, 2.5 * sign_test(coarse), 5 * opening_run(y, kendall.s))
    p_value = min(1.0, *shares)
    seen = p_value < alpha
    return Trend(
        direction=(1 if kendall.s > 0 else -1) if seen else 0,
        p_value=p_value,
        slope=slope.slope,
        slope_low=slope.low,
        slope_high=slope.high,
        n=n,
        effective_n=n / kendall.inflation if n <= BLOCKS else kendall.effective_n,
        alpha=alpha,
        detectable=(t_quantile(1 - alpha, dof) + 0.84) * error,
        span=float(np.ptp(x)),
    )


def progress(
    points: Pairs, direction: Literal["decrease", "increase"], alpha: float = 0.01
) -> Progress:
    """Whether the metric improves, `direction` telling which way is better."""
    found = trend(points, alpha)
    if found is None:
        return Progress("undecided", None, f"fewer than {LEAST} points")
    better = 1 if direction == "increase" else -1
    if found.direction == better:
        verdict: Any = "yes"
    elif found.direction == -better:
        verdict = "against"
    else:
        # With so few independent points even a perfect order can't reach the level.
        verdict = "no" if found.effective_n >= LEAST else "undecided"
    size = found.detectable * found.span
    remark = (
        f"Mann-Kendall p={found.p_value:.2g} (alpha {alpha:g}, {found.n} points worth "
        f"{found.effective_n:.0f}); a change of {size:.3g} over these {found.span:g} steps "
        "would have been seen with a probability of 0.8"
    )
    return Progress(verdict, found, remark)
