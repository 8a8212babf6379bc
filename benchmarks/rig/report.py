"""What the rig found, as a table and as data."""

from __future__ import annotations

from statistics import median
from typing import Any

from rig.watch import Outcome


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """Recall over the faults, delays, false alarms over the twins, and each run."""
    done = [outcome for outcome in outcomes if not outcome.problem]
    faults = [outcome for outcome in done if outcome.case.fault and outcome.onset]
    twins = [outcome for outcome in done if not outcome.case.fault]
    caught = [delay for outcome in faults if (delay := outcome.data()["caught"])]
    alerted = [outcome for outcome in faults if outcome.alerted()]
    alarmed = [outcome for outcome in twins if outcome.false_alarms()]
    looks = sum(len(outcome.looks) for outcome in twins)
    wrong = sum(bool(look.kinds) for outcome in twins for look in outcome.looks)
    return {
        "faults": len(faults),
        "caught": len(caught),
        "recall": _share(len(caught), len(faults)),
        "alerted": len(alerted),
        "median_steps_to_finding": median([d["steps"] for d in caught]) if caught else None,
        "median_seconds_to_finding": median([d["seconds"] for d in caught]) if caught else None,
        "alarms_before_onset": sum(bool(outcome.false_alarms()) for outcome in faults),
        "twins": len(twins),
        "twins_with_false_alarm": len(alarmed),
        "twin_looks": looks,
        "twin_looks_with_false_alarm": wrong,
        "twins_healthy_at_end": sum(
            bool(outcome.looks) and outcome.looks[-1].status == "HEALTHY" for outcome in twins
        ),
        "not_carried_out": [outcome.case.name for outcome in outcomes if outcome not in done]
        + [o.case.name for o in done if o.case.fault and not o.onset],
        "runs": [outcome.data() for outcome in outcomes],
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


def _else(alerted: dict[str, Any] | None) -> str:
    if alerted is None:
        return "nothing told"
    return ", ".join(alerted["kinds"]) or f"status {alerted['status']} alone"


def row(outcome: Outcome) -> tuple[str, ...]:
    """One line of the table."""
    told, case = outcome.data(), outcome.case
    last = outcome.looks[-1].status if outcome.looks else "-"
    early = ", ".join(told["false_alarms"]) or "-"
    style = f"{case.trainer}/{case.settings.get('log_style', 'own')}"
    if outcome.problem:
        return (case.name, style, "NOT CARRIED OUT", "-", "-", "-", last, outcome.problem[:60])
    if not case.fault:
        verdict = "FALSE ALARM" if told["false_alarms"] else "quiet"
        return (case.name, style, verdict, "-", "-", "-", last, early)
    if outcome.onset is None:
        return (case.name, style, "NO ONSET", "-", "-", "-", last, early)
    caught = told["caught"]
    if caught is None:
        return (case.name, style, "MISSED", f"({_else(told['alerted'])})", "-", "-", last, early)
    named = ", ".join(caught["kinds"])
    steps, seconds = str(caught["steps"]), f"{caught['seconds']:.0f}"
    return (case.name, style, "caught", named, steps, seconds, caught["status"], early)


HEADER = ("run", "log", "result", "finding", "steps", "seconds", "status", "false alarms")


def table(rows: list[tuple[str, ...]]) -> str:
    """Columns of equal width."""
    rows = [HEADER, *rows]
    widths = [max(len(line[column]) for line in rows) for column in range(len(HEADER))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in rows)


def closing(told: dict[str, Any]) -> str:
    """The figures in two lines."""
    lines = []
    if told["faults"]:
        lines.append(
            f"faults: {told['caught']} of {told['faults']} named (recall {told['recall']}), "
            f"{told['alerted']} told of in any way; median {told['median_steps_to_finding']} steps "
            f"and {told['median_seconds_to_finding']} s from fault to finding; "
            f"{told['alarms_before_onset']} with a finding before the fault set in"
        )
    if told["twins"]:
        lines.append(
            f"twins: {told['twins_with_false_alarm']} of {told['twins']} with a false alarm "
            f"({told['twin_looks_with_false_alarm']} of {told['twin_looks']} looks), "
            f"{told['twins_healthy_at_end']} HEALTHY at the end"
        )
    if told["not_carried_out"]:
        lines.append(f"not carried out: {', '.join(told['not_carried_out'])}")
    return "\n".join(lines)
