"""`trainwarden doctor`: whether trainwarden itself works here. Nothing of a run is read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainwarden import __version__, interpreter
from trainwarden.errors import TrainwardenError, Trouble
from trainwarden.faces.common import store_at
from trainwarden.faces.streams import emit_json, json_option, root_option, say
from trainwarden.guard import record
from trainwarden.procedure.client import Client, present
from trainwarden.procedure.state import StateStore
from trainwarden.records.hostile import clean

if TYPE_CHECKING:
    from trainwarden.procedure.witness import Witness

PACKAGE = Path(__file__).parents[1]
LEAST_SPACE = 64 * 2**20
"""Bytes below which a session's gates may not find room."""
NEWEST = 10
"""Sessions whose seals are computed again; `verify --all` does it for all."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: str
    """`ok`, `note` (it works without), or `broken`."""
    text: str


Found = Iterator[tuple[str, str]]
"""States and texts of one check."""


@dataclass(frozen=True)
class Place:
    """Where to look."""

    store: StateStore
    plugin: Path | None
    """The plugin's root; None where trainwarden was installed otherwise."""
    client: Client | None
    witness: Witness

    @property
    def root(self) -> Path:
        """The folder that has monitoring-logs/."""
        return self.store.logs.parent


@click.command()
@root_option
@json_option
def doctor(root: Path, as_json: bool) -> None:
    """Whether trainwarden itself works here, a line a thing; exit 1 where something is broken.

    Nothing of a run is read: of the GPUs and the kernel log it says only whether they can be.
    """
    checks = examine(root)
    sound = all(check.state != "broken" for check in checks)
    if as_json:
        emit_json({"sound": sound, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            say(f"{check.state:6}  {check.name}: {check.text}")
    raise click.exceptions.Exit(0 if sound else 1)


def examine(root: Path) -> list[Check]:
    """All checks; one that fails itself is told as broken."""
    from trainwarden.procedure.witness import Witness

    store = store_at(root)
    client = present()
    witness = Witness.of(store.logs.parent, client, "doctor")
    outer = PACKAGE.parents[1]
    plugin = outer if (outer / ".claude-plugin/plugin.json").is_file() else None
    place = Place(store, plugin, client, witness)
    checks = []
    for name, look in CHECKS.items():
        try:
            checks += [Check(name, state, text) for state, text in look(place)]
        except (OSError, TrainwardenError, subprocess.SubprocessError) as error:
            checks.append(Check(name, "broken", clean(str(error), 1_000)))
    return checks


def _runtime(place: Place) -> Found:
    yield "ok", f"trainwarden {__version__}, Python {sys.version.split()[0]} at {sys.executable}"
    if place.plugin is not None:
        lacks = interpreter.lacking(interpreter.dependencies(place.plugin))
        if lacks:
            yield (
                "broken",
                f"this Python lacks {', '.join(lacks)}: remove `python` in the data folder, and "
                "the next command finds or sets up another",
            )
    other = shutil.which("trainwarden")
    if other is None:
        yield "note", "no trainwarden is on PATH: the commands that texts name will not be found"
        return
    done = subprocess.run(  # noqa: S603
        [other, "--version"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    version = done.stdout.strip().rpartition(" ")[2]
    if version != __version__:
        yield (
            "broken",
            f"the trainwarden first on PATH, {other}, is version {version or 'unknown'}: "
            "upgrade it or take it off PATH",
        )


def _plugin(place: Place) -> Found:
    if place.plugin is None:
        yield "note", f"not run from a Claude Code plugin, but from {PACKAGE}"
        return
    from trainwarden.faces.plugin import complaints

    found = complaints(place.plugin)
    if not found:
        yield "ok", f"{place.plugin}: hooks, skills, agents, commands and steps are whole"
    for line in found[:5]:
        yield "broken", f"{line}: install the plugin anew, or mend the clone it is read from"
    if len(found) > 5:
        yield "broken", f"{len(found) - 5} more of this kind"


def _data(_: Place) -> Found:
    told = os.environ.get("TRAINWARDEN_DATA")
    if not told:
        return
    folder = Path(told)
    yield "ok", str(folder)
    lost = folder / "guard-failures.jsonl"
    if lost.exists():
        lines = lost.read_text(encoding="utf-8", errors="replace").splitlines()
        last = clean(lines[-1] if lines else "", 300)
        yield "note", f"the guard failed where it could not record it, {len(lines)} times: {last}"


def _guard_starts(_: Place) -> Found:
    """Have it judge a harmless call of a client that there is not, in a folder without sessions."""
    hook = PACKAGE / "guard/hook.py"
    event: dict[str, object] = {"hook_event_name": "PreToolUse", "session_id": "doctor"}
    event |= {
        "tool_name": "Read",
        "tool_use_id": "doctor",
        "tool_input": {"file_path": "README.md"},
    }
    environment = dict(os.environ) | {"CLAUDE_PROJECT_DIR": str(hook.parent)}
    try:
        done = subprocess.run(  # noqa: S603
            ["python3", "-I", "-S", str(hook)],  # noqa: S607 - as the client finds it
            input=json.dumps(event, separators=(",", ":")),
            capture_output=True,
            text=True,
            timeout=20,
            env=environment,
        )
    except FileNotFoundError:
        yield "broken", "there is no python3 on PATH, so no hook can start: install one"
        return
    except subprocess.TimeoutExpired:
        yield "broken", "the guard's hook does not answer: see what `python3 -I -S -c pass` does"
        return
    if done.returncode or done.stdout.strip() or done.stderr.strip():
        told = clean((done.stderr or done.stdout).strip().rpartition("\n")[2], 300)
        yield "broken", f"its hook fails (exit code {done.returncode}): {told}"
    else:
        yield "ok", "its hook starts and answers"


def _guard_lives(place: Place) -> Found:
    client, witness = place.client, place.witness
    if client is None:
        yield "note", "not in Claude Code: there is no guard, and gates do not speak of one"
        return
    if not client.session:
        yield "broken", "the client does not tell its session's id: upgrade Claude Code"
        return
    watched = client.project
    if watched is not None and watched.resolve() != place.root.resolve():
        yield (
            "broken",
            f"it watches {watched}, not {place.root}: leave --root out, or start the client there",
        )
    elif witness.live:
        yield "ok", "live: it saw this call"
    elif watched is not None:
        yield (
            "broken",
            "it ran when the client started, but did not see this call: "
            "`trainwarden doctor` must be a Bash call of its own",
        )
    else:
        yield (
            "broken",
            "the client started no hook of the plugin: see /hooks and `claude plugin list`, and "
            "that hooks are not off (disableAllHooks, --bare); then start a new client session",
        )
    yield from (("note", why) for why in _lapses(place.root, client.session))


def _lapses(root: Path, session: str) -> Iterator[str]:
    """What the guard's record of this client tells of its own failures."""
    events = record.events(str(root), session)
    failed = [event for event in events if event["event"] == "failed"]
    if failed:
        where, why = (clean(str(failed[-1].get(key, "")), 200) for key in ("where", "why"))
        yield f"it failed {len(failed)} times in this client session, last: {where}: {why}"
    ended = {event.get("tool_use") for event in events if event["event"] == "ended"}
    begun = [event.get("tool_use") for event in events if event["event"] == "began"]
    hung = sum(use not in ended for use in begun)
    if hung:
        yield f"it began to judge {hung} calls without coming to an end: they passed unjudged"


def _room(place: Place) -> Found:
    folder = next(path for path in (place.store.logs, place.root) if path.exists())
    if not os.access(folder, os.W_OK):
        yield "broken", f"{folder} cannot be written: give rights, or choose another with --root"
        return
    free = shutil.disk_usage(folder).free
    if free < LEAST_SPACE:
        yield "broken", f"{folder}: only {free // 2**20} MiB are free: make room"
    else:
        yield "ok", f"{place.store.logs} can be written"


def _states(place: Place) -> Found:
    names = place.store.known()
    bad = [name for name in names if place.store.peek(name) is None]
    if not bad:
        yield "ok", f"{len(names)} known, one for each job, and all can be read"
    for name in bad:
        yield (
            "broken",
            f"{place.store.path(name)} cannot be read: `trainwarden status` says why and keeps it "
            "aside; the next session begins a new one",
        )


def _sessions(place: Place) -> Found:
    from trainwarden.procedure import holding
    from trainwarden.procedure.session import Session

    own = place.client.session if place.client else ""
    count = 0
    for job in place.store.known():
        state = place.store.peek(job)
        current = state.monitor.open_session if state else None
        if current is None:
            continue
        count += 1
        held = holding.holder(place.root, current.session)
        whose = "held by no client" if held in (None, "-") else "held by another client"
        whose = "held by this client" if own and held == own else whose
        try:
            session = Session.resume(place.store, place.store.logs / current.session)
            with place.store.hold(job, wait=0, purpose="doctor"):
                pass
            yield "note", f"{current.session} of {job} is open, {whose}. {session.next_line()}"
        except Trouble as busy:
            yield "note", f"{current.session} of {job} is open and at work: {busy}"
        except TrainwardenError as error:
            yield "broken", f"{current.session} of {job} is open, but lost: {error}"
    if not count:
        yield "ok", "none is open"


def _seals(place: Place) -> Found:
    from trainwarden.procedure.remembered import check, heads

    here = {path.parent.name for path in place.store.logs.glob("*/session.json")}
    # Sessions are named by when they began.
    newest = sorted(here | heads(place.store).keys())[-NEWEST:]
    broken = [one for one in (check(place.store, name) for name in newest) if one.broken]
    for one in broken:
        yield "broken", f"{one.session} is broken at {one.broken}: {one.problem}"
    if not broken:
        yield "ok", f"those of the newest {len(newest)} sessions hold (`verify --all`: of all)"


def _gpus(_: Place) -> Found:
    from trainwarden.evidence.gpu_probe import probe_gpus

    found = probe_gpus()
    if found["count"] is None:
        yield "note", found["message"]
    else:
        yield "ok", "NVML answers"


def _kernel(_: Place) -> Found:
    from trainwarden.evidence.kernel import KernelSource

    problem = KernelSource().unreadable()
    yield ("note", f"cannot be read: {problem}") if problem else ("ok", "can be read")


CHECKS: dict[str, Callable[[Place], Found]] = {
    "runtime": _runtime,
    "plugin": _plugin,
    "data folder": _data,
    "guard": _guard_starts,
    "guard here": _guard_lives,
    "monitoring-logs": _room,
    "states": _states,
    "sessions": _sessions,
    "seals": _seals,
    "GPUs": _gpus,
    "kernel log": _kernel,
}
