"""The plugin in the real client: validated, installed from a clone, and run for the first time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.claude import Client, executable
from support.model import Script, bash, say
from trainwarden import __version__, interpreter
from trainwarden.guard import record

ROOT = Path(__file__).parents[2]
LISTED = [need for need in interpreter.dependencies(ROOT) if ";" not in need]
VERSION = f"trainwarden, version {__version__}"


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    if executable() is None:
        message = "the real Claude Code client is not installed: `make client` does it with npm"
        if os.environ.get("TRAINWARDEN_CLIENT_REQUIRED"):
            pytest.fail(message)
        pytest.skip(message)


@dataclass
class User:
    """A user of the client's own commands, with a configuration of their own."""

    home: Path
    path: str

    def claude(self, *arguments: str | Path, code: int = 0) -> str:
        """What a command of the client says; the exit code must be the one given."""
        program = executable()
        assert program
        client = Client(self.home, self.home)
        done = subprocess.run(
            [program, *map(str, arguments)],
            env=client.variables("http://127.0.0.1:9") | {"PATH": self.path},
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def user(tmp_path: Path) -> User:
    home = tmp_path / "a user"
    home.mkdir()
    return User(home, os.pathsep.join(("/usr/bin", "/bin")))


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What `git clone` would give of the tree as it stands: what git tracks, and nothing else."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(git, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git clone, so that nothing tells what belongs to it")
    folder = tmp_path / "a clone"
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def test_the_client_finds_nothing_to_warn_of(user: User, clone: Path) -> None:
    for name in ("", ".claude-plugin/plugin.json", ".claude-plugin/marketplace.json"):
        assert "Validation passed" in user.claude("plugin", "validate", "--strict", clone / name)


def test_what_the_client_finds_is_found(user: User, clone: Path) -> None:
    """The check above is no empty one."""
    manifest = clone / ".claude-plugin/plugin.json"
    data = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(data | {"name": "train warden"}))
    user.claude("plugin", "validate", "--strict", clone, code=1)


def reachable(folder: Path) -> dict[str, str]:
    """What pip needs of this environment; skips where it reaches no index with that."""
    kept = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "SSL_"))}
    kept |= {k: v for k, v in os.environ.items() if k.lower().endswith("_proxy")}
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "click>=8.1"]
    done = subprocess.run([*command, "--dest", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"pip reaches no index here: {done.stderr.strip().splitlines()[-1]}")
    return kept


@pytest.fixture
def client(clone: Path, bare: Path, system: Path, tmp_path: Path) -> Client:
    """A user who installed it from a clone; names have spaces, and no Python has what it needs."""
    project = tmp_path / "a project"
    project.mkdir()
    path = (str(bare), str(system))
    client = Client(tmp_path / "a user", project, None, path)
    user = User(client.home, os.pathsep.join(path))
    user.home.mkdir()
    user.claude("plugin", "marketplace", "add", clone)
    user.claude("plugin", "install", "trainwarden@trainwarden")
    assert f"Version: {__version__}" in user.claude("plugin", "list")
    return client


def test_its_first_command_without_a_network(client: Client) -> None:
    """The model is told what is missing and how to bring it; nothing is begun or set up."""
    client.environment = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    client.environment["PIP_CONFIG_FILE"] = os.devnull

    def script() -> Script:
        first = yield bash("trainwarden begin --log train.log")
        assert first.result.failed
        for told in (*LISTED, "With a network, run this again", "-m pip download -d wheels"):
            assert told in first.result.text, first.result.text
        assert "Traceback" not in first.result.text
        asked = yield bash("touch here")
        assert not asked.result.failed, asked.result.text
        yield say("There is no network.")

    run = client.run("/trainwarden:monitor train.log", script())
    assert run.final == "There is no network."
    assert run.stopped == []
    assert not list(client.home.glob("config/plugins/data/**/python*"))
    assert (client.project / "here").exists()
    assert not list(client.project.glob("monitoring-logs/*/session.json"))
    assert record.open_names(str(client.project)) == []


def test_its_first_command_works(client: Client, tmp_path: Path) -> None:
    """With nothing installed by hand; two first commands come at once."""
    client.environment = reachable(tmp_path / "download")

    def script() -> Script:
        firsts = yield bash("trainwarden --version") & bash("trainwarden --version")
        texts = [result.text for result in firsts.results]
        assert all(VERSION in text for text in texts), texts
        assert sum("setting up its Python packages" in text for text in texts) == 1, texts
        second = yield bash("trainwarden --version")
        assert second.result.text.startswith(VERSION)
        assert "setting up" not in second.result.text
        third = yield bash("trainwarden doctor")
        assert "live: it saw this call" in third.result.text
        assert not third.result.failed, third.result.text
        yield say("It works.")

    run = client.run("Does trainwarden work?", script(), limit=300)
    assert run.final == "It works."
    # In the plugin's own data folder, which goes when the plugin is uninstalled.
    (made,) = client.home.glob("config/plugins/data/**/python-*")
    assert (made / "complete").is_file()
    assert not (client.home / "home/.local/share/trainwarden").exists()
