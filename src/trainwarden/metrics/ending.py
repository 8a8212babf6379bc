"""How a run ended, as far as its log says."""

from __future__ import annotations

from dataclasses import dataclass, replace

SETTLED = 3
"""So many rows after an error show that the run went on."""
_SOFT = frozenset({"exception", "error", "exit_code"})


@dataclass(slots=True)
class EndingWatch:
    """The first of the last errors, and the last word of a regular end."""

    fatal: str | None = None
    fatal_step: float = -1.0
    fatal_rows: int = 0
    finish: bool = False
    finish_step: float = -1.0
    finish_rows: int = 0

    def failed(self, kind: str, step: float) -> None:
        """A line after which runs do not go on; the first of several is the cause."""
        if self.fatal is None:
            self.fatal, self.fatal_step, self.fatal_rows = kind, step, 0

    def finished(self, step: float) -> None:
        """A line that says the run is done; an error that was caught before is forgotten."""
        self.finish, self.finish_step, self.finish_rows = True, step, 0
        if self.fatal in _SOFT:
            self.fatal = None

    def went_on(self, step: float) -> None:
        """A metric line of training."""
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
