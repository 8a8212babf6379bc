"""Records of one `name: number` a line under a head line: RLlib, Composer, RSL-RL."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.values import NUMBER, to_float

_HEAD = re.compile(
    r"Result for \S+:\s*\Z|\[(?:Eval )?batch=(?P<n>\d+)/(?P<total>\d+)\]:?\s*\Z"
    r"|\s*Learning iteration (?P<it>\d+)/(?P<of>\d+)\s*\Z"
)
_ITEM = re.compile(
    rf"[ \t]+(?:(?:Train|Eval) (?=\w+/))?(?P<name>[A-Za-z_][\w/.@ -]{{0,80}}): "
    rf"(?P<num>{NUMBER})\s*\Z"
)
_ENDS = frozenset("0123456789: ")
_OTHER = re.compile(r"[ \t]+\S")


class Block:
    """Indented items under a head line, one record a block."""

    name: ClassVar[str] = "block"
    hints: ClassVar[tuple[str, ...]] = ()
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The head, or one item of the block."""
        text, start = line.text, line.start
        if "block" not in memory and text[-1:] not in _ENDS:
            return None
        if head := _HEAD.match(text, start):
            memory["block"] = "rounds" if head["it"] else "block"
            step, total = (head["n"] or head["it"]), (head["total"] or head["of"])
            if step is None:
                return Row(self.name, [], kind="end")
            pairs = [Pair("step", float(step)), Pair("total_steps", float(total))]
            return Row(self.name, pairs, kind="partial", label="head")
        if "block" not in memory:
            return None
        if memory["block"] == "rounds" and "Total timesteps:" in text:
            return Row(self.name, [], kind="end")  # the steps are those of the head line
        if item := _ITEM.match(text, start):
            return Row(self.name, [Pair(item["name"], to_float(item["num"]))], kind="partial")
        if not _OTHER.match(text, start) and not text.startswith("-----"):
            del memory["block"]
            return Row(self.name, [], kind="end")
        return Row(self.name, [], kind="partial")
