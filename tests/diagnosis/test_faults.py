"""Each fault put into a run is named, with since when, and nothing louder beside it."""

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from test_healthy_runs import FACTS, machine

from support.runs import Values, train
from support.views import reading, seen, series, view
from trainwarden.diagnosis import View, diagnose
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.finding import CEILINGS, Finding, Role, Severity
from trainwarden.records.observation import Disagreement, Observation, Place, Trust

SEEDS = range(4)


def named(one: View) -> dict[str, Finding]:
    found = diagnose(one)
    for finding in found:
        assert set(finding.observations) <= set(one.observations)
        assert finding.confidence <= CEILINGS[finding.evidence_type]
        assert finding.meaning
        assert finding.first_action
    assert [f.id for f in found] == [f"F{i}" for i in range(1, len(found) + 1)]
    return {f.kind: f for f in found if f.severity is not Severity.INFO}


def broken(seed: int, change: Any, points: int = 300, **more: Any) -> View:
    return view(train(seed, points, change=change, **more), facts=FACTS)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["loss", "eval_loss"])
def test_nan(seed: int, name: str) -> None:
    def nan(values: dict[str, Values]) -> None:
        at = len(values[name]) // 2
        values[name][at:] = [math.nan] * (len(values[name]) - at)

    found = named(broken(seed, nan))
    assert set(found) == {"nan_loss"}
    assert found["nan_loss"].severity is Severity.CRITICAL
    expected = 1510 if name == "loss" else 250 * 7
    assert found["nan_loss"].since_step == expected


def test_nan_gradients_under_a_zero_loss() -> None:
    def masked(values: dict[str, Values]) -> None:
        values["loss"] = [0.0] * len(values["loss"])
        values["grad_norm"] = [math.nan] * len(values["loss"])

    assert "nan_loss" in named(broken(1, masked, 50))


