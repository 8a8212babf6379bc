"""Logs of the processes of one run are read as one run: its own reading, and what others add."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainwarden.diagnosis import diagnose
from trainwarden.diagnosis.base import View
from trainwarden.evidence.base import Target, utc_now
from trainwarden.evidence.log_files import expand
from trainwarden.evidence.logs import LogSource
from trainwarden.evidence.ranks import distinct, process_of, rank_of
from trainwarden.records.job import Job
from trainwarden.records.observation import Observation, SourceReport

TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 9, in <module>
    step(batch)
RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB
"""


def lines(begin: int, end: int, base: float = 9.0) -> str:
    return "".join(
        f"step {i} | loss {base - i / 1000:.4f} | lr 3.0e-04\n" for i in range(begin, end)
    )


def look(root: Path, *logs: Path) -> tuple[SourceReport, Target]:
    job = Job(id="job", logs=tuple(map(str, logs)))
    target = Target(job=job, root=root, logs=logs, cache_dir=root / "cache", live=False)
    return LogSource().read(target), target


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def findings(report: SourceReport, target: Target) -> list[str]:
    numbered: dict[str, Observation] = {
        f"E{n}": one.model_copy(update={"id": f"E{n}"})
        for n, one in enumerate(report.observations, 1)
    }
    view = View(numbered, utc_now(), tuple(target.readings.values()), live=False)
    return [finding.kind for finding in diagnose(view)]


@pytest.mark.parametrize(
    ("paths", "ranks"),
    [
        (["rank_0.log", "rank_1.log", "rank_12.err"], [0, 1, 12]),
        (["log.rank0", "log.rank3"], [0, 3]),
        (["worker-0.out", "worker-2.out", "worker-2.out.gz"], [0, 2, 2]),
        (["none_ab/attempt_0/0/stdout.log", "none_ab/attempt_0/3/stderr.log"], [0, 3]),
        (["1/rank.0/stdout", "1/rank.07/stderr"], [0, 7]),
        (["rank0/train.log", "rank1/train.log"], [0, 1]),
        (["gpt.gpu0.log", "gpt.gpu1.log"], [0, 1]),
    ],
)
def test_names_of_ranks(paths: list[str], ranks: list[int]) -> None:
    found = [process_of(Path("/run") / path) for path in paths]
    assert [one.rank for one in found if one] == ranks
    assert len({one.run for one in found if one}) == 1
    assert [rank_of(Path("/run") / path) for path in paths] == ranks


@pytest.mark.parametrize(
    "name", ["train.log", "epoch_3.log", "slurm-81234_3.out", "llama-7b.log", "stdout.log"]
)
def test_names_that_tell_no_rank(name: str) -> None:
    assert rank_of(Path("/run") / name) is None


def test_a_launcher_s_layout_is_one_run(tmp_path: Path) -> None:
    run = tmp_path / "logs" / "none_x8k2"
    for rank in range(4):
        out = lines(0, 30) if rank == 0 else "NCCL version 2.21.5\n"
        write(run / f"attempt_0/{rank}/stdout.log", out)
        write(run / f"attempt_0/{rank}/stderr.log", TRACEBACK if rank == 2 else "")
        out = lines(20, 50) if rank == 0 else ""
        write(run / f"attempt_1/{rank}/stdout.log", out)
        write(run / f"attempt_1/{rank}/stderr.log", "")
    write(tmp_path / "logs/none_old/attempt_0/0/stdout.log", lines(0, 9, 3.0))
    old = tmp_path / "logs/none_old/attempt_0/0/stdout.log"

    os.utime(old, (1_700_000_000, 1_700_000_000))
    for given in (tmp_path / "logs", run):
        report, target = look(tmp_path, given)
        assert report.status == "ok", report.message
        main, *others = target.readings.values()
        assert main.file == str(run / "attempt_1/0/stdout.log")
        assert (main.runs, main.last_step, len(others)) == (2, 49, 7)
        assert [p.step for p in main.series["loss"].points()] == [*range(30), *range(20, 50)]
        told = [(o.quantity, o.stat, o.subject) for o in report.observations]
        assert told.count(("log.runs", "last", None)) == 1
        assert [s for q, _, s in told if q in {"log.runs", "loss"}] == [None] * 4
        once = [one for one in told if one[0] != "log.event"]
        assert len(once) == len(set(once))
        failed = [o for o in report.observations if o.value == "exception"]
        assert [o.place.file for o in failed] == [str(run / "attempt_0/2/stderr.log")]
        assert failed[0].subject == "2/stderr.log"


