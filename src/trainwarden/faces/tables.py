"""Observations as compact tables: each cell is a name, the id that cites it, and the value.

What is said of several devices or processes stands in rows; what most of them have in common is
said once, with its ids as a range (`E84…E336`, in steps that the table's first line says).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from trainwarden.faces.streams import finding_line
from trainwarden.records.assessment import Criterion
from trainwarden.records.base import to_json_number
from trainwarden.records.finding import Finding, Severity
from trainwarden.records.hostile import clean
from trainwarden.records.observation import Observation
from trainwarden.records.prediction import Calibration, Comparison, Prediction
from trainwarden.records.shown import show_amount, show_value

Item = Mapping[str, Any]
"""An observation as gate 2 keeps it."""

ROOMS = ("log", "process", "gpu", "host", "disk", "checkpoint", "kernel")
"""What quantities that are no metric of the run begin with, in the order of their tables."""
UNTOLD = frozenset(
    (
        *("gpu.uuid", "gpu.pci_bus_id", "gpu.power_limit_default", "gpu.idle_power", "gpu.mig"),
        *("gpu.clock_sm_max", "gpu.clock_memory", "gpu.clock_memory_max", "gpu.performance_state"),
        *("gpu.persistence", "gpu.pcie_gen_max", "gpu.pcie_width_max", "gpu.memory_utilization"),
        *("gpu.ecc_corrected_aggregate", "gpu.ecc_uncorrected_aggregate"),
        *("host.uptime", "host.shm_total", "process.tree", "process.open_log"),
        *("disk.inodes_free", "gpu.pcie_replays"),
    )
)
"""Identities, maxima and the like: sealed in gate 2 as all others, but not printed."""
_SHOWN_UNITS = {"s", "W", "MHz", "bytes"}
_PLAIN = re.compile(r"[\w.,/:+@() -]*")
_ID = re.compile(r"(?<![^ ])E\d")
_NUMBERED = re.compile(r"(.*?)(\d+)")
_CUT = 160


def evidence(content: Mapping[str, Any]) -> list[str]:
    """Gate 2 as lines: what is missing, what disagrees, then the tables."""
    items: list[Item] = content["observations"]
    shown = [item for item in items if item["quantity"] not in UNTOLD]
    rooms: dict[str, list[Item]] = {room: [] for room in ROOMS}
    events, metrics, unread = [], [], {}
    for item in shown:
        room = item["quantity"].partition(".")[0]
        if room == "source":
            unread[item["source"]] = item["id"]
        elif item["quantity"] == "log.event" or (room == "kernel" and item["text"]):
            events.append(item)
        elif room in rooms and "." in item["quantity"]:
            rooms[room].append(item)
        else:
            metrics.append(item)
    lines = []
    for report in content["reports"]:
        if report["status"] != "ok":
            said = clean(report["message"], 300)
            cited = f" {unread[report['source']]}" if report["source"] in unread else ""
            lines.append(f"{report['source']}{cited} {report['status']}: {said}")
    lines += [
        f"disagreement on {item['quantity']}: {item['believed']} over {item['doubted']}"
        for item in content["disagreements"]
    ]
    lines += _metrics(metrics)
    for room, some in rooms.items():
        lines += _room(room, some)
    lines += [_event(item) for item in events]
    left = len(items) - len(shown)
    more = f"{left} more and all places" if left else "all places"
    lines.append(f"{more}: `trainwarden show --gate 2 | grep WORD`")
    return lines


def amount(value: Any, unit: str | None) -> str:
    """A value with its unit where the name does not tell it; words of a run in quotes."""
    if isinstance(value, str):
        return word(value, 80)
    if unit == "bytes/s":
        return show_amount(value, "bytes").removesuffix(" bytes") + "/s"
    if isinstance(value, float) and math.isfinite(value) and unit != "bytes":
        value = _rounded(value)
    return clean(show_amount(value, unit if unit in _SHOWN_UNITS else None), 80)


def _rounded(value: float) -> float | int:
    """Five significant digits, and no fraction of what is large or whole."""
    if value.is_integer() or abs(value) >= 1e5:
        return int(value) if value.is_integer() else round(value)
    return float(f"{value:.5g}")


def word(text: str, limit: int = 120) -> str:
    """A name or value of a run: in quotes where it could be taken for more than one word of it."""
    if _PLAIN.fullmatch(text) and not _ID.search(text):
        return clean(text, limit)
    return quoted(text, limit)


def quoted(text: str, limit: int = _CUT) -> str:
    """Words of a run: cleaned, cut, and in quotes that they cannot end."""
    return '"' + clean(text.replace('"', "'"), limit) + '"'


def ids(numbers: Sequence[int], stride: int) -> str:
    """Ids as ranges of the given stride: `E1…E9,E14`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number - runs[-1][-1] == stride:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts: list[str] = []
    for run in runs:
        if len(run) > 2:
            parts.append(f"E{run[0]}…E{run[-1]}")
        else:
            parts += [f"E{number}" for number in run]
    return ",".join(parts)


