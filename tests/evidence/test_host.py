"""The host's evidence, from this machine and from made-up /proc and control-group trees."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from trainwarden.evidence.base import Target
from trainwarden.evidence.host import HostSource, memory_group
from trainwarden.records.job import Job
from trainwarden.records.observation import SourceReport


def target(**more: object) -> Target:
    return Target(job=Job(id="job"), root=Path(), **more)  # type: ignore[arg-type]


def values(report: SourceReport) -> dict[tuple[str, str], object]:
    return {(seen.quantity, seen.stat): seen.value for seen in report.observations}


def test_this_machine() -> None:
    report = HostSource().read(target(pids=(os.getpid(),)))
    found = values(report)
    assert report.status == "ok", report.message
    memory = psutil.virtual_memory()
    assert found["host.memory_total", "last"] == memory.total
    assert found["host.memory_available", "last"] == pytest.approx(memory.available, rel=0.5)
    assert found["host.cores", "last"] == os.cpu_count()
    assert float(found["host.uptime", "last"]) > 0  # type: ignore[arg-type]
    row = HostSource.sample_row(report)
    assert row["host_memory_available"] == found["host.memory_available", "last"]


def test_replay_says_nothing_of_this_machine() -> None:
    report = HostSource().read(target(live=False))
    assert report.status == "absent"
    assert "replay" in report.message
    assert not report.observations


def make_proc(folder: Path, cgroup: str, mountinfo: str) -> Path:
    proc = folder / "proc"
    for pid in ("self", "42"):
        (proc / pid).mkdir(parents=True)
        (proc / pid / "cgroup").write_text(cgroup)
        (proc / pid / "mountinfo").write_text(mountinfo)
    (proc / "meminfo").write_text(
        "MemTotal: 1000 kB\nMemAvailable: 400 kB\nSwapTotal: 100 kB\nSwapFree: 30 kB\n"
        "HugePages_Total: 0\n"
    )
    (proc / "loadavg").write_text("3.00 2.00 1.00 1/100 4242\n")
    (proc / "uptime").write_text("1234.5 99.0\n")
    return proc


def test_version_2_takes_the_tightest_limit_above(tmp_path: Path) -> None:
    top = tmp_path / "cgroup"
    leaf = top / "pod/train"
    leaf.mkdir(parents=True)
    (leaf / "memory.max").write_text("max\n")
    (leaf / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\n")
    (top / "pod/memory.max").write_text("8000\n")
    (top / "pod/memory.current").write_text("7000\n")
    (top / "pod/memory.stat").write_text("anon 5000\ninactive_file 1500\n")
    proc = make_proc(tmp_path, "0::/pod/train\n", f"31 23 0:28 / {top} rw - cgroup2 cgroup2 rw\n")
    group = memory_group(proc, "42")
    assert group is not None
    assert (group.limit, group.used, group.oom_kills) == (8000, 5500, 3)

    source = HostSource(proc=proc, shm=tmp_path)
    report = source.read(target(pids=(42,), earlier=({"cgroup_oom_kills": 1}, {"time": "x"})))
    found = values(report)
    assert found["host.cgroup_memory_limit", "last"] == 8000
    assert found["host.cgroup_memory_used", "last"] == 5500
    assert found["host.cgroup_oom_kills", "last"] == 3
    assert found["host.cgroup_oom_kills", "growth"] == 2
    assert found["host.swap_used", "last"] == 70 * 1024
    assert found["host.load1", "last"] == pytest.approx(3.0 / (os.cpu_count() or 1), abs=1e-3)
    assert source.sample_row(report)["cgroup_oom_kills"] == 3


def test_version_1_inside_a_container(tmp_path: Path) -> None:
    """The mount shows the container's own part of the tree as its root."""
    top = tmp_path / "memory"
    top.mkdir()
    (top / "memory.limit_in_bytes").write_text("5000\n")
    (top / "memory.usage_in_bytes").write_text("4500\n")
    (top / "memory.stat").write_text("cache 1\ntotal_inactive_file 500\n")
    (top / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    proc = make_proc(
        tmp_path,
        "9:name=systemd:/x\n4:memory,hugetlb:/docker/abc\n0::/\n",
        f"35 31 0:32 /docker/abc {top} rw - cgroup cgroup rw,memory\n",
    )
    group = memory_group(proc, "42")
    assert group is not None
    assert (group.limit, group.used, group.oom_kills) == (5000, 4000, 1)


def test_no_limit_is_none(tmp_path: Path) -> None:
    top = tmp_path / "memory"
    top.mkdir()
    (top / "memory.limit_in_bytes").write_text(f"{(1 << 63) - 4096}\n")
    proc = make_proc(tmp_path, "4:memory:/\n", f"1 1 0:1 / {top} rw - cgroup cgroup rw,memory\n")
    assert memory_group(proc, "42") is None
    assert memory_group(proc, "43") is None


def test_a_process_that_is_gone_leaves_this_ones_group(tmp_path: Path) -> None:
    top = tmp_path / "cgroup"
    top.mkdir()
    (top / "memory.max").write_text("8000\n")
    proc = make_proc(tmp_path, "0::/\n", f"31 23 0:28 / {top} rw - cgroup2 cgroup2 rw\n")
    report = HostSource(proc=proc, shm=tmp_path).read(target(pids=(77,)))
    limit = next(o for o in report.observations if o.quantity == "host.cgroup_memory_limit")
    assert limit.text == "this process's group"


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    report = HostSource(proc=tmp_path / "none", shm=tmp_path / "no-shm").read(target())
    assert report.status == "partial"
    assert "meminfo" in report.message
    assert "no-shm" in report.message
    assert values(report)["host.cores", "last"] == os.cpu_count()
