"""Each thing that the lint is for is broken in a copy of the plugin, and found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from trainwarden import __version__
from trainwarden.faces.mentions import call_problems
from trainwarden.faces.plugin import complaints

ROOT = Path(__file__).parents[2]
PARTS = (
    ".claude-plugin",
    "agents",
    "bin",
    "commands",
    "hooks",
    "skills",
    "src/trainwarden/guard",
    "steps",
)
Change = Callable[[Path], None]


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    for name in PARTS:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def append(name: str, text: str) -> Change:
    def change(root: Path) -> None:
        with (root / name).open("a", encoding="utf-8") as file:
            file.write(text)

    return change


def replace(name: str, old: str, new: str) -> Change:
    def change(root: Path) -> None:
        text = (root / name).read_text(encoding="utf-8")
        assert old in text
        (root / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


def remove(name: str) -> Change:
    return lambda root: (root / name).unlink()


def without_run_bit(root: Path) -> None:
    (root / "bin/trainwarden").chmod(0o644)


def unknown_event(root: Path) -> None:
    path = root / "hooks/hooks.json"
    data = json.loads(path.read_text())
    data["hooks"]["PreToolUsed"] = data["hooks"].pop("PreToolUse")
    path.write_text(json.dumps(data))


def matcher(event: str, value: str) -> Change:
    def change(root: Path) -> None:
        path = root / "hooks/hooks.json"
        data = json.loads(path.read_text())
        data["hooks"][event][0]["matcher"] = value
        path.write_text(json.dumps(data))

    return change


SKILL = "skills/training-monitor/SKILL.md"
AGENT = "agents/quality-reviewer.md"
BROKEN: list[tuple[Change, str]] = [
    (remove("src/trainwarden/guard/hook.py"), "starts src/trainwarden/guard/hook.py"),
    (unknown_event, "PreToolUsed: the client knows no such event"),
    (matcher("PreToolUse", "Bash|Raed"), "matcher 'Raed' matches nothing"),
    (matcher("PreToolUse", "^Baash$"), "matcher '^Baash$' matches nothing"),
    (matcher("SubagentStop", "quality-reviewer"), "matcher 'quality-reviewer' matches nothing"),
    (matcher("SessionStart", "startup|compacted"), "matcher 'compacted' matches nothing"),
    (replace(AGENT, "tools: Read, Grep", "tools: Read, Grap"), "knows no tool Grap"),
    (replace(AGENT, "tools:", "model: gpt\ntools:"), "the client knows no gpt"),
    (replace(AGENT, "name: quality-reviewer", "name: reviewer"), "is named reviewer"),
    (replace(SKILL, "name: training-monitor", "name: monitor"), "is named monitor"),
    (replace(SKILL, "description: ", "description: " + "word " * 300), "of at most 1024"),
    (replace(SKILL, "description: ", "about: "), "has no description"),
    (replace(SKILL, "allowed-tools: Bash", "allowed-tools: Bush"), "knows no tool Bush"),
    (append(SKILL, "more\n" * 300), "of fewer than 300"),
    (append("skills/monitor-doctor/SKILL.md", "more\n" * 500), "of fewer than 500"),
    (remove("skills/grpo-monitor/SKILL.md"), "skills/grpo-monitor/SKILL.md: is not there"),
    (
        append("commands/status.md", "Look at [this](../steps/none.md)."),
        "links to ../steps/none.md",
    ),
    (append("commands/status.md", "See [it](../steps/1-predict.md#no)."), "has no such heading"),
    (append(SKILL, "Read `references/none.md`."), "names references/none.md"),
    (append(SKILL, "Read `${CLAUDE_PLUGIN_ROOT}/steps/0-none.md`."), "names steps/0-none.md"),
    (append(SKILL, "See 4-measures.md."), "names 4-measures.md"),
    (append("steps/1-predict.md", "Load `trainwarden:none`."), "names the skill"),
    (
        append("steps/1-predict.md", "Type /trainwarden:none."),
        "the slash command /trainwarden:none",
    ),
    (append(SKILL, "Type /trainwarden:quality-reviewer."), "the slash command"),
    (
        append(SKILL, "Run `trainwarden observe`."),
        "`trainwarden observe`: there is no such command",
    ),
    (
        append(SKILL, "Run `trainwarden show --gat 4`."),
        "`trainwarden show --gat`: there is no such",
    ),
    (append(SKILL, "```sh\nX=1 trainwarden lok\n```"), "`trainwarden lok`"),
    (without_run_bit, "bin/trainwarden: has no run bit"),
    (replace("bin/trainwarden", "#!/bin/sh", "# sh"), "does not begin with #!"),
    (replace(".claude-plugin/plugin.json", __version__, "9.9.9"), "version 9.9.9"),
    (replace(".claude-plugin/marketplace.json", '"./"', '"./src"'), "./src has no plugin"),
    (replace("hooks/hooks.json", "{", "{,"), "hooks/hooks.json: cannot be read"),
]


def test_the_plugin_is_whole() -> None:
    assert complaints(ROOT) == []


@pytest.mark.parametrize(("change", "told"), BROKEN, ids=lambda value: str(value)[:40])
def test_what_is_broken_is_found(plugin: Path, change: Change, told: str) -> None:
    change(plugin)
    found = complaints(plugin)
    assert any(told in line for line in found), found


def test_a_place_is_told_by_file_and_line(plugin: Path) -> None:
    page = plugin / "commands/status.md"
    lines = page.read_text().count("\n")
    append("commands/status.md", "\nRun `trainwarden nothing`.\n")(plugin)
    assert complaints(plugin) == [
        f"commands/status.md:{lines + 2}: `trainwarden nothing`: there is no such command"
    ]


@pytest.mark.parametrize(
    "call",
    [
        "begin --log train.log --config config.yaml",
        "predict <<'EOF' --not-an-option",
        'abandon --why "the --flag is wrong"',
        "--version",
        "show -h",
        "COMMAND",
        "<step>",
        "…",
    ],
)
def test_calls_that_are_fine(call: str) -> None:
    assert list(call_problems(call)) == []


def test_versions_are_one() -> None:
    manifest = json.loads((ROOT / ".claude-plugin/plugin.json").read_text())
    assert manifest["version"] == __version__
