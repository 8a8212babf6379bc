"""Tables: CSV, TSV and aligned columns under a header; and boxes of `| name | value |`."""

from __future__ import annotations

import csv
import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.pairs import acceptable
from trainwarden.metrics.names import canonical
from trainwarden.metrics.values import NUMBER, number_in, to_float

_NAME = re.compile(r"[^\W\d][\w ./()%@:#+*\[\]=-]{0,120}\Z|#\s*\w+\Z")
_HEADER = re.compile(r"(?i)step|epoch|iter|timesteps|round|batch|update")
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
        found = self._header(text, line.number) if _HEADER.search(text) else None
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
        delimiter = header[0]
        cells = (
            text.split(delimiter)
            if delimiter != "  " and '"' not in text
            else _cells(text, delimiter)
        )
        if len(cells) != len(header) - 1:
            return None
        filled: list[int] = []
        numbers: list[float] = []
        words = False
        for index, cell in enumerate(cells, 1):
            if not cell:
                continue
            try:
                numbers.append(float(cell))
                filled.append(index)
            except ValueError:
                value = number_in(cell) if len(cell) < 64 else None
                if value is not None:
                    numbers.append(value)
                    filled.append(index)
                elif cell.strip() and not _DURATION.match(cell.strip()):
                    words = True
        if not numbers or (delimiter == "  " and words):
            return None
        key = (*header, *filled)
        pairs = self._pairs.get(key)
        if pairs is None:
            pairs = [Pair(header[index], 0.0) for index in filled if header[index]]
            if len(pairs) < len(filled):
                keep = [bool(header[index]) for index in filled]
                numbers = [number for number, kept in zip(numbers, keep, strict=True) if kept]
                pairs = [Pair(p.name, n) for p, n in zip(pairs, numbers, strict=True)]
                return Row(self.name, pairs) if pairs else None
            if len(self._pairs) > 200:
                self._pairs.clear()
            self._pairs[key] = pairs
        name = self.name if delimiter in ",;" else "table"
        return Row(name, pairs, numbers=numbers, key=key)


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
