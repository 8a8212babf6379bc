"""Packages that really are installed, each test's own, and trainwarden run beside them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def install(package: Path, site: Path) -> None:
    """Install a package by pip, without a network, into a folder for Python's path."""
    quiet = ["--no-build-isolation", "--no-deps", "--no-index", "--no-compile", "--quiet"]
    command = [sys.executable, "-m", "pip", "install", *quiet, "--target", str(site), str(package)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr


def told(log: Path, site: Path, *options: str) -> str:
    """What `trainwarden read` tells of a log where the packages of `site` are installed."""
    path = os.pathsep.join([str(site), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-m", "trainwarden", "read", str(log), *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
