"""What is wrong with a Claude Code plugin's folder that the client itself does not find.

`python -m trainwarden.faces.plugin [ROOT]` prints a line for each thing and exits 1 where there is
one; `trainwarden doctor` says it of an installed plugin.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from trainwarden.faces import mentions

LONGEST_DESCRIPTION = 1024
LONGEST_SKILL = 500
LONGER = {"training-monitor": 300}
"""Skills with a limit of their own, in lines."""
EVENTS = frozenset(
    (
        "SessionStart", "SessionEnd", "Setup", "UserPromptSubmit", "UserPromptExpansion",
        "PreToolUse", "PermissionRequest", "PermissionDenied", "PostToolUse",
        "PostToolUseFailure", "PostToolBatch", "Notification", "SubagentStart", "SubagentStop",
        "TaskCreated", "TaskCompleted", "TeammateIdle", "Stop", "StopFailure",
        "InstructionsLoaded", "ConfigChange", "CwdChanged", "FileChanged", "WorktreeCreate",
        "WorktreeRemove", "PreCompact", "PostCompact", "Elicitation", "ElicitationResult",
    )
)  # fmt: skip
TOOL_EVENTS = frozenset(
    ("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied")
)
TOOLS = frozenset(
    (
        "Agent", "AskUserQuestion", "Bash", "BashOutput", "CronCreate", "CronDelete", "CronList",
        "Edit", "EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep",
        "KillShell", "ListMcpResourcesTool", "LSP", "Monitor", "MultiEdit", "NotebookEdit",
        "PowerShell", "PushNotification", "Read", "ReadMcpResourceTool", "RemoteTrigger",
        "ScheduleWakeup", "SendMessage", "Skill", "SlashCommand", "Task", "TaskCreate", "TaskGet",
        "TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "TodoWrite", "ToolSearch", "WebFetch",
        "WebSearch", "Write",
    )
)  # fmt: skip
"""The client's own tools, by all names they had or have."""
SOURCES = {
    "SessionStart": frozenset(("startup", "resume", "clear", "compact")),
    "PreCompact": frozenset(("manual", "auto")),
    "PostCompact": frozenset(("manual", "auto")),
}
"""What a matcher of an event without tools can name."""
MODELS = frozenset(("inherit", "sonnet", "opus", "haiku", "best", "opusplan"))
IN_PLUGIN = re.compile(r"\$\{CLAUDE_PLUGIN_ROOT\}/([^\s\"'`$]+)")


def complaints(root: Path) -> list[str]:
    """Everything that is wrong below a plugin's root, a line each: where, and what."""
    return [
        *_manifests(root),
        *_hooks(root),
        *_programs(root),
        *_skills(root),
        *_pages(root, "agents", ("name", "description")),
        *_pages(root, "commands", ("description",)),
        *mentions.complaints(root),
    ]


def _manifests(root: Path) -> Iterator[str]:
    from trainwarden import __version__

    folder = Path(".claude-plugin")
    plugin, problem = _json(root / folder / "plugin.json")
    if problem:
        yield f"{folder / 'plugin.json'}: {problem}"
    elif plugin.get("version") != __version__:
        yield (
            f"{folder / 'plugin.json'}: version {plugin.get('version')}, "
            f"but src/trainwarden/__init__.py says {__version__}"
        )
    market, problem = _json(root / folder / "marketplace.json")
    if problem:
        yield f"{folder / 'marketplace.json'}: {problem}"
        return
    listed = market.get("plugins") or []
    if plugin.get("name") not in [one.get("name") for one in listed]:
        yield f"{folder / 'marketplace.json'}: does not list the plugin {plugin.get('name')}"
    for one in listed:
        source = one.get("source")
        if isinstance(source, str) and not (root / source / folder / "plugin.json").is_file():
            yield f"{folder / 'marketplace.json'}: {source} has no plugin"


def _json(path: Path) -> tuple[dict[str, Any], str]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return {}, f"cannot be read: {error}"
    return (data, "") if isinstance(data, dict) else ({}, "is no object")


def _hooks(root: Path) -> Iterator[str]:
    path = root / "hooks/hooks.json"
    if not path.exists():
        return
    data, problem = _json(path)
    if problem:
        yield f"hooks/hooks.json: {problem}"
    for event, groups in (data.get("hooks") or {}).items():
        where = f"hooks/hooks.json: {event}"
        if event not in EVENTS:
            yield f"{where}: the client knows no such event"
        for group in groups:
            for name in _unmatched(root, event, group.get("matcher", "")):
                yield f"{where}: matcher {name!r} matches nothing that is known"
            for hook in group.get("hooks", ()):
                yield from (f"{where}: {problem}" for problem in _hook_problems(root, hook))


