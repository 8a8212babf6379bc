"""The process table is read once for all sources, and a reading that hangs costs no source."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trainwarden.evidence import proctable
from trainwarden.evidence.base import Target
from trainwarden.evidence.host import HostSource
from trainwarden.evidence.processes import ProcessSource
from trainwarden.records.job import Job


def target(folder: Path, **more: object) -> Target:
    return Target(job=Job(id="job"), root=folder, **more)  # type: ignore[arg-type]


def test_one_reading_serves_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = []
    read = proctable.read_table

    def counted() -> dict[int, proctable.Proc]:
        readings.append(1)
        return read()

    monkeypatch.setattr(proctable, "read_table", counted)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        one = target(tmp_path, pids=(child.pid,))
        asked: list[object] = []
        threads = [
            threading.Thread(target=lambda: asked.append(dict(one.census.living(one))))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        child.communicate(b"\n")
    assert [list(found) for found in asked] == [[child.pid]] * 8  # type: ignore[call-overload]
    assert len(readings) == 1
    assert one.census.living(target(tmp_path, live=False)) == {}


def test_a_table_that_does_not_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hang() -> dict[int, proctable.Proc]:
        release.wait(60)
        return {}

    monkeypatch.setattr(proctable, "read_table", hang)
    monkeypatch.setattr("trainwarden.evidence.census.Census.family.__defaults__", (0.05,))
    one = target(tmp_path, pids=(os.getppid(),))
    report = ProcessSource().read(one)
    assert report.status == "timed_out"
    assert "within 0.05 s" in report.message
    assert HostSource().read(one).status == "ok"
    release.set()


def test_a_table_that_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> dict[int, proctable.Proc]:
        raise OSError("no /proc here")

    monkeypatch.setattr(proctable, "read_table", broken)
    one = target(tmp_path)
    report = ProcessSource().read(one)
    assert report.status == "failed"
    assert "no /proc here" in report.message
    assert HostSource().read(one).status == "ok"
