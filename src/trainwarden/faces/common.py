"""What the commands share: options, input, output, and which session is meant."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trainwarden.errors import Refusal
from trainwarden.procedure.gates import show_value
from trainwarden.procedure.state import StateStore
from trainwarden.records.base import to_json_number
from trainwarden.records.hostile import clean

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

    from trainwarden.procedure.session import Session

MAX_INPUT = 4 * 2**20
WAIT = 10.0

Model = TypeVar("Model", bound="BaseModel")
Function = TypeVar("Function", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Answer with JSON.")
root_option = click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder that has (or gets) monitoring-logs/; default: the current one.",
)
wait_option = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=WAIT,
    show_default=True,
    help="Seconds to wait for another trainwarden at work on this job.",
)
session_option = click.option(
    "--session", "session_name", help="Session to go on with; default: the one that is open."
)


def job_options(function: Function) -> Function:
    """The options that say which job is meant; each is optional where it can be found."""
    for option in reversed(
        (
            click.option("--log", "logs", multiple=True, help="Log file of the run; repeatable."),
            click.option("--config", help="Training config (YAML, JSON, TOML or Python)."),
            click.option("--model", help="Model path or name."),
            click.option("--job", help="Id of a known job, as `status` lists them."),
            click.option("--guidance", help="What you know of the run, in your words."),
            click.option(
                "--authority",
                type=click.Choice(["observe", "act"]),
                default="observe",
                show_default=True,
                help="What the session may do to the run.",
            ),
            root_option,
        )
    ):
        function = option(function)
    return function


def store_at(root: Path) -> StateStore:
    """The states under a root. Raises Refusal where the root is no folder."""
    full = root.expanduser().absolute()
    if not full.is_dir():
        raise Refusal(f"--root {full} is not a folder")
    return StateStore(full)


def session_folder(store: StateStore, name: str) -> Path:
    """A session by its name or by its folder's path. Raises Refusal."""
    for folder in (store.logs / name, Path(name).expanduser().absolute()):
        if (folder / "session.json").is_file():
            return folder
    raise Refusal(f"no session {name} in {store.logs}, and no folder of that path has one")


@contextmanager
def open_session(root: Path, name: str | None, wait: float, purpose: str) -> Iterator[Session]:
    """The session to go on with, its job held. Raises Refusal where it is not clear which."""
    from trainwarden.procedure.session import Session

    store = store_at(root)
    if name is None:
        name = _only_open(store)
    session = Session.resume(store, session_folder(store, name))
    with store.hold(session.job.id, wait=wait, purpose=purpose):
        # Read again under the lock: another command may have sealed a gate meanwhile.
        session = Session.resume(store, session.folder)
        state = session.state
        current = state.monitor.open_session if state else None
        done = session.latest("summary") is not None
        if not done and (current is None or current.session != session.header.session):
            raise Refusal(f"session {name} was set aside for a later one; it cannot go on")
        yield session


def _only_open(store: StateStore) -> str:
    found = []
    for job in store.known():
        state, _ = store.load(job)
        if state and state.monitor.open_session:
            found.append((state.monitor.open_session.session, job))
    if len(found) == 1:
        return found[0][0]
    if not found:
        raise Refusal(f"no session is open in {store.logs}: start one with `trainwarden begin`")
    listed = "\n".join(f"  --session {session}  ({job})" for session, job in found)
    raise Refusal(f"several sessions are open; say which one:\n{listed}")


def read_input(path: str) -> Any:
    """YAML or JSON from a file or (`-`) standard input. Raises Refusal."""
    import yaml

    if path == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise Refusal("this step reads YAML or JSON on standard input; --help has an example")
        data = sys.stdin.buffer.read(MAX_INPUT + 1)
    else:
        try:
            with Path(path).open("rb") as file:
                data = file.read(MAX_INPUT + 1)
        except OSError as error:
            raise Refusal(f"cannot read the input {path}: {error.strerror}") from error
    if len(data) > MAX_INPUT:
        raise Refusal(f"the input is larger than {MAX_INPUT // 2**20} MiB")
    if not data.strip():
        raise Refusal("the input is empty; --help has an example")
    try:
        return yaml.safe_load(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Refusal(f"the input is not UTF-8: {error}") from error
    except (yaml.YAMLError, RecursionError) as error:
        where = getattr(error, "problem_mark", None)
        line = f" in line {where.line + 1}" if where else ""
        reason = getattr(error, "problem", None) or type(error).__name__
        raise Refusal(f"the input is neither YAML nor JSON{line}: {reason}") from error


def parse(model: type[Model], data: Any, what: str) -> Model:
    """Validate input as a record. Raises Refusal naming each field that is off."""
    from pydantic import ValidationError

    if not isinstance(data, dict):
        raise Refusal(f"{what}: a mapping of fields is expected; --help has an example")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise Refusal(f"{what}: not sealed, because\n{validation_lines(error)}") from None


def validation_lines(error: ValidationError, prefix: str = "") -> str:
    """A validation error as one line a field, without echoing much of the input."""
    lines = []
    for item in error.errors()[:20]:
        where = ".".join(str(part) for part in item["loc"])
        lines.append(f"- {prefix}{where or 'the input'}: {clean(item['msg'])}")
    return "\n".join(lines)


def emit_json(data: Any) -> None:
    """Print JSON without NaN tokens."""
    click.echo(json.dumps(_finite(data), ensure_ascii=False, allow_nan=False, default=str))


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
