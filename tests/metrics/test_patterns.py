"""No pattern takes more than the square of its text, and none but those named more than its length.

Each repetition of a pattern is led to and then pumped; texts that are ten times as long must take
about ten times as long.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from support.patterns import patterns, pumps

SHORT, LONG = 400, 4000
ENDS = ("", "\n", "\x01!")
NOTICED = 0.03
"""Seconds that nothing linear takes for a text so long, by far."""
ALLOWED = 40.0
"""Times: ten would be linear, a hundred the square."""
SQUARE = """
    pieces._AFTER pieces._INSIDE ranks._TASK lineage._ITEM commands._CONFIG_OPTION
    commands._NOT_CONFIG
"""
"""Known to take the square: asked of a name, a path or an option alone, never of a line. None may
be added."""
EVERY = [*patterns("metrics"), *patterns("evidence")]


def took(ask: Callable[[str], object], text: str) -> float:
    """The least processor time of three calls; of one that is long, it alone."""
    least = float("inf")
    for _ in range(3):
        began = time.process_time()
        ask(text)
        least = min(least, time.process_time() - began)
        if least < NOTICED or least > 1:
            break
    return least


@pytest.mark.parametrize("entry", EVERY, ids=[label for label, _pattern, _searched in EVERY])
def test_the_time_of_a_pattern_grows_with_its_text(
    entry: tuple[str, re.Pattern[str], bool],
) -> None:
    label, pattern, searched = entry
    ask = pattern.search if searched else pattern.match
    known = label.partition("/")[2].partition("[")[0] in SQUARE.split()
    for begin, unit in pumps(pattern):
        for end in ENDS:
            assert took(ask, begin + unit * 24 + end) < 0.5, f"exponential: {begin!r} {unit!r}"
            short = took(ask, begin + unit * SHORT + end)
            assert short < 0.5, f"more than the square: {begin!r} {unit!r}"
            if known:
                continue
            long = took(ask, begin + unit * LONG + end)
            assert long < NOTICED or long < ALLOWED * short, f"{begin!r} {unit!r} {end!r}"
