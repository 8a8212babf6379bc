"""What runs print in their own words: memory line by line, and tables that compare runs.

Text that the log reader has no series for. Only lines that are alike but for their numbers are
compared, and only in the last lines that are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from trainwarden.diagnosis.base import View
from trainwarden.diagnosis.course import order_chance
from trainwarden.diagnosis.text import figure
from trainwarden.metrics.reading import Reading
from trainwarden.records.finding import Finding, Severity

LEAST = 6
"""Lines alike that a growth must be seen in."""
_NUMBER = r"[-+]?\d{1,15}(?:\.\d{1,12})?(?:[eE][-+]?\d{1,3})?"
_SCALES = {"k": 2.0**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20}
_HOST = re.compile(
    r"(?<![\w.])(rss|uss|resident|(?:host|cpu|ram|sys(?:tem)?)[ _-]?(?:mem(?:ory)?|usage|used)"
    r"|ram|memory (?:info )?of cpu)\b(?:[^\d]{0,30}total:? ?[\d.]{1,12} ?\w{0,3}, ?)?"
    r"[^\d]{0,20}?(used|available|free)?[^\d]{0,12}(" + _NUMBER + r") ?(([kmgt])i?b|%)",
    re.IGNORECASE,
)


def detect_printed_leak(view: View) -> Iterator[Finding]:
    """Host memory that the run prints as text, growing from line to line."""
    if view.series("memory") is not None:
        return
    for reading in view.readings:
        told: dict[str, list[tuple[int, float]]] = {}
        for offset, text in reading.tail:
            found = _HOST.search(text)
            if found is None:
                continue
            less = (found[2] or "").lower() in ("available", "free")
            value = float(found[3]) * _SCALES.get((found[5] or "m").lower(), 1.0)
            told.setdefault(f"{found[1]} {found[2] or ''}".strip().lower(), []).append(
                (offset, -value if less else value)
            )
        for name, points in told.items():
            if finding := _growth(view, name, points):
                yield finding
                return


def _growth(view: View, name: str, points: list[tuple[int, float]]) -> Finding | None:
    points = points[1:] if len(points) > LEAST else points  # the first is before anything was made
    values = [value for _, value in points]
    if len(values) < LEAST or order_chance(values, rising=True) > 0.003:
        return None
    first, last = abs(values[0]), abs(values[-1])
    falling = values[0] < 0  # what is free
    if falling and first - last < max(256.0, 0.002 * first):
        return None
    if not falling and last < 1.1 * first:
        return None
    cited = view.cite_log()
    if not cited:
        return None
    # A few values that rise can be a cache on its way to its limit.
    little = first - last < 0.1 * first if falling else last < 1.5 * first
    return Finding(
        kind="memory_leak",
        severity=Severity.INFO if little else Severity.WARNING,
        observations=cited,
        summary=f"The host memory that the run prints ({name}) went from {figure(first)} to "
        f"{figure(last)} MiB over {len(values)} lines, nearly every one beyond the one before.",
        meaning="Memory that only grows ends in a kill by the kernel, often at an evaluation.",
        alternatives=(
            "A cache that will reach its limit",
            "Data held on purpose (metrics, predictions, replay buffer)",
        ),
        first_action="Follow the resident memory of parent and workers over some hundred steps; "
        "note which of them grows.",
        evidence_type="inference",
        confidence=0.5,
    )


@dataclass(frozen=True)
class _Table:
    """A table in text: names of its columns and rows of numbers."""

    names: list[str]
    rows: list[list[float]]

    def column(self, pattern: str) -> list[float] | None:
        """The first column whose name matches."""
        for index, name in enumerate(self.names):
            if re.search(pattern, name):
                return [row[index] for row in self.rows]
        return None


def _tables(reading: Reading) -> Iterator[_Table]:
    names: list[str] = []
    rows: list[list[float]] = []
    for _, text in [*reading.tail, (0, "")]:
        cells = [cell.strip() for cell in text.strip().strip("|").split("|")] if "|" in text else []
        values = _numbers(cells)
        if values and len(values) == len(names):
            rows.append(values)
        elif cells and all(re.fullmatch(r":?-{1,40}:?", cell) for cell in cells):
            continue
        else:
            if len(rows) >= 3:
                yield _Table(names, rows)
            names, rows = [cell.lower() for cell in cells], []


def _numbers(cells: list[str]) -> list[float] | None:
    if len(cells) < 3 or not all(re.fullmatch(_NUMBER, cell) for cell in cells):
        return None
    return [float(cell) for cell in cells]


def detect_table_of_losses(view: View) -> Iterator[Finding]:
    """A table of runs whose losses go with the number of accumulated batches."""
    for reading in view.readings:
        for table in _tables(reading):
            steps, loss = table.column(r"grad\w* ?acc|accumul"), table.column(r"\bloss\b")
            if steps is None or loss is None or min(*steps, *loss) <= 0:
                continue
            ratios = [value / step for value, step in zip(loss, steps, strict=True)]
            apart = max(steps) / min(steps)
            if apart < 2 or max(ratios) > 1.8 * min(ratios) or max(loss) < 0.5 * apart * min(loss):
                continue
            yield _scaled(
                view,
                f"the loss of runs that differ in accumulated batches ({figure(min(steps))} to "
                f"{figure(max(steps))}) goes with their number ({figure(min(loss))} to "
                f"{figure(max(loss))})",
            )
            return


def detect_table_of_kl(view: View) -> Iterator[Finding]:
    """A table whose KL column grows beyond all bounds from row to row."""
    for reading in view.readings:
        for table in _tables(reading):
            kl = table.column(r"^(?:approx_?|mean_?|policy_?)?kl(?:_?div)?$")
            if kl is None or kl[-1] < 1 or kl[-1] < 10 * max(kl[0], 1e-3) or sorted(kl) != kl:
                continue
            cited = view.cite_log()
            if not cited:
                continue
            yield Finding(
                kind="rl_kl_explosion",
                severity=Severity.CRITICAL,
                observations=cited,
                summary=f"In the table that the run prints, KL goes from {figure(kl[0])} to "
                f"{figure(kl[-1])} within {len(kl)} rows.",
                meaning="One update moves the policy far from the one that drew the samples.",
                alternatives=("A learning rate too high", "Too many passes over the same samples"),
                first_action="Stop passes at a target KL, or lower the learning rate; go back to "
                "the checkpoint before.",
                evidence_type="inference",
                confidence=0.65,
            )
            return


def detect_scaled_runs(view: View) -> Iterator[Finding]:
    """Two runs of one schedule in a log, one with a multiple of the other's loss."""
    loss, rate = view.series("loss"), view.series("learning_rate")
    if loss is None or rate is None or not 6 <= loss.count == rate.count <= 400:
        return
    rates, losses = [p.value for p in rate.points()], [p.value for p in loss.points()]
    half, odd = divmod(len(rates), 2)
    if odd or rates[:half] != rates[half:] or len(set(rates[:half])) < 3:
        return
    said = any("accumul" in text.lower() for r in view.readings for _, text in r.tail)
    if not said or min(losses) <= 0:
        return
    ratios = [b / a for a, b in zip(losses[:half], losses[half:], strict=True)]
    ratio = max(median(ratios), 1 / median(ratios))
    even = max(ratios) < 1.1 * min(ratios)
    if not even or round(ratio) < 2 or abs(ratio - round(ratio)) > 0.1:
        return
    yield _scaled(
        view,
        f"of two runs with the same schedule one has {figure(round(ratio))} times the other's "
        "loss at each of its values, and accumulation is what differs",
    )


