"""Where a job's evidence lies, and what of it may be read before predicting: for the guard."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from trainwarden.evidence.config_facts import flatten
from trainwarden.guard.places import tells_of_results
from trainwarden.procedure.beginning import read_config
from trainwarden.records.job import Job

TRACKERS = (
    "wandb", "mlruns", "mlartifacts", "runs", "tensorboard", "tensorboard_logs", "lightning_logs",
    "tb_logs", "tblogs", "logs", "aim", ".aim", "trackio", "swanlog", "neptune", ".neptune",
    "clearml", "checkpoints", "ckpts",
)  # fmt: skip
"""Folders in which trackers and trainers leave what a run did."""
WRITTEN = frozenset(
    (
        "output_dir", "out_dir", "output_path", "outputdir", "logging_dir", "log_dir", "logdir",
        "log_path", "log_file", "save_dir", "save_path", "save_folder", "checkpoint_dir",
        "checkpoint_path", "checkpoints_path", "checkpoint_folder", "ckpt_dir", "ckpt_path",
        "default_root_dir", "default_local_dir", "default_hdfs_dir", "dump_folder", "work_dir",
        "results_dir", "run_dir", "exp_dir", "experiment_dir", "tensorboard_dir", "wandb_dir",
        "tensorboard_log", "rollout_data_dir", "validation_data_dir", "dirpath", "save",
        "project_dir", "hub_dir", "completions_dir",
    )
)  # fmt: skip
"""The last part of config keys whose value is a place that the run writes to."""
MOST = 200


def evidence(job: Job, root: Path) -> list[str]:
    """Absolute paths of what the run leaves behind: logs, output, tracker, checkpoint folders.

    A folder that holds the project or the config itself is left out: what may be read in it is
    told apart file by file.
    """
    config, _ = read_config(job)
    logs = [Path(log) for log in job.logs]
    bases = list(dict.fromkeys([root, *(log.parent for log in logs), *_beside(job.config)]))
    found = [*logs, *(log.parent for log in logs)]
    found += [Path(path) for path in (job.config,) if path and tells_of_results(path)]
    found += [base / name for base in bases for name in TRACKERS if (base / name).is_dir()]
    for said in _said(config):
        found += [base / said for base in (root, *_beside(job.config))]
    kept = [path for path in _both(found) if path in logs or not _holds(path, job, root)]
    return [str(path) for path in dict.fromkeys(kept)][:MOST]


def readable(job: Job) -> list[str]:
    """Absolute paths that may be read before gate 1: the config, the model's folder."""
    config = job.config if job.config and not tells_of_results(job.config) else None
    named = [path for path in (config, job.model) if path and Path(path).is_absolute()]
    return [str(path) for path in dict.fromkeys(_both(map(Path, named)))]


def trackers(job: Job, output: str | None) -> list[str]:
    """Trackers' folders beside the job's logs, or in its output folder."""
    bases = [Path(log).parent for log in job.logs]
    bases += [parent / output for parent in _beside(job.config) if output]
    found = (base / name for base in bases for name in ("wandb", "mlruns", "trackio"))
    return list(dict.fromkeys(str(path) for path in found if path.is_dir()))


def _beside(config: str | None) -> list[Path]:
    return [Path(config).parent] if config else []


def _said(config: dict[str, Any]) -> Iterator[Path]:
    for key, value in flatten(config).items():
        name = key.rpartition(".")[2].lower().replace("-", "_")
        # Values with a variable or a URL in them name no place that could be told here.
        plain = isinstance(value, str) and not any(sign in value for sign in ("$", "://", "\0"))
        if name in WRITTEN and plain and 0 < len(value) < 4096:
            with contextlib.suppress(RuntimeError):
                yield Path(value).expanduser()


def _both(paths: Iterable[Path]) -> Iterator[Path]:
    """Each path as written and with its links resolved."""
    for path in paths:
        try:
            yield Path(os.path.normpath(path))
            yield Path(os.path.realpath(path))
        except (OSError, ValueError):
            continue


def _holds(folder: Path, job: Job, root: Path) -> bool:
    inner = [Path(os.path.realpath(root)), root]
    inner += [Path(path) for path in readable(job)]
    return any(folder == path or folder in path.parents for path in inner)