def _name(item: Item) -> str:
    """A quantity without its room, and its stat where it is not the last value."""
    room, _, rest = item["quantity"].partition(".")
    short = rest if room in ROOMS and rest else item["quantity"]
    return word(short if item["stat"] == "last" else f"{short}({item['stat']})")


def _cell(item: Item) -> str:
    # What could not be read says why.
    why = f" {quoted(item['text'])}" if item["value"] is False and item["text"] else ""
    return f"{_name(item)} {item['id']} {amount(item['value'], item['unit'])}{why}"


def _event(item: Item) -> str:
    at = "" if item["step"] is None else f"@{item['step']}"
    who = f" {word(item['subject'])}" if item["subject"] else ""
    text = f" {quoted(item['text'])}" if item["text"] else ""
    value = amount(item["value"], item["unit"])
    return f"{item['quantity']}{who} {item['id']} {value}{at}{text}"


# Metrics -----------------------------------------------------------------------------------------


def _commonest(values: Iterable[Any]) -> Any:
    counted = Counter(value for value in values if value is not None)
    return counted.most_common(1)[0][0] if counted else None


def _metrics(items: Sequence[Item]) -> list[str]:
    """A row a metric (and a log that is not the main one): its last value, then what else."""
    rows: dict[tuple[str, str | None, str], list[Item]] = {}
    for item in items:
        rows.setdefault((item["quantity"], item["subject"], item["source"]), []).append(item)
    if not rows:
        return []
    last = _commonest(item["step"] for item in items if item["stat"] == "last")
    first = _commonest(item["step"] for item in items if item["stat"] == "first")
    steps = [f"last at step {last}"] if last is not None else []
    steps += [f"first at {first}"] if first is not None else []
    steps += ["others @step"] if steps else []
    return [
        f"metrics ({', '.join(steps)})" if steps else "metrics",
        *(_metric(key, row, last, first) for key, row in rows.items()),
    ]


def _metric(key: tuple[str, str | None, str], row: list[Item], last: Any, first: Any) -> str:
    quantity, subject, source = key
    named = [word(quantity)] + [word(one) for one in (subject, source) if one and one != "log"]
    own = next((item["step"] for item in row if item["stat"] == "last"), last)
    label = " of ".join(named) + (f" @{own}" if own not in (None, last) else "")
    cells = []
    for item in row:
        stat = "" if item["stat"] == "last" else f"{word(item['stat'])} "
        usual = first if item["stat"] == "first" else own
        at = "" if item["step"] in (None, usual) else f"@{item['step']}"
        cells.append(f"{stat}{item['id']} {amount(item['value'], item['unit'])}{at}")
    return f"{label}: {' '.join(cells)}"


# Devices, processes, disks -----------------------------------------------------------------------


def _room(room: str, items: Sequence[Item]) -> list[str]:
    """A line for what has no subject or a subject of its own, a grid for what is numbered."""
    subjects: dict[str | None, list[Item]] = {}
    for item in items:
        subjects.setdefault(item["subject"], []).append(item)
    lines: list[str] = []
    grids: dict[str, dict[int, list[Item]]] = {}
    for subject, row in subjects.items():
        numbered = _NUMBERED.fullmatch(subject) if subject and word(subject) == subject else None
        if numbered:
            grids.setdefault(numbered[1], {})[int(numbered[2])] = row
        else:
            of = f" of {word(subject, 200)}" if subject else ""
            lines.append(f"{room}.*{of}: {' '.join(map(_cell, row))}")
    for prefix, rows in grids.items():
        lines += _grid(room, prefix, rows)
    return lines