def _scaled(view: View, told: str) -> Finding:
    return Finding(
        kind="accumulation_scaling",
        severity=Severity.WARNING,
        observations=view.cite("loss", "first", "last") or view.cite_log(),
        summary=told[0].upper() + told[1:] + ".",
        meaning="The loss is summed over accumulated batches instead of averaged, and so may the "
        "gradients be: the effective learning rate is larger by that factor.",
        alternatives=("Only what is printed is summed, and gradients are right",),
        first_action="Compare loss and gradient norm of one step with and without accumulation "
        "at the same total batch.",
        evidence_type="inference",
        confidence=0.65,
    )


_DEVICES = re.compile(r"\b(\d{1,5}) ?(?:x ?)?(?:gpus?|devices|workers|ranks|processes)\b", re.I)
_TOTAL = re.compile(
    r"\b(?:total|overall|aggregate|global)\b.{0,20}\b(?:images|samples|tokens|examples|sentences|"
    r"words)(?:/| per )s(?:ec(?:ond)?)?\b\W{0,4}(" + _NUMBER + ")",
    re.IGNORECASE,
)


def detect_lost_scaling(view: View) -> Iterator[Finding]:
    """More devices that do less together, where a log tells both."""
    for reading in view.readings:
        devices, seen = 0, list[tuple[int, float]]()
        for _, text in reading.tail:
            if found := _DEVICES.search(text):
                devices = int(found[1])
            if devices and (found := _TOTAL.search(text)):
                seen.append((devices, float(found[1])))
        seen.sort()
        worse = [(a, b) for a, b in pairwise(seen) if b[0] > a[0] and b[1] < 0.9 * a[1]]
        cited = view.cite_log()
        if not worse or not cited:
            continue
        few, many = worse[-1]
        yield Finding(
            kind="step_time_regression",
            severity=Severity.WARNING,
            observations=cited,
            summary=f"{many[0]} devices do {figure(many[1])} a second together where {few[0]} did "
            f"{figure(few[1])}.",
            meaning="Exchange between the devices costs more than they add.",
            alternatives=(
                "A slow or wrongly chosen network between the nodes",
                "Input that all of them share",
                "Smaller batches on each device",
            ),
            first_action="Measure the bandwidth between two nodes, and which interface the "
            "collectives use.",
            evidence_type="observation",
            confidence=0.8,
        )
        return
