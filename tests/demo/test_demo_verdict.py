"""What the demo makes of the sessions it was answered."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

DEMO = Path(__file__).parents[2] / "demo"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DEMO))
    import run

    return run


def answer(status: str, *kinds: str, severity: str = "critical") -> dict[str, Any]:
    return {
        "session": "2026-12-01_120000",
        "job": "demo",
        "status": status,
        "indicator": {"quantity": "loss", "direction": "decrease", "value": 1.5},
        "predictions": {"made": 5, "held": 4, "missed": 1, "unobserved": 0},
        "findings": [
            {"kind": kind, "severity": severity, "since_step": 3, "summary": "s"} for kind in kinds
        ],
        "gates": "/tmp/x",
        "step": 100,
    }


def test_sound_run_must_be_healthy_every_time(run: Any) -> None:
    healthy = run.Look(answer("HEALTHY"), True)
    assert run.judge([healthy] * 3, None)[0]
    right, line = run.judge([healthy, run.Look(answer("WARNING", "plateau"), True)], None)
    assert not right
    assert "2026-12-01_120000" in line


def test_fault_must_be_named_after_its_onset_and_by_an_unhealthy_session(run: Any) -> None:
    before = run.Look(answer("HEALTHY"), True)
    named = answer("CRITICAL", "nan_loss", "crash_user_code")
    right, line = run.judge([before, run.Look(named, False)], "nan")
    assert right
    assert "named nan_loss by session" in line
    assert not run.judge([before, run.Look(answer("CRITICAL", "divergence"), False)], "nan")[0]
    assert not run.judge([run.Look(named, True), run.Look(named, False)], "nan")[0]
    info = answer("HEALTHY", "nan_loss", severity="info")
    assert not run.judge([before, run.Look(info, False)], "nan")[0]


def test_every_fault_has_names_that_are_kinds_of_findings(run: Any) -> None:
    from typing import get_args

    from trainwarden.records.finding import FindingKind

    assert set(run.NAMES) == set(run.ONSET)
    assert set().union(*run.NAMES.values()) <= set(get_args(FindingKind))


def test_table_has_a_line_a_session(run: Any) -> None:
    text = run.table([run.Look(answer("CRITICAL", "stall"), False)])
    head, line = text.splitlines()
    assert head.split()[0] == "session"
    assert "loss 1.5 (decrease)" in line
    assert "4 of 5 held" in line
    assert "stall" in line


def test_close_ends_even_a_stopped_worker(run: Any, tmp_path: Path) -> None:
    script = (
        "import subprocess, sys;"
        "subprocess.run([sys.executable, '-c',"
        " 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP)'])"
    )
    launcher = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    (tmp_path / "train.log").write_text("2026-12-01 | step 7/10 | loss 1.0 |\n")
    os.utime(tmp_path / "train.log", (time.time() - 60,) * 2)
    training = run.Training(tmp_path, launcher, 10)
    assert training.step() == 7
    training.wait_for_end()
    assert training.stopped()
    workers = psutil.Process(launcher.pid).children()
    training.close()
    assert launcher.returncode in (-signal.SIGTERM, -signal.SIGKILL, 0)
    assert not psutil.wait_procs(workers, timeout=5)[1]
