"""Tables: CSV, TSV and aligned columns under a header."""

from __future__ import annotations

import csv
import re
from typing import ClassVar

from trainwarden.metrics.formats.base import (
    CELL,
    PHASES,
    SPLITS,
    Line,
    Pair,
    Phase,
    Row,
    Span,
)
from trainwarden.metrics.names import canonical
from trainwarden.metrics.values import PLAIN, number_in

_NAME = re.compile(r"[^\W\d][\w ./()%@:#+*\[\]=-]{0,120}\Z|#\s*\w+\Z")
_DELIMITERS = (",", "\t", ";", "|", "  ", " ")
_DECIMAL_COMMA = re.compile(r"[-+]?(?:\d+,(?:\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+)(?:[eE][-+]?\d+)?\Z")
_COMMA = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?\Z")
_HEADER = ("step", "epoch", "iter", "round", "batch", "update")
_HEADERLESS = re.compile(r"\d+\t[-+\d.eEnaif]+(?:\t[-+\d.eEnaif]+)*\Z")
_ALIGNED = re.compile(r"\S+(?: \S+)*")
_PLAIN = re.compile(PLAIN)
BLANK = "-"
LATE = 4
"""So many characters after its column's begin a cell is another's."""
_VALUED = re.compile(r"[\s:=]\d")
_DURATION = re.compile(r"[\d:]+\Z|\d+(?:\.\d+)?[smhd]\Z")


class Table:
    """Rows of numbers under a header line, the header kept in memory."""

    name: ClassVar[str] = "csv"
    hints: ClassVar[tuple[str, ...]] = ()
    exclusive: ClassVar[bool] = True

    def __init__(self) -> None:
        self._pairs: dict[tuple[object, ...], list[Pair]] = {}
        self._known: object = None
        self._text = ""

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """A row's numbers by column name; empty cells are passed over."""
        text = line.text.strip(" ")
        header = memory.get("csv")
        if isinstance(header, list):
            if header[0] == "  " and "csv_at" in memory:
                text = _spread(line.text, memory["csv_at"])  # type: ignore[arg-type]
            row = self._row(text, header, memory)
            if row is not None:
                return row
        elif line.number == 1 and _HEADERLESS.match(text):
            memory["headerless"] = True
            memory["csv"] = ["\t", "step", *(f"column_{i}" for i in range(1, text.count("\t") + 1))]
            return self._row(text, memory["csv"], memory)  # type: ignore[arg-type]
        low = text.lower() if len(text) < 50_000 else ""
        for word in _HEADER:
            if word in low:
                break
        else:
            return None
        found = self._header(text, line.number)
        if found is not None and not (found[0] == " " and isinstance(header, list)):
            memory["csv"] = found
            memory.pop("csv_at", None)
            if found[0] == "  ":
                memory["csv_at"] = [cell.start() for cell in _ALIGNED.finditer(line.text)]
        return None

    def spans(self, text: str, memory: dict[str, object]) -> tuple[Row, list[Span]] | None:
        """The row of a line of numbers alone, and where they stand."""
        header = memory.get("csv")
        if not isinstance(header, list) or header[0][0] == " " or "" in header or "done" in header:
            return None
        if text[:1] not in CELL or ":" in text or '"' in text:
            return None
        cells = text.split(header[0])
        row = self._row(text.strip(" "), header, memory) if len(cells) == len(header) - 1 else None
        if row is None or row.key != (self._text, tuple(map(bool, cells)), None):
            return None
        spans: list[Span] = []
        begin = 0
        for cell in cells:
            if number := _PLAIN.search(cell):
                low, high = number.span()
                spans.append(Span(begin + low, begin + high, "number", PLAIN))
            begin += len(cell) + len(header[0])
        return row, spans

    def _header(self, text: str, number: int) -> list[str] | None:
        if len(text) > 50_000:
            return None
        if text[:1] == "#":
            text = text.lstrip("# ")  # numpy.savetxt
        for delimiter in _DELIMITERS:
            if delimiter not in text:
                continue
            cells = _cells(text, delimiter)
            if len(cells) < 2 or not all(_NAME.match(cell) or not cell for cell in cells):
                continue
            known = [canonical(cell)[0] for cell in cells if cell]
            first = known[0] if known else None
            count = sum(name.known for name in known)
            positions = sum(name.role == "position" and name.known for name in known)
            enough = 1 if number == 1 and delimiter in ",\t" else 2
            if delimiter[0] == " " and not (first and first.role == "position" and first.known):
                continue
            if delimiter == " " and count < len(cells):
                continue  # a sentence, rather
            if delimiter == "|" and (text[0] == "|" or _VALUED.search(text)):
                continue  # a box; step 10 | loss 2.5
            if count >= enough and positions and len(set(cells)) >= len(cells) - 1:
                return [delimiter, *cells]
        return None

    def _row(self, text: str, header: list[str], memory: dict[str, object]) -> Row | None:
        delimiter = header[0]
        cells = (
            text.split(delimiter)
            if delimiter[0] != " " and '"' not in text
            else _cells(text, delimiter)
        )
        if len(cells) != len(header) - 1 and delimiter == "  ":
            cells = text.split()  # a number as wide as its column
        if len(cells) != len(header) - 1:
            return None
        if "" in header:  # a table's unnamed index
            cells = [cell if name else "" for name, cell in zip(header[1:], cells, strict=True)]
        if header is not self._known:
            self._known, self._text = header, "\n".join(header)
        phase: Phase | None = None
        final = False
        try:
            numbers = list(map(float, filter(None, cells)))
            mask = tuple(map(bool, cells))
        except ValueError:
            if delimiter != ",":
                cells = _with_points(cells, memory)
            values, words = _values(cells)
            if words and delimiter[0] == " ":
                return None
            numbers = [value for value in values if value is not None]
            mask = tuple([value is not None for value in values])
            if words:
                named = dict(zip(header[1:], cells, strict=True))
                phase = next((PHASES[named[s].lower()] for s in SPLITS if _split(named, s)), None)
                final = named.get("done") == "True" and "training_iteration" in named
        if not numbers:
            return None
        key = (self._text, mask, phase)
        pairs = self._pairs.get(key)
        if pairs is None:
            pairs = [
                Pair(name, 0.0) for name, filled in zip(header[1:], mask, strict=True) if filled
            ]
            if len(self._pairs) > 200:
                self._pairs.clear()
            self._pairs[key] = pairs
        name = self.name if delimiter in ",;|" else "table"
        return Row(name, pairs, phase, numbers=numbers, key=key, final=final)


