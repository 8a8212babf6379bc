"""Stores of experiment trackers, written and read back by the trackers themselves, offline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple


class Written(NamedTuple):
    """A folder with stores, and what the tracker read back of them."""

    folder: Path
    told: Any


_OFFLINE = """
import json, math, os, socket, sys
from pathlib import Path
def refused(*_):
    raise OSError("the tests use no network")
socket.socket.connect = refused
folder = Path(sys.argv[1])
STEPS = range(0, 400, 10)
"""
_MLFLOW = (
    _OFFLINE
    + """
from mlflow import MlflowClient
from mlflow.entities import Metric, Param
told = {}
for name, uri in (("files", f"file:{folder}/mlruns"), ("sqlite", f"sqlite:///{folder}/mlflow.db")):
    client = MlflowClient(uri)
    experiment = client.create_experiment("tiny")
    told[name] = {}
    ends = {"done": "FINISHED", "broken": "FAILED", "killed": "KILLED", "live": ""}
    for run, status in ends.items():
        id = client.create_run(experiment, run_name=run).info.run_id
        client.log_param(id, "learning_rate", 3e-4)
        client.log_param(id, "trainer/max_steps", 500)
        client.log_param(id, "optimizer", "adamw")
        begun = 1_760_000_000_000 + 1_000_000 * len(told[name])
        points = []
        for step in STEPS:
            time = begun + 250 * step
            points.append(Metric("train/loss", 3.0 - step / 200, time, step))
            points.append(Metric("grad_norm", math.nan if step == 100 else 1.0, time, step))
            points.append(Metric("scale", math.inf if step == 200 else 1024.0, time, step))
            points.append(Metric("system/gpu_0_power_usage_watts", 300.0, time + 1, step // 10))
        client.log_batch(id, points, [], [])
        client.log_metric(id, "val/loss", 2.5, begun + 98_000, step=390)
        client.log_metric(id, "train/loss", -math.inf, begun + 100_000, step=400)
        if status:
            client.set_terminated(id, status)
        keys = sorted(client.get_run(id).data.metrics)
        points = {key: client.get_metric_history(id, key) for key in keys}
        points = {key: [(p.step, repr(p.value)) for p in some] for key, some in points.items()}
        told[name][run] = {"id": id, "metrics": points}
    unstepped = client.create_run(experiment, run_name="unstepped").info.run_id
    for value in (3.0, 2.0, 1.0):
        client.log_metric(unstepped, "loss", value)
    deleted = client.create_run(experiment, run_name="deleted").info.run_id
    client.log_metric(deleted, "loss", 1.0)
    client.delete_run(deleted)
    empty = client.create_run(experiment, run_name="empty").info.run_id
print(json.dumps(told))
"""
)
_TRACKIO = (
    _OFFLINE
    + """
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()):
    import trackio
    from trackio.sqlite_storage import SQLiteStorage
    for run in ("first", "second"):
        config = {"max_steps": 500, "optimizer": {"name": "adamw"}}
        trackio.init(project="tiny", name=run, config=config)
        for step in STEPS:
            trackio.log({
                "train/loss": 3.0 - step / 200,
                "train/global_step": step,
                "grad_norm": math.nan if step == 100 else 1.0,
                "scale": math.inf if step == 200 else 1024.0,
                "parts": {"ce": 1.5},
                "note": "words",
            })
        trackio.log({"eval/loss": 2.5, "train/global_step": 390})
        trackio.finish()
    trackio.init(project="plain", name="plain", config={})
    for step in STEPS:
        trackio.log({"loss": 3.0 - step / 200}, step=step)
    trackio.finish()
    told = {run: SQLiteStorage.get_logs("tiny", run) for run in ("first", "second")}
print(json.dumps(told))
"""
)
_SILENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "HF_HUB_OFFLINE": "1",
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}


def _written(script: str, folder: Path, **more: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        env=os.environ | _SILENT | {"HF_HOME": str(folder / "hf")} | more,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def write_mlflow(folder: Path) -> Any:
    """`mlruns` and `mlflow.db` in a folder; what MLflow reads back, by store, run and metric."""
    return _written(_MLFLOW, folder)


def write_trackio(folder: Path) -> Any:
    """`tiny.db` and `plain.db` in a folder; the rows that Trackio reads back, by run."""
    return _written(_TRACKIO, folder, TRACKIO_DIR=str(folder))
