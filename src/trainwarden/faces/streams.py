"""What goes into the commands and comes out of them: data, clean lines, tables, spans of time."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from trainwarden.errors import Refusal
from trainwarden.procedure.intake import data_in
from trainwarden.records.base import to_json_number
from trainwarden.records.hostile import clean
from trainwarden.records.shown import show_moment, show_value

MAX_INPUT = 2**20

json_option = click.option("--json", "as_json", is_flag=True, help="Answer with JSON.")
root_option = click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path(),
    envvar="TRAINWARDEN_ROOT",
    help="Folder that has (or gets) monitoring-logs/; default: $TRAINWARDEN_ROOT, else the "
    "current one.",
)


def read_input(path: str) -> Any:
    """YAML or JSON from a file or (`-`) standard input. Raises Refusal."""
    if path == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise Refusal("this step reads YAML or JSON on standard input; --help has an example")
        try:
            data = sys.stdin.buffer.read(MAX_INPUT + 1)
        except OSError as error:
            raise Refusal(f"standard input cannot be read: {error.strerror}") from error
    else:
        try:
            with Path(path).open("rb") as file:
                data = file.read(MAX_INPUT + 1)
        except OSError as error:
            raise Refusal(f"cannot read the input {path}: {error.strerror}") from error
    if len(data) > MAX_INPUT:
        raise Refusal(f"the input is larger than {MAX_INPUT // 1024} KiB")
    if not data.strip():
        raise Refusal("the input is empty; --help has an example")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(f"the input is not UTF-8: {error}") from error
    return data_in(text)


def emit_json(data: Any) -> None:
    """Print JSON without NaN tokens."""
    text = json.dumps(_finite(data), ensure_ascii=False, allow_nan=False, default=str)
    click.echo(re.sub(r"[\ud800-\udfff]", lambda sign: f"\\u{ord(sign[0]):04x}", text))


def _shown(line: str) -> str:
    bare = line.lstrip(" ")
    return " " * (len(line) - len(bare)) + clean(bare, 8_000)


def say(text: str, *, err: bool = False) -> None:
    """Print lines that may hold words of a run or of the file system: cleaned."""
    click.echo("\n".join(_shown(line) for line in text.split("\n")), err=err)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return to_json_number(data)


def table(rows: Sequence[Sequence[Any]], header: Sequence[str] = ()) -> str:
    """Columns padded with two spaces between; every cell cleaned."""
    cells = [[clean(show_value(cell), 120) for cell in row] for row in rows]
    lines = [[name.upper() for name in header], *cells] if header else cells
    if not lines:
        return ""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def finding_line(finding: dict[str, Any]) -> str:
    """A finding in one line."""
    since = f" since step {finding['since_step']}" if finding["since_step"] is not None else ""
    cited = f" [{', '.join(finding['observations'])}]" if "observations" in finding else ""
    label = f"{finding['id']} " if finding.get("id") else ""
    return f"{label}{finding['kind']} ({finding['severity']}{since}): {finding['summary']}{cited}"


def duration(seconds: float) -> str:
    """Seconds as people say them: `45 s`, `12 min`, `3.5 h`, `2.1 d`."""
    for size, unit, most in ((1, "s", 90), (60, "min", 90), (3600, "h", 48)):
        if seconds < most * size:
            return f"{seconds / size:.1f} {unit}" if unit == "h" else f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.1f} d"


def when(evaluate_after: dict[str, Any]) -> str:
    """The moment of the next look: a step, a time, or whichever comes first."""
    step, time = evaluate_after["step"], evaluate_after["time"]
    parts = [f"at step {step}"] if step is not None else []
    parts += [f"at {show_moment(time)}"] if time else []
    return " or ".join(parts)
