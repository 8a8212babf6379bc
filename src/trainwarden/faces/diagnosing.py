"""The `diagnose` command: what a finished log tells, without a session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainwarden.errors import Refusal
from trainwarden.faces.clients import shows_evidence
from trainwarden.faces.streams import emit_json, json_option, read_input, say

if TYPE_CHECKING:
    from trainwarden.analysts.examination import Examination
    from trainwarden.records.finding import Finding
    from trainwarden.records.observation import Observation


@click.command()
@shows_evidence
@click.argument("logs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="LOG…")
@click.option("--context", help="JSON or YAML of what is known of the job, free in form.")
@json_option
def diagnose(logs: tuple[Path, ...], context: str | None, as_json: bool) -> None:
    """What is wrong in a finished log, several of one run's ranks, or an excerpt of one.

    Findings in causal order, the initiating one first; exits by the status, as `run` does. No
    session is opened and nothing is written.
    """
    from trainwarden.analysts.examination import examine

    known = read_input(context) if context is not None else {}
    if not isinstance(known, dict):
        raise Refusal(f"{context}: a JSON object (or YAML mapping) of what is known is expected")
    seen = examine(logs, known)
    if not seen.readings:
        raise Refusal(seen.report.message or "no log could be read")
    if as_json:
        emit_json(examination_data(seen))
    else:
        say(examination_text(seen))
    raise click.exceptions.Exit(seen.assessment.status.exit_code)


def examination_data(seen: Examination) -> dict[str, Any]:
    """An examination as `diagnose --json` gives it."""
    return {
        "status": seen.assessment.status.value,
        "error_class": seen.error_class,
        "findings": [_finding(seen, finding) for finding in seen.findings],
        "reasoning": seen.assessment.reasoning,
        "question": seen.assessment.question,
        "unread": seen.report.message,
    }


def _finding(seen: Examination, finding: Finding) -> dict[str, Any]:
    shown = [seen.observations[name] for name in finding.observations if name in seen.observations]
    data = finding.model_dump(mode="json")
    return {
        **{name: data[name] for name in ("kind", "severity", "role", "since_step", "since_time")},
        "line": next((one.place.line for one in shown if one.place.line is not None), None),
        "rank": seen.rank_of(finding),
        "evidence": [_evidence(one) for one in shown],
        **{
            name: data[name]
            for name in ("summary", "meaning", "alternatives", "first_action", "confidence")
        },
    }


def _evidence(seen: Observation) -> dict[str, Any]:
    told = {
        "quantity": seen.quantity,
        "stat": seen.stat,
        "value": seen.value,
        "unit": seen.unit,
        "step": seen.step,
        "file": seen.place.file,
        "line": seen.place.line,
        "text": seen.text,
    }
    return {name: value for name, value in told.items() if value is not None}


def examination_text(seen: Examination) -> str:
    """An examination in a few lines: the status, each finding with what shows it and what to do."""
    loud = [finding for finding in seen.findings if finding.severity.value != "info"]
    quiet = len(seen.findings) - len(loud)
    named = f"  error class {seen.error_class}" if seen.error_class else ""
    lines = [f"{seen.assessment.status.value}{named}"]
    for finding in loud or seen.findings:
        lines += _told(_finding(seen, finding))
    if loud and quiet:
        lines.append(f"and {quiet} of no weight (--json has them)")
    if not seen.findings:
        lines.append("findings: none")
    lines.append(seen.assessment.reasoning)
    if seen.report.message:
        lines.append(f"note: {seen.report.message}")
    return "\n".join(lines)


def _told(finding: dict[str, Any]) -> list[str]:
    places = [
        f"{name} {finding[key]}"
        for name, key in (("since step", "since_step"), ("line", "line"), ("rank", "rank"))
        if finding[key] is not None
    ]
    where = f", {', '.join(places)}" if places else ""
    lines = [
        f"{finding['kind']} ({finding['severity']}, {finding['role']}{where}; "
        f"confidence {finding['confidence']:g})",
        f"  {finding['summary']}",
    ]
    lines += [f"  means: {finding['meaning']}"] if finding["meaning"] else []
    lines += [f"  or: {other}" for other in finding["alternatives"]]
    lines += [f"  first: {finding['first_action']}"] if finding["first_action"] else []
    return lines
