"""The command line as a user calls it: a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "trainwarden.faces.cli"]


def call(
    *arguments: str | Path, stdin: str = "", cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; never raises for its exit code."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        env=os.environ | environment,
        check=False,
    )


def answer(*arguments: str | Path, code: int | None = 0, **options: Any) -> Any:
    """What a command answers with --json; the exit code must be the one given."""
    done = call(*arguments, "--json", **options)
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)
