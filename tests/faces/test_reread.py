"""`trainwarden reread`: the place itself, what is found there, whether it agrees."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.answers import begin, find, make_job, walk_to
from support.cli import answer, call
from trainwarden.procedure.session import Session


@pytest.fixture
def collected(tmp_path: Path) -> Session:
    return walk_to(begin(tmp_path), "compare")


def again(session: Session, *names: str) -> dict[str, Any]:
    told = answer("reread", *names, "--root", session.store.logs.parent)
    return {one["observation"]["id"]: one for one in told["reread"]}


def test_a_number_of_a_log_is_found_where_it_stood(collected: Session) -> None:
    last, first = find(collected, "loss"), find(collected, "loss", "first")
    told = again(collected, f"{last.id},{first.id}")
    assert [one["again"]["agrees"] for one in told.values()] == [True, True]
    assert told[last.id]["again"]["found"] == last.value
    assert told[last.id]["raw"].startswith("step 390 | loss")
    assert told[first.id]["raw"].startswith("step 0 | loss")
    shown = call("reread", last.id, "--root", collected.store.logs.parent).stdout
    assert f"{last.id} loss {last.value:.5g}@390, train.log@" in shown
    assert "agrees (bytes from" in shown
    assert "```text\nstep 390 | loss" in shown


def test_times_between_lines_are_worked_out_again_since_no_line_has_them(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    moments = (datetime(2026, 1, 1) + timedelta(seconds=3 * n + n % 3) for n in range(60))
    Path(job.logs[0]).write_text(
        "".join(f"{at} INFO step {n}/90 loss {3 - n / 50:.3f}\n" for n, at in enumerate(moments))
    )
    session = walk_to(begin(tmp_path, job), "compare")
    last, first = find(session, "step_time"), find(session, "step_time", "first")
    told = again(session, last.id, first.id)
    assert [one["again"]["agrees"] for one in told.values()] == [True, True]
    assert [one["again"]["found"] for one in told.values()] == [last.value, first.value]


def test_what_was_worked_out_is_worked_out_again_of_the_same_bytes(collected: Session) -> None:
    course, slope = find(collected, "loss", "course"), find(collected, "loss", "trend_slope")
    before = again(collected, course.id, slope.id)
    log = Path(collected.job.logs[0])
    with log.open("a") as file:
        file.writelines(
            f"step {n} | loss {9 + n:.3f} | grad_norm 1.0\n" for n in range(400, 900, 10)
        )
    assert again(collected, course.id, slope.id) == before
    assert before[course.id]["again"] | {"how": ""} == {
        "observation": course.id, "found": course.value, "agrees": True, "how": "",
    }  # fmt: skip
    assert math.isclose(before[slope.id]["again"]["found"], slope.value, rel_tol=1e-9)
    assert before[slope.id]["raw"] == ""


def test_a_log_that_was_rewritten_does_not_agree(collected: Session) -> None:
    last = find(collected, "loss")
    log = Path(collected.job.logs[0])
    log.write_bytes(b"x" * log.stat().st_size)
    told = again(collected, last.id)[last.id]["again"]
    assert told["agrees"] is False
    assert told["found"] is None
    shown = call("reread", last.id, "--root", collected.store.logs.parent).stdout
    assert "found nothing, does NOT agree" in shown


def test_gauges_are_asked_anew(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    session = begin(tmp_path, job)
    walk_to(session, "collect")
    session.collect()
    available = find(session, "host.memory_available")
    told = again(session, available.id)[available.id]["again"]
    assert told["agrees"] is True
    assert told["found"] > 0
    assert told["how"] == "host asked anew"


def test_what_can_be_read_nowhere_is_told_as_that(collected: Session) -> None:
    age = find(collected, "log.age")
    Path(collected.job.logs[0]).unlink()
    done = call("reread", age.id, "--root", collected.store.logs.parent)
    assert done.returncode == 0
    assert "stays unverified" in done.stdout


def test_a_long_line_is_cut_to_what_was_read_and_hostile_text_is_cleaned(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    known = ["grad_norm", "lr", "tokens_per_second", "step_time", "samples_per_second", "mfu"]
    known += ["accuracy", "perplexity", "gpu_memory", "eval_loss", "loss_scale", "data_time"]
    filler = " | ".join(f"{name} 0.50000" for name in known)
    with Path(job.logs[0]).open("a") as file:
        file.write(f"step 400 | {filler} | loss 0.8123 | ``` \x1b[31m api_key=sk-{'a1' * 20}\n")
    session = walk_to(begin(tmp_path, job), "compare")
    last = find(session, "loss")
    assert last.value == 0.8123
    shown = call("reread", last.id, "--root", tmp_path).stdout
    assert "step 400 | grad_norm 0.5" in shown
    assert "loss 0.8123" in shown
    assert "perplexity" not in shown
    assert "\x1b" not in shown
    assert "a1a1" not in shown
    assert shown.rstrip().endswith("````")


@pytest.mark.parametrize("names", [["E9999"], ["C1"], ["nothing"], [f"E{n}" for n in range(1, 30)]])
def test_what_is_no_observation_is_refused(collected: Session, names: list[str]) -> None:
    done = call("reread", *names, "--root", collected.store.logs.parent)
    assert done.returncode == 2
    assert done.stderr.startswith("trainwarden: reread: ")


def test_before_gate_2_there_is_nothing_to_read_again(tmp_path: Path) -> None:
    walk_to(begin(tmp_path), "collect")
    done = call("reread", "E1", "--root", tmp_path)
    assert done.returncode == 2
    assert "nothing was collected yet" in done.stderr
    assert "trainwarden collect" in done.stderr


def test_the_tables_can_be_had_again(collected: Session) -> None:
    root = collected.store.logs.parent
    shown = call("show", "--table", "--root", root).stdout
    last = find(collected, "loss")
    assert f"loss: {last.id} {last.value:.5g}" in shown
    assert answer("show", "--table", "--root", root) == collected.content("collect")


def test_before_gate_2_there_are_no_tables(tmp_path: Path) -> None:
    walk_to(begin(tmp_path), "collect")
    done = call("show", "--table", "--root", tmp_path)
    assert done.returncode == 2
    assert "nothing was collected yet" in done.stderr
