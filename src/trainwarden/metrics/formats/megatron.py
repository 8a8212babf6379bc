"""Megatron-LM's results of an evaluation; its step lines are plain pairs.

https://github.com/NVIDIA/Megatron-LM, megatron/training/training.py, evaluate_and_print_results:
` validation loss at iteration 500 | lm loss value: 2.1E+00 | lm loss PPL: 8.2E+00 |`.
"""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Row
from trainwarden.metrics.formats.pairs import measured
from trainwarden.metrics.formats.scan import scan

_BEGIN = re.compile(r"\s*validation (?:loss|results) at [\w ]{1,80} \| \w")


class MegatronEval:
    """The losses and perplexities, at an iteration or at the end of training."""

    name: ClassVar[str] = "text"
    hints: ClassVar[tuple[str, ...]] = ("validation loss at ", "validation results at ")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The pairs of an evaluation."""
        if not _BEGIN.match(line.text, line.start):
            return None
        scanned = scan(line.text, line.start)
        return measured(line, scanned, memory, "eval", sure=bool(scanned[0]))