def test_zero_loss() -> None:
    def zero(values: dict[str, Values]) -> None:
        values["loss"] = [0.0] * len(values["loss"])
        values["grad_norm"] = [0.0] * len(values["loss"])

    found = named(broken(1, zero, 30, evaluated=False))
    assert set(found) == {"zero_loss"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("points", [190, 250, 300])
def test_divergence(seed: int, points: int) -> None:
    def diverge(values: dict[str, Values]) -> None:
        for i in range(150, points):
            values["loss"][i] += 4.0 * (1 - math.exp(-(i - 150) / 15))
            values["grad_norm"][i] *= 5

    found = named(broken(seed, diverge, points, evaluated=False))
    assert found["divergence"].severity is Severity.CRITICAL
    assert 1400 <= (found["divergence"].since_step or 0) <= 1700


@pytest.mark.parametrize("seed", SEEDS)
def test_wrong_way_from_the_start(seed: int) -> None:
    def rise(values: dict[str, Values]) -> None:
        rng = random.Random(seed)
        values["loss"] = [3 + 0.02 * i + rng.gauss(0, 0.1) for i in range(100)]

    assert "divergence" in named(broken(seed, rise, 100, evaluated=False))


def test_spike_that_is_still_up() -> None:
    def spike(values: dict[str, Values]) -> None:
        values["loss"][-1] *= 6

    found = named(broken(1, spike, noise=0.02))
    assert set(found) == {"loss_spike"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("points", [260, 300])
def test_plateau_all_at_once(seed: int, points: int) -> None:
    def freeze(values: dict[str, Values]) -> None:
        held = sum(values["loss"][90:100]) / 10
        rng = random.Random(seed)
        for i in range(100, points):
            values["loss"][i] = held * math.exp(rng.gauss(0, 0.02))

    found = named(broken(seed, freeze, points, noise=0.02, memory=0.0, evaluated=False))
    assert set(found) == {"plateau"}
    assert found["plateau"].severity is Severity.WARNING


@pytest.mark.parametrize("seed", SEEDS)
def test_never_learnt(seed: int) -> None:
    def chance(values: dict[str, Values]) -> None:
        values["loss"] = [
            math.log(256) * (1 + 0.01 * math.sin(12.9 * i * (seed + 1))) for i in range(200)
        ]

    assert set(named(broken(seed, chance, 200, evaluated=False))) == {"plateau"}


@pytest.mark.parametrize("seed", SEEDS)
def test_overfitting(seed: int) -> None:
    def turn(values: dict[str, Values]) -> None:
        values["eval_loss"] = [
            2.5 + 0.08 * abs(i - 4) + 0.005 * math.sin(i * 7 + seed) for i in range(12)
        ]

    found = named(broken(seed, turn))
    assert set(found) == {"overfitting"}
    assert found["overfitting"].since_step == 250 * 5


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rate", [False, True])
def test_slower_steps(seed: int, rate: bool) -> None:
    def slow(values: dict[str, Values]) -> None:
        for i in range(170, len(values["step_time"])):
            values["step_time"][i] *= 2
        if rate:
            values["tokens_per_second"] = [8192 / t for t in values.pop("step_time")]

    found = named(broken(seed, slow))
    assert set(found) == {"step_time_regression"}
    assert abs((found["step_time_regression"].since_step or 0) - 1710) < 60


def test_slower_steps_in_a_short_log() -> None:
    rng = random.Random(2)
    times = [
        (0.04 if i < 14 else 0.09 + 0.001 * i) * math.exp(rng.gauss(0, 0.08)) for i in range(30)
    ]
    found = named(view(reading(series("step_time", times, every=20), total=1000)))
    assert set(found) == {"step_time_regression"}
    assert 300 <= (found["step_time_regression"].since_step or 0) <= 400


def test_loss_scale_at_its_floor() -> None:
    def floor(values: dict[str, Values]) -> None:
        values["loss_scale"] = [max(1.0, 65536.0 / 2**i) for i in range(100)]

    assert "loss_scale" in named(broken(1, floor, 100))


def test_learning_rate_of_zero_midway() -> None:
    def zero(values: dict[str, Values]) -> None:
        values["learning_rate"][100:] = [0.0] * 100

    assert "lr_schedule" in named(broken(1, zero, 200))


def on_machine(**changes: Any) -> dict[str, Finding]:
    earlier = changes.pop("earlier", ())
    more = [*machine(**changes.pop("values", {})), *changes.pop("more", [])]
    return named(view(train(1), facts=FACTS, more=more, earlier=earlier))


def test_stall_by_silence() -> None:
    found = on_machine(values={"log__age": 900.0})
    assert set(found) == {"stall"}
    assert found["stall"].severity is Severity.CRITICAL


def test_stopped_by_a_signal() -> None:
    found = on_machine(more=[seen("process.state", "stopped", subject="pid 72", pid=72)])
    assert set(found) == {"stall"}
    assert "signal" in found["stall"].summary


def test_process_gone_without_a_word() -> None:
    found = on_machine(values={"process__alive": False, "log__age": 300.0})
    assert set(found) == {"unexpected_end"}
    assert any("out-of-memory" in text for text in found["unexpected_end"].alternatives)


def test_kill_with_memory_that_grew_is_probably_want_of_memory() -> None:
    past = [
        {"time": "2026-03-01T10:00:00Z", "process.rss": 4e9},
        {"time": "2026-03-01T11:00:00Z", "process.rss": 9e9},
    ]
    killed = seen("process.exit", "signal 9", subject="pid 71", pid=71)
    found = on_machine(values={"process__alive": False}, more=[killed], earlier=past)
    assert found["host_oom"].confidence <= 0.70
    assert found["host_oom"].role is Role.INITIATING
    assert found["killed"].role is Role.CASCADE


def test_kill_without_growth_says_what_is_known() -> None:
    killed = seen("process.exit", "signal 9", subject="pid 71", pid=71)
    found = on_machine(values={"process__alive": False}, more=[killed])
    assert "host_oom" not in found
    assert found["killed"].severity is Severity.CRITICAL


def test_kernel_names_the_job_it_killed() -> None:
    line = "Out of memory: Killed process 71 (python) total-vm:99kB"
    kernel = seen("kernel.oom_kill", 71, pid=71, text=line, trust=Trust.HARDWARE)
    found = on_machine(values={"process__alive": False}, more=[kernel])
    assert found["host_oom"].evidence_type == "observation"
    assert found["unexpected_end"].role is Role.CASCADE


def test_leak_over_sessions() -> None:
    past = [{"time": "2026-03-01T11:58:00Z", "process.rss": 2.5e9}]
    growth = [
        seen("process.rss_growth", 1.3e7, subject="job"),
        seen("process.rss", 1.2e7, stat="growth", subject="job"),
    ]
    found = on_machine(more=growth, earlier=past)
    assert set(found) == {"memory_leak"}


def test_leak_in_what_the_run_prints() -> None:
    def leak(values: dict[str, Values]) -> None:
        values["memory"] = [2e9 + 1e7 * i + 3e7 * math.sin(i) for i in range(300)]

    assert set(named(broken(1, leak))) == {"memory_leak"}


def gpu(name: str, value: Any, **more: Any) -> Any:
    return seen(f"gpu.{name}", value, subject="GPU 1", trust=Trust.HARDWARE, **more)


@pytest.mark.parametrize(
    ("observation", "kind", "severity"),
    [
        (gpu("ecc_uncorrected", 3), "gpu_hardware", "critical"),
        (gpu("remap_failed", True), "gpu_hardware", "critical"),
        (gpu("remap_pending", True), "gpu_hardware", "warning"),
        (gpu("pcie_gen", 1), "gpu_hardware", "warning"),
        (gpu("readable", False, text="no permission"), "gpu_unreadable", "warning"),
        (gpu("readable", False, text="GPU is lost"), "gpu_hardware", "critical"),
        (gpu("throttle", "hw_thermal_slowdown"), "throttling", "warning"),
        (seen("kernel.xid", 79, text="NVRM: Xid"), "gpu_hardware", "critical"),
        (seen("kernel.xid", 31, text="NVRM: Xid"), "gpu_hardware", "warning"),
        (seen("kernel.gpu_lost", "0000:3b:00", text="fallen off"), "gpu_hardware", "critical"),
        (seen("process.launcher_alive", False), "launcher_died", "warning"),
        (seen("disk.full_in", 1200.0, stat="growth"), "disk_full", "warning"),
        (seen("disk.free", 5e8), "disk_full", "critical"),
        (seen("disk.read_only", True), "disk_full", "critical"),
        (seen("checkpoint.age", 9e4), "checkpoint_stale", "warning"),
        (
            seen("checkpoint.incomplete", 2, text="step_3.pt: empty"),
            "checkpoint_corrupt",
            "warning",
        ),
        (seen("host.memory_available", 1e9), "host_oom", "warning"),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "quantity", None),
)
def test_machine_fault(observation: Any, kind: str, severity: str) -> None:
    found = on_machine(more=[observation])
    assert set(found) == {kind}
    assert found[kind].severity.value == severity


def test_a_disk_that_fills_up_is_critical_once_little_is_left() -> None:
    filling = [seen("disk.full_in", 1200.0, stat="growth"), seen("disk.total", 1e12)]
    assert on_machine(more=filling)["disk_full"].severity.value == "warning"
    scarce = on_machine(more=[*filling, seen("disk.free", 5e10)])
    assert scarce["disk_full"].severity.value == "critical"


def all_on_machine(more: list[Any], earlier: Any = ()) -> dict[str, Finding]:
    one = view(train(1), facts=FACTS, more=[*machine(), *more], earlier=earlier)
    return {finding.kind: finding for finding in diagnose(one)}


def xid_at(address: str) -> Observation:
    told = seen("kernel.xid", 79, text="NVRM: Xid", trust=Trust.HARDWARE)
    return told.model_copy(update={"place": Place(device=address)})


@pytest.mark.parametrize(
    ("observation", "severity"),
    [
        (gpu("ecc_uncorrected", 3), "info"),
        (gpu("remap_failed", True), "info"),
        (gpu("readable", False, text="GPU is lost"), "info"),
        (gpu("throttle", "hw_thermal_slowdown"), "info"),
        (xid_at("0000:3b:00"), "info"),
        (xid_at("0000:18:00"), "critical"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.quantity,
)
def test_faults_of_gpus_that_others_use_are_only_told(observation: Any, severity: str) -> None:
    whose = [
        gpu("job_memory", 0),
        gpu("pci_bus_id", "00000000:3B:00.0"),
        seen("gpu.job_memory", 6e10, subject="GPU 0", trust=Trust.HARDWARE),
        seen("gpu.pci_bus_id", "00000000:18:00.0", subject="GPU 0", trust=Trust.HARDWARE),
    ]
    (found,) = all_on_machine([*whose, observation]).values()
    assert found.severity.value == severity


def test_a_lost_gpu_was_the_jobs_when_an_earlier_session_saw_it_so() -> None:
    lost = gpu("readable", False, text="GPU is lost")
    for memory, severity in ((6e10, "critical"), (0, "info")):
        earlier = ({"time": "2026-03-01T11:00:00Z", "gpu.job_memory": {"GPU 1": memory}},)
        (found,) = all_on_machine([lost], earlier).values()
        assert found.severity.value == severity


def test_a_driver_that_refuses_is_told_and_a_machine_without_one_is_not() -> None:
    refused = "the NVIDIA driver refused (NVML error 18: Driver/library version mismatch)"
    for status, kinds in (("failed", {"gpu_unreadable"}), ("absent", set())):
        told = seen("source.gpu", status, text=refused, trust=Trust.HARDWARE)
        others = [one for one in machine() if not one.quantity.startswith("gpu.")]
        one = view(train(1), facts=FACTS, more=[*others, told])
        assert set(named(one)) == kinds


def test_kills_of_others_are_told_once_and_only_as_information() -> None:
    kills = [
        seen("kernel.oom_kill", pid, subject=f"pid {pid}", text=f"Killed process {pid} (x)")
        for pid in (400, 401, 402)
    ]
    found = all_on_machine(kills)
    assert set(found) == {"host_oom"}
    assert found["host_oom"].severity is Severity.INFO
    assert "3 processes" in found["host_oom"].summary


def test_the_memory_limit_of_the_jobs_group() -> None:
    text = "group of the job's pid 71"
    full = [
        seen("host.cgroup_memory_limit", 10e9, text=text),
        seen("host.cgroup_memory_used", 9.9e9, text=text),
    ]
    assert on_machine(more=full)["host_oom"].severity is Severity.WARNING
    killed = seen("host.cgroup_oom_kills", 2, stat="growth", text=text + ", since the last session")
    assert "2 processes" in on_machine(more=[killed])["host_oom"].summary
    elsewhere = seen("host.cgroup_oom_kills", 2, stat="growth", text="this process's group")
    assert on_machine(more=[elsewhere]) == {}


def test_a_folder_that_only_the_watch_cannot_write() -> None:
    at = seen("disk.read_only", True, subject="/runs/job")
    gone = [one for one in machine() if not one.quantity.startswith("process.")]
    unseen = view(train(1), facts=FACTS, more=[*gone, at])
    assert named(unseen) == {}
    assert on_machine(more=[at]) == {}
    silent = {"log__age": 70.0}
    assert on_machine(more=[at], values=silent)["disk_full"].severity is Severity.CRITICAL


def test_no_checkpoint_though_some_should_be_there() -> None:
    none = [one for one in machine() if not one.quantity.startswith("checkpoint.")]
    none.append(seen("checkpoint.count", 0, subject="/runs/job/out"))
    for every, folder, kinds in (
        (500, "out", {"checkpoint_stale"}),
        (500, None, set()),
        (100_000, "out", set()),
        (None, "out", set()),
    ):
        facts = replace(FACTS, save_every=every, output_dir=folder)
        assert set(named(view(train(1), facts=facts, more=none))) == kinds


def test_one_stopped_process_of_many_is_no_stall_while_the_log_goes_on() -> None:
    part = seen("process.state", "stopped", subject="pid 72", pid=72)
    assert on_machine(more=[part])["stall"].severity is Severity.WARNING
    whole = [one for one in machine() if one.quantity != "process.state"]
    stalled = named(view(train(1), facts=FACTS, more=[*whole, part]))["stall"]
    assert stalled.severity is Severity.CRITICAL


def test_disagreement_is_a_finding() -> None:
    one = view(train(1), facts=FACTS, more=machine())
    ids = list(one.observations)
    one.disagreements = (
        Disagreement(quantity="process.alive", believed=ids[0], doubted=ids[1], remark="x and y"),
    )
    assert "source_disagreement" in named(one)


def rl(n: int = 60, **changes: Any) -> dict[str, Finding]:
    rng = random.Random(5)
    values: dict[str, Any] = {
        "reward": [0.3 + 0.004 * i + rng.gauss(0, 0.04) for i in range(n)],
        "reward_std": [0.2] * n,
        "grad_norm": [0.5 + 0.1 * math.sin(i) for i in range(n)],
        "kl": [0.01 + 0.001 * i for i in range(n)],
        "entropy": [0.8 + 0.01 * math.sin(i) for i in range(n)],
        "completions/mean_length": [300 + 10 * math.sin(i) for i in range(n)],
        "completions/clipped_ratio": [0.1] * n,
    } | {name.replace("__", "/"): value for name, value in changes.items()}
    run = reading(*(series(name, value) for name, value in values.items()))
    return named(view(run, facts=TrainingFacts(task="grpo")))


def test_rl_is_silent_when_sound() -> None:
    assert rl() == {}


def test_rl_zero_signal() -> None:
    found = rl(grad_norm=[0.0] * 60, reward=[0.0] * 60, reward_std=[0.0] * 60)
    assert found["rl_zero_signal"].role is Role.INITIATING
    assert {f.role for kind, f in found.items() if kind != "rl_zero_signal"} <= {Role.CASCADE}


def test_rl_truncation_comes_before_the_missing_signal() -> None:
    found = rl(
        10, grad_norm=[0.0] * 10, reward=[0.0] * 10, reward_std=[0.0] * 10,
        completions__clipped_ratio=[1.0] * 10,
    )  # fmt: skip
    assert found["rl_length"].role is Role.INITIATING
    assert found["rl_zero_signal"].role is Role.CASCADE


@pytest.mark.parametrize(
    ("cut", "rise", "found"), [(0.88, 0.0, True), (0.88, 0.004, False), (0.3, 0.0, False)]
)
def test_rl_most_answers_cut_while_the_reward_stands_still(
    cut: float, rise: float, found: bool
) -> None:
    rng = random.Random(7)
    reward = [0.2 + rise * i + rng.gauss(0, 0.02) for i in range(60)]
    told = rl(reward=reward, completions__clipped_ratio=[cut + rng.gauss(0, 0.02) for _ in reward])
    assert ("rl_length" in told) is found


def test_rl_length_collapse() -> None:
    lengths = [300.0] * 30 + [9.0 + 0.1 * math.sin(i) for i in range(30)]
    assert "rl_length" in rl(completions__mean_length=lengths)


def test_rl_kl_explosion() -> None:
    assert "rl_kl_explosion" in rl(kl=[0.01] * 30 + [0.01 * 1.3**i for i in range(30)])


def test_rl_entropy_collapse_counts_only_without_reward() -> None:
    falling = [0.8 * math.exp(-i / 8) for i in range(60)]
    rng = random.Random(6)
    flat = [0.3 + rng.gauss(0, 0.05) for _ in range(60)]
    assert "rl_entropy_collapse" in rl(entropy=falling, reward=flat)
    assert "rl_entropy_collapse" not in rl(entropy=falling)


def test_rl_reward_hacking() -> None:
    rng = random.Random(7)
    score = [0.6 - 0.006 * i + rng.gauss(0, 0.02) for i in range(60)]
    assert "rl_reward_hacking" in rl(critic__score__mean=score)


def test_growth_that_ended_with_the_run_is_still_told() -> None:
    rows = [{"step": 900, "process.rss": 5e8}, {"step": 2100, "process.rss": 9e8}]
    gone = view(
        train(1, ended="finished"),
        facts=FACTS,
        more=machine(process__alive=False),
        earlier=rows,
    )
    (found,) = [f for f in diagnose(gone) if f.kind == "memory_leak"]
    assert found.severity is Severity.INFO
    assert found.since_step == 900
    steady = view(
        train(1, ended="finished"),
        facts=FACTS,
        more=machine(process__alive=False),
        earlier=[{**row, "process.rss": 5e8} for row in rows],
    )
    assert not [f for f in diagnose(steady) if f.kind == "memory_leak"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("training", "told"), [(0.0, True), (0.02, False)])
def test_overfitting_of_a_training_loss_that_has_converged(
    seed: int, training: float, told: bool
) -> None:
    """Training stands still while evaluation worsens; where both worsen it is no overfitting."""

    def turn(values: dict[str, Values]) -> None:
        rng = random.Random(seed)
        values["loss"] = [
            0.3 + 5 * math.exp(-i / 12) + training * max(0, i - 125) + rng.gauss(0, 0.01)
            for i in range(300)
        ]
        values["eval_loss"] = [0.4 + 0.05 * abs(i - 4) + rng.gauss(0, 0.005) for i in range(12)]

    assert ("overfitting" in named(broken(seed, turn))) is told


def test_spike_above_what_was_usual_lately_though_not_above_the_beginning() -> None:
    def spike(values: dict[str, Values]) -> None:
        values["loss"] = [0.3 + 5 * math.exp(-i / 12) for i in range(300)]
        values["loss"][-1] = 1.2

    assert set(named(broken(1, spike, evaluated=False))) == {"loss_spike"}
