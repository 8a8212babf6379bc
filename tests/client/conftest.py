"""A user of the real client in a project with a real run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.claude import ROOT, Client, executable
from support.watcher import Watcher


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    """Skip where the client is not there; fail instead where it must be."""
    if executable() is None:
        message = (
            "the real Claude Code client is not installed: `make client` does it with npm; "
            "TRAINWARDEN_CLAUDE may name one"
        )
        if os.environ.get("TRAINWARDEN_CLIENT_REQUIRED"):
            pytest.fail(message)
        pytest.skip(message)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's model, trained for a second: config, log and checkpoints are real."""
    folder = tmp_path_factory.mktemp("run")
    config = yaml.safe_load((ROOT / "demo/config.yaml").read_text())
    config["model"]["hidden_dim"] = 64
    config["data"]["batch_size"] = 8
    config["training"] |= {
        "max_steps": 600,
        "warmup_steps": 30,
        "log_every": 5,
        "eval_every": 200,
        "save_every": 300,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    command = [sys.executable, str(ROOT / "demo/launch.py"), str(folder)]
    subprocess.run(command, check=True, timeout=120)
    return folder


@pytest.fixture
def project(trained: Path, tmp_path: Path) -> Path:
    """A project's folder with the run and the code that made it."""
    folder = tmp_path / "project"
    shutil.copytree(trained, folder)
    shutil.copy(ROOT / "demo/model.py", folder / "model.py")
    return folder


@pytest.fixture
def client(tmp_path: Path, project: Path) -> Client:
    """The user."""
    return Client(tmp_path / "user", project)


@pytest.fixture
def watcher(project: Path) -> Watcher:
    """The analyst."""
    return Watcher(project)
