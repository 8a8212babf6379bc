"""Records of one `name: number` a line under a head line: RLlib's results, Composer's batches."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.values import NUMBER, to_float

_HEAD = re.compile(
    r"Result for \S+:\s*\Z|\[(?:Eval )?batch=(?P<n>\d+)/(?P<total>\d+)\]:?\s*\Z"
    r"|={0,3} ?(?:Epoch|Iteration|Step) \d+ summary:?\s*\Z"
)
_ITEM = re.compile(
    rf"[ \t]+(?:(?:Train|Eval) (?=\w+/))?(?P<name>[A-Za-z_][\w/.@-]{{0,80}}): "
    rf"(?P<num>{NUMBER})\s*\Z"
)
_OTHER = re.compile(r"[ \t]+\S")


class Block:
    """Indented items under a head line, one record a block."""

    name: ClassVar[str] = "block"
    hints: ClassVar[tuple[str, ...]] = (": ", "]:", "result for", "summary")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The head, or one item of the block."""
        text, start = line.text, line.start
        if head := _HEAD.match(text, start):
            memory["block"] = True
            if head["n"] is None:
                return Row(self.name, [], kind="end")
            pairs = [Pair("step", float(head["n"])), Pair("total_steps", float(head["total"]))]
            return Row(self.name, pairs, kind="partial", label="head")
        if "block" not in memory:
            return None
        if item := _ITEM.match(text, start):
            return Row(self.name, [Pair(item["name"], to_float(item["num"]))], kind="partial")
        if not _OTHER.match(text, start):
            del memory["block"]
            return Row(self.name, [], kind="end")
        return None