def _unmatched(root: Path, event: str, matcher: str) -> Iterator[str]:
    if matcher in ("", "*"):
        return
    if event in TOOL_EVENTS:
        known = TOOLS
    elif event in ("SubagentStart", "SubagentStop"):
        names = (path.stem for path in (root / "agents").glob("*.md"))
        known = frozenset(f"{mentions.plugin_name(root)}:{name}" for name in names)
    elif event in SOURCES:
        known = SOURCES[event]
    else:
        return
    # Names split by | or , are exact; any other sign makes the whole an unanchored pattern.
    if re.fullmatch(r"[\w:|,\s-]+", matcher):
        for name in re.split(r"[|,]", matcher):
            if name.strip() not in known and not name.strip().startswith("mcp__"):
                yield name.strip()
        return
    try:
        pattern = re.compile(matcher)
    except re.error:
        yield matcher
        return
    if not any(pattern.search(name) for name in known) and "mcp__" not in matcher:
        yield matcher


def _hook_problems(root: Path, hook: dict[str, Any]) -> Iterator[str]:
    if hook.get("type") != "command":
        return
    command = str(hook.get("command", ""))
    for part in (command, *map(str, hook.get("args", ()))):
        for named in IN_PLUGIN.findall(part):
            script = root / named
            if not script.is_file():
                yield f"starts {named}, which is not there"
            elif part is command and part.startswith("$") and not os.access(script, os.X_OK):
                yield f"starts {named}, which has no run bit"


def _programs(root: Path) -> Iterator[str]:
    if not (root / "bin/trainwarden").exists():
        yield "bin/trainwarden: is not there"
    for path in sorted((root / "bin").glob("*")):
        if not path.stat().st_mode & 0o111:
            yield f"bin/{path.name}: has no run bit: chmod +x it"
        if path.read_bytes()[:2] != b"#!":
            yield f"bin/{path.name}: does not begin with #!"


def _skills(root: Path) -> Iterator[str]:
    for folder in sorted((root / "skills").glob("*/")):
        page = folder / "SKILL.md"
        where = page.relative_to(root)
        if not page.is_file():
            yield f"{where}: is not there"
            continue
        front, problem = front_matter(page)
        if problem:
            yield f"{where}: {problem}"
            continue
        yield from (f"{where}: {one}" for one in _front_problems(front, ("name", "description")))
        if front.get("name", folder.name) != folder.name:
            yield f"{where}: is named {front['name']}, but its folder {folder.name}"
        lines = len(page.read_text(encoding="utf-8").splitlines())
        most = LONGER.get(folder.name, LONGEST_SKILL)
        if lines >= most:
            yield f"{where}: {lines} lines, of fewer than {most}: move what is rarely needed out"


def _pages(root: Path, folder: str, needed: tuple[str, ...]) -> Iterator[str]:
    for page in sorted((root / folder).glob("*.md")):
        where = page.relative_to(root)
        front, problem = front_matter(page)
        if problem:
            yield f"{where}: {problem}"
            continue
        yield from (f"{where}: {one}" for one in _front_problems(front, needed))
        if front.get("name", page.stem) != page.stem:
            yield f"{where}: is named {front['name']}, but its file {page.stem}"


def front_matter(page: Path) -> tuple[dict[str, Any], str]:
    """What stands above a page's text, and what is wrong with it."""
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return {}, f"cannot be read: {error}"
    parts = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    if parts is None:
        return {}, "has no front matter"
    try:
        front = yaml.safe_load(parts[1])
    except yaml.YAMLError as error:
        return {}, f"its front matter is no YAML: {str(error).splitlines()[0]}"
    return (front, "") if isinstance(front, dict) else ({}, "its front matter is no mapping")


def _front_problems(front: dict[str, Any], needed: tuple[str, ...]) -> Iterator[str]:
    for key in needed:
        if not str(front.get(key) or "").strip():
            yield f"has no {key}"
    length = len(str(front.get("description", "")))
    if length > LONGEST_DESCRIPTION:
        yield f"its description has {length} characters, of at most {LONGEST_DESCRIPTION}"
    for key in ("tools", "disallowedTools", "allowed-tools"):
        for tool in _tools(front.get(key)):
            if tool not in TOOLS and not tool.startswith("mcp__"):
                yield f"{key}: the client knows no tool {tool}"
    model = front.get("model")
    if model is not None and model not in MODELS and not str(model).startswith("claude-"):
        yield f"model: the client knows no {model}"


def _tools(listed: Any) -> list[str]:
    """Names of tools, without the rules in brackets behind them."""
    if isinstance(listed, str):
        listed = re.sub(r"\([^)]*\)", "", listed).replace(",", " ").split()
    return [re.sub(r"\(.*", "", str(tool)).strip() for tool in listed or ()]


def main() -> int:
    """Print what is wrong; the exit status."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").absolute()
    found = complaints(root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
