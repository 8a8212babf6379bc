"""DeepSpeed-Chat: how long a run will be, from its epochs, their batches and DeepSpeed's timer."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.scan import scan

_EPOCH = re.compile(
    r"Beginning of Epoch \d+/(?P<epochs>\d+), Total (?P<what>Micro|Generation) Batches (?P<n>\d+)"
)
# The count of micro-steps begins anew with each epoch: it is that of the run in the first one.
_TIMER = re.compile(r"epoch=0/micro_step=(?P<micro>[1-9]\d*)/global_step=(?P<step>[1-9]\d*),")


class DeepSpeedChat:
    """`Beginning of Epoch 1/2, Total Micro Batches 40`, `epoch=0/micro_step=40/global_step=10`."""

    name: ClassVar[str] = "deepspeed"
    hints: ClassVar[tuple[str, ...]] = (" batches ", "epoch=0/micro_step=")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The steps of the run, once both lines were seen; the timer's line with them."""
        text, start = line.text, line.start
        if found := _EPOCH.match(text, start):
            batches = int(found["epochs"]) * int(found["n"])
            if found["what"] == "Micro":
                if memory.get("micro_batches") != batches:
                    memory["micro_batches"] = batches
                return Row(self.name, [], "train", kind="totals")
            return Row(self.name, [Pair("total_steps", float(batches))], "train", kind="totals")
        planned, timer = memory.get("micro_batches"), _TIMER.match(text, start)
        if timer is None or not isinstance(planned, int):
            return None
        each, rest = divmod(int(timer["micro"]), int(timer["step"]))
        if rest or not each:
            return None
        del memory["micro_batches"]
        pairs, loose, _words = scan(text, start)
        total = Row(self.name, [Pair("total_steps", float(planned // each))], kind="totals")
        return Row("text", pairs, loose=loose, more=(total,))
