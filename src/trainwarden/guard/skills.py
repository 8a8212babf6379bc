"""The plugin's own skills and reviewer, told from others that go by their names.

The client takes a skill `trainwarden:x` of the project's or the user's own for one of the plugin,
before the plugin's, and runs the commands that stand in its text without asking any hook.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

OWN = "trainwarden:"
_HEAD = 65_536
"""Characters of an agent's file in which its name is looked for."""


def foreign(name: str, plugin: str, folders: Iterable[str]) -> str | None:
    """Why a skill is not the plugin's own; None where it is.

    `folders` are those that the client works in: it looks in all that they lie in, too.
    """
    short = name[len(OWN) :]
    if not name.startswith(OWN) or not short.replace("-", "a").isalnum():
        return f"{name} is no skill of trainwarden's: {OWN}training-monitor is how they are named"
    own = (f"{plugin}/skills/{short}/SKILL.md", f"{plugin}/commands/{short}.md")
    if not any(map(os.path.isfile, own)):
        return f"trainwarden has no skill {short}"
    for place in _settings(folders):
        for other in (f"skills/{name}", f"commands/{name}.md", f"commands/{OWN[:-1]}/{short}.md"):
            if os.path.lexists(f"{place}/{other}"):
                return f"{place}/{other} goes by the name of trainwarden's own skill"
    return None


def other_reviewer(folders: Iterable[str]) -> str | None:
    """Why a sub-agent may not be the plugin's own reviewer; None where it is.

    Only a file that goes by the plugin's name for it, or may do so, is in the way.
    """
    for place in _settings(folders):
        for folder, _, names in os.walk(f"{place}/agents"):
            for path in (f"{folder}/{name}" for name in names if name.endswith(".md")):
                named = [line for line in _head(path) if line.lstrip("\"' ").startswith("name")]
                if any(OWN[:-1] in line or "\\" in line for line in named):
                    return (
                        f"{path} goes by the name of trainwarden's own reviewer: have the user "
                        "take it away, and start the client anew"
                    )
    return None


def _head(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_HEAD).splitlines()
    except OSError:
        return []


def _settings(folders: Iterable[str]) -> list[str]:
    """Where the client looks for the project's and the user's own skills."""
    home = os.path.join(os.environ.get("HOME", "/"), ".claude")
    found = [os.environ.get("CLAUDE_CONFIG_DIR") or home]
    for folder in folders:
        while folder not in ("", "/"):
            found.append(f"{folder}/.claude")
            folder = os.path.dirname(folder)
    return list(dict.fromkeys(found))
