"""Odd places: names, links, worktrees, folders that cannot be written, Pythons too old, no home."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.claude import Client, Run, front_matter, plugin_copy
from support.model import Script, Turn, bash, call, say
from support.watcher import BEGIN, Watcher, leave

ODD = 'a  "run\'s" $HOME `id` {x} *日本 ünï; #1'
PLAIN = "a  {x} *日本 ünï; #1"
"""The client has no folder on PATH whose name has quotes, a dollar or a back-quote."""
PYTHONS = sorted(Path.home().glob(".pyenv/versions/*/bin/python3"))


def first_gates(watcher: Watcher, *more: Turn) -> Script:
    """Gates 1 and 2, with the log refused before and read after."""
    log = str(watcher.project / "train.log")
    yield from watcher.begin()
    for attempt in (call("Read", file_path=log), bash("cat train.log"), *more):
        asked = yield attempt
        assert asked.result.failed
        assert "trainwarden predict" in asked.result.text, asked.result.text
    yield from watcher.seal("predict")
    asked = yield call("Read", file_path=log)
    assert "ms/step" in asked.result.text
    yield from watcher.seal("collect")
    yield leave()


def check_first_gates(watcher: Watcher, run: Run) -> None:
    """They are guarded, and the log was seen once."""
    assert run.code == 0, run.errors
    gates = sorted(watcher.folder.glob("[1-9]-*.md"))
    assert [(gate.name[0], front_matter(gate)["guarded"]) for gate in gates] == [
        ("1", True),
        ("2", True),
    ]
    assert sum("ms/step" in asked.new for asked in run.asked) == 1


def old_python(minor: int) -> Path:
    """The folder of a real Python 3.x, for a PATH."""
    for path in PYTHONS:
        if path.parts[-3].startswith(f"3.{minor}."):
            return path.parent
    pytest.skip(f"no Python 3.{minor} here")


def read_only(folder: Path) -> tuple[str, ...]:
    """What a command is to be started by, so that it cannot write there."""
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    within = ("unshare", "-m", "sh", "-c", mount, str(folder))
    try:
        subprocess.run([*within, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nothing can be mounted here")
    return within


def test_a_whole_watch_where_every_name_is_odd(trained: Path, tmp_path: Path) -> None:
    """Project, plugin and the user's own folders; no home, and a locale without Unicode."""
    project = tmp_path / ODD
    shutil.copytree(trained, project)
    plugin = plugin_copy(tmp_path / PLAIN)
    client = Client(tmp_path / f"user {ODD}", project, plugin)
    client.environment = {"LC_ALL": "C", "LANG": "", "HOME": ""}
    watcher = Watcher(project)

    def main() -> Script:
        yield from watcher.begin()
        for attempt in (call("Read", file_path=str(project / "train.log")), bash("cat train.log")):
            asked = yield attempt
            assert "trainwarden predict" in asked.result.text, asked.result.text
        yield from watcher.seal("predict", "collect", "compare", "assess", "resources")
        yield from watcher.ask_reviewer()
        yield from watcher.seal("review", "troubleshoot", "strategize", "finish")
        yield say("HEALTHY")

    run = client.run("/trainwarden:monitor train.log", main(), watcher.reviewer())
    assert run.code == 0, run.errors
    watcher.check_whole()
    assert "ms/step" not in run.of()[0].context
    assert {path.name for path in tmp_path.iterdir()} == {ODD, PLAIN, f"user {ODD}"}


def test_a_worktree_of_git(client: Client, project: Path, tmp_path: Path) -> None:
    git = ("git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@b.c")
    tree = tmp_path / "tree"
    for words in (
        ("init", "--quiet"),
        ("add", "config.yaml", "model.py", "train.log"),
        ("commit", "--quiet", "--message", "A run"),
        ("worktree", "add", "--quiet", str(tree)),
    ):
        subprocess.run([*git, *words], check=True)
    client.project = tree
    watcher = Watcher(tree)

    more = (
        bash("git show HEAD:train.log"),
        bash("git log -p"),
        call("Read", file_path=str(project / "train.log")),
    )
    run = client.run("/trainwarden:monitor train.log", first_gates(watcher, *more))
    check_first_gates(watcher, run)
    assert not (project / "monitoring-logs").exists()


def test_a_plugin_that_cannot_be_written(client: Client, watcher: Watcher, tmp_path: Path) -> None:
    def uncompile(plugin: Path) -> None:
        for folder in list(plugin.rglob("__pycache__")):
            shutil.rmtree(folder)

    client.plugin = plugin_copy(tmp_path, uncompile)
    client.within = read_only(client.plugin)
    run = client.run("/trainwarden:monitor train.log", first_gates(watcher))
    check_first_gates(watcher, run)
    assert not list(client.plugin.rglob("__pycache__"))
    for compiled in ("guard/tools.*.pyc", "faces/cli.*.pyc"):
        assert list(client.home.glob(f"config/plugins/data/*/pycache/**/{compiled}"))


def test_gates_that_cannot_be_written(client: Client, watcher: Watcher) -> None:
    """It is told, nothing is open, and nobody is held."""
    logs = watcher.project / "monitoring-logs"
    logs.mkdir()
    client.within = read_only(logs)

    def main() -> Script:
        asked = yield bash(BEGIN)
        assert asked.result.failed
        assert str(logs) in asked.result.text, asked.result.text
        assert "ead-only" in asked.result.text, asked.result.text
        assert "Traceback" not in asked.result.text
        asked = yield call("Read", file_path=str(watcher.project / "train.log"))
        assert "ms/step" in asked.result.text
        yield say("It cannot be written.")

    run = client.run("/trainwarden:monitor train.log", main())
    assert run.code == 0, run.errors
    assert run.stopped == []
    assert list(logs.rglob("*")) == []


@pytest.mark.parametrize("minor", [8, 9])
def test_an_older_python_that_the_guard_can_do_with(
    client: Client, watcher: Watcher, minor: int
) -> None:
    """The guard runs with it; the runtime looks for a newer one."""
    client.path = (str(old_python(minor)), *client.path)
    check_first_gates(watcher, client.run("/trainwarden:monitor train.log", first_gates(watcher)))


def test_a_python_too_old_for_the_guard(client: Client, watcher: Watcher) -> None:
    """The user is told at the start, and gate 1 says it."""
    client.path = (str(old_python(7)), *client.path)

    def main() -> Script:
        yield from watcher.begin()
        yield from watcher.seal("predict")
        yield leave()

    run = client.run("/trainwarden:monitor train.log", main())
    assert run.code == 0, run.errors
    assert front_matter(watcher.folder / "1-predict.md")["guarded"] is False
    assert "older than 3.8" in str(run.events), "the user hears it"
