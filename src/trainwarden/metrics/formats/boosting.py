"""Boosted trees: XGBoost's and LightGBM's `[10]  train-auc:0.9`, CatBoost's `10: learn: 0.3`.

Of LightGBM's command line too: `[LightGBM] [Info] Iteration:10, training auc : 0.9`. A terminal
that the text was copied from may have made spaces of the tabs.
"""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.values import NUMBER, to_float

_ROUND = re.compile(
    r"\[(?P<n>\d+)\]\s+(?=[A-Za-z])|(?P<cat>\d+):(?:\t| {2,})(?=learn|test)"
    r"|Iteration:(?P<cli>\d+), "
)
_VALUE = re.compile(
    rf"(?P<name>[^\t:]{{1,80}}): ?(?P<num>{NUMBER})(?:(?:[+]| (?! ))[^\t]*?)?(?:\t| {{2,}}|\s*\Z)"
)
_BEST = re.compile(r"best iteration", re.IGNORECASE)
_DATASET = re.compile(r"(?:cv_agg's )?(?P<set>training|train|valid\w*|test\w*|eval\w*|cv_agg)'?s? ")


class Boosting:
    """One line a round, the measures of each data set parted by tabs."""

    name: ClassVar[str] = "boosting"
    hints: ClassVar[tuple[str, ...]] = (
        *("]\t", ":\t", "best iteration", "learn: ", "bestiteration", "iteration:"),
        *("]  ", ":  "),
    )
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The round and its measures; the best round, told again at the end, is no new one."""
        text = line.text
        if _BEST.search(text):
            memory["best_round"] = True
            return None
        start = _ROUND.match(text, line.start)
        if start is None:
            return None
        number = str(start.lastgroup)
        pairs = [Pair("iteration", float(start[number]), "", start.span(number))]
        position = start.end()
        while found := _VALUE.match(text, position):
            name = found["name"].strip()
            if name not in {"best", "total", "remaining"}:
                pairs.append(Pair(_named(name), to_float(found["num"]), "", found.span("num")))
            position = found.end()
        if len(pairs) == 1 or (number != "cat" and position < len(text)):
            return None
        if memory.pop("best_round", None):
            return Row(self.name, [], kind="end")
        return Row(self.name, pairs)


def _named(name: str) -> str:
    """LightGBM's `valid_1's auc` as `valid_1/auc`, XGBoost's `validation_0-auc` likewise."""
    if found := _DATASET.match(name):
        return f"{found['set']}/{name[found.end() :]}"
    return re.sub(r"^(validation|eval|valid|test)_(\d+)-", r"\1_\2/", name)
