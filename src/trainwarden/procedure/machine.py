"""What gate 5 has of the machine: a row a device, and what could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainwarden.procedure import duties
from trainwarden.records.observation import Observation, SourceReport


def unread(report: SourceReport) -> Observation:
    """That a source could not be read is itself something seen, and can be cited."""
    return Observation(
        quantity=f"source.{report.source}",
        value=report.status,
        source=report.source,
        trust=report.trust,
        text=report.message,
    )


def content(collected: Mapping[str, Any], reasoning: str) -> dict[str, Any]:
    """Gate 5's content, from gate 2's."""
    machine = [
        item
        for item in collected["observations"]
        if item["quantity"].startswith(duties.MACHINE_PREFIXES)
        and not item["quantity"].startswith("log.")
    ]
    gpu_report = next((r for r in collected["reports"] if r["source"] == "gpu"), None)
    return {
        "devices": _devices(machine),
        "no_gpu": gpu_report["message"] if gpu_report else "no GPU source was asked",
        "unreadable": [
            f"{report['source']}: {report['status']}: {report['message']}"
            for report in collected["reports"]
            if report["status"] != "ok"
        ],
        "observations": machine,
        "reasoning": reasoning,
    }


def _devices(machine: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row a GPU (or MIG instance) with what the gate's table shows."""
    shown = (
        "readable", "name", "power_share", "utilization", "memory_used", "job_memory",
        "temperature", "throttle",
    )  # fmt: skip
    rows: dict[str, dict[str, Any]] = {}
    for item in machine:
        prefix, _, rest = item["quantity"].partition(".")
        if prefix == "gpu" and item["subject"]:
            row = rows.setdefault(
                item["subject"], {"subject": item["subject"], **dict.fromkeys(shown)}
            )
            if rest in shown:
                row[rest] = item["value"]
    return list(rows.values())
