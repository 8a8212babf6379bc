"""Curves that flatten out by themselves, and curves that stop.

Learning curves that nobody interferes with are close to *completely monotone*: sums of decaying
exponentials with positive weights, which covers power laws, exponentials and their mixtures, to
whatever level they fall (S. Bernstein, "Sur les fonctions absolument monotones", 1929). The best
such curve is found by non-negative least squares over a grid of decay times. A run that stopped
learning at a step is the same kind of curve with its clock stopped there; only where this one
describes the data far better is a standstill more than a curve that has flattened out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TIMES = 28
"""Decay times of the grid, spread evenly in their logarithm."""
VISIBLE = 3.0
"""Scatters that a downward jump of the free curve must be high: a new epoch, a cut of the rate."""


@dataclass(frozen=True)
class Stop:
    """A curve whose clock stopped."""

    step: float
    """Where it stopped."""
    gain: float
    """By how many squared standard errors this explains the points better than a free curve."""
    misfit: float
    """Mean squared residual in units of the scatter between neighbours; about 1 for a good fit."""
    missed: float
    """What a curve like the one before would have gained since, at the least it is likely to."""


def nonnegative(matrix: Array, target: Array, free: int = 1) -> Array:
    """Least squares with all but the first `free` coefficients at least 0 (Lawson and Hanson)."""
    import numpy as np

    columns = matrix.shape[1]
    gram, moments = matrix.T @ matrix, matrix.T @ target
    active = np.zeros(columns, dtype=bool)
    active[:free] = True
    x = np.zeros(columns)

    def solve(used: Array) -> Array:
        block = gram[np.ix_(used, used)]
        ridge = 1e-10 * np.trace(block) / len(block)
        full = np.zeros(columns)
        full[used] = np.linalg.solve(block + ridge * np.eye(len(block)), moments[used])
        return full

    x = solve(active)
    for _ in range(3 * columns):
        slope = moments - gram @ x
        slope[active] = -math.inf
        best = int(np.argmax(slope))
        if slope[best] <= 1e-9 * max(1.0, float(np.abs(moments).max())):
            break
        active[best] = True
        while True:
            trial = solve(active)
            negative = active & (trial <= 0)
            negative[:free] = False
            if not negative.any():
                x = trial
                break
            ratio = x[negative] / np.maximum(x[negative] - trial[negative], 1e-300)
            x = x + float(ratio.min()) * (trial - x)
            drop = negative & (x <= 1e-12 * max(1.0, float(np.abs(x).max())))
            if not drop.any():
                drop = negative
            active[drop] = False
            x[~active] = 0.0
    return x


def _basis(clock: Array, times: Array) -> Array:
    import numpy as np

    return np.column_stack([np.ones(len(clock)), np.exp(-clock[:, None] / times[None, :])])


def find_stop(steps: Array, values: Array, stops: list[float], least: float) -> Stop | None:
    """The step of `stops` at which a falling curve most likely stopped; None if none helps.

    `values` must fall where they improve. Points are in order of their steps. The scatter is taken
    as proportional to the level where all values are positive, as that of losses mostly is, and
    its autocorrelation is reckoned with. Stops with a `gain` below `least` are not looked into.
    """
    import numpy as np

    from trainwarden.metrics.trend import inflation

    clock = steps - steps[0]
    span = float(clock[-1])
    if span <= 0 or len(steps) < 20:
        return None
    times = np.geomspace(max(span / len(steps), span / 400), 6 * span, TIMES)
    weights = np.ones(len(values))
    if float(values.min()) > 0:
        width = max(1, len(values) // 20)
        padded = np.pad(values, width, mode="edge")
        level = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * width + 1), axis=1)
        weights = 1 / np.maximum(level, 1e-12)
    target = values * weights

    def fit(moments: Array, jumps: list[float]) -> tuple[float, Array, Array]:
        higher = [(steps < jump).astype(float) for jump in jumps]
        matrix = np.column_stack([_basis(moments, times), *higher]) * weights[:, None]
        found = nonnegative(matrix, target)
        left = target - matrix @ found
        return float(left @ left), found, left

    free = fit(clock, [])[0]
    best: tuple[float, float, Array, Array] | None = None
    for stop in stops:
        error, found, left = fit(np.minimum(clock, stop - steps[0]), [])
        if best is None or error < best[0]:
            best = (error, stop, found, left)
    if best is None or free - best[0] < least * best[0] / len(values):
        return None
    error, stop, found, left = best
    n = len(values)
    pairs = np.diff(target)
    local = max(1.4826 * float(np.median(np.abs(pairs))) / math.sqrt(2), 1e-12)
    # Only now the dearer question: would a free curve with a jump that can be seen do as well?
    edge = 4
    sides = np.median(np.lib.stride_tricks.sliding_window_view(target, edge), axis=1)
    steepest = float(steps[int(np.argmax(sides[:-edge] - sides[edge:])) + edge])
    for place in (*stops, steepest):
        jumped, coefficients, _ = fit(clock, [place])
        height = float(coefficients[-1]) * float(weights[steps < place][-1])
        if jumped < free and height >= VISIBLE * local:
            free = jumped
    variance = error / max(1, n - 4)
    after = clock >= stop - steps[0]
    gain = (free - error) / variance / inflation(left[after] - float(left[after].mean()), 1)
    ends = np.array([stop - steps[0], clock[-1]])
    # The slowest part of the curve before tells what it would have gained at the least: what
    # its slope at the end lets expect over as long a time, slowing as a power law does.
    rate = float((found[1:] / times * np.exp(-ends[0] / times)).sum())
    missed = rate * ends[0] * math.log(max(1.0, ends[1] / max(ends[0], 1e-12)))
    return Stop(stop, gain, variance / local**2, missed)
