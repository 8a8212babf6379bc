"""Silence on healthy runs, over many seeds and at many moments."""

import math

import pytest

from support.runs import Values, curve, train
from support.views import NOW, reading, seen, series, view
from trainwarden.diagnosis import View, diagnose
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.finding import Severity
from trainwarden.records.observation import Trust

FACTS = TrainingFacts(
    max_steps=4000, warmup_steps=200, vocab_size=256, log_every=10, eval_every=250, task="lm"
)


def loud(one: View) -> list[str]:
    return [f"{f.kind}: {f.summary}" for f in diagnose(one) if f.severity is not Severity.INFO]


@pytest.mark.parametrize("seed", range(18))
def test_learning_run_at_any_moment(seed: int) -> None:
    for points in (3, 12, 40, 90, 180, 390):
        run = train(
            seed, points, noise=(0.02, 0.05, 0.15)[seed % 3], memory=(0, 0.5, 0.9)[seed % 3]
        )
        assert loud(view(run, facts=FACTS)) == [], points


@pytest.mark.parametrize("seed", range(10))
def test_run_that_finished_flat(seed: int) -> None:
    def converge(values: dict[str, Values]) -> None:
        values["loss"] = [
            1.2 + 4 * math.exp(-i / 60) + v
            for i, v in enumerate(curve(seed, 400, noise=0.02, floor=0.0, exponent=2.0))
        ]

    assert loud(view(train(seed, 400, change=converge, ended="finished"), facts=FACTS)) == []
    assert loud(view(train(seed, 330, change=converge), facts=FACTS)) == []


@pytest.mark.parametrize("seed", range(10))
def test_fine_tuning_with_heavy_scatter_from_a_trained_model(seed: int) -> None:
    run = train(seed, 200, noise=0.4, memory=0.0)
    assert loud(view(run, facts=TrainingFacts(max_steps=4000))) == []


@pytest.mark.parametrize("seed", range(6))
def test_spikes_that_recover(seed: int) -> None:
    def spike(values: dict[str, Values]) -> None:
        for at in (100, 101, 160):
            values["loss"][at] *= 2.5
            values["grad_norm"][at] *= 40

    found = diagnose(view(train(seed, 300, change=spike, noise=0.02), facts=FACTS))
    assert {f.severity for f in found} <= {Severity.INFO}


def test_single_overflow_of_dynamic_loss_scaling() -> None:
    def overflow(values: dict[str, Values]) -> None:
        for at in (1, 2, 40):
            values["grad_norm"][at] = math.inf
        values["loss_scale"] = [65536.0 / 2 ** min(3, i) for i in range(len(values["loss"]))]

    assert loud(view(train(3, 200, change=overflow), facts=FACTS)) == []


@pytest.mark.parametrize("seed", range(10))
def test_step_drop_of_the_learning_rate(seed: int) -> None:
    """Loss falls at once with the rate and is flat after: as schedules by milestones have it."""

    def milestones(values: dict[str, Values]) -> None:
        n = len(values["loss"])
        values["learning_rate"] = [0.1 if i < 150 else 0.01 for i in range(n)]
        values["loss"] = [
            v * (1.0 if i < 150 else 0.7)
            for i, v in enumerate(curve(seed, n, noise=0.04, exponent=1.5))
        ]

    assert loud(view(train(seed, 300, change=milestones), facts=TrainingFacts())) == []


@pytest.mark.parametrize("seed", range(10))
def test_reinforcement_with_zero_loss_at_first_and_noisy_reward(seed: int) -> None:
    import numpy as np

    rng = np.random.default_rng(seed)
    n = 120
    run = reading(
        series("loss", [0.0 if i < 10 else float(rng.normal(0, 0.01)) for i in range(n)]),
        series("grad_norm", [float(x) for x in np.exp(rng.normal(-1, 0.5, n))]),
        series("reward", [0.2 + 0.4 * i / n + float(rng.normal(0, 0.1)) for i in range(n)]),
        series("reward_std", [float(x) for x in rng.uniform(0.05, 0.3, n)]),
        series("kl", [0.001 + 0.0005 * i + abs(float(rng.normal(0, 0.002))) for i in range(n)]),
        series("entropy", [0.8 - 0.4 * i / n for i in range(n)]),
        series("completions/mean_length", [float(x) for x in rng.normal(300, 30, n)]),
        series("completions/clipped_ratio", [float(x) for x in rng.uniform(0, 0.3, n)]),
    )
    for end in (2, 5, n):
        part = reading(
            *(series(k, [p.value for p in s.points()[:end]]) for k, s in run.series.items())
        )
        assert loud(view(part, facts=TrainingFacts(task="grpo"))) == []