def test_open_mpi_s_layout(tmp_path: Path) -> None:
    for rank in range(3):
        write(tmp_path / f"out/1/rank.{rank}/stdout", lines(0, 20 + rank))
        write(tmp_path / f"out/1/rank.{rank}/stderr", "")
    report, target = look(tmp_path, tmp_path / "out")
    assert next(iter(target.readings)) == tmp_path / "out/1/rank.0/stdout"
    assert len(target.readings) == 6
    assert [o.subject for o in report.observations if o.quantity == "loss"] == [None] * 3


def test_an_error_of_another_rank_is_found_once_and_the_run_s_ending_is_its_own(
    tmp_path: Path,
) -> None:
    write(tmp_path / "rank_0.log", lines(0, 60))
    for rank in (1, 2, 3):
        write(tmp_path / f"rank_{rank}.log", lines(0, 40) + TRACEBACK)
    report, target = look(tmp_path, tmp_path)
    kinds = findings(report, target)
    assert any("oom" in kind or "memory" in kind for kind in kinds), kinds
    assert len(kinds) == len(set(kinds))
    ended = [(o.subject, o.value) for o in report.observations if o.quantity == "log.ended"]
    assert ended[0] == (None, "running")
    assert {value for _, value in ended[1:]} == {"crashed"}


def test_the_lowest_rank_that_tells_is_the_run_s(tmp_path: Path) -> None:
    write(tmp_path / "rank_0.log", "waiting for the others\n")
    write(tmp_path / "rank_1.log", lines(0, 30))
    write(tmp_path / "rank_2.log", lines(0, 31) + "step 31 | grad_norm 2.5\n")
    report, target = look(tmp_path, tmp_path)
    assert report.status == "ok"
    assert next(iter(target.readings)).name == "rank_1.log"
    beside = {o.quantity for o in report.observations if o.subject == "rank_2.log"}
    assert "grad_norm" in beside, "what the run's own log lacks is told"
    assert "loss" not in beside


def test_tasks_of_slurm_are_ranks_where_they_tell_the_same(tmp_path: Path) -> None:
    for task in range(3):
        write(tmp_path / f"ranks/gpt_81234_{task}.out", lines(0, 30 + task))
        write(tmp_path / f"array/gpt_81234_{task}.out", lines(0, 30, 3.0 + task))
    report, _ = look(tmp_path, tmp_path / "ranks")
    assert {o.subject for o in report.observations if o.quantity == "loss"} == {None}
    report, _ = look(tmp_path, tmp_path / "array")
    assert len({o.subject for o in report.observations if o.quantity == "loss"}) == 3


def test_many_ranks_are_all_looked_at(tmp_path: Path) -> None:
    for rank in range(40):
        write(tmp_path / f"rank_{rank}.log", TRACEBACK if rank == 37 else "")
    write(tmp_path / "rank_0.log", lines(0, 30))
    assert len(expand([tmp_path])) == 40
    report, _ = look(tmp_path, tmp_path)
    assert [o.subject for o in report.observations if o.value == "exception"] == ["rank_37.log"]


def test_names_are_as_long_as_tells_them_apart() -> None:
    paths = [Path(p) for p in ("/a/0/stdout.log", "/a/1/stdout.log", "/b/1/stdout.log", "/x.log")]
    assert list(distinct(paths).values()) == [
        "0/stdout.log",
        "a/1/stdout.log",
        "b/1/stdout.log",
        "x.log",
    ]


def test_an_error_that_all_ranks_print_is_one_finding(tmp_path: Path) -> None:
    error = TRACEBACK.replace("RuntimeError: CUDA out of memory.", "KeyError: 'labels'  #")
    for rank in range(4):
        write(tmp_path / f"rank_{rank}.log", (lines(0, 60) if rank == 0 else "") + error)
    report, target = look(tmp_path, tmp_path)
    kinds = findings(report, target)
    assert kinds.count("crash_user_code") == 1
