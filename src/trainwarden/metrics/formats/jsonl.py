"""JSON lines, and the innermost objects of indented JSON such as `trainer_state.json`."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

import orjson

from trainwarden.metrics.formats.base import (
    PHASES,
    SPLITS,
    Line,
    Pair,
    Phase,
    Row,
    Span,
)
from trainwarden.metrics.formats.dicts import _SUMMARY, counted, measured
from trainwarden.metrics.values import PLAIN, number_in

_LEAD = re.compile(r"[\w.-]{1,40} ?[|:] (?=\{\")")
"""What a logger's name leaves before an object: fairseq's `train_inner | {…}`."""
MAX_LINES = 600
_HUGE = 10**300
"""Integers from here on have no place among floats."""
_MAX_STEPS = re.compile(r'"max_steps": ?(\d+),?\Z')
_REACHED = re.compile(r'"global_step": ?(\d+)')
"""In a `trainer_state.json` before its records, of which the last one may be of an earlier step."""
_VALUE = re.compile(
    rf""""(?:[^"\\]|\\.)*"\s*:
    |"(?P<number>{PLAIN})"(?!\s*:)|"(?P<text>(?:[^"\\]|\\.)*)"
    |(?P<strict>-?(?:\d[\d.eE+-]*|NaN|Infinity))""",
    re.VERBOSE,
)
"""A key, a number in quotes, other text in quotes, a number."""
_DIGIT = re.compile(r"\d")
_DECODER = json.JSONDecoder()
_MEASURED: dict[tuple[str | None, ...], bool] = {}
"""Whether objects with these keys are measurements: known from earlier ones."""


class JsonLines:
    """One JSON object per line, numbers possibly nested or quoted."""

    hints: ClassVar[tuple[str, ...]] = ()
    exclusive: ClassVar[bool] = True
    name: ClassVar[str] = "jsonl"

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The object's numbers, nested keys joined by `/`."""
        if memory.get("json_list") and line.text.strip(" \t") in {"]", "],"}:
            # The list of records ends: what follows belongs to the object around it.
            del memory["json_list"]
            memory["json"] = ["{"]
            return None
        if '"log_history"' in line.text:
            if line.offset and line.text[0] == "{":
                return None  # ms-swift's last line holds again what the lines before it said
            if rows := _history(line.text):
                memory.pop("json", None)
                return rows
        if "json" not in memory and line.text[-1:] not in {"{", "}", ",", " "}:
            return None
        text = line.text[line.start :].strip(" \t")
        if '"' in text[:60] and (lead := _LEAD.match(text)):
            row = self._object(text[lead.end() :])
            if row is not None and row.kind == "metrics":
                return row
        if "json" not in memory and (text[:1] not in {"{", '"'} or text[-1:] == " "):
            return None
        return self._block(text, memory) if not _whole(text) else self._object(text)

    def spans(self, text: str, memory: dict[str, object]) -> tuple[Row, list[Span]] | None:  # noqa: ARG002
        """The row of an object on a line of its own, and where its numbers and strings stand."""
        if text[:1] != "{" or text[-1:] != "}" or "log_hi" in text:
            return None
        row = self._object(text)
        if row is None or row.key is None or row.kind != "metrics":
            return None
        spans: list[Span] = []
        values: list[float] = []
        for found in _VALUE.finditer(text):
            begin, end = found.span(found.lastgroup or 0)
            if found["strict"]:
                spans.append(Span(begin, end, "strict", PLAIN))
            elif found["number"] and end - begin < 64:
                spans.append(Span(begin, end, "number", PLAIN))
            else:
                if found["text"] and _DIGIT.search(text, begin, end):
                    spans.append(Span(begin, end, "text", r'[^"\\]*'))
                continue
            values.append(float(text[begin:end]))
        # What is named twice or stands in a list is not told apart here.
        return (row, spans) if repr(values) == repr([pair.value for pair in row.pairs]) else None

    def _object(self, text: str) -> Row | None:
        data = _loaded(text)
        return row_of(data) if isinstance(data, dict) else None

    def _block(self, text: str, memory: dict[str, object]) -> Row | None:
        """Collect an indented object over lines; only innermost ones are records."""
        held = memory.get("json")
        if text.endswith("{") and (len(text) == 1 or text.endswith(": {") or text[0] == "{"):
            memory["json"] = [text[text.rfind("{") :]]
            return None
        if text.startswith('{"') and text.endswith(","):
            memory["json"] = [text]
            return None
        if not isinstance(held, list):
            return None
        if found := _MAX_STEPS.match(text):
            return _planned(found[1], memory.pop("reached", None))
        if text.endswith("["):
            # A list inside: what was collected belongs to an outer object.
            if '"log_history"' in text and (reached := _REACHED.search(" ".join(held))):
                memory["reached"] = reached[1]
            memory["json"] = ["{"]
            memory["json_list"] = True
            return None
        if text[:1] == "}" or text.endswith("}"):
            del memory["json"]
            joined = " ".join([*held, text.rstrip(",")])
            return self._object(joined)
        if text[:1] != '"' or len(held) >= MAX_LINES:
            if text[:1] not in {"-", "]"} and not text[:1].isdigit():
                del memory["json"]
            return None
        held.append(text)
        return None