def machine(**changes: object) -> list:
    values = {
        "log.age": 4.0,
        "process.alive": True,
        "process.rss": 4e9,
        "host.memory_available": 6e10,
        "host.memory_total": 1.3e11,
        "disk.free": 5e11,
        "checkpoint.count": 5,
        "checkpoint.age": 500.0,
        "checkpoint.size": 1e9,
        "checkpoint.incomplete": 0,
    } | {k.replace("__", "."): v for k, v in changes.items()}
    made = [
        seen(k, v, subject="job" if k.startswith("process") else None) for k, v in values.items()
    ]
    made += [
        seen("log.interval", 5.0, stat="median", trust=Trust.LOG),
        seen("checkpoint.interval", 600.0, stat="median"),
        seen("process.state", "sleeping", subject="pid 71", pid=71),
        seen("process.started", "2026-03-01T09:00:00Z", subject="pid 71", pid=71),
    ]
    for index in range(2):
        gpu = {
            "gpu.readable": True,
            "gpu.utilization": 0.97,
            "gpu.memory_used": 6e10,
            "gpu.memory_total": 8e10,
            "gpu.power_share": 0.9,
            "gpu.throttle": "sw_power_cap",
            "gpu.ecc_uncorrected": 0,
            "gpu.remap_failed": False,
            "gpu.pcie_gen": 4,
            "gpu.pcie_gen_max": 4,
        }
        made += [seen(k, v, subject=f"GPU {index}", trust=Trust.HARDWARE) for k, v in gpu.items()]
    return made


def test_healthy_machine() -> None:
    assert loud(view(train(1), facts=FACTS, more=machine())) == []


def test_pauses_for_evaluation_and_loading_are_no_stall() -> None:
    pauses = [{"time": "2026-03-01T11:30:00Z", "log.age": 55.0}]
    assert loud(view(train(1), facts=FACTS, more=machine(log__age=45.0))) == []
    assert loud(view(train(1), facts=FACTS, more=machine(log__age=120.0), earlier=pauses)) == []


def test_silent_log_of_a_finished_run_is_no_stall() -> None:
    more = machine(log__age=9e5, process__alive=False)
    assert loud(view(train(1, 400, ended="finished"), facts=FACTS, more=more)) == []


def test_memory_that_fills_caches_and_stays() -> None:
    past = [
        {"time": "2026-03-01T09:05:00Z", "process.rss": 3.8e9, "step": 200},
        {"time": "2026-03-01T10:05:00Z", "process.rss": 4.0e9, "step": 1500},
    ]
    more = [*machine(), seen("process.rss_growth", 2e5, subject="job")]
    assert loud(view(train(1), facts=FACTS, more=more, earlier=past)) == []

    def caches(values: dict[str, Values]) -> None:
        values["memory"] = [2e9 + 2e9 * (1 - math.exp(-i / 15)) for i in range(len(values["loss"]))]

    assert loud(view(train(1, change=caches), facts=FACTS)) == []


def test_idle_gpu_of_others_and_links_at_rest() -> None:
    more = [
        *machine(),
        seen("gpu.utilization", 0.0, subject="GPU 2", trust=Trust.HARDWARE),
        seen("gpu.pcie_gen", 1, subject="GPU 2", trust=Trust.HARDWARE),
        seen("gpu.pcie_gen_max", 4, subject="GPU 2", trust=Trust.HARDWARE),
    ]
    assert loud(view(train(1), facts=FACTS, more=more)) == []


def test_what_the_kernel_log_tells_of_before_the_run() -> None:
    import datetime

    before = NOW - datetime.timedelta(days=3)
    more = [
        *machine(),
        seen("kernel.xid", 79, time=before, trust=Trust.HARDWARE, text="NVRM: Xid 79"),
        seen("kernel.oom_kill", 4, time=before, trust=Trust.HARDWARE, text="Killed process 4 (x)"),
    ]
    assert loud(view(train(1), facts=FACTS, more=more)) == []


@pytest.mark.parametrize("seed", range(6))
def test_steps_that_scatter_on_a_shared_machine(seed: int) -> None:
    import random

    rng = random.Random(seed)

    def share(values: dict[str, Values]) -> None:
        for i in range(150, len(values["step_time"])):
            values["step_time"][i] *= rng.uniform(1.0, 2.2)

    assert loud(view(train(seed, 300, change=share), facts=FACTS)) == []


@pytest.mark.parametrize("seed", range(12))
def test_slow_wandering_about_a_level_is_no_divergence(seed: int) -> None:
    """Fine-tuning that gains little beside noise with a long memory."""

    def wander(values: dict[str, Values]) -> None:
        values["loss"] = [
            (1.1 + 0.25 * math.exp(-i / 40)) * value / 2.0
            for i, value in enumerate(
                curve(seed, 160, noise=0.06, memory=0.9, floor=2.0, vocab=8, exponent=9.0)
            )
        ]

    for points in (60, 112, 160):
        run = train(seed, 160, change=wander, evaluated=False)
        part = reading(
            *(series(k, [p.value for p in s.points()[:points]]) for k, s in run.series.items())
        )
        assert loud(view(part, facts=TrainingFacts())) == []
