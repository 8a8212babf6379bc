"""What a plugin's texts name: files, skills, commands, calls of `trainwarden` and their options."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click

from trainwarden.faces.cli import cli

FOLDERS = ("skills", "agents", "commands", "steps")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```[^\n]*\n(.*?)```|(`+)(.+?)\2", re.DOTALL)
PATH = re.compile(
    r"\$\{CLAUDE_(?P<base>PLUGIN_ROOT|SKILL_DIR)\}/(?P<named>[\w./-]+)"
    r"|(?<![\w./<-])(?P<plain>(?:steps|skills|agents|commands|hooks|bin|references)/[\w./-]+)"
)
STEP_TEXT = re.compile(r"(?<![\w./-])[1-9]-[a-z]+\.md\b")
"""A step's text by its name alone; gates have the same names."""
CALL = re.compile(r"(?:^|[;|&(]|\$ )\s*(?:[A-Z_]+=\S+\s+)*trainwarden\s+(?P<rest>[^\n|;&#]*)", re.M)
WORD = re.compile(r"[a-z][a-z-]*")
OPTION = re.compile(r"(?<![\w\"'-])--?[a-z][a-z-]*")


def complaints(root: Path) -> Iterator[str]:
    """A line for each thing that is named and not there."""
    for folder in FOLDERS:
        for page in sorted((root / folder).rglob("*.md")):
            text = page.read_text(encoding="utf-8", errors="replace")
            found = [*_links(page, text), *_paths(root, page, text), *_names(root, text)]
            found += [*_steps(root, text), *_calls(text)]
            for place, what in sorted(set(found)):
                line = text.count("\n", 0, place) + 1
                yield f"{page.relative_to(root)}:{line}: {what}"


def plugin_name(root: Path) -> str:
    """The plugin's own name, before the colon of its skills' and agents'."""
    try:
        return str(json.loads((root / ".claude-plugin/plugin.json").read_text("utf-8"))["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return "trainwarden"


def _links(page: Path, text: str) -> Iterator[tuple[int, str]]:
    for link in LINK.finditer(text):
        target, _, heading = link[1].partition("#")
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        linked = page.parent / target if target else page
        if not linked.exists():
            yield link.start(), f"links to {target}, which is not there"
        elif heading and linked.suffix == ".md" and heading not in _headings(linked):
            yield link.start(), f"links to #{heading}, and {linked.name} has no such heading"


def _headings(page: Path) -> set[str]:
    lines = re.findall(r"^#+ +(.+?) *$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


def _paths(root: Path, page: Path, text: str) -> Iterator[tuple[int, str]]:
    skill = root.joinpath(*page.relative_to(root).parts[:2])
    for found in PATH.finditer(text):
        named = (found["named"] or found["plain"]).rstrip(".")
        if found["base"] == "SKILL_DIR":
            places = [skill / named]
        elif found["base"] == "PLUGIN_ROOT":
            places = [root / named]
        else:
            places = [root / named, skill / named, page.parent / named]
        if not any(place.exists() for place in places):
            yield found.start(), f"names {named}, which is not there"


def _steps(root: Path, text: str) -> Iterator[tuple[int, str]]:
    for found in STEP_TEXT.finditer(text):
        if not (root / "steps" / found[0]).is_file():
            yield found.start(), f"names {found[0]}, which is no step's text"


def _names(root: Path, text: str) -> Iterator[tuple[int, str]]:
    for found in re.finditer(rf"(/?)\b{plugin_name(root)}:([a-z][a-z0-9-]*)", text):
        name = found[2]
        places = [root / "skills" / name / "SKILL.md", root / "commands" / f"{name}.md"]
        if not found[1]:
            places.append(root / "agents" / f"{name}.md")
        if not any(place.is_file() for place in places):
            kind = "slash command" if found[1] else "skill, command or agent"
            yield found.start(), f"names the {kind} {found[0]}, which the plugin does not have"


def _calls(text: str) -> Iterator[tuple[int, str]]:
    for code in CODE.finditer(text):
        group = 1 if code[1] is not None else 3
        for call in CALL.finditer(code[group].replace("\\\n", "  ")):
            for problem in call_problems(call["rest"]):
                yield code.start(group) + call.start(), problem


def call_problems(rest: str) -> Iterator[str]:
    """What the command line does not have of what follows `trainwarden` in a call."""
    context = click.Context(cli)
    words = rest.split()
    name = next((word for word in words if not word.startswith("-")), "")
    if not WORD.fullmatch(name):
        return
    command = cli.get_command(context, name)
    if command is None:
        yield f"`trainwarden {name}`: there is no such command"
        return
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    known |= {"--help", "-h"}
    unquoted = re.sub(r"\"[^\"]*\"|'[^']*'|<<.*", "", rest)
    for option in OPTION.findall(unquoted):
        if option not in known:
            yield f"`trainwarden {name} {option}`: there is no such option"
