"""TensorFlow's Estimator: what it says after an evaluation, and at the end of training.

https://github.com/tensorflow/estimator, estimator.py. Its step lines are plain pairs.
"""

from __future__ import annotations

from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Row
from trainwarden.metrics.formats.pairs import measured
from trainwarden.metrics.formats.scan import scan


class Estimator:
    """`Saving dict for global step 9: global_step = 9, loss = 0.4`, `Loss for final step: 0.3.`"""

    name: ClassVar[str] = "text"
    hints: ClassVar[tuple[str, ...]] = ("saving dict for global step", "loss for final step")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The results of the evaluation, or the loss."""
        text, start = line.text, line.start
        pairs, loose, words = scan(text, start)
        if not pairs:
            return None
        if text.startswith("Saving dict for global step", start):
            return measured(line, (pairs, loose, words), memory, "eval")
        if text.startswith("Loss for final step", start):
            pairs = [pairs[0]._replace(name="loss"), *pairs[1:]]
            return measured(line, (pairs, loose, words), memory)
        return None
