from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.answers import begin, find, make_job, walk_to, write_log
from trainwarden.errors import Refusal
from trainwarden.procedure.locate import locate
from trainwarden.procedure.state import StateStore
from trainwarden.records.job import job_id


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    return StateStore(tmp_path)


def test_the_config_and_the_model_make_the_id(store: StateStore, tmp_path: Path) -> None:
    known = make_job(tmp_path)
    job = locate(store, root=tmp_path, config=str(tmp_path / "config.yaml"), model="org/model")
    assert job.id == job_id(known.config, "org/model")
    assert job.id != known.id
    assert job.logs == known.logs, "the log beside the config is found"


def test_a_relative_path_is_the_same_job(
    store: StateStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert locate(store, root=tmp_path, config="config.yaml").id == job.id


def test_a_log_alone_finds_the_job_that_is_known_by_it(store: StateStore, tmp_path: Path) -> None:
    job = make_job(tmp_path)
    walk_to(begin(tmp_path, job), "predict")
    found = locate(store, root=tmp_path, logs=[job.logs[0]])
    assert (found.id, found.config) == (job.id, job.config)


def test_a_second_run_of_a_config_is_judged_by_its_own_log(
    store: StateStore, tmp_path: Path
) -> None:
    job = make_job(tmp_path)
    walk_to(begin(tmp_path, job), "done")
    later = tmp_path / "later.log"
    write_log(later, range(0, 100, 10))
    found = locate(store, root=tmp_path, logs=[str(later)], config=job.config)
    assert (found.id, found.logs) == (job.id, (str(later),))
    session = walk_to(begin(tmp_path, found), "compare")
    assert session.samples == (), "what an earlier run left is no history of this one"
    assert find(session, "step").value == 90
    assert locate(store, root=tmp_path).logs == (str(later),)


def test_nothing_given_takes_the_only_known_job(store: StateStore, tmp_path: Path) -> None:
    job = make_job(tmp_path)
    begin(tmp_path, job)
    assert locate(store, root=tmp_path) == job


def test_nothing_given_and_nothing_known_takes_config_and_newest_log(
    store: StateStore, tmp_path: Path
) -> None:
    job = make_job(tmp_path)
    old = tmp_path / "old.log"
    write_log(old, range(0, 100, 10))
    os.utime(old, (1, 1))
    found = locate(store, root=tmp_path)
    assert (found.id, found.logs) == (job.id, job.logs)


def test_several_known_jobs_are_listed(store: StateStore, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        begin(tmp_path, make_job(tmp_path / name))
    with pytest.raises(Refusal, match="several jobs") as refusal:
        locate(store, root=tmp_path)
    for name in store.known():
        assert name in str(refusal.value)


def test_a_known_job_keeps_its_guidance_until_another_is_given(
    store: StateStore, tmp_path: Path
) -> None:
    job = make_job(tmp_path).model_copy(update={"guidance": "watch the loss"})
    begin(tmp_path, job)
    assert locate(store, root=tmp_path).guidance == "watch the loss"
    told = locate(store, root=tmp_path, guidance="watch eval_loss")
    assert told.guidance == "watch eval_loss"


@pytest.mark.parametrize(
    "given", [{"logs": ["gone.log"]}, {"config": "gone.yaml"}, {"job": "gone"}]
)
def test_what_does_not_exist_is_named(
    store: StateStore, tmp_path: Path, given: dict[str, object]
) -> None:
    with pytest.raises(Refusal, match="gone"):
        locate(store, root=tmp_path, **given)  # type: ignore[arg-type]


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Path]:
    """A process that looks like a training run and holds its log open."""
    script = tmp_path / "train.py"
    script.write_text(
        "import time\nwhile True:\n    print('step 1 loss 2.0', flush=True)\n    time.sleep(1)\n"
    )
    (tmp_path / "settings.yaml").write_text("max_steps: 10\nlearning_rate: 0.1\n")
    log = tmp_path / "out.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "train.py", "--config", "settings.yaml"], cwd=tmp_path, stdout=file
        )
        try:
            yield log
        finally:
            process.kill()
            process.wait()


def test_a_running_process_tells_config_and_log(
    store: StateStore, tmp_path: Path, training: Path
) -> None:
    found = locate(store, root=tmp_path)
    assert found.config == str(tmp_path / "settings.yaml")
    assert found.logs == (str(training),)
    assert locate(store, root=tmp_path, logs=[str(training)]).id == found.id
