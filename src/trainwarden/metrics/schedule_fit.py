"""A learning rate's course told from what was logged of it, where no config tells the schedule.

Each usual schedule has a function of its rate that is a straight line over the steps: the rate
itself (warm-up, linear decay), its logarithm (exponential), its inverse square (inverse square
root), the angle of its cosine. A line is fitted to each, and a schedule counts where it gives
back what was logged to within the printed precision: a test that only the right one passes for
long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainwarden.metrics.forecast import Interval, current, printed_precision

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LEAST = 5
"""Fewer points of a course than this fit anything."""
LATEST = 64
"""Points looked at: a rate that was held back for a step or two early on still fits later."""


def _units(y: Array) -> Array:
    """The unit of each value's last digit, all being printed to as many digits or decimals."""
    import numpy as np

    digits = max(len(f"{value:.15e}".split("e")[0].rstrip("0").replace(".", "")) for value in y)
    size = np.floor(np.log10(np.maximum(y, 1e-300)))
    return np.maximum(printed_precision(y), 10.0 ** (size - digits + 1))


def _lines(y: Array, peak: float) -> list[tuple[str, Array, Any]]:
    """Schedules by name: what is a straight line for them, and the way back from it."""
    import numpy as np

    lines: list[tuple[str, Array, Any]] = [("linear", y, lambda v: np.clip(v, 0, peak))]
    if y[-1] >= y[0]:
        return lines
    for share in (0.0, 0.01, 0.1):
        least = share * peak
        if float(y.min()) <= least:
            continue
        angle = np.arccos(np.clip(2 * (y - least) / (peak - least) - 1, -1, 1))

        def rate(v: Array, least: float = least) -> Array:
            wave = np.cos(np.clip(v, 0, math.pi))
            return np.asarray(least + (peak - least) * 0.5 * (1 + wave))

        lines.append((f"cosine to {share:g} of its peak", angle, rate))
    if float(y.min()) > 1e-9 * peak:
        lines.append(("exponential", np.log(y), lambda v: np.exp(np.minimum(v, 50))))
        lines.append(("inverse square root", y**-2.0, lambda v: np.maximum(v, 1e-300) ** -0.5))
    return lines


def fitted_rate(
    points: Sequence[Sequence[float]], low: float, high: float
) -> tuple[Interval, bool] | None:
    """Where the rate lies between the steps `low` and `high`, and whether it rises so far.

    All schedules that tell the points (step, rate, …) since the rate's last turn count together.
    A rise may end at any moment: the interval is that of the rise going on. None where nothing
    fits.
    """
    import numpy as np

    x, y = current(points)
    if len(y) < LEAST or float(y.max()) <= 0:
        return None
    turn = len(y) - 1 - int(np.argmax(y[::-1]))
    rises = turn == len(y) - 1
    peak = float(y[turn])
    if not rises:
        x, y = x[turn:][-LATEST:], y[turn:][-LATEST:]
    else:
        x, y = x[-LATEST:], y[-LATEST:]
    allowed = np.maximum(_units(y), 5e-4 * peak)
    tolerance = float(allowed[-1])
    if len(y) < LEAST or float(np.ptp(y)) < 3 * tolerance:
        return None
    at = np.linspace(low, high, 33)
    found: list[Array] = []
    names: list[str] = []
    for name, line, back in _lines(y, peak):
        center = float(x.mean())
        slope, height = np.polyfit(x - center, line, 1)
        errors = np.abs(back(slope * (x - center) + height) - y)
        if float(np.mean(errors > allowed)) > 0.1:
            continue
        # Rounded points leave the slope a little uncertain, which grows with the distance.
        residual = float(np.std(line - slope * (x - center) - height))
        spread = 3 * residual / math.sqrt(float(((x - center) ** 2).sum()))
        for turned in (slope - spread, slope + spread):
            said = back(turned * (at - center) + height)
            # A rise is not bounded by the peak that it has not reached.
            found.append(turned * (at - center) + height if rises else said)
        names.append(name)
    if not found:
        return None
    lowest = max(0.0, min(float(said.min()) for said in found) - tolerance)
    highest = max(float(said.max()) for said in found) + tolerance
    middle = float(np.mean([said[16] for said in found]))
    basis = (
        f"{' or '.join(names)} course of the {len(y)} latest logged rates, told to within "
        f"{tolerance:.2g}, between steps {low:.0f} and {high:.0f}"
    )
    return Interval(lowest, highest, min(max(middle, lowest), highest), basis), rises
