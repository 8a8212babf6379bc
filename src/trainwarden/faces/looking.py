"""Looking without a session: jobs that run here, what the reader makes of a log, the hardware."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trainwarden.errors import Refusal
from trainwarden.faces.common import emit_json, json_option, root_option, table


@click.command()
@json_option
def jobs(as_json: bool) -> None:
    """Running training jobs on this machine: folder, config, logs held open, trackers."""
    from trainwarden.evidence.discovery import find_jobs

    found = [one.to_json() for one in find_jobs()]
    if as_json:
        emit_json({"jobs": found})
        return
    if not found:
        click.echo("no training job was found on this machine")
    for one in found:
        click.echo(f"pid {one['pid']}: {one['command']}")
        for key, value in one.items():
            if key in {"pid", "command"} or value in (None, [], "", {}):
                continue
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            click.echo(f"  {key}: {shown}")


@click.command()
@click.argument("log", type=click.Path(path_type=Path))
@json_option
def read(log: Path, as_json: bool) -> None:
    """What the log reader makes of a file."""
    from trainwarden.evidence.logs import read_log

    try:
        if not log.is_file():
            raise Refusal(f"{log} does not exist or is no file")
        reading = read_log(log)
    except OSError as error:
        raise Refusal(f"cannot read {log}: {error.strerror}") from error
    if as_json:
        emit_json(reading.to_json())
        return
    total = f" of {reading.total_steps}" if reading.total_steps is not None else ""
    click.echo(
        f"{reading.format}, {reading.bytes} bytes, {reading.runs} run(s), "
        f"step {reading.last_step}{total}, {reading.ended}"
    )
    rows = [
        (name, series.original, series.count, *series.first[:2], *series.last[:2])
        for name, series in reading.series.items()
        if series.first and series.last
    ]
    header = ("metric", "in the log", "points", "from step", "value", "to step", "value")
    click.echo(table(rows, header) or "no metric was found")
    for note in reading.notes:
        click.echo(f"note: {note}")


@click.command()
@root_option
@json_option
def probe(root: Path, as_json: bool) -> None:
    """This machine's hardware evidence: GPUs, host, disk of the root, kernel log."""
    from trainwarden.evidence.base import Target
    from trainwarden.evidence.collect import collect
    from trainwarden.evidence.gpu import GpuSource
    from trainwarden.evidence.host import HostSource
    from trainwarden.evidence.kernel import KernelSource
    from trainwarden.evidence.storage import StorageSource
    from trainwarden.faces.common import store_at
    from trainwarden.records.job import Job

    store = store_at(root)
    folder = store.logs.parent
    target = Target(job=Job(id="probe"), root=folder, checkpoint_dirs=())
    sources: list[Any] = [GpuSource(), HostSource(), StorageSource(), KernelSource()]
    reports = collect(target, sources)
    if as_json:
        emit_json({"reports": [report.model_dump(mode="json") for report in reports]})
        return
    for report in reports:
        click.echo(
            f"{report.source}: {report.status}{': ' if report.message else ''}{report.message}"
        )
        rows = [
            (
                "",
                o.quantity if o.stat == "last" else f"{o.quantity} ({o.stat})",
                o.subject or "",
                o.value,
                o.unit or "",
            )
            for o in report.observations
        ]
        if rows:
            click.echo(table(rows))
