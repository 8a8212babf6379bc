"""The runtime's own commands: who may call which of them when."""

from __future__ import annotations

import os

from trainwarden.guard.places import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwarden.guard.places import Ground
    from trainwarden.guard.shell import Simple

PLUGIN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
BEFORE = frozenset("begin resume predict status show step verify abandon doctor".split())
REVIEWING = frozenset("review show reread verify read probe step status".split())
_VALUED = frozenset(
    "--root --session --input --wait --log --config --model --job --guidance --authority --analyst"
    " --explain --skip --summary --gate --why --keep --sessions --json-path".split()
)
_HELP = ("--help", "-h", "--version")


def is_runtime(name: str, plugin: str = PLUGIN) -> bool:
    """Whether a command's first word is the runtime: its bare name, or the plugin's own file."""
    if name == "trainwarden":
        return True
    if name[:1] != "/" or not name.endswith("/trainwarden") or not plugin:
        return False
    return resolve(name) == resolve(os.path.join(plugin, "bin", "trainwarden"))


def options(arguments: list[str]) -> list[tuple[str, str]]:
    """Options with their values, as the command line takes them; operands have the name ""."""
    found, at = [], 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        name, has, value = word.partition("=")
        if word[:2] != "--":
            found.append(("", word))
        elif not has and name in _VALUED:
            found.append((name, arguments[at] if at < len(arguments) else ""))
            at += 1
        else:
            found.append((name, value))
    return found


def refusal(one: Simple, ground: Ground, *, early: bool, reviewer: bool) -> str | None:
    """Why a call of the runtime must not run now; None where it may."""
    argv = one.argv
    if len(argv) == 1 or (len(argv) <= 3 and argv[-1] in _HELP):
        return None
    command, given = argv[1], options(argv[2:])
    if early and command not in BEFORE:
        return f"`trainwarden {command}` comes after gate 1"
    if reviewer and command not in REVIEWING:
        return f"`trainwarden {command}` is the analyst's: a reviewer reads and ends with a verdict"
    for name, value in given:
        if name == "--root" and ground.real(value) not in ground.roots:
            return "--root is to be the project's own folder: leave it out"
        if name == "--keep" and ground.unwritten(value):
            return f"--keep: {ground.unwritten(value)}"
        if early and name in ("--input", "--explain") and value != "-":
            reason = ground.unseen(value)
            if reason:
                return f"{name}: {reason}"
        if early and name == "--config":
            reason = ground.unnamed(value)
            if reason:
                return f"{name}: {reason}"
    return _review(one, dict(given), reviewer) if command == "review" else None


def _review(one: Simple, given: dict[str, str], reviewer: bool) -> str | None:
    if reviewer and "--material" not in given:
        return "a reviewer seals nothing: end with the verdict as a yaml block; --material shows"
    fed = "--input" in given or one.joint == "|"
    if fed or any(item.operator in ("<", "<<", "<<<", "<&") for item in one.redirects):
        return (
            "a verdict is not taken from whoever is reviewed: start the sub-agent "
            "trainwarden:quality-reviewer, then call plain `trainwarden review`"
        )
    return None
