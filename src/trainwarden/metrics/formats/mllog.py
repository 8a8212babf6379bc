"""MLPerf's log lines: `:::MLLOG {"key": "eval_accuracy", "value": 0.75, …}` and those before it."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.names import canonical

_OLD = re.compile(r":::MLPv?\S* \S+ [\d.]+ \([^)]*\) (?P<key>\w+)(?:: (?P<value>.*))?\Z")
_PLACES = {"epoch": "epoch", "epoch_num": "epoch", "step": "step", "step_num": "step"}


class MLLog:
    """One event a line; those with a measured value are evaluations or step losses."""

    name: ClassVar[str] = "mllog"
    hints: ClassVar[tuple[str, ...]] = (":::ml",)
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:  # noqa: ARG002
        """The value of a result, with the epoch or step that its metadata names."""
        text = line.text
        begin = text.find(":::ML", line.start)
        if begin < 0:
            return None
        try:
            if text.startswith(":::MLLOG ", begin):
                event = json.loads(text[begin + 9 :])
                key, value, where = event["key"], event["value"], event.get("metadata") or {}
            elif (old := _OLD.match(text, begin)) and old["value"]:
                key, value = old["key"], json.loads(old["value"])
                where = value if isinstance(value, dict) else {}
            else:
                return None
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return _row(self.name, str(key), value, where)


def _row(format_: str, key: str, value: Any, where: Any) -> Row | None:
    if isinstance(value, dict):
        where = {**value, **(where if isinstance(where, dict) else {})}
        if key == "tracked_stats":
            places = _placed(where)
            stats = [
                Pair(name, float(number))
                for name, number in value.items()
                if type(number) in {int, float} and name not in _PLACES
            ]
            return Row(format_, places + stats) if places and stats else None
        value = value.get("value")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    meaning = canonical(key)[0]
    if not meaning.known or meaning.role != "result":
        return None
    pairs = [Pair(key, float(value)), *_placed(where)]
    return Row(format_, pairs, "eval" if key.startswith("eval") else None)


def _placed(where: Any) -> list[Pair]:
    if not isinstance(where, dict):
        return []
    return [
        Pair(role, float(at))
        for name, role in _PLACES.items()
        if isinstance(at := where.get(name), (int, float))
    ]
