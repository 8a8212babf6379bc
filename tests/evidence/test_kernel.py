"""The kernel's log: lines that must be seen, look-alikes that must not, and who may read it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.evidence.base import Target
from trainwarden.evidence.kernel import KernelSource, read_kmsg
from trainwarden.evidence.kernel_log import parse_kernel_log, split_stamp
from trainwarden.records.job import Job
from trainwarden.records.observation import Observation, SourceReport

BOOT = 1_750_000_000.0
NOW = datetime.fromtimestamp(BOOT + 100_000, timezone.utc)

SEEN = [
    ("NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
     "kernel.xid", 79, None),
    ("NVRM: Xid (PCI:0000:86:00): 31, pid=71345, name=python3, Ch 00000010, intr 00000000. MMU "
     "Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f3a_4c000000.", "kernel.xid", 31, 71345),
    ("NVRM: Xid (0000:03:00): 13, Graphics SM Warp Exception on (GPC 0, TPC 0): Out Of Range "
     "Address", "kernel.xid", 13, None),
    ("NVRM: Xid (PCI:0000:18:00): 119, pid=2242, name=nvidia-smi, Timeout after 6s of waiting for "
     "RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL).", "kernel.xid", 119, 2242),
    ("NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", "kernel.gpu_lost", "0000:3b:00.0",
     None),
    ("NVRM: fallen off the bus and is not responding to commands.", "kernel.gpu_lost", "yes", None),
    ("Out of memory: Killed process 4711 (python) total-vm:9876543kB, anon-rss:8123456kB, "
     "file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:18000kB oom_score_adj:0",
     "kernel.oom_kill", 4711, 4711),
    ("Memory cgroup out of memory: Killed process 4712 (pt_data_worker) total-vm:1kB, anon-rss:1kB",
     "kernel.oom_kill", 4712, 4712),
    ("Memory cgroup out of memory: Kill process 4713 (a (b) c) score 1001 or sacrifice child",
     "kernel.oom_kill", 4713, 4713),
    ("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/d,"
     "task_memcg=/d,task=python,pid=4714,uid=0", "kernel.oom_kill", 4714, 4714),
    ("blk_update_request: I/O error, dev sda, sector 1234 op 0x0:(READ)", "kernel.io_error", "sda",
     None),
    ("I/O error, dev nvme0n1, sector 5 op 0x1:(WRITE) flags 0x0", "kernel.io_error", "nvme0n1",
     None),
    ("Buffer I/O error on dev dm-0, logical block 3, lost async page write", "kernel.io_error",
     "dm-0", None),
    ("EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm python: reading directory",
     "kernel.io_error", "sda1", None),
    ("nvme nvme1: I/O 22 QID 3 timeout, reset controller", "kernel.io_error", "nvme1", None),
    ("nfs: server storage-1 not responding, still trying", "kernel.io_error", "storage-1", None),
    ("EXT4-fs (sda1): Remounting filesystem read-only", "kernel.read_only", "sda1", None),
    ("XFS (nvme0n1p1): Log I/O Error Detected. Shutting down filesystem", "kernel.read_only",
     "nvme0n1p1", None),
    ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:812]", "kernel.lockup",
     "soft lockup", 812),
    ("INFO: task python:813 blocked for more than 120 seconds.", "kernel.lockup", "hung task", 813),
    ("rcu: INFO: rcu_sched self-detected stall on CPU", "kernel.lockup", "rcu stall", None),
    ("python[814]: segfault at 0 ip 00007f8be4d67854 sp 00007ffd2e18e000 error 4 in libnccl.so.2",
     "kernel.segfault", 814, 814),
    ("traps: python3[815] general protection fault ip:7f sp:7f error:0 in libc.so",
     "kernel.segfault", 815, 815),
    ("mce: [Hardware Error]: Machine check events logged", "kernel.hardware_error",
     "machine check", None),
    ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0", "kernel.hardware_error",
     "uncorrected memory error", None),
    ("EDAC skx MC2: 1 CE memory read error on CPU_SrcID#0", "kernel.hardware_error",
     "corrected memory error", None),
    ("pcieport 0000:16:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
     "kernel.hardware_error", "uncorrected PCIe error", None),
    ("mlx5_core 0000:1b:00.0: Port: 1 Link DOWN", "kernel.link_down", "0000:1b:00.0", None),
]  # fmt: skip

UNSEEN = [
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.129.03",
    "NVRM: GPU at PCI:0000:3b:00: GPU-0d4cf3d7-0b5d-0c0f-7a5a-6f5a8b6b0b5f",
    'audit: comm="NVRM: Xid (PCI:0000:3b:00): 79, x"',
    "python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "Tasks state (memory values in pages):",
    "[   4711]     0  4711   100000    50000   500000        0             0 python",
    "Memory cgroup stats for /docker/abc: anon 1234",
    "blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ)",
    "Buffer I/O error on dev sr0, logical block 0, async page read",
    "EXT4-fs (vda): mounted filesystem 0000 r/w without journal. Quota mode: none.",
    "EXT4-fs (sda1): re-mounted. Opts: errors=remount-ro",
    "nfs: server storage-1 OK",
    "nvme nvme0: 8/0/0 default/read/poll queues",
    "mce: Using 20 MCE banks",
    "MCE: In-kernel MCE decoding enabled.",
    "EDAC MC: Ver: 3.0.0",
    "EDAC MC0: Giving out device to module skx_edac controller Skylake",
    "watchdog: hard lockup detector is enabled",
    "process 'segfault at noon' launched '/bin/sh' with NULL argv: empty string added",
    "traps: PANIC on oops is off",
    "pcieport 0000:16:00.0: AER: enabled with IRQ 30",
    "mlx5_core 0000:1b:00.0: Port: 1 Link UP",
    "Killed process accounting enabled",
]


@pytest.mark.parametrize(("message", "kind", "value", "pid"), SEEN)
def test_lines_that_matter(message: str, kind: str, value: object, pid: int | None) -> None:
    lines = [
        f"[12345.678901] {message}",
        f"3,1234,12345678901,-;{message}",
        f"<3>[12345.678901] {message}",
        f"{BOOT + 12345.678901:.6f} node7 kernel: {message}",
        f"{BOOT + 12345.678901:.6f} node7 kernel: [12345.678901] {message}",
    ]
    for line in lines:
        (event,) = parse_kernel_log([line], BOOT)
        assert (event.kind, event.value, event.pid) == (kind, value, pid)
        assert event.text == message
        assert event.time == pytest.approx(BOOT + 12345.678901, abs=1e-3)


@pytest.mark.parametrize("message", UNSEEN)
def test_look_alikes(message: str) -> None:
    assert parse_kernel_log([f"[1.0] {message}", f"6,1,1,-;{message}"], BOOT) == []


def test_names_and_devices() -> None:
    xid, kill = parse_kernel_log([f"[1.0] {SEEN[1][0]}", f"[2.0] {SEEN[6][0]}"], BOOT)
    assert (xid.device, xid.comm) == ("0000:86:00", "python3")
    assert kill.comm == "python"


def test_what_programs_write_is_not_the_kernels() -> None:
    """Anyone with access to /dev/kmsg can write there; facility 1 and up are not the kernel."""
    message = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    assert parse_kernel_log([f"12,1,1,-;{message}", f"<12>[1.0] {message}"], BOOT) == []
    assert parse_kernel_log([f"Dec  1 10:00:00 node python[7]: {message}", message], BOOT) == []
    assert len(parse_kernel_log([f"Dec  1 10:00:00 node kernel: {message}"], BOOT)) == 1


def test_one_kill_told_in_several_lines() -> None:
    lines = [
        "[100.0] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0",
        "[100.1] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python,pid=9,uid=0",
        "[100.1] Out of memory: Killed process 9 (python) total-vm:1kB",
        "[100.4] oom_reaper: reaped process 9 (python), now anon-rss:0kB",
        "[900.0] Out of memory: Killed process 9 (other) total-vm:1kB",
    ]
    events = parse_kernel_log(lines, BOOT)
    assert [(event.pid, event.comm) for event in events] == [(9, "python"), (9, "other")]
    assert events[0].text == "Out of memory: Killed process 9 (python) total-vm:1kB"


def test_since_and_stamps() -> None:
    message = "nvme nvme1: I/O 22 QID 3 timeout, aborting"
    lines = [f"[10.0] {message}", f"[20.0] {message}", f"Dec  1 10:00:00 node kernel: {message}"]
    assert len(parse_kernel_log(lines, BOOT, since=BOOT + 15)) == 2
    stamped = split_stamp(f"2025-12-01T03:00:00+0000 n kernel: {message}", None)
    assert stamped == (datetime(2025, 12, 1, 3, tzinfo=timezone.utc).timestamp(), message)
    stamped = split_stamp(f"2025-12-01 03:00:00,123456Z n kernel: {message}", None)
    assert stamped == (datetime(2025, 12, 1, 3, tzinfo=timezone.utc).timestamp(), message)
    stamped = split_stamp(f"[Mon Dec  1 03:00:00 2025] {message}", None)
    assert stamped == (datetime(2025, 12, 1, 3).astimezone().timestamp(), message)
    assert split_stamp(f"[10.5] {message}", None) == (None, message)


@given(st.lists(st.text(max_size=80)))
def test_any_text_is_survived(lines: list[str]) -> None:
    for line in [*lines, *(f"[1.0] {line}" for line in lines), *(f"3,1,1,-;{x}" for x in lines)]:
        for event in parse_kernel_log([line], BOOT):
            assert event.kind.startswith("kernel.")


def test_long_hostile_lines_are_quick() -> None:
    for piece in ("NVRM: ", "XFS (a): ", "a[", "oom-kill:constraint=,task=", "0000:00:00.0 "):
        assert parse_kernel_log([f"[1.0] {piece * 100_000}"] * 20, BOOT) == []


# --- the source ------------------------------------------------------------------------------


def source(
    folder: Path, lines: Sequence[str], commands: Sequence[Sequence[str]] = ()
) -> KernelSource:
    path = folder / "kmsg"
    path.write_text("".join(f"{line}\n" for line in lines))
    return KernelSource(path, commands=commands, boot_time=BOOT)


def target(**more: object) -> Target:
    return Target(job=Job(id="job"), root=Path(), now=lambda: NOW, **more)  # type: ignore[arg-type]


def seen(report: SourceReport) -> list[Observation]:
    return [found for found in report.observations if found.quantity != "kernel.readable"]


def row(seconds_ago: float, **more: object) -> dict[str, object]:
    return {"time": (NOW - timedelta(seconds=seconds_ago)).isoformat(), **more}


def at(seconds_ago: float, message: str) -> str:
    return f"[{100_000 - seconds_ago:.6f}] {message}"


KILL = "Out of memory: Killed process {} (python) total-vm:1kB"
TIMEOUT = "nvme nvme1: I/O 22 QID 3 timeout, aborting"


@pytest.mark.parametrize("pids", [[40, 41], {"40": BOOT, "41": BOOT + 5}])
def test_whose_kill_it_was(tmp_path: Path, pids: object) -> None:
    lines = [at(50, KILL.format(41)), at(40, KILL.format(42))]
    report = source(tmp_path, lines).read(target(earlier=(row(600, pids=pids),)))
    assert report.status == "ok"
    kills = [(found.value, found.subject, found.place.pid) for found in seen(report)]
    assert kills == [(41, "job", 41), (42, "pid 42", 42)]
    assert "Killed process 41" in (seen(report)[0].text or "")
    assert seen(report)[0].time == NOW - timedelta(seconds=50)


def test_only_since_the_last_session_but_the_jobs_own_deaths_since_its_beginning(
    tmp_path: Path,
) -> None:
    lines = [
        at(9000, TIMEOUT.replace("nvme1", "nvme7")),
        at(9000, KILL.format(41)),
        at(3000, KILL.format(41)),
        at(3000, KILL.format(99)),
        at(3000, TIMEOUT),
        at(100, TIMEOUT.replace("nvme1", "nvme2")),
    ]
    earlier = (row(7000, pids=[41]), row(1000))
    report = source(tmp_path, lines).read(target(earlier=earlier))
    assert [found.value for found in seen(report)] == [41, "nvme2"]
    assert seen(report)[0].time == NOW - timedelta(seconds=3000)
    assert "since the last session" in report.message


def test_without_a_beginning_a_day_before_the_logs_last_write(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 1\n")
    then = (NOW - timedelta(hours=2)).timestamp()
    os.utime(log, (then, then))
    lines = [
        f"[{100_000 - 27 * 3600:.1f}] {TIMEOUT}",
        at(25 * 3600, TIMEOUT.replace("nvme1", "nvme2")),
        # Of processes that nobody knows only those that died about when the log ended.
        at(4 * 3600, KILL.format(4)),
        at(2 * 3600 - 20, KILL.format(5)),
        at(2 * 3600 - 30, "python[6]: segfault at 0 ip 0 sp 0 error 4"),
        at(600, KILL.format(7)),
    ]
    report = source(tmp_path, lines).read(target(logs=(log,)))
    assert [found.value for found in seen(report)] == ["nvme2", 5, 6]
    assert "a day before the log's last write" in report.message


def test_while_the_job_lives_deaths_of_others_are_theirs(tmp_path: Path) -> None:
    now = datetime.now(timezone.utc)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    own = child.pid
    lines = [
        f"[99990.0] python[{own}]: segfault at 0 ip 0 sp 0 error 4",
        "[99991.0] python[6]: segfault at 0 ip 0 sp 0 error 4",
        f"[99992.0] {KILL.format(8)}",
        f"[50000.0] {KILL.format(9)}",
    ]
    path = tmp_path / "kmsg"
    path.write_text("\n".join(lines) + "\n")
    began = psutil.Process(own).create_time()
    kernel = KernelSource(path, commands=(), boot_time=began - 99_980)
    try:
        report = kernel.read(Target(job=Job(id="job"), root=tmp_path, pids=(own,), now=lambda: now))
    finally:
        child.communicate(b"\n")
    found = [(one.quantity, one.value, one.subject) for one in seen(report)]
    assert found == [("kernel.segfault", own, "job"), ("kernel.oom_kill", 8, "pid 8")]
    assert "since the job's beginning" in report.message


def test_floods_are_grouped_and_counted(tmp_path: Path) -> None:
    lines = [at(50, TIMEOUT)] * 500
    lines += [at(40, f"NVRM: Xid (PCI:0000:3b:00): {n}, x") for n in range(1, 40)]
    report = source(tmp_path, lines).read(target())
    found = seen(report)
    assert found[0].text == f"{TIMEOUT} (×500)"
    assert len([one for one in found if one.quantity == "kernel.xid"]) == 21
    assert [one.value for one in found if one.stat == "count"] == [39]


def test_hostile_names_are_cleaned(tmp_path: Path) -> None:
    lines = [at(5, "Out of memory: Killed process 7 (\x1b[31mpy) total-vm:1kB \x1b]0;x\x07")]
    (found,) = seen(source(tmp_path, lines).read(target()))
    assert "\x1b" not in (found.text or "")


def test_a_replay_reads_nothing(tmp_path: Path) -> None:
    report = source(tmp_path, [at(5, TIMEOUT)]).read(target(live=False))
    assert (report.status, report.observations) == ("absent", ())
    assert "a replay" in report.message


def readable(report: SourceReport) -> Observation:
    return next(one for one in report.observations if one.quantity == "kernel.readable")


def test_where_there_is_no_log(tmp_path: Path) -> None:
    report = KernelSource(tmp_path / "none", commands=[("no-such-dmesg",)]).read(target())
    assert report.status == "absent"
    assert "No such file" in report.message
    assert "no-such-dmesg: not installed" in report.message
    assert readable(report).value is False


def test_permission_is_named_and_the_next_way_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> list[str]:
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr("trainwarden.evidence.kernel.read_kmsg", refuse)
    proc = tmp_path / "proc/sys/kernel"
    proc.mkdir(parents=True)
    (proc / "dmesg_restrict").write_text("1\n")
    complain = (sys.executable, "-c", "import sys; sys.exit('dmesg: read failed')")
    tell = (sys.executable, "-c", f"print({at(5, KILL.format(8))!r})")

    def read(*commands: Sequence[str]) -> SourceReport:
        kernel = KernelSource(commands=commands, proc=tmp_path / "proc", boot_time=BOOT)
        return kernel.read(target())

    report = read(complain)
    assert report.status == "absent"
    assert "dmesg_restrict is 1" in report.message
    assert "dmesg: read failed" in report.message
    assert readable(report).value is False

    report = read(complain, tell)
    assert report.status == "ok"
    assert readable(report).value is True
    assert [found.value for found in seen(report)] == [8]


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="/dev/kmsg may not be read here")
def test_the_real_log_is_read_without_waiting() -> None:
    try:
        lines = read_kmsg(Path("/dev/kmsg"))
    except PermissionError:
        pytest.skip("/dev/kmsg may not be read here")
    assert all(split_stamp(line, BOOT) is not None for line in lines[:20] if line[:1] == "6")
    report = KernelSource().read(Target(job=Job(id="job"), root=Path()))
    assert report.status == "ok"
    assert readable(report).value is True
