"""kill -9 at random instants: seals and state are whole afterwards, and the watch goes on."""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path

import pytest

from support.answers import make_job, write_log
from support.cli import COMMAND, answer, call

KILLS = 16


def check(root: Path) -> None:
    """Every session's seals hold, every state is whole, nothing is half-written."""
    logs = root / "monitoring-logs"
    for path in (logs / "jobs").glob("*.json"):
        json.loads(path.read_text(encoding="utf-8"))
    assert not list((logs / "jobs").glob("*.corrupt-*"))
    for record in logs.glob("*/session.json"):
        checked = answer("verify", record.parent, "--root", root)
        assert checked["intact"] is True, checked


@pytest.mark.timeout(280)
def test_killed_at_random_instants(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    arguments = [*COMMAND, "run", "--root", str(tmp_path)]
    began = time.monotonic()
    subprocess.run(arguments, capture_output=True, check=False)
    whole = time.monotonic() - began
    draw = random.Random(7)
    killed = 0
    for number in range(KILLS):
        write_log(Path(job.logs[0]), range(400 + number * 10, 410 + number * 10, 10), append=True)
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # The interesting writes lie in the later part, after the imports.
        time.sleep(whole * draw.uniform(0.15, 1.0))
        process.kill()
        killed += process.wait() == -9
        if number % 4 == 3:
            check(tmp_path)
    assert killed > KILLS / 3
    check(tmp_path)
    told = answer("run", "--root", tmp_path, code=None)
    assert told["step"] == 390 + KILLS * 10
    check(tmp_path)
    (row,) = answer("status", "--root", tmp_path)["jobs"]
    assert row["open"] is None
    assert not list((tmp_path / "monitoring-logs").rglob(".*.new"))


def test_killed_within_a_single_step_it_can_be_given_again(tmp_path: Path) -> None:
    make_job(tmp_path)
    answer("begin", "--root", tmp_path)
    predictions = (
        "[{quantity: step, low: 0, high: 9000, level: 0.9, basis: config},"
        " {quantity: loss, low: 0, high: 9, level: 0.9, basis: config},"
        " {quantity: host.load1, high: 99, level: 0.9, basis: any machine}]"
    )
    draw = random.Random(11)
    for _ in range(6):
        process = subprocess.Popen(
            [*COMMAND, "predict", "--root", str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        process.stdin.write(predictions.encode())
        process.stdin.close()
        time.sleep(draw.uniform(0.1, 0.6))
        process.kill()
        process.wait()
        check(tmp_path)
    done = call("predict", "--root", tmp_path, stdin=predictions)
    assert done.returncode == 0 or "never revised" in done.stderr
    assert call("collect", "--root", tmp_path).returncode == 0
    check(tmp_path)
