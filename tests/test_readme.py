"""The README's commands exist, and something here runs each of them."""

import re
from pathlib import Path

import click

from trainwarden.faces.cli import cli

ROOT = Path(__file__).parents[1]


def commands(program: str) -> set[str]:
    """First words after `program` in the README's code blocks."""
    blocks = re.findall(
        r"```(?:sh|bash|console|shell)?\n(.*?)```", (ROOT / "README.md").read_text(), re.S
    )
    start = rf"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\S+/)?{program} ([a-z][a-z-]*)"
    return set(re.findall(start, "\n".join(blocks), re.M))


def test_make_targets_exist_and_continuous_integration_runs_them() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    run = set(re.findall(r"\bmake ([a-z]+)", (ROOT / ".ci/run").read_text()))
    named = commands("make")
    assert {"demo", "test"} <= named
    assert named <= targets
    assert named <= run | {"bench", "clean", "setup"}


def test_subcommands_exist_and_are_run() -> None:
    named = commands("trainwarden")
    assert {"run", "begin"} <= named
    assert named <= set(cli.list_commands(click.Context(cli)))
    runners = [*(ROOT / "tests").rglob("*.py"), ROOT / "demo/run.py"]
    sources = "\n".join(path.read_text() for path in runners if path != Path(__file__))
    unrun = {name for name in named if f'"{name}"' not in sources}
    assert not unrun, f"no test runs: {', '.join(sorted(unrun))}"


def test_faults_named_are_those_of_the_demo() -> None:
    faults = set(re.findall(r'^    "(\w+)": [\d.]+,$', (ROOT / "demo/faults.py").read_text(), re.M))
    shown = set(re.findall(r"FAULT=([a-z]+)", (ROOT / "README.md").read_text()))
    tried = set(re.findall(r"\b[a-z]+\b", (ROOT / ".ci/run").read_text()))
    assert len(faults) == 8
    assert shown <= faults <= tried


def test_what_is_typed_for_the_plugin_is_what_the_real_client_is_given() -> None:
    text = (ROOT / "README.md").read_text()
    lines = re.findall(r"^claude (plugin .+)$", text, re.M)
    tried = (ROOT / "tests/plugin/test_install.py").read_text()
    assert len(lines) == 2
    for line in lines:
        words = [word for word in line.split() if not word.startswith("/")]
        assert ", ".join(f'"{word}"' for word in words) in tried, line


def test_slash_commands_are_those_of_the_plugin() -> None:
    named = set(re.findall(r"`/trainwarden:([a-z]+)", (ROOT / "README.md").read_text()))
    assert named == {path.stem for path in (ROOT / "commands").glob("*.md")}
