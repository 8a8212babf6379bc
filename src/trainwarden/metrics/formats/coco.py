"""COCO's evaluation as pycocotools prints it: a line for each overlap, area and number of boxes."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row

_LINE = re.compile(
    r"\s*Average (?P<what>Precision|Recall)\s+\(A[PR]\) @\[ IoU=(?P<iou>[\d.:]+)\s*\| "
    r"area=\s*(?P<area>\w+)\s*\| maxDets=\s*(?P<boxes>\d+)\s*\] = (?P<value>-?\d\.\d+)"
)


class CocoEval:
    """`Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.374`."""

    name: ClassVar[str] = "text"
    hints: ClassVar[tuple[str, ...]] = ("average precision", "average recall")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:  # noqa: ARG002
        """The value, named as papers do: AP, AP50, AP75, APs, AR100."""
        found = _LINE.match(line.text, line.start)
        if found is None or float(found["value"]) < 0:
            return None  # -1: no such boxes
        area = "" if found["area"] == "all" else found["area"][0]
        if found["what"] == "Recall":
            name = f"AR{area or found['boxes']}"
        else:
            iou = found["iou"]
            name = f"AP{area}" if ":" in iou else f"AP{round(100 * float(iou))}{area}"
        return Row(self.name, [Pair(name, float(found["value"]))], "eval")
