"""Start the training in a run's folder, wait for it, and say how it ended.

    python demo/launch.py RUN_FOLDER [option of train.py …]

The run's output goes to RUN_FOLDER/train.log. Exits with the worker's code, or with 128 plus the
signal's number, as a shell would.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType


def main() -> int:
    """Launch, wait, report."""
    folder = Path(sys.argv[1]).resolve()
    script = Path(__file__).with_name("train.py")
    command = [sys.executable, "-u", str(script), "config.yaml", *sys.argv[2:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with (folder / "train.log").open("ab", buffering=0) as log:
        worker = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)

        def forward(number: int, _frame: FrameType | None) -> None:
            worker.send_signal(number)

        signal.signal(signal.SIGTERM, forward)
        signal.signal(signal.SIGINT, forward)
        code = worker.wait()
        if code < 0:
            name = signal.Signals(-code).name
            ending = f"worker (pid {worker.pid}) exited with signal {-code} ({name})"
        elif code > 0:
            ending = f"worker (pid {worker.pid}) exited with code {code}"
        else:
            return 0
        log.write(f"launcher: {ending}\n".encode())
        return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main())
