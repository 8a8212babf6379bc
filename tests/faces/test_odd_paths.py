"""Paths that are no regular files: no command may wait for what will never be written there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.cli import call

LINES = "".join(f"step {i}: loss {8 - 0.05 * i:.3f} lr 1e-3\n" for i in range(1, 80))


@pytest.mark.parametrize("name", ["fifo", "/dev/zero"])
def test_as_log_and_as_config(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "train.log").write_text(LINES)
    path = tmp_path / name
    as_log = call("run", "--log", path, "--root", tmp_path)
    assert as_log.returncode in (2, 20), as_log.stderr
    assert "Traceback" not in as_log.stderr
    as_config = call("run", "--log", tmp_path / "train.log", "--config", path, "--root", tmp_path)
    assert as_config.returncode in (0, 2, 10, 20), as_config.stderr
    assert "not a regular file" in as_config.stdout + as_config.stderr
    assert call("read", path).returncode == 2
