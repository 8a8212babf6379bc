"""How a run ended, as far as its log says."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

SETTLED = 3
"""So many rows after an error show that the run went on."""
_SOFT = frozenset({"exception", "error", "exit_code"})
CHANCE = 0.02
"""Below this probability a log that says nothing did not stop where it did by accident."""


@dataclass(slots=True)
class EndingWatch:
    """The first of the last errors, and the last word of a regular end."""

    fatal: str | None = None
    fatal_step: float = -1.0
    fatal_rows: int = 0
    finish: bool = False
    finish_step: float = -1.0
    finish_rows: int = 0
    paused: bool = False
    """Whether the last thing was what training is paused for: an evaluation, a checkpoint."""
    pauses: int = 0

    def failed(self, kind: str, step: float) -> None:
        """A line after which runs do not go on; the first of several is the cause."""
        if self.fatal is None:
            self.fatal, self.fatal_step, self.fatal_rows = kind, step, 0

    def finished(self, step: float, sure: bool = True) -> None:
        """A line that says the run is done; an error that was caught before is forgotten.

        Not where the line is printed at any end of the process, after an error too (not `sure`).
        """
        self.finish, self.finish_step, self.finish_rows = True, step, 0
        if sure and self.fatal in _SOFT:
            self.fatal = None

    def pause(self) -> None:
        """A line of what training is paused for."""
        self.pauses += not self.paused
        self.paused = True

    def went_on(self, step: float) -> None:
        """A metric line of training."""
        self.paused = False
        if self.fatal is not None and step != self.fatal_step:
            self.fatal_step = step
            self.fatal_rows += 1
            if self.fatal_rows >= SETTLED:
                self.fatal = None
        if self.finish and step > self.finish_step:
            self.finish_rows += 1
            if self.finish_rows >= SETTLED:
                self.finish = False

    def copy(self) -> EndingWatch:
        """An independent copy."""
        return replace(self)


def by_chance(
    ending: EndingWatch, rows: int, step: float, stride: float, rates: tuple[float, float] | None
) -> float:
    """How likely a run of so many rows was cut off by accident just where its log stops.

    Plans are round numbers, and runs cut off at random stop at one as seldom as one is passed:
    once in the distance between two of them over the `stride` between rows. Likewise an end right
    after an evaluation or a checkpoint is as rare as these are, and a learning rate (its highest
    and last in `rates`) is near the end of a linear or cosine decay for a small part of the run.
    """
    place = min(round_share(step, stride), ending.pauses / rows if ending.paused and rows else 1.0)
    if rates is not None and 0 <= rates[1] < rates[0]:
        place *= min(1.0, 2 / math.pi * math.sqrt(rates[1] / rates[0]))
    return place


def round_share(step: float, stride: float) -> float:
    """The part of all stops that would be the first at or beyond a number as round as this one."""
    if not (step > 0 and 0 < stride <= step) or step > 1e15:
        return 1.0
    magnitude = 10.0 ** math.floor(math.log10(step))
    for distance in (magnitude, magnitude / 2, magnitude / 10):
        passed = math.floor(step / distance) * distance
        if passed > step - stride:
            return min(1.0, stride / distance)
    return 1.0
