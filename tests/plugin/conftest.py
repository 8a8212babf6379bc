"""Machines with less on them than this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python with nothing installed, in a folder for a PATH."""
    environment = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    return environment / "bin"


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """The system's programs without any Python, in a folder for a PATH."""
    folder = tmp_path / "system"
    folder.mkdir()
    for place in (Path("/bin"), Path("/usr/bin")):
        for program in place.iterdir():
            link = folder / program.name
            left_out = program.name.startswith(("python", "pip", "uv", "trainwarden", "claude"))
            if not left_out and not link.is_symlink():
                link.symlink_to(program)
    return folder
