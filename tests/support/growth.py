"""Whether the time of something grows with the size of its input, and not with its square."""

from __future__ import annotations

import time
from collections.abc import Callable

TIMES = 8
"""So many times the input: the square would be 64 times the time."""
ALLOWED = 28.0
"""Between the two, far from either: a loaded machine must not matter."""
SHORTEST = 0.005
LONGEST = 20.0


def _took(work: Callable[[int], object], size: int) -> float:
    """Processor time of one call."""
    began = time.process_time()
    work(size)
    return time.process_time() - began


def growth(work: Callable[[int], object], size: int, largest: int) -> float:
    """How many times longer `work` takes for an input `TIMES` as large.

    The size begins at `size` and is doubled until the time can be measured; what takes no time at
    `largest` grows by nothing: 0.
    """
    work(size)  # what is imported and compiled once
    while (small := min(_took(work, size) for _ in range(3))) < SHORTEST:
        size *= 2
        if size * TIMES > largest:
            return 0.0
    found = float("inf")
    for _ in range(3):
        found = min(found, _took(work, size * TIMES) / small)
        if found < ALLOWED or found * small > LONGEST:
            break
    return found
