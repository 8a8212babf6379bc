"""The demo's training really learns, and each fault is really there."""

import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml

DEMO = Path(__file__).parents[2] / "demo"
STEPS = 80
LINE = re.compile(
    r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \| step (?P<step>\d+)/\d+ \| loss (?P<loss>\S+) \| "
    r"grad_norm (?P<norm>\S+) \| lr (?P<lr>\S+) \| [\d,]+ tok/s \| (?P<ms>\S+) ms/step$",
    re.M,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = yaml.safe_load((DEMO / "config.yaml").read_text())
    config["model"]["hidden_dim"] = 64
    config["data"]["batch_size"] = 8
    config["training"] |= {
        "max_steps": STEPS,
        "warmup_steps": 4,
        "log_every": 2,
        "eval_every": 40,
        "save_every": 40,
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def train(folder: Path, *options: str) -> tuple[int, str, list[dict[str, float]]]:
    """Exit code, log, and the numbers of its step lines."""
    command = [sys.executable, str(DEMO / "launch.py"), str(folder), *options]
    code = subprocess.run(command, check=False, timeout=120).returncode
    log = (folder / "train.log").read_text()
    return code, log, rows(log)


def rows(log: str) -> list[dict[str, float]]:
    return [{k: float(v) for k, v in match.groupdict().items()} for match in LINE.finditer(log)]


def mean(values: list[dict[str, float]], key: str = "loss") -> float:
    return sum(row[key] for row in values) / len(values)


def test_learns_evaluates_and_saves(folder: Path) -> None:
    code, log, steps = train(folder)
    assert code == 0
    assert [row["step"] for row in steps] == list(range(2, STEPS + 1, 2))
    assert steps[0]["loss"] == pytest.approx(math.log(64), abs=0.2)
    assert mean(steps[-5:]) < math.log(64) - 0.8
    assert max(row["lr"] for row in steps) == pytest.approx(2e-3)
    assert steps[-1]["lr"] == pytest.approx(2e-4)
    assert len(re.findall(r"eval_loss \d\.\d+ \| eval_accuracy 0\.\d+", log)) == 2
    assert log.splitlines()[-1].split(" | ")[1].startswith(f"training finished: {STEPS} steps")
    saved = folder / "checkpoints"
    assert sorted(path.name for path in saved.iterdir()) == [
        "config.yaml",
        "step_000040.npz",
        "step_000080.npz",
    ]
    assert (saved / "config.yaml").read_text() == (folder / "config.yaml").read_text()
    early, late = (np.load(saved / f"step_0000{step}.npz")["w1"] for step in (40, 80))
    assert not np.array_equal(early, late)


def test_gradients_are_those_of_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DEMO))
    from model import CharModel

    model = CharModel(vocab_size=7, context=3, embed_dim=4, hidden_dim=6, seed=0)
    model.params = {name: value.astype(np.float64) for name, value in model.params.items()}
    rng = np.random.default_rng(1)
    for name in ("b1", "b2", "bias"):  # at zero they would lie on the kinks
        model.params[name] += rng.normal(0, 1, model.params[name].shape)
    batch = rng.integers(0, 7, (20, 3)), rng.integers(0, 7, 20)
    grads = model.backward(model.forward(*batch)[2])
    for name, value in model.params.items():
        place = tuple(rng.integers(0, size) for size in value.shape)
        kept = value[place]
        losses = []
        for shift in (1e-5, -1e-5):
            value[place] = kept + shift
            losses.append(model.forward(*batch)[0])
        value[place] = kept
        slope = (losses[0] - losses[1]) / 2e-5
        assert grads[name][place] == pytest.approx(slope, rel=1e-3, abs=1e-7), name


def test_nan_spreads_through_the_arithmetic(folder: Path) -> None:
    _, log, steps = train(folder, "--fault", "nan")
    assert all(math.isfinite(row["loss"]) for row in steps[:17])
    assert all(math.isnan(row["loss"]) and math.isnan(row["norm"]) for row in steps[20:])
    assert "RuntimeWarning" in log
    assert np.isnan(np.load(folder / "checkpoints/step_000080.npz")["w1"]).all()


def test_divergence_climbs_and_stays(folder: Path) -> None:
    _, _, steps = train(folder, "--fault", "divergence", "--max-steps", "400")
    onset = next(number for number, row in enumerate(steps) if row["lr"] > 0.01)
    assert mean(steps[-20:]) > mean(steps[onset - 20 : onset]) + 0.2


def test_plateau_freezes_the_parameters(folder: Path) -> None:
    _, _, steps = train(folder, "--fault", "plateau")
    early, late = (np.load(folder / f"checkpoints/step_0000{step}.npz") for step in (40, 80))
    assert all(np.array_equal(early[name], late[name]) for name in early.files)
    assert mean(steps[11:25]) == pytest.approx(mean(steps[25:]), abs=0.15)
    assert all(row["norm"] > 0 for row in steps)


def test_crash_is_an_exception_with_its_traceback(folder: Path) -> None:
    code, log, steps = train(folder, "--fault", "crash")
    assert code == 1
    assert steps[-1]["step"] < STEPS
    assert "Traceback (most recent call last):" in log
    assert "ValueError: matmul" in log
    assert re.fullmatch(r"launcher: worker \(pid \d+\) exited with code 1", log.splitlines()[-1])


def test_oom_grows_and_is_killed(folder: Path) -> None:
    code, log, steps = train(folder, "--fault", "oom")
    assert code == 128 + signal.SIGKILL
    assert 0.5 * STEPS <= steps[-1]["step"] < STEPS
    assert "Traceback" not in log
    assert log.splitlines()[-1].endswith("exited with signal 9 (SIGKILL)")


def test_slow_takes_twice_the_time(folder: Path) -> None:
    _, _, steps = train(folder, "--fault", "slow")
    before = sorted(row["ms"] for row in steps[:17])[8]
    after = sorted(row["ms"] for row in steps[18:])[10]
    assert after > 1.5 * before


@pytest.mark.parametrize(("kind", "least"), [("leak", 64), ("oom", 64)])
def test_memory_is_really_taken_and_bounded(
    kind: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(DEMO))
    import faults

    monkeypatch.setattr(faults, "LEAK_LIMIT", 128 * faults.MEBI)
    monkeypatch.setattr(faults, "OOM_LIMIT", 128 * faults.MEBI)
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(faults.os, "kill", lambda *args: killed.append(args))

    class Trainer:
        began = time.monotonic()
        max_steps = 100

    fault = faults.Fault(kind, 100)
    process = psutil.Process()
    before = process.memory_info().rss
    for step in range(1, 101):
        fault.apply(Trainer(), step)
        if killed:
            break
    grown = process.memory_info().rss - before
    assert least * faults.MEBI < grown < 200 * faults.MEBI
    assert bool(killed) == (kind == "oom")


def test_stall_is_a_stopped_process_under_a_patient_launcher(folder: Path) -> None:
    command = [sys.executable, str(DEMO / "launch.py"), str(folder), "--fault", "stall"]
    launcher = subprocess.Popen(command, start_new_session=True)
    try:
        for _ in range(600):
            workers = psutil.Process(launcher.pid).children()
            if [worker.status() for worker in workers] == [psutil.STATUS_STOPPED]:
                break
            assert launcher.poll() is None
            time.sleep(0.1)
        else:
            pytest.fail("the worker was never stopped")
        assert rows((folder / "train.log").read_text())[-1]["step"] < STEPS
    finally:
        os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait()
