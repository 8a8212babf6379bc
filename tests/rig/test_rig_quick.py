"""The rig watches real runs: the plain trainer on every machine, PyTorch where it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, get_args

import pytest

from trainwarden.records.finding import FindingKind

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TORCH = Path(os.environ.get("TRAINWARDEN_RIG_PYTHON", BENCHMARKS / "rig" / ".venv/bin/python"))


def run_rig(folder: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, report and all that was printed."""
    command = [sys.executable, str(BENCHMARKS / "rig" / "run.py"), "--runs", str(folder)]
    command += ["--json", str(folder / "told.json"), "--python", str(TORCH), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert (folder / "told.json").exists(), done.stderr
    told = json.loads((folder / "told.json").read_text())
    return done.returncode, told, done.stdout + done.stderr


@pytest.fixture(autouse=True)
def rig(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_real_fault_is_named_and_sound_run_is_not(tmp_path: Path) -> None:
    only = ("--only", "plain_crash", "--only", "plain_twin1", "--jobs", "2")
    code, told, said = run_rig(tmp_path, *only)
    assert code == 0, said
    crash, twin = told["runs"]
    assert crash["caught"]["kinds"] == ["crash_user_code"]
    assert crash["exit_code"] in (None, 1)  # None: it was named before it was seen to have ended
    assert crash["onset"]["step"] == 1200
    assert twin["false_alarms"] == []
    assert twin["statuses"][-1] == "HEALTHY"
    assert len(twin["looks"]) >= 2, "it was watched while it trained, not only afterwards"
    assert twin["looks"][0]["progress"] < 3000
    assert (told["recall"], told["twins_with_false_alarm"]) == (1.0, 0)
    assert "faults: 1 of 1 named" in said


def test_torch_run_overflows_16_bits_and_is_named(tmp_path: Path) -> None:
    from rig.run import has_torch

    if not has_torch(TORCH):
        pytest.skip(f"no PyTorch, transformers and TRL at {TORCH}: benchmarks/rig/install.sh")
    code, told, said = run_rig(tmp_path, "--only", "lm_fp16_overflow")
    assert code == 0, said
    (run,) = told["runs"]
    assert run["caught"] is not None
    assert run["false_alarms"] == []


def test_runs_that_need_torch_are_left_out_and_named_without_it(tmp_path: Path) -> None:
    code, told, said = run_rig(tmp_path, "--only", "lm_twin1", "--python", "/no/such/python")
    assert code == 0
    assert told["left_out"] == ["lm_twin1"]
    assert "no PyTorch at /no/such/python" in said


def test_every_fault_is_named_by_kinds_of_findings_and_names_are_unique() -> None:
    from rig.cases import CASES

    kinds = set(get_args(FindingKind))
    for case in CASES:
        assert case.names <= kinds, case.name
        assert bool(case.names) == bool(case.fault), case.name
    assert len({case.name for case in CASES}) == len(CASES)


def test_config_says_nothing_of_the_rig(tmp_path: Path) -> None:
    from rig.cases import CASES
    from rig.mounts import Disk
    from rig.watch import training

    case = next(case for case in CASES if case.name == "plain_crash")
    for name in ("run", "side"):
        (tmp_path / name).mkdir()
    with training(case, tmp_path, Path(sys.executable), Disk()):
        shown = json.loads((tmp_path / "run" / "config.json").read_text())
    assert "pause" not in shown
    assert "crash" not in json.dumps(shown)
    assert shown["max_steps"] == 3000


def look(ended: float, *findings: tuple[str, str], status: str = "HEALTHY") -> Any:
    from rig.watch import Look

    told = [{"kind": kind, "severity": severity, "since_step": 40} for kind, severity in findings]
    return Look(ended - 1, ended, int(ended), ended, status, told)


def test_finding_counts_only_after_the_onset_and_above_information() -> None:
    from rig.cases import Case
    from rig.watch import Outcome

    case = Case("x", "plain", fault="f", names=frozenset({"stall"}))
    outcome = Outcome(case, onset={"step": 40, "time": 50.0})
    outcome.looks = [look(45, ("stall", "critical")), look(55, ("stall", "info"))]
    assert outcome.caught() is None
    assert outcome.false_alarms() == ["stall"]
    outcome.looks += [look(60, ("plateau", "warning")), look(70, ("stall", "critical"))]
    told = outcome.data()
    assert told["alerted"]["kinds"] == ["plateau"]
    assert told["caught"]["steps"] == 30
    assert told["caught"]["seconds"] == 20.0


def test_twin_with_any_finding_is_a_false_alarm() -> None:
    from rig.cases import Case
    from rig.report import row, summary
    from rig.watch import Outcome

    quiet = Outcome(Case("a", "plain"), [look(5, ("stall", "info"))])
    loud = Outcome(Case("b", "plain"), [look(5, ("stall", "warning"), status="WARNING")])
    told = summary([quiet, loud])
    assert told["twins_with_false_alarm"] == 1
    assert told["twins_healthy_at_end"] == 1
    assert row(loud)[2] == "FALSE ALARM"
    assert row(quiet)[2] == "quiet"


def test_small_disk_fills(tmp_path: Path) -> None:
    from rig.mounts import small_disk

    write = "open('full/x', 'wb').write(b'0' * 3_000_000)"
    with small_disk(tmp_path / "full", 1 << 20) as disk:
        command = [*disk.prefix, sys.executable, "-c", write]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    text = "No space left on device" if "tmpfs" in disk.kind else "File too large"
    assert text in done.stderr


def test_training_is_gone_with_all_it_started(tmp_path: Path) -> None:
    from rig.cases import CASES
    from rig.mounts import Disk
    from rig.watch import training

    case = next(case for case in CASES if case.name == "plain_blocks")
    for name in ("run", "side"):
        (tmp_path / name).mkdir()
    with training(case, tmp_path, Path(sys.executable), Disk()) as process:
        deadline = time.monotonic() + 30
        while not (tmp_path / "run" / "train.log").stat().st_size:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert process.poll() is None
    assert process.returncode == -9
