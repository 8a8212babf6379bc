"""Stores of trackers as logs of a job that runs here, and of a folder in which nothing runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.cli import call
from support.procs import processes
from support.trackers import Written
from trainwarden.evidence.discovery import find_for, find_jobs

HELD = """
import pathlib, sqlite3, time
store = sqlite3.connect("mlflow.db", isolation_level=None)
store.execute("CREATE TABLE runs (run_uuid, name, status, start_time, end_time)")
store.execute('CREATE TABLE metrics ("key", value, timestamp, run_uuid, step)')
other = sqlite3.connect("study.db", isolation_level=None)
other.execute("CREATE TABLE trials (number)")
pathlib.Path("ready").touch()
time.sleep(600)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_store_that_a_training_holds_open_is_its_log(tmp_path: Path) -> None:
    with processes(tmp_path) as procs:
        procs.python("train.py", HELD, "--lr", "0.1")
        (job,) = find_for(tmp_path, find_jobs(gpus=False))
    assert job.logs == (str(tmp_path / "mlflow.db"),)


def test_a_watch_finds_the_store_of_its_folder_and_cites_rows(
    mlflow_stores: Written, tmp_path: Path
) -> None:
    (tmp_path / "mlflow.db").write_bytes((mlflow_stores.folder / "mlflow.db").read_bytes())
    done = call("run", "--log", "mlflow.db#killed", cwd=tmp_path)
    assert done.returncode in {0, 10, 20, 30}, done.stderr
    assert "step 400" in done.stdout
    gates = list((tmp_path / "monitoring-logs").glob("20*/*metrics*"))
    assert any("mlflow.db#killed @ row " in gate.read_text() for gate in gates)
    found = call("run", cwd=tmp_path)
    assert found.returncode in {0, 10, 20, 30}, found.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mlflow.db", "monitoring-logs"]
