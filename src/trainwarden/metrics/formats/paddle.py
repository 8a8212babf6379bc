"""Tensors that PaddlePaddle's executor prints: a head line with a name, and data some lines below.

`Executor.train_from_dataset(fetch_list, fetch_info)` of paddle.fluid: the head is what the trainer
passes as `fetch_info`, such as `Epoch 3 Var cost`.
"""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.values import NUMBER, to_float

_HEAD = re.compile(r"(?P<info>[^\t]{1,100})\t[^\t]+\t\s*- place: ")
_EPOCH = re.compile(r"(?i)\bepoch:? (?P<epoch>\d+)")
_DATA = re.compile(rf"\s*- data: \[(?P<num>{NUMBER})\]")
_WORD = re.compile(r"[A-Za-z]\w*\Z")


class PaddleTensor:
    """`Epoch 0 Var cost<tab>mean_1.tmp_0<tab>  - place: …`, then `  - data: [0.5]`."""

    name: ClassVar[str] = "paddle"
    hints: ClassVar[tuple[str, ...]] = ("- place: ", "- data: [")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The tensor's number under the last word of its head, where there is just one."""
        if head := _HEAD.match(line.text, line.start):
            name, epoch = _WORD.search(head["info"].strip()), _EPOCH.search(head["info"])
            memory["paddle"] = [name[0] if name else "", float(epoch["epoch"]) if epoch else None]
            return None
        held = memory.get("paddle")
        data = _DATA.match(line.text) if isinstance(held, list) and held[0] else None
        if data is None:
            return None
        del memory["paddle"]
        pairs = [] if held[1] is None else [Pair("epoch", held[1])]  # type: ignore[index]
        return Row(self.name, [*pairs, Pair(held[0], to_float(data["num"]))])  # type: ignore[index]
