"""Looking without a session: jobs that run here, what the reader makes of a log, the hardware."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainwarden.errors import Refusal, Trouble
from trainwarden.faces.clients import shows_evidence
from trainwarden.faces.streams import emit_json, json_option, root_option, table
from trainwarden.records.hostile import clean

if TYPE_CHECKING:
    from trainwarden.records.observation import SourceReport


@click.command()
@shows_evidence
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
        pids = one["pids"]
        click.echo(f"pid {', '.join(map(str, pids))}: {one['command']}")
        for key, value in one.items():
            if key in {"pids", "command"} or value in (None, [], "", {}):
                continue
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            click.echo(f"  {key}: {shown}")


@click.command()
@shows_evidence
@click.argument("log", type=click.Path(path_type=Path))
@json_option
def read(log: Path, as_json: bool) -> None:
    """What the log reader makes of a file, or of the newest run of a tracker's files or store."""
    from trainwarden.evidence import stores
    from trainwarden.evidence.log_readings import read_log

    try:
        if not log.is_file() and not log.is_dir() and not stores.is_store(log):
            raise Refusal(f"{log} does not exist or is no file")
        reading = read_log(log)
    except IsADirectoryError as error:
        raise Refusal(
            f"{log} is a folder without TensorBoard or W&B files or a tracker's store"
        ) from error
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
        click.echo(f"note: {clean(note)}")


def plain(reports: Iterable[SourceReport]) -> dict[str, Any]:
    """What a machine's sources told as compact data, without what only people read.

    `time`, `host` (with its `name`), `gpus` (one entry a device, an unreadable one with its
    `reason`, or MIG instance), `disks` (one a file system), `kernel` (`readable` and `events`),
    and under `sources` what each could do. Keys are the quantities without their prefix; units
    are theirs: bytes, seconds, watts, MHz, degrees Celsius, shares of 1.
    """
    from trainwarden.evidence.base import utc_now
    from trainwarden.records.base import isoformat

    host: dict[str, Any] = {"name": clean(socket.gethostname(), 200)}
    kernel: dict[str, Any] = {"readable": False, "events": []}
    devices: dict[str, dict[str, dict[str, Any]]] = {"gpu": {}, "disk": {}, "checkpoint": {}}
    sources = {}
    for report in reports:
        sources[report.source] = {"status": report.status, "message": report.message}
        for seen in report.observations:
            room, _, name = seen.quantity.partition(".")
            if room in devices and seen.subject is not None:
                row = devices[room].setdefault(seen.subject, {"subject": seen.subject})
                row[name] = seen.value
                if name == "readable" and seen.value is False:
                    row["reason"] = seen.text
            elif room == "kernel" and name != "readable" and seen.stat == "last":
                event = {"kind": name, "value": seen.value, "text": seen.text}
                event["time"] = isoformat(seen.time) if seen.time else None
                kernel["events"].append(event)
            elif room == "kernel" and name == "readable":
                kernel["readable"] = seen.value
            elif room == "host" and seen.stat == "last":
                host[name] = seen.value
    return {
        "time": isoformat(utc_now()),
        "host": host,
        "gpus": list(devices["gpu"].values()),
        "disks": list(devices["disk"].values()),
        "kernel": kernel,
        "sources": sources,
    }


@click.command()
@shows_evidence
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
        emit_json(plain(reports))
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


@click.command()
@click.argument("number", type=click.IntRange(1, 9))
def step(number: int) -> None:
    """What a step asks of whoever does it: its text, as an analyst is to read it."""
    click.echo(_step_text(number), nl=False)


def _step_text(number: int) -> str:
    """The text from the package, or from the source tree that the package is run from."""
    package = Path(__file__).parents[1]
    for folder in (package / "steps", package.parents[1] / "steps"):
        for path in folder.glob(f"{number}-*.md"):
            return path.read_text(encoding="utf-8")
    raise Trouble("the step texts are not installed: reinstall trainwarden")
