"""PaddlePaddle: tensors that its executor prints, and the step lines of its suites.

A tensor has a head line with a name, and data some lines below.
`Executor.train_from_dataset(fetch_list, fetch_info)` of paddle.fluid: the head is what the trainer
passes as `fetch_info`, such as `Epoch 3 Var cost`.
"""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.scan import scan
from trainwarden.metrics.values import NUMBER, to_float

_HEAD = re.compile(r"(?P<info>[^\t]{1,100})\t[^\t]+\t\s*- place: ")
_EPOCH = re.compile(r"(?i)\bepoch:? (?P<epoch>\d+)")
_DATA = re.compile(rf"\s*- data: \[(?P<num>{NUMBER})\]")
_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]\w{0,200}\Z")
# PaddleDetection before 2.0: iter: 20, lr: 0.001, 'loss_cls': '0.5', 'loss': '2.5', eta: 1:02:03
_QUOTED = re.compile(rf"iter: \d+, lr: {NUMBER}(?:, '\w+': '{NUMBER}')+")
_PAIR = re.compile(rf"'?(?<!\w)(?P<name>\w+)'?: '?(?P<num>{NUMBER})")
# PaddleSeg counts over all epochs: [TRAIN] epoch: 3, iter: 120/500, loss: 2.5
_SEG = re.compile(r"(?:\[TRAIN\] )?epoch: (?P<epoch>\d+), (?=iter: \d+/\d+, loss: )")


class PaddleTensor:
    """`Epoch 0 Var cost<tab>mean_1.tmp_0<tab>  - place: …`, then `  - data: [0.5]`."""

    name: ClassVar[str] = "paddle"
    hints: ClassVar[tuple[str, ...]] = ("- place: ", "- data: [", "iter: ")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The tensor's number under the last word of its head, where there is just one."""
        if head := _HEAD.match(line.text, line.start):
            name, epoch = _WORD.search(head["info"].strip()), _EPOCH.search(head["info"])
            memory["paddle"] = [name[0] if name else "", float(epoch["epoch"]) if epoch else None]
            return None
        if found := _QUOTED.match(line.text, line.start):
            items = _PAIR.finditer(line.text, line.start, found.end())
            return Row(
                "text", [Pair(m["name"], to_float(m["num"]), "", m.span("num")) for m in items]
            )
        if found := _SEG.match(line.text, line.start):
            pairs, loose, _words = scan(line.text, found.end())
            place = Pair("epoch", float(found["epoch"]), "", found.span("epoch"))
            return Row("text", [place, *pairs], loose=loose, repeatable=True)
        held = memory.get("paddle")
        data = _DATA.match(line.text) if isinstance(held, list) and held[0] else None
        if data is None:
            return None
        del memory["paddle"]
        pairs = [] if held[1] is None else [Pair("epoch", held[1])]  # type: ignore[index]
        return Row(self.name, [*pairs, Pair(held[0], to_float(data["num"]))])  # type: ignore[index]
