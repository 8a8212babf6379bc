"""NeMo's step line: `Training epoch 0, iteration 9/999 | lr: 1e-4 | global_step: 9 | …`.

https://github.com/NVIDIA/NeMo, lightning/pytorch/callbacks/progress_printer.py. The iteration is
the global step again, of all there are to be.
"""

from __future__ import annotations

from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Row
from trainwarden.metrics.formats.pairs import measured
from trainwarden.metrics.formats.scan import scan


class NeMo:
    """The line of its progress printer, while training."""

    name: ClassVar[str] = "text"
    hints: ClassVar[tuple[str, ...]] = ("training epoch ",)
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The pairs, with the count of iterations as the run's whole length."""
        text, start = line.text, line.start
        if not text.startswith("Training epoch ", start) or "global_step: " not in text:
            return None
        pairs, loose, words = scan(text, start)
        loose += [pair.span for pair in pairs if pair.span and pair.name == "iteration"]
        kept = [pair for pair in pairs if pair.name != "iteration"]
        return measured(line, (kept, loose, words), memory)