def _loaded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:  # NaN, and much else that is no JSON either
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None


def _history(text: str) -> Row | None:
    """The records of a `trainer_state.json` written on one line, as far as it goes."""
    begin = re.search(r'"log_history": ?\[ ?', text)
    if begin is None:
        return None
    rows: list[Row] = []
    position = begin.end()
    while text.startswith("{", position):
        try:
            data, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if (row := row_of(data)) is not None:
            rows.append(row)
        while text[position : position + 1] in {",", " "}:
            position += 1
    if found := re.search(r'"max_steps": ?(\d+)', text):
        reached = _REACHED.search(text, 0, begin.start())
        rows.append(_planned(found[1], reached[1] if reached else None))
    if not rows:
        return None
    rows[0].more = tuple(rows[1:])
    return rows[0]


def _planned(steps: str, reached: object) -> Row:
    """How many steps there are to be, and how many were made, where that is known."""
    pairs = [Pair("max_steps", float(steps))]
    if isinstance(reached, str):
        pairs.append(Pair("step", float(reached)))
    return Row("jsonl", pairs, kind="totals")


def _whole(text: str) -> bool:
    return text.startswith("{") and text.endswith("}") and len(text) > 2


def row_of(data: dict[str, Any]) -> Row | None:
    """A row of an object's numbers, or None where it measures nothing."""
    pairs: list[Pair] = []
    phase: Phase | None = None
    for key in SPLITS:
        if isinstance(named := data.get(key), str):
            phase = PHASES.get(named.lower(), phase)
    _flatten(data, "", pairs)
    shape = (phase, *[pair.name for pair in pairs])
    known = _MEASURED.get(shape)
    if known is not None:
        return Row("jsonl", pairs, phase, key=shape) if known else None
    names = {pair.name for pair in pairs}
    if names & _SUMMARY:
        return Row("jsonl", pairs, "summary")
    if "log_history" in data or ("max_steps" in names and "global_step" in names):
        totals = [pair for pair in pairs if pair.name in {"max_steps", "num_train_epochs"}]
        return Row("jsonl", totals, kind="totals") if totals else None
    if len(_MEASURED) > 500:
        _MEASURED.clear()
    known = _MEASURED[shape] = measured(pairs)
    return Row("jsonl", pairs, phase, key=shape) if known else None


def _flatten(data: dict[str, Any], head: str, pairs: list[Pair], depth: int = 0) -> None:
    for key, value in data.items():
        name = f"{head}{key}"
        if isinstance(value, dict):
            if depth < 4:
                _flatten(value, f"{name}/", pairs, depth + 1)
        elif isinstance(value, bool) or value is None:
            continue
        elif isinstance(value, (int, float)):
            if not (isinstance(value, int) and abs(value) >= _HUGE):
                pairs.append(Pair(name, float(value)))
        elif isinstance(value, str) and len(value) < 64:
            if "/" in value:
                count, _slash, total = value.partition("/")
                role = counted(name)
                if role and count.strip().isdigit() and total.strip().isdigit():
                    pairs.append(Pair(role, float(count)))
                    pairs.append(Pair(f"total_{role}s", float(total)))
            elif (number := number_in(value)) is not None:
                pairs.append(Pair(name, number))
        elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], float):
            pairs.append(Pair(name, value[0]))
