"""Boxes of `| name | value |` between rulers; tables of `| name | name |` with rows below."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.pairs import acceptable
from trainwarden.metrics.names import canonical
from trainwarden.metrics.values import NUMBER, number_in, to_float

_BOX = re.compile(r"\A\s*\|\s*(?P<name>[A-Za-z_][\w /.()%-]{0,60}?)\s*\|(?P<value>[^|]*)\|\s*\Z")
_CELL = re.compile(
    rf"\A\s*(?:\| +)?(?<= )(?P<name>[A-Za-z_][\w/.()%-]{{0,100}})  +(?P<value>{NUMBER})"
    r"\s*(?:\|\s*)?\Z"
)
_ITEM = re.compile(
    rf"\A\s*(?:\|\s*)?>\s+(?P<name>[A-Za-z_][\w /.-]{{0,60}}):\s+(?P<value>{NUMBER})(?=\s|\Z)"
)
_RULER = re.compile(r"\A\s*[-+=|]{8,}\s*\Z")
_METRICS = re.compile(r"\A\s*(?:Test|Validate|Runningstage\S+) metric\s+DataLoader \d+\s*\Z")
_NAME = re.compile(r"[A-Za-z_#][\w ./()%@:#+-]{0,60}\Z")
_UPRIGHT = re.compile("\xe2(?:\x94[\x82\x83]|\x95\x91)")
_DRAWN = re.compile("\xe2[\x94\x95][\x80-\xbf]")


def plain(text: str) -> str:
    """Box-drawing characters (in UTF-8, a character a byte) as `|` and `-`."""
    return _DRAWN.sub("-", _UPRIGHT.sub("|", text)) if "\xe2" in text else text


class Box:
    """Boxes of `|    loss   | 0.065  |` between rulers, one record a box."""

    name: ClassVar[str] = "box"
    hints: ClassVar[tuple[str, ...]] = (
        *("|", "--------", "========", " > ", "\xe2\x94", "\xe2\x95", "dataloader "),
        "        ",
    )
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """One cell of a box, or the ruler that ends it."""
        text = plain(line.text[line.start :])
        stripped = text.strip(" ")
        if "box_metrics" in memory and (cell := _CELL.match(text)):
            return self._partial(cell)
        if not stripped or stripped[0] not in "|-+=>":
            memory.pop("box_metrics", None)
            if _METRICS.match(text):
                memory["box_metrics"] = True  # Lightning: names and values without uprights
            return None
        if item := _ITEM.match(text):
            # Coqui: | > loss: 2.5 (2.7), one line each under a line with the step.
            return self._partial(item)
        if _RULER.match(text):
            memory.pop("box", None)
            return Row(self.name, [], kind="end")
        if (cell := _CELL.match(text)) and stripped[0] == "|":
            return self._partial(cell)  # Ray Tune's results
        match = _BOX.match(text)
        if match is None:
            return None
        if not (printed := match["value"].strip()):
            memory["box"] = match["name"].strip("/ ") + "/"
            return None
        value = number_in(printed)
        if value is None:
            return None
        head = str(memory.get("box", ""))
        name = f"{head}{match['name']}"
        if not canonical(name)[0].known and not head:
            return None
        return Row(self.name, [Pair(name, value)], kind="partial")

    def _partial(self, found: re.Match[str]) -> Row:
        return Row(self.name, [Pair(found["name"], to_float(found["value"]))], kind="partial")


def boxed(pairs: list[Pair]) -> bool:
    """Whether a box holds measurements: settings are printed in boxes too."""
    return acceptable(pairs, [], "x")


class Piped:
    """`| Step | Loss |`, a ruler, then rows: Markdown, detectron2's scores, Ray Tune's trials."""

    name: ClassVar[str] = "table"
    hints: ClassVar[tuple[str, ...]] = ("|", "\xe2\x94\x82")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """A row of numbers by the names of the head; without a place it is an evaluation's."""
        text = plain(line.text[line.start :]).strip()
        if text[:1] != "|" or text[-1:] != "|" or len(text) > 4000:
            return None
        cells = [cell.strip() for cell in text[1:-1].split("|")]
        if len(cells) == 1:
            cells = [cell.strip() for cell in re.split(r"\s{2,}|(?<=-)\+(?=-)", cells[0])]
        if len(cells) < 3:
            return None
        if not any(cell.strip(":-") for cell in cells):
            if isinstance(head := memory.pop("piped_head", None), list):
                memory["piped"] = head
            return None
        head = memory.get("piped")
        if isinstance(head, list) and len(head) == len(cells):
            return self._row(head, cells, memory)
        memory.pop("piped", None)
        if all(_NAME.match(cell) or not cell for cell in cells):
            memory["piped_head"] = cells
        return None

    def _row(self, head: list[str], cells: list[str], memory: dict[str, object]) -> Row | None:
        trials = head[0] == "Trial name"
        values = [number_in(cell) if cell else None for cell in cells]
        words = any(cell and value is None for cell, value in zip(cells, values, strict=True))
        if words and not trials:
            return None
        pairs = [
            Pair("timesteps_total" if trials and name == "ts" else name, value)
            for name, value in zip(head, values, strict=True)
            if name and value is not None
        ]
        if trials:
            del memory["piped"]  # the others are runs of their own
        known = [canonical(pair.name)[0] for pair in pairs]
        placed = any(meaning.known and meaning.role == "position" for meaning in known)
        results = any(meaning.known and meaning.role == "result" for meaning in known)
        if not results:
            return None
        return Row(self.name, pairs, None if placed else "eval", final="TERMINATED" in cells)
