"""`diagnose`: what a finished log tells, without a session."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli import call

SOUND = "".join(
    f"step {n}/200 | loss {3 - 0.01 * n + 0.02 * (n % 3):.4f} | grad_norm 0.9\n"
    for n in range(1, 201)
)
OUT_OF_MEMORY = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/train.py", line 12, in <module>\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total\n"
)
WATCHDOG = (
    "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600021 milliseconds\n"
)


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def data_of(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = call("diagnose", *arguments, "--json")
    return done.returncode, json.loads(done.stdout)


def test_a_sound_log_is_healthy(tmp_path: Path) -> None:
    code, told = data_of(written(tmp_path, "train.log", SOUND + "Training completed\n"))
    assert (code, told["status"], told["error_class"]) == (0, "HEALTHY", None)
    assert [f for f in told["findings"] if f["severity"] != "info"] == []


def test_the_initiating_failure_comes_first_with_its_line(tmp_path: Path) -> None:
    code, told = data_of(written(tmp_path, "train.log", SOUND[:2000] + "\n" + OUT_OF_MEMORY))
    first = told["findings"][0]
    assert (code, told["status"], told["error_class"]) == (30, "CRITICAL", "cuda_oom")
    assert (first["kind"], first["role"], first["severity"]) == (
        "cuda_oom",
        "initiating",
        "critical",
    )
    assert first["line"] == SOUND[:2000].count("\n") + 4
    assert any("out of memory" in shown.get("text", "") for shown in first["evidence"])
    assert first["first_action"]
    assert first["meaning"]
    assert first["confidence"] <= 0.95


def test_several_ranks_are_one_run_and_the_rank_that_failed_is_named(tmp_path: Path) -> None:
    logs = [
        written(tmp_path, "rank0.log", SOUND[:2000] + "\n" + WATCHDOG.replace("ank 1", "ank 0")),
        written(tmp_path, "rank1.log", SOUND[:2000] + "\n" + OUT_OF_MEMORY),
    ]
    _, told = data_of(*logs)
    first = told["findings"][0]
    assert (first["kind"], first["rank"]) == ("cuda_oom", 1)
    assert {f["kind"]: f["role"] for f in told["findings"]}["collective_hang"] == "cascade"


def test_an_excerpt_of_a_few_lines_is_enough(tmp_path: Path) -> None:
    lines = "".join(f"{{'loss': {loss}, 'learning_rate': 1e-4}}\n" for loss in (2.1, 2.0, "nan"))
    _, told = data_of(written(tmp_path, "excerpt.txt", lines))
    assert [f["kind"] for f in told["findings"]][:1] == ["nan_loss"]


def test_what_is_known_of_the_job_counts_as_its_config(tmp_path: Path) -> None:
    flat = "".join(f"step {n} loss {2.3026 + 0.002 * (n % 5 - 2):.4f}\n" for n in range(1, 300))
    log = written(tmp_path, "train.log", flat)
    context = written(tmp_path, "context.json", '{"num_classes": 10, "remark": "flat"}')
    _, told = data_of(log, "--context", context)
    assert "plateau" in [f["kind"] for f in told["findings"]]


def test_people_get_the_same_in_words(tmp_path: Path) -> None:
    done = call("diagnose", written(tmp_path, "train.log", SOUND[:2000] + "\n" + OUT_OF_MEMORY))
    assert done.stdout.startswith("CRITICAL")
    assert "cuda_oom (critical, initiating" in done.stdout + done.stderr
    assert "first: " in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such.log"], "no-such.log: no such file"),
        (["train.log", "--context", "list.json"], "a JSON object"),
        (["train.log", "--context", "none.json"], "none.json"),
        ([], "Missing argument"),
    ],
)
def test_a_mistake_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "train.log", SOUND)
    written(tmp_path, "list.json", "[1]")
    done = call("diagnose", *arguments)
    assert done.returncode == 2
    assert said in done.stdout + done.stderr


def test_one_log_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    log = written(tmp_path, "train.log", SOUND)
    _, told = data_of(log, str(tmp_path / "gone.log"))
    assert told["status"] == "HEALTHY"
    assert "gone.log: no such file" in told["unread"]


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = written(tmp_path, "train.log", SOUND)
    call("diagnose", log)
    assert [path.name for path in tmp_path.iterdir()] == ["train.log"]
