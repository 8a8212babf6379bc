"""Tables whose columns are drawn by a rule of dashes under the header: spaCy's `train`.

https://github.com/explosion/spaCy, training/loggers.py (`console_logger`). Names may have spaces,
and the columns are called E (the epoch), # (the step), LOSS of a component, and by their scores.
"""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.names import canonical
from trainwarden.metrics.values import NUMBER, to_float

_RULE = re.compile(r"-{2,}(?: +-{2,})+\s*\Z")
_COLUMN = re.compile(r"-+")
_NUMBER = re.compile(rf"{NUMBER}\Z")
_CALLED = {"e": "epoch", "#": "step"}


class Ruled:
    """`E    #       LOSS NER  ENTS_F`, a rule, then `  0     200     35.70   83.16`."""

    name: ClassVar[str] = "table"
    hints: ClassVar[tuple[str, ...]] = ()
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """A row of numbers by the names above the rule; scores are of the validation."""
        text = line.text[line.start :]
        held = memory.get("ruled")
        if isinstance(held, list):
            cells = text.split()
            if len(cells) == len(held) and all(map(_NUMBER.match, cells)):
                return self._row(held, cells)
            del memory["ruled"]
        if _RULE.match(text.lstrip()):
            head = memory.pop("ruled_head", None)
            names = _names(head, text) if isinstance(head, str) else []
            if names:
                memory["ruled"] = names
            return None
        if "#" in text and text.split()[:2] == ["E", "#"]:
            memory["ruled_head"] = text
        return None

    def _row(self, names: list[str], cells: list[str]) -> Row:
        pairs = [Pair(name, to_float(cell)) for name, cell in zip(names, cells, strict=True)]
        return Row(self.name, pairs)


def _names(head: str, rule: str) -> list[str]:
    """The names of the columns that the rule draws."""
    names: list[str] = []
    for column in _COLUMN.finditer(rule):
        name = head[column.start() : column.end()].strip().lower()
        name = _CALLED.get(name, name)
        meaning = canonical(name)[0]
        scored = meaning.role == "result" and not (meaning.known and meaning.name == "loss")
        names.append(f"val_{name}" if scored else name)
    return names
