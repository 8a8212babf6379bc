"""NeMo-RL: bulleted results under the title of a step, parted into sections."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.values import NUMBER, to_float

_TITLE = re.compile(r"\s*=+ (?P<what>Step|Epoch) (?P<n>\d+)/(?P<of>\d+) =+\s*\Z")
_SECTION = re.compile(r"[^A-Za-z]*(?P<eval>Initial |Final )?(?P<name>[A-Za-z ]{4,40}):\s*\Z")
# The bullet is three bytes here: a character for each byte.
_ITEM = re.compile(
    r"\s+(?:\xe2\x80\xa2|-) (?P<name>[A-Za-z][\w /().@-]{1,60}): "
    rf"(?P<num>{NUMBER})(?P<unit>s|%| tokens)?(?= \(|\s*\Z)"
)


class Rounds:
    """`===== Step 3/100 =====`, then `  • Loss: 0.12` and its like."""

    name: ClassVar[str] = "rounds"
    hints: ClassVar[tuple[str, ...]] = ("==", ":")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """One result, with the step whose title stands above it."""
        text, start = line.text, line.start
        if title := _TITLE.match(text, start):
            place = [float(title["n"]), float(title["of"])]
            memory["round" if title["what"] == "Step" else "round_epoch"] = place
            return Row(self.name, _place(memory)) if title["what"] == "Step" else None
        if "round" not in memory:
            return None
        if item := _ITEM.match(text, start):
            name, unit = item["name"], item["unit"] or ""
            if memory.get("round_timed") and name.lower() != "total step time":
                return Row(self.name, [], kind="end")
            pairs = [*_place(memory), Pair(name, to_float(item["num"]), unit.strip())]
            return Row(self.name, pairs, "eval" if memory.get("round_eval") else None)
        if section := _SECTION.match(text, start):
            told = section["name"].lower()
            for key, wanted in (("round_eval", "valid" in told), ("round_timed", "tim" in told)):
                if bool(memory.get(key)) != wanted:
                    memory[key] = wanted
        return None


def _place(memory: dict[str, object]) -> list[Pair]:
    """Where the last titles say that the run is; steps count in their epoch from the second on."""
    step, epoch = memory.get("round"), memory.get("round_epoch")
    if not isinstance(step, list):
        return []
    if isinstance(epoch, list) and epoch[0] > 1:
        pairs = [Pair("epoch", epoch[0]), Pair("total_epochs", epoch[1])]
        return [*pairs, Pair("epoch_step", step[0]), Pair("epoch_steps", step[1])]
    return [Pair("step", step[0]), Pair("total_steps", step[1])]
