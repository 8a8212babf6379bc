"""What looks like a fault and is none is explained; the fault that it looks like is not."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from trainwarden.analysts.examination import Examination, examine
from trainwarden.diagnosis.lookalikes import is_explained
from trainwarden.records.assessment import Status
from trainwarden.records.finding import Severity

HALVES = [65536 / 2**k for k in range(30)]


def judged(folder: Path, *lines: str) -> Examination:
    log = folder / "train.log"
    log.write_text("\n".join(lines) + "\n")
    return examine([log])


def explained(seen: Examination) -> list[str]:
    return [one.kind for one in seen.findings if is_explained(one)]


def rows(**columns: Sequence[float]) -> list[str]:
    names = [name.replace("__", "/") for name in columns]
    return [
        str(dict(zip(names, values, strict=True)))
        for values in zip(*columns.values(), strict=True)
    ]  # fmt: skip


def skipped(scales: Sequence[float]) -> list[str]:
    return [f"Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to {s}"
            for s in scales]  # fmt: skip


def summaries(rewards: Sequence[float]) -> list[str]:
    return [
        f"INFO:mlagents.trainers: Walker: Step: {1000 * n}. Mean Reward: {reward:.3f}. "
        "Std of Reward: 0.000. Training."
        for n, reward in enumerate(rewards, 1)
    ]


def policy(grad: float, std: float) -> list[str]:
    n = range(4)
    return rows(
        loss=[0.0 for _ in n],
        grad_norm=[grad for _ in n],
        reward=[0.8, 0.7, 0.9, 0.75],
        reward_std=[std for _ in n],
        kl=[0.0001 * k for k in n],
    )


def preference(loss: float) -> list[str]:
    return rows(loss=[loss, loss + 0.001, loss - 0.002], rewards__margins=[0.0, 0.001, 0.002])


def timed(*seconds: float, evaluated: int = 0) -> list[str]:
    lines = []
    for n, value in enumerate(seconds, 1):
        if evaluated and n % evaluated == 0:
            lines.append(str({"eval_loss": 2.0 - 0.01 * n, "step": n - 1}))
        lines.append(f"step {n} loss {2.2 - 0.001 * (n % 2):.3f} step_time {value}")
    return lines


def warming(factor: float) -> list[str]:
    return rows(
        loss=[10.83, 10.82 * factor, 10.83 * factor, 10.81 * factor],
        learning_rate=[1e-7, 2e-7, 3e-7, 4e-7],
    )


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (policy(0.6, 0.7), "zero_loss"),
        (preference(math.log(2)), "plateau"),
        (skipped(HALVES[6:9]), "loss_scale"),
        (summaries([-57.3, -80.7, -63.2, -39.7]), "rl_zero_signal"),
        (timed(31.0, 0.4, 0.41, 0.4), "step_time_regression"),
        (warming(1.0), "lr_schedule"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_explained_and_healthy_where_the_run_goes_on(
    tmp_path: Path, lines: list[str], kind: str
) -> None:
    seen = judged(tmp_path, *lines)
    assert explained(seen) == [kind]
    assert seen.assessment.status is Status.HEALTHY
    assert set(seen.assessment.progress) <= set(seen.observations)


@pytest.mark.parametrize(
    "lines",
    [
        policy(0.0, 0.7),
        policy(0.6, 0.0),
        preference(1.4),
        skipped(HALVES[2:20]),
        skipped(HALVES[10:18]),
        summaries([-20.0, -20.0, -20.0, -20.0]),
        timed(31.0, 0.4, 33.0, 0.4, 32.0),
        warming(3.0),
        warming(0.5),
    ],
)
def test_not_explained_where_it_may_be_the_fault(tmp_path: Path, lines: list[str]) -> None:
    seen = judged(tmp_path, *lines)
    assert explained(seen) == []
    assert seen.assessment.status is not Status.HEALTHY


def test_one_line_shows_no_run_that_goes_on(tmp_path: Path) -> None:
    seen = judged(tmp_path, *skipped(HALVES[6:7]))
    assert explained(seen) == ["loss_scale"]
    assert seen.assessment.status is Status.UNCERTAIN


def test_no_explanation_quietens_a_fault(tmp_path: Path) -> None:
    lines = [*skipped(HALVES[6:9]), "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"]
    seen = judged(tmp_path, *lines)
    assert seen.assessment.status is Status.CRITICAL
    assert any(one.severity is Severity.CRITICAL for one in seen.findings)
