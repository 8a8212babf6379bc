"""Tables: CSV, TSV and aligned columns under a header; and boxes of `| name | value |`."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.pairs import acceptable
from trainwarden.metrics.names import canonical
from trainwarden.metrics.values import NUMBER, number_in, to_float

_NAME = re.compile(r"[^\W\d][\w ./()%@:#+*\[\]=-]{0,120}\Z|#\s*\w+\Z")
_HEADER = ("step", "epoch", "iter", "round", "batch", "update")
_HEADERLESS = re.compile(r"\d+\t[-+\d.eEnaif]+(?:\t[-+\d.eEnaif]+)*\Z")
_BOX = re.compile(
    r"\A\s*\|\s*(?P<name>[A-Za-z_][\w /.()%-]{0,60}?)\s*\|\s*(?P<value>[^|\s][^|]*?)?\s*\|\s*\Z"
)
_ITEM = re.compile(
    rf"\A\s*\|?\s*>\s+(?P<name>[A-Za-z_][\w /.-]{{0,60}}):\s+(?P<value>{NUMBER})(?=\s|\Z)"
)
_DURATION = re.compile(r"[\d:]+\Z")
_RULER = re.compile(r"\A\s*[-+=|]{8,}\s*\Z")


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
            row = self._row(text, header)
            if row is not None:
                return row
        elif line.number == 1 and _HEADERLESS.match(text):
            memory["headerless"] = True
            memory["csv"] = ["\t", "step", *(f"column_{i}" for i in range(1, text.count("\t") + 1))]
            return self._row(text, memory["csv"])  # type: ignore[arg-type]
        low = text.lower() if len(text) < 50_000 else ""
        for word in _HEADER:
            if word in low:
                break
        else:
            return None
        found = self._header(text, line.number)
        if found is not None:
            memory["csv"] = found
        return None

    def run(
        self, texts: Sequence[str], memory: dict[str, object]
    ) -> tuple[Row, list[Sequence[str]]] | None:
        """The first rows that fill the same cells as the first one, column by column."""
        header = memory.get("csv")
        if not isinstance(header, list) or header[0] == "  " or "" in header or '"' in texts[0]:
            return None
        first = self._row(texts[0].strip(" "), header)
        if first is None or first.key is None:
            return None
        delimiter = header[0]
        rows = [text.split(delimiter) for text in texts]
        width = len(header) - 1
        columns: list[Sequence[str]] = []
        n = next((i for i, row in enumerate(rows) if len(row) != width), len(rows))
        every = list(zip(*rows[:n], strict=True))
        filled = first.key[1]  # type: ignore[index]
        for index in range(width):
            cells = every[index]
            if not filled[index]:
                n = next((i for i in range(n) if cells[i]), n)
            else:
                try:
                    columns.append([float(cell) for cell in cells[:n]])  # type: ignore[misc]
                except ValueError:
                    return None
        return (first, [column[:n] for column in columns]) if columns else None

    def _header(self, text: str, number: int) -> list[str] | None:
        if len(text) > 50_000:
            return None
        for delimiter in (",", "\t", ";", "  "):
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
            if delimiter == "  " and not (first and first.role == "position" and first.known):
                continue
            if count >= enough and positions and len(set(cells)) >= len(cells) - 1:
                return [delimiter, *cells]
        return None

    def _row(self, text: str, header: list[str]) -> Row | None:
        delimiter = header[0]
        cells = (
            text.split(delimiter)
            if delimiter != "  " and '"' not in text
            else _cells(text, delimiter)
        )
        if len(cells) != len(header) - 1:
            return None
        if "" in header:  # a table's unnamed index
            cells = [cell if name else "" for name, cell in zip(header[1:], cells, strict=True)]
        if header is not self._known:
            self._known, self._text = header, "\n".join(header)
        try:
            numbers = list(map(float, filter(None, cells)))
            mask = tuple(map(bool, cells))
        except ValueError:
            values, words = _values(cells)
            if words and delimiter == "  ":
                return None
            numbers = [value for value in values if value is not None]
            mask = tuple([value is not None for value in values])
        if not numbers:
            return None
        key = (self._text, mask)
        pairs = self._pairs.get(key)
        if pairs is None:
            pairs = [
                Pair(name, 0.0) for name, filled in zip(header[1:], mask, strict=True) if filled
            ]
            if len(self._pairs) > 200:
                self._pairs.clear()
            self._pairs[key] = pairs
        name = self.name if delimiter in ",;" else "table"
        return Row(name, pairs, numbers=numbers, key=key)


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
        return re.split(r"\s{2,}", text.strip())
    if '"' in text:
        try:
            return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter))]
        except (csv.Error, StopIteration):
            return []
    return [cell.strip() for cell in text.split(delimiter)]


class Box:
    """Boxes of `|    loss   | 0.065  |` between rulers, one record a box."""

    name: ClassVar[str] = "box"
    hints: ClassVar[tuple[str, ...]] = ("|", "--------", "========", " > ")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """One cell of a box, or the ruler that ends it."""
        text = line.text[line.start :]
        stripped = text.strip(" ")
        if not stripped or stripped[0] not in "|-+=>":
            return None
        if item := _ITEM.match(text):
            # Coqui: | > loss: 2.5 (2.7), one line each under a line with the step.
            return Row(self.name, [Pair(item["name"], to_float(item["value"]))], kind="partial")
        if _RULER.match(text):
            memory.pop("box", None)
            return Row(self.name, [], kind="end")
        match = _BOX.match(text)
        if match is None:
            return None
        if match["value"] is None:
            memory["box"] = match["name"].strip("/ ") + "/"
            return None
        value = number_in(match["value"])
        if value is None:
            return None
        head = str(memory.get("box", ""))
        name = f"{head}{match['name']}"
        pair = Pair(name, value)
        if not canonical(name)[0].known and not head:
            return None
        return Row(self.name, [pair], kind="partial")


def boxed(pairs: list[Pair]) -> bool:
    """Whether a box holds measurements: settings are printed in boxes too."""
    return acceptable(pairs, [], "x")
