"""Shifts of level (step time doubled since step 4000) and spikes (one loss far from its past).

Both work on ranks and medians, so that single long steps (evaluation, a checkpoint, a first
compilation) neither make a shift nor hide one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwarden.metrics.trend import Pairs, _arrays, inflation, ranks, t_two_sided

if TYPE_CHECKING:
    from trainwarden.metrics.trend import Array

EDGE = 8
"""Fewest points on either side of a shift."""


@dataclass(frozen=True)
class Shift:
    """A change of level between two stretches of a series."""

    step: float
    """First step of the new level."""
    before: float
    """Median before."""
    after: float
    """Median after."""
    ratio: float
    """`after` over `before`; NaN where `before` is 0."""
    p_value: float
    """Probability of so large a statistic anywhere in a series without a shift."""
    n_before: int
    n_after: int


@dataclass(frozen=True)
class Spike:
    """Values that stand out from those before them."""

    step: float
    value: float
    """The farthest one."""
    expected: float
    """Median of those before."""
    z: float
    """Distance in robust standard deviations."""
    points: int
    """How many consecutive points stood out."""
    recovered_at: float | None
    """First step that was back within 3 deviations; None where none was."""


def _scale(residuals: Array) -> float:
    import numpy as np

    return 1.4826 * float(np.median(np.abs(residuals - np.median(residuals))))


def resolution(values: Array) -> float:
    """The smallest difference that the series shows: how finely it was printed, roughly."""
    import numpy as np

    apart = np.diff(np.unique(values[np.isfinite(values)]))
    apart = apart[apart > 0]
    if len(apart):
        return float(apart.min())
    return max(abs(float(values[-1])) * 1e-6, 1e-12) if len(values) else 1e-12


def _tail(b: float, edge: float) -> float:
    """P(sup of |B(t)| / sqrt(t (1 - t)) over [edge, 1 - edge] >= b), B a Brownian bridge.

    The approximation of R. Miller and D. Siegmund, "Maximally selected chi square statistics",
    Biometrics 38, 1982.
    """
    if b <= 1:
        return 1.0
    density = math.exp(-b * b / 2) / math.sqrt(2 * math.pi)
    return min(1.0, density * (4 / b + (b - 1 / b) * 2 * math.log((1 - edge) / edge)))


def _without_pauses(y: Array) -> Array:
    """Which values are kept: not those that stand alone (in runs below 4) far from others near."""
    import numpy as np

    if len(y) < 2 * EDGE:
        return np.ones(len(y), dtype=bool)
    padded = np.pad(y, 4, mode="reflect")
    near = np.median(np.lib.stride_tricks.sliding_window_view(padded, 9), axis=1)
    apart = np.abs(y - near)
    return np.asarray(apart <= max(6 * 1.4826 * float(np.median(apart)), resolution(y)))


def _split(y: Array) -> tuple[int, float]:
    """Where the standardized rank sum of the beginning is most extreme, and its p-value.

    The p-value is the smaller of two, doubled: that of the rank statistic over all splits, and,
    for a step so high that few points suffice, that of Student's t between the two sides over as
    many splits; both with the variance that autocorrelation leaves.
    """
    import numpy as np

    n = len(y)
    rank = ranks(y)
    centred = rank - rank.mean()
    spread = float(np.sqrt((centred**2).mean()))
    if spread <= 0:
        return 0, 1.0
    k = np.arange(EDGE, n - EDGE + 1)
    sums = np.cumsum(centred)[k - 1]
    statistic = np.abs(sums) / (spread * np.sqrt(k * (n - k) / n))
    best = int(np.argmax(statistic))
    at = int(k[best])
    old, new = float(np.median(y[:at])), float(np.median(y[at:]))
    around = np.concatenate([y[:at] - old, y[at:] - new])
    # The best split explains some wandering away, as a fitted parameter or two would.
    factor = inflation(around, 3)
    by_rank = _tail(float(statistic[best]) / math.sqrt(factor), EDGE / n)
    deviation = max(float(np.sqrt((around**2).mean())), _scale(around), resolution(y))
    t = (new - old) / (deviation * math.sqrt(factor * n / (at * (n - at))))
    by_size = len(k) * t_two_sided(t, max(n / factor - 2, 1.0))
    return at, min(1.0, 2 * min(by_rank, by_size))


def level_shifts(
    points: Pairs, alpha: float = 0.01, least: float = 0.1, most: int = 6
) -> list[Shift]:
    """Shifts of level in order of step, found by halving at the strongest one again and again.

    A shift counts where a rank test over all splits, its variance inflated by autocorrelation,
    rejects at `alpha`, where the medians differ by at least `least` of the one before (leave it
    to the purpose: 0 takes any), and by more than the spread around them. For each stretch looked
    at the false-alarm rate is below `alpha` on white noise and AR(1) noise up to 0.9 (measured by
    the tests). Cost is n log n.
    """
    import numpy as np

    x, y = _arrays(points)
    kept = _without_pauses(y)
    x, y = x[kept], y[kept]

    def search(a: int, b: int, level: float, room: int) -> list[tuple[int, float]]:
        if room <= 0 or b - a < 2 * EDGE:
            return []
        at, p_value = _split(y[a:b])
        at += a
        left, right = y[a:at], y[at:b]
        old, new = (float(np.median(part)) if len(part) else 0.0 for part in (left, right))
        spread = _scale(np.concatenate([left - old, right - new]))
        if p_value < level and new != old and abs(new - old) >= max(least * abs(old), spread):
            later = search(at, b, level, room - 1)
            return [*search(a, at, level, room - 1 - len(later)), (at, p_value), *later]
        if b - a < 8 * EDGE or level < alpha / 4:
            return []
        # A rise that fell again hides in the whole; each half shows one of them.
        middle = (a + b) // 2
        later = search(middle, b, level / 2, room)
        return [*search(a, middle, level / 2, room - len(later)), *later]

    found = search(0, len(y), alpha, most)
    cuts = [0, *(at for at, _ in found), len(y)]
    shifts = []
    for index, (at, p_value) in enumerate(found):
        left, right = y[cuts[index] : at], y[at : cuts[index + 2]]
        before, after = float(np.median(left)), float(np.median(right))
        ratio = after / before if before else math.nan
        shifts.append(Shift(float(x[at]), before, after, ratio, p_value, len(left), len(right)))
    return shifts


def level_shift(points: Pairs, alpha: float = 0.01, least: float = 0.1) -> Shift | None:
    """The latest shift of level, as `level_shifts` finds them; None where there is none."""
    shifts = level_shifts(points, alpha, least)
    return shifts[-1] if shifts else None


def _before(y: Array, window: int) -> tuple[Array, Array]:
    """Median and deviation of up to `window` values before each; NaN for the first `EDGE`."""
    import numpy as np

    floor = resolution(y)
    centre, scale = np.full(len(y), math.nan), np.full(len(y), math.nan)

    def look(past: Array, rows: slice) -> None:
        middle = np.median(past, axis=1, keepdims=True)
        steps = np.diff(past, axis=1)
        moved = np.median(np.abs(steps - np.median(steps, axis=1, keepdims=True)), axis=1)
        # A steep fall spreads a window's values without being noise: differences don't mind.
        apart = np.maximum(np.median(np.abs(past - middle), axis=1), moved / math.sqrt(2))
        centre[rows] = middle[:, 0]
        scale[rows] = np.maximum(1.4826 * apart, floor)

    for i in range(EDGE, min(window, len(y))):
        look(y[None, :i], slice(i, i + 1))
    if len(y) > window:
        look(np.lib.stride_tricks.sliding_window_view(y[:-1], window), slice(window, len(y)))
    return centre, scale


def spikes(points: Pairs, threshold: float = 8.0, window: int = 32) -> list[Spike]:
    """Upward spikes: runs of values more than `threshold` deviations above those before.

    Positive series are judged on a log scale, where the noise of losses and gradient norms is
    closer to even. On Gaussian noise of 2000 points there are fewer than 0.05 false spikes at the
    default threshold (measured by the tests).
    """
    import numpy as np

    x, raw = _arrays(points)
    if len(raw) <= EDGE:
        return []
    y = np.log(raw) if float(raw.min()) > 0 else raw
    floor = resolution(y)
    centres, scales = _before(y, window)
    suspect = (y - centres) / scales > threshold / 2
    found: list[Spike] = []
    normal: list[float] = list(y[:EDGE])
    i = EDGE
    while i < len(y):
        if not suspect[i]:
            normal.append(float(y[i]))
            i += 1
            continue
        past = np.array(normal[-window:])
        centre = float(np.median(past))
        scale = max(_scale(past), _scale(np.diff(past)) / math.sqrt(2), floor)
        if (y[i] - centre) / scale <= threshold:
            normal.append(float(y[i]))
            i += 1
            continue
        start = i
        while i < len(y) and (y[i] - centre) / scale > 3:
            i += 1
        top = start + int(np.argmax(y[start:i]))
        found.append(
            Spike(
                step=float(x[start]),
                value=float(raw[top]),
                expected=float(math.exp(centre) if y is not raw else centre),
                z=float((y[top] - centre) / scale),
                points=i - start,
                recovered_at=float(x[i]) if i < len(y) else None,
            )
        )
    return found
