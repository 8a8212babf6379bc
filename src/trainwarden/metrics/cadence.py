"""How many steps lie between two lines of a log that prints epochs alone."""

from __future__ import annotations

from trainwarden.metrics.tracker import Tracker

_ROUNDED = 0.005
"""Epochs may be printed with two decimals."""


def cadence(tracker: Tracker) -> int | None:
    """Steps a line, from the share of the epochs that so many lines took; None where it is open.

    The log must have said how many steps and epochs there will be, as the Hugging Face trainer's
    banner does.
    """
    steps, epochs, epoch = tracker.stated_total, tracker.total_epochs, tracker.epoch
    lines = max((logger.rows for logger in tracker.loggers.values()), default=0)
    if not (steps and epochs and epoch) or lines < 3 or epoch > epochs:
        return None
    each = epoch / epochs * steps / lines
    doubt = _ROUNDED / epochs * steps / lines
    every = round(each)
    # A last line, of the rest of the steps, may come early.
    sure = abs(each - every) <= doubt + each / lines and doubt < 0.5
    return every if sure and every > 1 else None
