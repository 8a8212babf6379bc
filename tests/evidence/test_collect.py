"""Collecting: sources in parallel, each against its own clock, none able to stop the others."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

import pytest

from trainwarden.evidence.base import Target
from trainwarden.evidence.collect import collect, sample_row
from trainwarden.metrics.reading import Reading
from trainwarden.records.job import Job
from trainwarden.records.observation import Observation, SourceReport, Trust

NOW = datetime(2026, 11, 1, 12, tzinfo=timezone.utc)


def see(quantity: str, value: Any, **more: Any) -> Observation:
    return Observation(
        **{"quantity": quantity, "value": value, "source": "x", "trust": Trust.LOG, **more}
    )


class Fine:
    name: ClassVar[str] = "fine"
    trust: ClassVar[Trust] = Trust.LOG
    timeout: ClassVar[float] = 30.0

    def read(self, target: Target) -> SourceReport:
        target.readings[Path("a.log")] = Reading("a.log")
        seen = (see("step", 7),)
        return SourceReport(source="fine", trust=self.trust, status="ok", observations=seen)


class Broken(Fine):
    name = "broken"

    def read(self, target: Target) -> SourceReport:
        target.readings[Path("half.log")] = Reading("half.log")
        raise ZeroDivisionError("token=abcdefgh12345")


class Exiting(Fine):
    name = "exiting"

    def read(self, target: Target) -> SourceReport:
        raise SystemExit(target.live)


class Wrong(Fine):
    name = "wrong"

    def read(self, target: Target) -> SourceReport:
        return target.config.get("nothing")  # type: ignore[return-value]


class Stuck(Fine):
    """Never answers until released, and then writes where it should not."""

    name = "stuck"
    timeout = 0.2

    def __init__(self) -> None:
        self.release, self.ended = threading.Event(), threading.Event()

    def read(self, target: Target) -> SourceReport:
        self.release.wait(60)
        report = Fine.read(self, target)
        self.ended.set()
        return report


class Meeting(Fine):
    """Answers only when another of its kind reads at the same time."""

    def __init__(self, barrier: threading.Barrier) -> None:
        self.barrier = barrier

    def read(self, target: Target) -> SourceReport:
        self.barrier.wait(30)
        return super().read(target)


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(job=Job(id="job"), root=tmp_path)


def test_reports_stand_in_the_order_of_the_sources(target: Target) -> None:
    stuck = Stuck()
    reports = collect(target, [stuck, Broken(), Fine(), Wrong(), Exiting()])
    stuck.release.set()
    assert [(r.source, r.status) for r in reports] == [
        ("stuck", "timed_out"),
        ("broken", "failed"),
        ("fine", "ok"),
        ("wrong", "failed"),
        ("exiting", "failed"),
    ]
    assert reports[2].observations[0].value == 7
    assert all(report.seconds >= 0 for report in reports)
    assert reports[0].seconds >= 0.2


def test_a_source_that_breaks_tells_why_without_traceback_or_secret(target: Target) -> None:
    [report] = collect(target, [Broken()])
    assert "ZeroDivisionError" in report.message
    assert "abcdefgh12345" not in report.message
    assert "Traceback" not in report.message
    [report] = collect(target, [Wrong()])
    assert "NoneType" in report.message


def test_sources_read_at_the_same_time(target: Target) -> None:
    barrier = threading.Barrier(4)
    reports = collect(target, [Meeting(barrier) for _ in range(4)])
    assert [report.status for report in reports] == ["ok"] * 4


def test_only_what_came_in_time_counts(target: Target) -> None:
    stuck = Stuck()
    [report] = collect(target, [stuck])
    assert report.status == "timed_out"
    assert "0.2 s" in report.message
    stuck.release.set()
    assert stuck.ended.wait(30)
    assert target.readings == {}


def test_readings_of_the_log_source_arrive(target: Target) -> None:
    collect(target, [Fine(), Broken()])
    assert Path("a.log") in target.readings


def test_no_sources_no_reports(target: Target) -> None:
    assert collect(target, []) == []


def test_a_source_that_lacks_what_the_contract_asks(target: Target) -> None:
    class Bare:
        def read(self, target: Target) -> SourceReport:
            raise OSError(f"{target.root} is gone")

    [report] = collect(target, [Bare()])  # type: ignore[list-item]
    assert (report.source, report.status, report.trust) == ("Bare", "failed", Trust.TRACKER)


def test_text_of_any_source_is_cleaned_at_the_door(target: Target) -> None:
    class Hostile(Fine):
        def read(self, target: Target) -> SourceReport:  # noqa: ARG002
            seen = see(
                "log.event", "\x1b[31mred", subject="a\x07b", text="api_key=abcdef0123456789\x00"
            )
            return SourceReport(
                source="h",
                trust=Trust.LOG,
                status="ok",
                message="password=hunter2hunter2",
                observations=(seen,),
            )

    [report] = collect(target, [Hostile()])
    [seen] = report.observations
    assert seen.value == "red"
    assert "\x07" not in str(seen.subject)
    assert "abcdef0123456789" not in str(seen.text)
    assert "hunter2" not in report.message


def test_seconds_are_those_of_the_clock(target: Target) -> None:
    ticks = iter(range(100))
    [report] = collect(target, [Fine()], clock=lambda: next(ticks))
    assert report.seconds >= 1
    assert report.seconds == int(report.seconds)


class TestSampleRow:
    def row(self, *seen: Observation) -> dict[str, Any]:
        report = SourceReport(source="x", trust=Trust.LOG, status="ok", observations=seen)
        return sample_row([report], NOW)

    def test_time_and_step(self) -> None:
        assert self.row() == {"time": "2026-11-01T12:00:00+00:00", "step": None}
        assert self.row(see("step", 5), see("step", 9, trust=Trust.TRACKER))["step"] == 5
        assert self.row(see("step", 5, stat="first"))["step"] is None

    def test_a_value_of_the_job_stands_by_itself_and_single_processes_do_not_stand(self) -> None:
        row = self.row(
            see("process.rss", 30, subject="job"),
            see("process.rss", 20, subject="pid 7"),
            see("process.threads", 2, subject="pid 7"),
        )
        assert row["process.rss"] == 30
        assert "process.threads" not in row

    def test_of_several_logs_the_main_one(self) -> None:
        row = self.row(see("log.age", 3, subject="a"), see("log.age", 900, subject="b"))
        assert row["log.age"] == 3

    def test_devices_and_folders_by_subject(self) -> None:
        row = self.row(
            see("gpu.memory_used", 1, subject="GPU 0"),
            see("gpu.memory_used", 2, subject="GPU 1"),
            see("disk.free", 3, subject="/data"),
            see("loss", 1.0),
        )
        assert row["gpu.memory_used"] == {"GPU 0": 1, "GPU 1": 2}
        assert row["disk.free"] == {"/data": 3}
        assert "loss" not in row

    def test_idle_power_is_kept_by_model(self) -> None:
        row = self.row(
            see("gpu.name", "H100", subject="GPU 0"),
            see("gpu.idle_power", 70.0, subject="GPU 0"),
        )
        assert row["gpu.idle_power"] == {"H100": 70.0}

    def test_what_a_source_keeps_for_itself_is_added(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import trainwarden.evidence.gpu as module

        def keep(report: SourceReport) -> dict[str, Any]:
            return {"kept": report.source, "time": "not its own"}

        monkeypatch.setattr(module, "sample_row", keep, raising=False)
        report = SourceReport(source="gpu", trust=Trust.HARDWARE, status="ok")
        assert sample_row([report], NOW) == {
            "kept": "gpu",
            "time": "2026-11-01T12:00:00+00:00",
            "step": None,
        }

    def test_it_is_plain_json(self) -> None:
        assert self.row(see("process.cpu", float("nan")))["process.cpu"] == "nan"