def _grid(room: str, prefix: str, rows: Mapping[int, Sequence[Item]]) -> list[str]:
    """Rows by number; what more than half of the rows share is said once, ids as ranges."""
    if len(rows) == 1:
        ((number, row),) = rows.items()
        return [f"{room}.* of {prefix}{number}: {' '.join(map(_cell, row))}"]
    columns: dict[str, list[tuple[int, Item]]] = {}
    for number, row in rows.items():
        for item in row:
            columns.setdefault(_name(item), []).append((number, item))
    gaps = Counter(
        _id(later) - _id(item)
        for column in columns.values()
        for (_, item), (_, later) in pairwise(column)
    )
    stride = gaps.most_common(1)[0][0] if gaps else 1
    common: list[str] = []
    own: dict[int, list[str]] = {number: [] for number in rows}
    for name, column in columns.items():
        shown = [amount(item["value"], item["unit"]) for _, item in column]
        value, count = Counter(shown).most_common(1)[0]
        shared = len(column) > 1 and 2 * count > len(rows)
        if shared:
            cited = [
                _id(item) for (_, item), said in zip(column, shown, strict=True) if said == value
            ]
            common.append(f"{name} {ids(cited, stride)} {value}")
        for (number, item), said in zip(column, shown, strict=True):
            if not shared or said != value:
                own[number].append(_cell(item))
    told = f" (… in steps of {stride})" if any("…" in cell for cell in common) else ""
    lines = [f"{room}.* of {prefix}{_ranges(list(rows))}{told}: {' '.join(common)}".rstrip()]
    return lines + [
        f"{prefix}{number}: {' '.join(cells)}" for number, cells in own.items() if cells
    ]


def _id(item: Item) -> int:
    return int(item["id"][1:])


def _ranges(numbers: Sequence[int]) -> str:
    """`0-7,9`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


# Other tables ------------------------------------------------------------------------------------


def criteria(items: Iterable[Criterion], config: str | None) -> list[str]:
    """Criteria, one a line; of what the config says only the key."""
    own = f"{Path(config).name}: " if config else None
    lines = []
    for item in items:
        source = item.source.removeprefix(own) if own else item.source
        rule = " (a rule of thumb)" if item.rule_of_thumb else ""
        lines.append(f"{item.id} {item.name} {amount(item.value, item.unit)}: {source}{rule}")
    return lines


def calibration(counts: Mapping[str, Calibration]) -> list[str]:
    """How earlier predictions fared, in one line."""
    told = [
        f"{name} {one.held}/{one.held + one.missed} ({one.expected:.1f})"
        for name, one in counts.items()
        if one.held + one.missed
    ]
    return [f"held of observed so far (expected by level): {', '.join(told)}"] if told else []


def comparisons(compared: Iterable[Comparison], predictions: Iterable[Prediction]) -> list[str]:
    """Predictions against what was seen, one a line."""
    by_id = {prediction.id: prediction for prediction in predictions}
    lines = []
    for one in compared:
        made = by_id[one.prediction]
        named = one.quantity if made.stat == "last" else f"{one.quantity}({made.stat})"
        seen = f"{one.observation} {amount(one.actual, None)} " if one.observation else ""
        off = f" by {one.miss:.2g} widths" if one.miss not in (None, math.inf) else ""
        lines.append(f"{one.prediction} {named} {expected(made)}: {seen}{one.outcome}{off}")
    return lines


def expected(made: Prediction) -> str:
    """What was predicted: `1.2..1.6`, `0.5..`, `true|false`."""
    if made.one_of is not None:
        return "|".join(show_value(option) for option in made.one_of)
    low, high = (("" if end is None else show_value(end)) for end in (made.low, made.high))
    return f"{low}..{high}"


def findings(found: Sequence[Finding]) -> list[str]:
    """Findings, and of those that ask for something what they could mean and what to do."""
    lines = []
    for one in found:
        lines.append(finding_line(one.model_dump(mode="json")))
        if one.severity is not Severity.INFO:
            lines.append(f"  {one.role.value}; {one.evidence_type} {one.confidence:g}")
            parts = (
                ("means", one.meaning),
                ("or", "; ".join(one.alternatives)),
                ("first", one.first_action),
            )
            lines += [f"  {word}: {text}" for word, text in parts if text]
    return lines or ["findings: none"]


def place(item: Observation) -> str:
    """Where in a file an observation can be seen again, short; the subject tells the rest."""
    where = item.place
    if not where.file:
        return ""
    at = "" if where.offset is None else f"@{where.offset}"
    return f", {Path(where.file).name}{at}" + (" (derived)" if where.api == "derived" else "")


def observation(item: Observation) -> str:
    """One observation with its place, in a line."""
    stat = "" if item.stat == "last" else f"({item.stat})"
    who = f" {item.subject}" if item.subject else ""
    at = "" if item.step is None or item.quantity == "step" else f"@{item.step}"
    text = f" {quoted(item.text)}" if item.quantity == "log.event" and item.text else ""
    value = amount(to_json_number(item.value), item.unit)
    return f"{item.id} {item.quantity}{stat}{who} {value}{at}{place(item)}{text}"