def _split(named: dict[str, str], column: str) -> bool:
    return named.get(column, "").lower() in PHASES


def _with_points(cells: list[str], memory: dict[str, object]) -> list[str]:
    """Cells with decimal points where they have decimal commas; empty while that is not certain."""
    if any(_DECIMAL_COMMA.match(cell) for cell in cells):
        memory.setdefault("csv_comma", True)
    certain = "csv_comma" in memory
    return [
        (cell.replace(",", ".") if certain else "") if _COMMA.match(cell) else cell
        for cell in cells
    ]


def _spread(text: str, starts: list[int]) -> str:
    """An aligned row with a mark in its blank cells, where what stands there is under a name.

    Chainer's report leaves a cell blank where there is nothing to say.
    """
    cells: dict[int, str] = {}
    for cell in _ALIGNED.finditer(text):
        # A number wider than its column moves what stands after it.
        at = max((start for start in starts if start <= cell.start()), default=-LATE)
        if cell.start() - at >= LATE or at in cells:
            return text
        cells[at] = cell[0]
    if len(cells) >= len(starts):
        return text
    return "  ".join(cells.get(start, BLANK) for start in starts)


def _values(cells: list[str]) -> tuple[list[float | None], bool]:
    """The numbers of cells, None for others; and whether some hold words."""
    values: list[float | None] = []
    words = False
    for cell in cells:
        try:
            values.append(float(cell))
        except ValueError:
            values.append(number_in(cell) if cell and len(cell) < 64 else None)
            if values[-1] is None and cell.strip() and not _DURATION.match(cell.strip()):
                words = True
    return values, words


def _cells(text: str, delimiter: str) -> list[str]:
    if delimiter == "  ":
        return ["" if cell == BLANK else cell for cell in re.split(r"\s{2,}", text.strip())]
    if delimiter == " ":
        return text.split()
    if '"' in text:
        try:
            return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter))]
        except (csv.Error, StopIteration):
            return []
    return [cell.strip() for cell in text.split(delimiter)]
