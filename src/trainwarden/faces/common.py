"""What the commands share: options, input, output, and which session is meant."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainwarden.errors import Refusal
from trainwarden.procedure import client, holding
from trainwarden.procedure.gates import show_moment, show_value
from trainwarden.procedure.intake import data_in
from trainwarden.procedure.leftovers import tidy
from trainwarden.procedure.state import StateStore
from trainwarden.procedure.witness import Witness
from trainwarden.records.base import to_json_number
from trainwarden.records.hostile import clean

if TYPE_CHECKING:
    from trainwarden.procedure.session import Session

MAX_INPUT = 2**20
WAIT = 10.0

json_option = click.option("--json", "as_json", is_flag=True, help="Answer with JSON.")
root_option = click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path(),
    envvar="TRAINWARDEN_ROOT",
    help="Folder that has (or gets) monitoring-logs/; default: $TRAINWARDEN_ROOT, else the "
    "current one.",
)
wait_option = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=WAIT,
    show_default=True,
    help="Seconds to wait for another trainwarden at work on this job.",
)
take_over_option = click.option(
    "--take-over", is_flag=True, help="Set an unfinished session of this job aside."
)
session_option = click.option(
    "--session", "session_name", help="Session to go on with; default: the one that is open."
)


def job_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which job is meant; each is optional where it can be found.

    The command is given the `store` under the root and the `job` that was found.
    """

    @functools.wraps(function)
    def with_job(root: Path, job: str | None, **options: Any) -> Any:
        from trainwarden.procedure.locate import locate

        named = {name: options.pop(name) for name in ("logs", "config", "model", "guidance")}
        store = store_at(root)
        tidy(store)
        found = locate(store, root=store.logs.parent, job=job, **named)
        return function(store=store, job=found, **options)

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
        with_job = option(with_job)
    return with_job


def store_at(root: Path) -> StateStore:
    """The states under a root. Raises Refusal where the root is no folder."""
    try:
        full = root.expanduser().absolute()
        found = full.is_dir()
    except (OSError, RuntimeError) as error:
        raise Refusal(f"--root {root}: {error}") from error
    if not found:
        raise Refusal(f"--root {full} is not a folder")
    return StateStore(full)


def session_folder(store: StateStore, name: str) -> Path:
    """A session by its name or by its folder's path. Raises Refusal."""
    for folder in (store.logs / name, Path(name).absolute()):
        with suppress(OSError):
            if (folder / "session.json").is_file():
                return folder
    raise Refusal(f"no session {name} in {store.logs}, and no folder of that path has one")


def latest_session(store: StateStore) -> str:
    """The name of the newest session. Raises Refusal where there is none."""
    names = sorted(path.parent.name for path in store.logs.glob("*/session.json"))
    if not names:
        raise Refusal(f"there is no session in {store.logs} yet: start with {how_to_start()}")
    return names[-1]


def how_to_start() -> str:
    """What a first watch begins with: in Claude Code the model reasons, not the built-in rules."""
    return "/trainwarden:monitor" if client.present() else "`trainwarden run --log FILE`"


@contextmanager
def open_session(
    root: Path, name: str | None, wait: float, purpose: str, *, seals: bool = True
) -> Iterator[Session]:
    """The session to go on with, its job held.

    Raises Refusal where it is not clear which, or where another client holds it. A command that
    `seals` takes the ticket that the guard gave its call.
    """
    from trainwarden.procedure.seals import verify
    from trainwarden.procedure.session import Session

    store = store_at(root)
    runs_us = client.present()
    witness = Witness.of(store.logs.parent, runs_us, purpose) if runs_us and seals else None
    tidy(store)
    if name is None:
        name = only_open(store)
    session = Session.resume(store, session_folder(store, name))
    with store.hold(session.job.id, wait=wait, purpose=purpose):
        # Read again under the lock: another command may have sealed a gate meanwhile.
        session = Session.resume(store, session.folder)
        state = session.state
        current = state.monitor.open_session if state else None
        mine = current is not None and current.session == session.header.session
        if not mine and session.latest("summary") is None:
            raise Refusal(f"session {name} was set aside for a later one; it cannot go on")
        checked = verify(session.folder, current.head if current and mine else None)
        if checked.broken is not None:
            raise Refusal(
                f"session {name} was changed after sealing and cannot go on: {checked.broken}: "
                f"{checked.problem}. Begin another one with --take-over"
            )
        if mine and seals:
            _meet(session, witness, runs_us)
        yield session


def _meet(session: Session, witness: Witness | None, runs_us: client.Client | None) -> None:
    """See to it that who runs us is who holds the session. Raises Refusal."""
    root, name = session.store.logs.parent, session.header.session
    me = holding.name_of(runs_us)
    held = holding.holder(root, name)
    if held is not None and held != me:
        whose = "outside of Claude Code" if held == holding.NOBODY else "by a Claude Code session"
        raise Refusal(
            f"session {name} is held {whose}: `trainwarden resume --session {name}` takes it over"
        )
    if witness is not None:
        witness.meet(name)
        session.witness = witness
    session.say_open(me)


def require_session(root: Path, name: str | None) -> None:
    """Refuse before any input is asked for, where there is no session that it could go to."""
    store = store_at(root)
    session_folder(store, name if name is not None else only_open(store))


def sessions_open(store: StateStore, *, every: bool = False) -> list[tuple[str, str]]:
    """Session and job of those that are open; only the present client's, if it has any.

    With `every`, everybody's. Nothing is written or moved.
    """
    found = []
    for job in store.known():
        state = store.peek(job)
        if state and state.monitor.open_session:
            found.append((state.monitor.open_session.session, job))
    if every:
        return found
    me = holding.name_of(client.present())
    own = [one for one in found if holding.holder(store.logs.parent, one[0]) == me]
    return own or found


def only_open(store: StateStore) -> str:
    """The session that is meant where none is named. Raises Refusal."""
    found = sessions_open(store)
    if len(found) == 1:
        return found[0][0]
    if not found:
        raise Refusal(f"no session is open in {store.logs}: start one with `trainwarden begin`")
    listed = "\n".join(f"  --session {session}  ({job})" for session, job in found)
    raise Refusal(f"several sessions are open; say which one:\n{listed}")


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
