"""NVIDIA's DLLogger: `DLL <time> - Epoch: 0 Iteration: 5  loss : 2.5 None`, and `DLLL {…}`.

https://github.com/NVIDIA/dllogger, logger.py: a step, then ` name : value unit` for each value. The
step is a tuple of up to three counts, or what the trainer makes of it: `Epoch: 0 Iteration: 5`.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Phase, Row
from trainwarden.metrics.names import canonical
from trainwarden.metrics.values import NUMBER, number_in, to_float

_TEXT = re.compile(r"\bDLL [\d-]+ [\d:.]+ - ?")
_JSON = re.compile(r"\bDLLL (?=\{)")
_VALUE = re.compile(
    rf"(?<![^\s:])(?P<name>[^\s:]+) : (?:(?P<num>{NUMBER})(?=\s|\Z)|\S*)"
    r"(?: (?P<unit>[^\s:]+)(?=\s|\Z)(?! : ))?"
)
_COUNT = re.compile(r"(?<![A-Za-z_ ])(?P<what>[A-Za-z_ ]+): *(?P<n>\d+)(?: */ *(?P<of>\d+))?")
_TUPLE = re.compile(r"[(\[](?:(\d+)(?:, ?(\d+))?(?:, ?(\d+))?,?)?[)\]]\Z")
_EVALUATION = re.compile(r"valid|eval|test")
_EPOCHS = frozenset({"epochs", "num_epochs", "num_train_epochs", "max_epochs"})
_STEPS = frozenset({"max_steps", "num_train_steps", "train_steps", "total_steps", "max_iter"})


class DLLogger:
    """A line is of a step, of an epoch, or of the whole run where it names no step."""

    name: ClassVar[str] = "dll"
    hints: ClassVar[tuple[str, ...]] = ("dll ", "dlll ")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The values by name, with where the run stands."""
        text = line.text
        if found := _TEXT.search(text):
            first = _VALUE.search(text, found.end())
            if first is None:
                return None
            places = _places(text[found.end() : first.start()], found.end())
            values = [
                Pair(m["name"], to_float(m["num"]), _unit(m["unit"]), m.span("num"))
                for m in _VALUE.finditer(text, first.start())
                if m["num"]
            ]
            return self._row(places, values, memory)
        if found := _JSON.search(text):
            try:
                event = json.loads(text[found.end() :])
                step, data = event["step"], event["data"]
            except (ValueError, KeyError, TypeError, RecursionError):
                return None
            if isinstance(data, dict):
                return self._row(_places(json.dumps(step).strip('"')), _numbers(data), memory)
        return None

    def _row(
        self,
        places: tuple[list[Pair], Phase | None] | None,
        values: list[Pair],
        memory: dict[str, object],
    ) -> Row | None:
        if places is None:  # the settings
            totals = [
                Pair("total_epochs" if pair.name in _EPOCHS else "total_steps", pair.value)
                for pair in values
                if pair.name in _EPOCHS | _STEPS and pair.value > 0
            ]
            return Row(self.name, totals, kind="totals") if totals else None
        if not values:
            return None
        pairs, phase = places
        if any(pair.name in {"step", "epoch_step"} for pair in pairs) and phase is None:
            for index, pair in enumerate(values):
                if pair.name == "final_loss" and isinstance(usual := memory.get("dll_loss"), str):
                    values[index] = pair._replace(name=usual)  # the last step's, named otherwise
                elif canonical(pair.name)[0].name == "loss" and "dll_loss" not in memory:
                    memory["dll_loss"] = pair.name
        spans = all(pair.span for pair in (*pairs, *values))
        return Row(self.name, pairs + values, phase, repeatable=spans and bool(pairs))


def _places(step: str, offset: int = 0) -> tuple[list[Pair], Phase | None] | None:
    """What a step says, and the phase; None where the line is one of settings."""
    lead = len(step) - len(step.lstrip())
    step = step.strip()
    if step.startswith("PARAMETER"):
        return None
    if step.isdigit():
        step = f"step: {step}"
        lead -= len("step: ")
    pairs: list[Pair] = []
    phase: Phase | None = None

    def pair(role: str, match: re.Match[str], group: int | str) -> Pair:
        begin, end = match.span(group)
        return Pair(role, float(match[group]), "", (begin + lead + offset, end + lead + offset))

    if counts := _TUPLE.match(step):
        told = [("epoch", counts, 1), ("step", counts, 2), ("validation", counts, 3)]
    else:
        told = [(match["what"].lower(), match, 2) for match in _COUNT.finditer(step)]
    for what, match, group in told:
        if match[group] is None:
            continue
        if _EVALUATION.search(what):
            phase = "eval"
        elif "epoch" in what:
            pairs.append(pair("epoch", match, group))
        elif match is counts or match["of"] is None:
            pairs.append(pair("step", match, group))
        else:
            inner = "epoch_step" if pairs else "step"
            pairs.append(pair(inner, match, group))
            pairs.append(pair(f"{inner}s" if pairs[:-1] else "total_steps", match, "of"))
    if not pairs and phase is None:
        phase = "summary"
    return pairs, phase


def _unit(unit: str | None) -> str:
    return "" if unit in {None, "None"} else str(unit)


def _numbers(data: dict[str, Any]) -> list[Pair]:
    pairs = []
    for name, value in data.items():
        if isinstance(value, str):
            number = number_in(value) if len(value) < 64 else None
        else:
            number = float(value) if type(value) in {int, float} else None
        if number is not None:
            pairs.append(Pair(str(name), number))
    return pairs
