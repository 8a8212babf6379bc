"""Real processes for tests: started in their own sessions, and ended whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil


class Processes:
    """Starts scripts as a trainer's user would, and ends all that came of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[psutil.Process] = []
        self.popen: list[subprocess.Popen[bytes]] = []

    def script(self, name: str, body: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body)
        return path

    def start(
        self,
        *argv: str,
        log: Path | None = None,
        env: Mapping[str, str] | None = None,
        ready: str | None = "ready",
    ) -> int:
        """Start a command in the folder; waits until it has made the file `ready` there."""
        mark = self.folder / ready if ready else None
        if mark:
            mark.unlink(missing_ok=True)
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(log.open("ab")) if log else subprocess.DEVNULL
            process = subprocess.Popen(
                argv,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        self.popen.append(process)
        self.started.append(psutil.Process(process.pid))
        if mark:
            wait_for(mark.exists)
        return process.pid

    def python(self, name: str, body: str, *argv: str, **how: object) -> int:
        """Start a Python script; it must make the file `ready` when it is."""
        script = self.script(name, body)
        return self.start(sys.executable, "-S", str(script), *argv, **how)  # type: ignore[arg-type]

    def adopt(self, pid: int) -> int:
        """End this one too."""
        self.started.append(psutil.Process(pid))
        return pid

    def kill(self, pid: int) -> None:
        """Kill one of the started and wait until it is gone."""
        os.kill(pid, signal.SIGKILL)
        for process in self.popen:
            if process.pid == pid:
                process.wait(10)
        wait_for(lambda: not psutil.pid_exists(pid))

    def end(self) -> None:
        every = list(self.started)
        for process in self.started:
            with contextlib.suppress(psutil.Error):
                every += process.children(recursive=True)
        for process in every:
            with contextlib.suppress(psutil.Error):
                process.kill()
        for child in self.popen:
            child.wait(10)


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise TimeoutError("what the test waits for does not come")
        time.sleep(0.01)


@contextlib.contextmanager
def processes(folder: Path) -> Iterator[Processes]:
    """All processes started within are ended at the end."""
    made = Processes(folder)
    try:
        yield made
    finally:
        made.end()


SLEEPER = """
import pathlib, time
pathlib.Path("ready").touch()
time.sleep(300)
"""
"""The smallest script that lives until it is ended."""
