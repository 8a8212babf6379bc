"""Disagreements between sources: what counts as one, and who is believed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.evidence.disagree import disagreements
from trainwarden.records.observation import Disagreement, Observation, Trust

TRUST = {
    "gpu": Trust.HARDWARE,
    "process": Trust.PROCESS,
    "log": Trust.LOG,
    "wandb": Trust.TRACKER,
    "tensorboard": Trust.TRACKER,
}


def see(source: str, quantity: str, value: Any, **more: Any) -> Observation:
    name = f"{source}:{quantity}:{more.get('subject', '')}"
    return Observation(
        **{
            "id": name,
            "quantity": quantity,
            "value": value,
            "source": source,
            "trust": TRUST[source],
            **more,
        }
    )


def only(*seen: Observation) -> Disagreement:
    found = disagreements(seen)
    assert len(found) == 1, found
    return found[0]


class TestSameQuantity:
    def test_the_log_is_believed_over_the_tracker(self) -> None:
        found = only(see("wandb", "step", 900), see("log", "step", 5000))
        assert (found.quantity, found.believed, found.doubted) == (
            "step",
            "log:step:",
            "wandb:step:",
        )
        assert "5000" in found.remark
        assert "900" in found.remark

    def test_a_tracker_may_be_a_little_behind(self) -> None:
        assert disagreements([see("log", "step", 5000), see("wandb", "step", 4900)]) == []

    @pytest.mark.parametrize(
        ("a", "b", "disagree"),
        [
            (2.5, 2.51, False),
            (2.5, 3.1, True),
            (float("nan"), float("nan"), False),
            (float("nan"), 2.5, True),
            (float("inf"), float("inf"), False),
            (0.0, 0.0, False),
        ],
    )
    def test_values_at_one_step(self, a: float, b: float, disagree: bool) -> None:
        seen = [see("log", "loss", a, step=100), see("wandb", "loss", b, step=100)]
        assert bool(disagreements(seen)) is disagree

    def test_values_of_different_steps_are_not_compared(self) -> None:
        seen = [see("log", "loss", 2.5, step=5000), see("wandb", "loss", 7.0, step=100)]
        assert disagreements(seen) == []

    def test_nor_are_units_subjects_and_stats_that_differ(self) -> None:
        assert (
            disagreements(
                [
                    see("log", "gpu_memory", 10, unit="GiB"),
                    see("wandb", "gpu_memory", 99, unit="bytes"),
                    see("log", "loss", 1.0, stat="min"),
                    see("wandb", "loss", 9.0, stat="max"),
                    see("log", "loss", 1.0, subject="rank 0", stat="first"),
                    see("wandb", "loss", 9.0, subject="rank 1", stat="first"),
                ]
            )
            == []
        )

    def test_one_source_never_disagrees_with_itself(self) -> None:
        assert disagreements([see("log", "step", 10), see("log", "step", 5000)]) == []

    def test_between_equals_the_one_further_on_is_believed(self) -> None:
        found = only(
            see("wandb", "loss", 2.0, step=1000), see("tensorboard", "loss", 3.0, step=1001)
        )
        assert found.believed == "tensorboard:loss:"

    @given(st.floats(allow_nan=True), st.floats(allow_nan=True), st.booleans())
    def test_order_does_not_matter(self, a: float, b: float, turned: bool) -> None:
        seen = [see("log", "loss", a), see("wandb", "loss", b)]
        expected = disagreements(seen)
        assert disagreements(seen[::-1] if turned else seen) == expected
        assert all(one.believed == "log:loss:" for one in expected)


class TestLiving:
    @pytest.mark.parametrize("ending", ["finished", "crashed", "interrupted"])
    def test_an_ended_log_of_a_living_process(self, ending: str) -> None:
        found = only(
            see("process", "process.alive", True, subject="job"), see("log", "log.ended", ending)
        )
        assert found.believed == "process:process.alive:job"
        assert ending in found.remark

    @pytest.mark.parametrize("ending", ["running", "unknown"])
    def test_a_running_log_of_a_living_process(self, ending: str) -> None:
        assert (
            disagreements([see("process", "process.alive", True), see("log", "log.ended", ending)])
            == []
        )

    def test_a_running_log_of_a_dead_process(self) -> None:
        found = only(
            see("process", "process.alive", False),
            see("log", "log.ended", "running"),
            see("log", "log.age", 4000.0),
        )
        assert found.doubted == "log:log.ended:"

    def test_a_log_just_written_agrees_with_a_process_that_has_just_died(self) -> None:
        seen = [
            see("process", "process.alive", False),
            see("log", "log.ended", "running"),
            see("log", "log.age", 100.0),
            see("log", "log.interval", 50.0),
        ]
        assert disagreements(seen) == []

    @pytest.mark.parametrize("ending", ["finished", "crashed"])
    def test_a_dead_process_whose_log_ended_is_no_news(self, ending: str) -> None:
        assert (
            disagreements(
                [
                    see("process", "process.alive", False),
                    see("log", "log.ended", ending),
                    see("log", "log.age", 1.0),
                ]
            )
            == []
        )

    @pytest.mark.parametrize(
        ("code", "ending", "disagree"),
        [
            ("0", "finished", False),
            (0, "crashed", True),
            (1, "crashed", False),
            (1, "finished", True),
            ("signal 9", "finished", True),
            ("signal 9", "running", False),
        ],
    )
    def test_exit_code_and_ending(self, code: Any, ending: str, disagree: bool) -> None:
        seen = [
            see("process", "process.exit", code, subject="pid 7"),
            see("log", "log.ended", ending),
        ]
        assert bool(disagreements(seen)) is disagree

    def test_a_helper_that_ended_while_the_job_lives_is_no_contradiction(self) -> None:
        found = only(
            see("process", "process.alive", True, subject="job"),
            see("process", "process.exit", 1, subject="pid 7"),
            see("log", "log.ended", "finished"),
        )
        assert found.quantity == "process.alive"

    def test_a_dead_launcher_of_living_workers_is_a_finding_of_its_own(self) -> None:
        # One source says both, and neither is doubted.
        for alive in (True, False):
            assert not disagreements(
                [
                    see("process", "process.alive", True),
                    see("process", "process.launcher_alive", alive),
                ]
            )


class TestCheckpoint:
    def saved(self, step: float, age: float) -> list[Observation]:
        return [
            see("process", "checkpoint.step", step, subject="/ckpt"),
            see("process", "checkpoint.age", age, subject="/ckpt"),
            see("log", "step", 4000),
            see("log", "log.age", 600.0),
        ]

    def test_one_beyond_a_log_that_is_older(self) -> None:
        found = only(*self.saved(5000, age=30.0))
        assert (found.believed, found.doubted) == ("process:checkpoint.step:/ckpt", "log:step:")
        assert "buffer" in found.remark

    @pytest.mark.parametrize(("step", "age"), [(5000, 9000.0), (4000, 30.0), (3500, 30.0)])
    def test_older_ones_and_earlier_steps_are_as_they_should_be(
        self, step: float, age: float
    ) -> None:
        assert disagreements(self.saved(step, age)) == []


class TestGpuMemory:
    def devices(
        self, *job: float | None, used: float = 0, readable: bool = True
    ) -> list[Observation]:
        seen = []
        for index, memory in enumerate(job):
            subject = f"GPU {index}"
            seen.append(see("gpu", "gpu.readable", readable, subject=subject))
            seen.append(see("gpu", "gpu.memory_used", used, subject=subject))
            if memory is not None:
                seen.append(see("gpu", "gpu.job_memory", memory, subject=subject))
        return seen

    def test_a_run_that_prints_more_than_there_is(self) -> None:
        found = only(*self.devices(20e9, 20e9), see("log", "gpu_memory", 60e9))
        assert found.quantity == "gpu_memory"
        assert found.believed.startswith("gpu:")
        assert found.doubted == "log:gpu_memory:"

    @pytest.mark.parametrize("printed", [1e9, 18e9, 39e9, 41e9])
    def test_less_is_no_contradiction(self, printed: float) -> None:
        # The driver's context and the allocator's cache come on top of what a run counts.
        seen = [*self.devices(20e9, 20e9), see("log", "gpu_memory", printed)]
        assert disagreements(seen) == []

    def test_where_owners_are_unknown_all_that_is_used_bounds_it(self) -> None:
        devices = self.devices(None, None, used=30e9)
        assert disagreements([*devices, see("log", "gpu_memory", 50e9)]) == []
        assert only(*devices, see("log", "gpu_memory", 80e9))

    def test_nothing_follows_from_devices_that_cannot_be_read(self) -> None:
        devices = self.devices(1e9, readable=False)
        assert disagreements([*devices, see("log", "gpu_memory", 50e9)]) == []

    def test_an_ended_run_holds_nothing_any_more(self) -> None:
        seen = [*self.devices(0.0), see("log", "gpu_memory", 50e9)]
        assert only(*seen)
        assert disagreements([*seen, see("log", "log.ended", "finished")]) == []
        assert disagreements([*seen, see("process", "process.alive", False)]) == []

    def test_instances_are_not_counted_twice(self) -> None:
        instance = see("gpu", "gpu.job_memory", 20e9, subject="GPU 0 MIG 0")
        assert only(*self.devices(20e9), instance, see("log", "gpu_memory", 30e9))

    def test_nothing_follows_without_a_gpu(self) -> None:
        assert disagreements([see("log", "gpu_memory", 50e9)]) == []


def test_nothing_seen_nothing_disputed() -> None:
    assert disagreements([]) == []
