"""What the commands share: options, input, output, and which session is meant."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainwarden.errors import Refusal
from trainwarden.faces.streams import root_option
from trainwarden.procedure import client, holding
from trainwarden.procedure.leftovers import tidy
from trainwarden.procedure.state import StateStore
from trainwarden.procedure.witness import Witness

if TYPE_CHECKING:
    from trainwarden.procedure.session import Session

WAIT = 10.0

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
