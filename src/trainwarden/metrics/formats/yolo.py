"""Ultralytics' console: an epoch's losses before its bar, its scores in a table."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.values import NUMBER, to_float

_HEAD = re.compile(r"\s*Epoch\s+gpu_mem\s+(?P<names>\w[\w\s]*)\Z", re.IGNORECASE)
_EPOCH = re.compile(
    rf"\s*(?P<epoch>\d+)/(?P<total>\d+)\s+(?P<mem>[\d.]+)G(?P<values>(?:\s+{NUMBER})+):?\s+"
    r"(?P<pct>\d+)%"
)
_ALL = re.compile(
    r"\s+all\s+(?:[\d.e+]+\s+[\d.e+]+(?P<values>(?:\s+\d[\d.e-]*){4,8})|(?P<tops>\d\.\d+\s+\d\.?\d*))\s*\Z"
)
_PARTS = {"box": "box_loss", "obj": "obj_loss", "cls": "cls_loss"}
"""The losses as YOLOv5 calls them."""
_SCORES = ("precision", "recall", "mAP50", "mAP50-95")
_SECOND = tuple(f"{name}(M)" for name in _SCORES)
"""Of masks or poses, after those of boxes."""


class Yolo:
    """`1/3  2.61G  1.2  3.2  1.5  25  640: 100%|███| 50/50`, and `all  128  929  0.64 …`."""

    name: ClassVar[str] = "yolo"
    hints: ClassVar[tuple[str, ...]] = ("gpu_mem", "g  ", " all ")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """An epoch's values where its bar is full, and the scores over all classes."""
        text = line.text
        if head := _HEAD.match(text, line.start):
            memory["yolo"] = head["names"].split()
            return None
        names = memory.get("yolo")
        if not isinstance(names, list):
            return None
        if scores := _ALL.match(text):
            values = map(to_float, (scores["values"] or scores["tops"]).split())
            titles = (*_SCORES, *_SECOND) if scores["values"] else ("top1_acc", "top5_acc")
            pairs = [Pair(name, value) for name, value in zip(titles, values, strict=False)]
            return Row(self.name, pairs, "eval")
        found = _EPOCH.match(text, line.start)
        if found is None:
            return None
        if found["pct"] != "100":
            return Row(self.name, [], kind="bar", label="download")
        pairs = [Pair("epoch", float(found["epoch"])), Pair("total_epochs", float(found["total"]))]
        pairs.append(Pair("gpu_mem", float(found["mem"]), "GB"))
        values = map(to_float, found["values"].split())
        pairs += [
            Pair(_PARTS.get(name, name), value)
            for name, value in zip(names, values, strict=False)
            if name.lower() not in {"instances", "size", "labels", "img_size"}
        ]
        return Row(self.name, pairs)
