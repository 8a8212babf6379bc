"""Tables: CSV, TSV and aligned columns under a header; and boxes of `| name | value |`."""

from __future__ import annotations

import csv
import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.pairs import acceptable
from trainwarden.metrics.names import canonical
from trainwarden.metrics.values import number_in

_NAME = re.compile(r"[^\W\d][\w ./()%@:#+*\[\]=-]{0,120}\Z|#\s*\w+\Z")
_HEADERLESS = re.compile(r"\d+\t[-+\d.eEnaif]+(?:\t[-+\d.eEnaif]+)*\Z")
_BOX = re.compile(
    r"\A\s*\|\s*(?P<name>[A-Za-z_][\w /.()%-]{0,60}?)\s*\|\s*(?P<value>[^|\s][^|]*?)?\s*\|\s*\Z"
)
_RULER = re.compile(r"\A\s*[-+=|]{8,}\s*\Z")


class Table:
    """Rows of numbers under a header line, the header kept in memory."""

    name: ClassVar[str] = "csv"

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """A row's numbers by column name; empty cells are passed over."""
        text = line.text.strip(" ")
        header = memory.get("csv")
        if isinstance(header, list):
            row = self._row(text, header)
            if row is not None:
                return row
        elif line.number == 1 and _HEADERLESS.match(text):
            memory["csv"] = ["\t", "step", *(f"column_{i}" for i in range(1, text.count("\t") + 1))]
            return self._row(text, memory["csv"])  # type: ignore[arg-type]
        found = self._header(text, line.number)
        if found is not None:
            memory["csv"] = found
        return None

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
        delimiter, names = header[0], header[1:]
        cells = _cells(text, delimiter)
        if len(cells) != len(names):
            return None
        pairs: list[Pair] = []
        filled = 0
        for name, cell in zip(names, cells, strict=True):
            if not cell or not name:
                continue
            filled += 1
            try:
                pairs.append(Pair(name, float(cell)))
            except ValueError:
                if len(cell) < 64 and (value := number_in(cell)) is not None:
                    pairs.append(Pair(name, value))
        if not pairs or (delimiter == "  " and len(pairs) < filled):
            return None
        return Row(self.name if delimiter in ",;" else "table", pairs)


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

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """One cell of a box, or the ruler that ends it."""
        text = line.text[line.start :]
        stripped = text.strip(" ")
        if not stripped or stripped[0] not in "|-+=":
            return None
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
