"""NVIDIA's DLLogger: `DLL <time> - Epoch: 0 Iteration: 9  loss : 2.5 None`; as JSON `DLLL {…}`."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.pairs import phase_of
from trainwarden.metrics.formats.scan import scan
from trainwarden.metrics.names import canonical

_HEAD = re.compile(r"\bDLL \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? - ")
_STEPLESS = re.compile(r"(?:\(\)|Summary:|SUMMARY)?\s")
_PLACES = ("epoch", "iteration")


class DLLogger:
    """What has no step sums up the run; the rest are step lines, left to the reader of those."""

    name: ClassVar[str] = "dll"
    hints: ClassVar[tuple[str, ...]] = ("dll ", "dlll ")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The values of a summary, or of a line that is JSON."""
        text = line.text
        at = text.find("DLLL {", 0, 200)
        if at >= 0:
            return self._json(text[at + 5 :])
        head = _HEAD.search(text, 0, 200)
        if head is None:
            return None
        pairs, _loose, words = scan(text, head.end())
        names = {canonical(pair.name)[0].name for pair in pairs}
        if "loss" in names and "step" in names:
            main = next(pair.name for pair in pairs if canonical(pair.name)[0].name == "loss")
            if main != "final_loss":
                memory["dll_loss"] = main
            elif isinstance(kept := memory.get("dll_loss"), str):
                # The last interval's loss, by another name.
                pairs = [p._replace(name=kept) if p.name == main else p for p in pairs]
                return Row(self.name, pairs, phase_of(text[head.end() :], words))
        if _STEPLESS.match(text, head.end()) and pairs and not names & {"step", "epoch"}:
            return Row(self.name, pairs, "summary")
        return None

    def _json(self, text: str) -> Row | None:
        try:
            event = json.loads(text)
            kind, step, data = event["type"], event["step"], event["data"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if kind != "LOG" or not isinstance(data, dict):
            return None
        places = step if isinstance(step, list) else [step]
        pairs = _numbers(dict(zip(_PLACES, places, strict=False)))
        values = _numbers(data)
        if not values:
            return None
        if len(places) == 3:  # a validation's own iteration
            return Row(self.name, [*pairs[:1], *values], "eval")
        return Row(self.name, pairs + values, None if pairs else "summary")


def _numbers(data: dict[str, Any]) -> list[Pair]:
    return [
        Pair(name, float(value))
        for name, value in data.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
    ]
