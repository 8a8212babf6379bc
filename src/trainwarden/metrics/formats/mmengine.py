"""MMEngine's lines: `Epoch(train) [2][100/500]  lr: 1e-2 …`, `Epoch(val) [2][50/50]  acc: 71.2`.

https://github.com/open-mmlab/mmengine, runner/log_processor.py; with iterations `Iter(train)`.
"""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Row
from trainwarden.metrics.formats.pairs import measured, position
from trainwarden.metrics.formats.scan import scan

_BEGIN = re.compile(r"\s*(?:Epoch|Iter)\((?P<phase>train|val|test)\)")


class MMEngine:
    """Lines of training; those of an evaluation, which stand at places of their own."""

    name: ClassVar[str] = "text"
    hints: ClassVar[tuple[str, ...]] = ("epoch(", "iter(")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The pairs; where the evaluation stands is not where the training does."""
        begun = _BEGIN.match(line.text, line.start)
        if begun is None:
            return None
        pairs, loose, words = scan(line.text, line.start)
        if begun["phase"] == "train":
            return measured(line, (pairs, loose, words), memory, "train")
        passed = [pair for pair in pairs if pair.name != "epoch" and position(pair)]
        loose += [pair.span for pair in passed if pair.span]
        kept = [pair for pair in pairs if pair not in passed]
        return measured(line, (kept, loose, words), memory, "eval", sure=bool(kept))
