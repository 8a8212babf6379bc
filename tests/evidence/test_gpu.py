"""The GPU source, over the real bindings and a stand-in library with every fault it may meet."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from support.nvml import (
    BUSY,
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    GIB,
    IDLE,
    LOST,
    MISMATCH,
    NO_PERMISSION,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    UNKNOWN,
)
from trainwarden.evidence import gpu_probe
from trainwarden.evidence.base import Target
from trainwarden.evidence.gpu import GpuSource, idle_power, power_share, probe_gpus
from trainwarden.records.job import Job
from trainwarden.records.observation import Observation, SourceReport, Trust

Standin = Callable[..., dict[str, str]]


def target(tmp_path: Path, **changes: Any) -> Target:
    return Target(job=Job(id="job"), root=tmp_path, **changes)


def read(tmp_path: Path, **changes: Any) -> SourceReport:
    return GpuSource().read(target(tmp_path, **changes))


def seen(report: SourceReport, quantity: str, subject: str | None = "GPU 0") -> Observation:
    found = [o for o in report.observations if o.quantity == quantity and o.subject == subject]
    assert len(found) == 1, (quantity, subject, found)
    return found[0]


def value(report: SourceReport, quantity: str, subject: str | None = "GPU 0") -> Any:
    return seen(report, quantity, subject).value


def quantities(report: SourceReport, subject: str = "GPU 0") -> set[str]:
    return {o.quantity for o in report.observations if o.subject == subject}


@pytest.fixture
def no_pci(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine whose PCI bus shows nothing."""
    pci = tmp_path / "pci"
    pci.mkdir()
    monkeypatch.setattr(gpu_probe, "PCI_DEVICES", pci)
    return pci


def plug_in(pci: Path, vendor: str = "0x10de", kind: str = "0x030200") -> None:
    device = pci / "0000:01:00.0"
    device.mkdir()
    (device / "vendor").write_text(vendor + "\n")
    (device / "class").write_text(kind + "\n")


def test_a_healthy_device_tells_everything(nvml_standin: Standin, tmp_path: Path) -> None:
    nvml_standin([{}])
    report = read(tmp_path)
    assert report.status == "ok", report.message
    assert value(report, "gpu.count", None) == 1
    assert "550.54.15" in str(seen(report, "gpu.count", None).text)
    expected = {
        "gpu.readable": True,
        "gpu.name": BUSY["name"],
        "gpu.uuid": "GPU-00000000-0000",
        "gpu.pci_bus_id": "00000000:01:00.0",
        "gpu.utilization": 0.97,
        "gpu.memory_utilization": 0.54,
        "gpu.memory_used": 61 * GIB,
        "gpu.memory_total": 80 * GIB,
        "gpu.power": 612.0,
        "gpu.power_limit": 700.0,
        "gpu.clock_sm": 1755,
        "gpu.clock_sm_max": 1980,
        "gpu.throttle": "none",
        "gpu.temperature": 58,
        "gpu.temperature_slowdown": 87,
        "gpu.performance_state": 0,
        "gpu.persistence": True,
        "gpu.ecc_corrected": 0,
        "gpu.ecc_uncorrected": 0,
        "gpu.remapped_rows": 0,
        "gpu.remap_pending": False,
        "gpu.remap_failed": False,
        "gpu.pcie_gen": 5,
        "gpu.pcie_width": 16,
        "gpu.pcie_replays": 0,
        "gpu.nvlink": "18/18 up",
        "gpu.processes": "none",
        "gpu.mig": False,
    }
    assert {quantity: value(report, quantity) for quantity in expected} == expected
    power = seen(report, "gpu.power")
    assert (power.unit, power.source, power.trust) == ("W", "gpu", Trust.HARDWARE)
    assert power.place.api == "nvmlDeviceGetPowerUsage"
    assert power.place.device == "GPU-00000000-0000"
    assert power.time is not None
    # What this model does not support is absent with its reason, and nothing else suffers.
    assert "gpu.retired_pages" not in quantities(report)
    assert "retired_single_bit" in str(seen(report, "gpu.readable").text)
    assert "Not Supported" in str(seen(report, "gpu.readable").text)


def test_all_sixteen_are_reported_not_only_busy_ones(nvml_standin: Standin, tmp_path: Path) -> None:
    nvml_standin([{}] * 8 + [IDLE] * 8)
    report = read(tmp_path)
    assert value(report, "gpu.count", None) == 16
    for index in range(16):
        assert value(report, "gpu.readable", f"GPU {index}") is True
        share = value(report, "gpu.power_share", f"GPU {index}")
        assert share == (pytest.approx((612 - 70) / (700 - 70), abs=1e-4) if index < 8 else 0)


class TestPowerShare:
    def test_without_an_idle_power_it_is_the_share_of_the_limit_and_says_so(
        self, nvml_standin: Standin, tmp_path: Path
    ) -> None:
        nvml_standin([{}])
        share = seen(read(tmp_path), "gpu.power_share")
        assert share.value == pytest.approx(612 / 700, abs=1e-4)
        assert "share of the limit itself" in str(share.text)

    def test_idle_power_of_earlier_sessions_counts(
        self, nvml_standin: Standin, tmp_path: Path
    ) -> None:
        nvml_standin([{}])
        rows = ({"gpu.idle_power": {BUSY["name"]: 80.0}}, {"gpu.idle_power": {BUSY["name"]: 75}})
        report = read(tmp_path, earlier=rows)
        share = seen(report, "gpu.power_share")
        assert share.value == pytest.approx((612 - 75) / (700 - 75), abs=1e-4)
        assert "75 W" in str(share.text)
        assert value(report, "gpu.idle_power") == 75

    def test_a_busy_device_never_passes_for_idle(self) -> None:
        reading = {"name": "X", "power": 650.0, "utilization": {"gpu": 1.0}, "processes": []}
        assert idle_power([{"readings": reading}]) == {}
        assert idle_power([], [{"gpu.idle_power": "nonsense"}, {}]) == {}

    @pytest.mark.parametrize(
        ("power", "limit", "idle", "share"),
        [
            (700, 700, 70, 1.0),
            (70, 700, 70, 0.0),
            (50, 700, 70, 0.0),
            (721, 700, 70, 651 / 630),
            (350, 700, None, 0.5),
            (350, 700, 900, 0.5),
            (350, 0, None, 0.0),
        ],
    )
    def test_values(self, power: float, limit: float, idle: float | None, share: float) -> None:
        assert power_share(power, limit, idle) == pytest.approx(share)


@pytest.mark.parametrize(
    ("changes", "quantity", "expected"),
    [
        ({"clocks_event_reasons": 0x40 | 0x08}, "gpu.throttle", "hw_slowdown,hw_thermal_slowdown"),
        ({"clocks_event_reasons": 0x04}, "gpu.throttle", "sw_power_cap"),
        ({"clocks_event_reasons": 0x80}, "gpu.throttle", "hw_power_brake_slowdown"),
        ({"clocks_event_reasons": 0x40000000}, "gpu.throttle", "0x40000000"),
        ({"ecc_uncorrected_volatile": 3}, "gpu.ecc_uncorrected", 3),
        ({"ecc_corrected_volatile": 812}, "gpu.ecc_corrected", 812),
        ({"ecc_uncorrected_aggregate": 9}, "gpu.ecc_uncorrected_aggregate", 9),
        ({"retired_single_bit": 4, "retired_double_bit": 2}, "gpu.retired_pages", 6),
        ({"retired_pending": 1}, "gpu.retire_pending", True),
        ({"remapped_corrected": 1, "remapped_uncorrected": 2}, "gpu.remapped_rows", 3),
        ({"remap_pending": 1}, "gpu.remap_pending", True),
        ({"remap_failed": 1}, "gpu.remap_failed", True),
        ({"pcie_gen": 1}, "gpu.pcie_gen", 1),
        ({"pcie_width": 4}, "gpu.pcie_width", 4),
        ({"nvlinks": "110111111111111111"}, "gpu.nvlink", "17/18 up"),
        ({"nvlinks": "0" * 12}, "gpu.nvlink", "0/12 up"),
    ],
)
def test_what_is_wrong_with_a_device_is_told(
    nvml_standin: Standin, tmp_path: Path, changes: dict[str, Any], quantity: str, expected: Any
) -> None:
    nvml_standin([changes])
    report = read(tmp_path)
    assert report.status == "ok"
    assert value(report, quantity) == expected


def test_links_that_are_down_are_named(nvml_standin: Standin, tmp_path: Path) -> None:
    nvml_standin([{"nvlinks": "110111111111111110"}])
    assert seen(read(tmp_path), "gpu.nvlink").text == "down: link 2, 17"


class TestSingleReadingsFail:
    @pytest.mark.parametrize("code", [NOT_SUPPORTED, NO_PERMISSION, UNKNOWN, 10, 20])
    def test_one_function(self, nvml_standin: Standin, tmp_path: Path, code: int) -> None:
        nvml_standin([{"fail.nvmlDeviceGetTemperature": code}])
        report = read(tmp_path)
        assert report.status == "ok"
        assert "gpu.temperature" not in quantities(report)
        assert {"gpu.power", "gpu.power_share", "gpu.nvlink"} <= quantities(report)
        assert "temperature" in str(seen(report, "gpu.readable").text)

    def test_older_names_and_versions_stand_in(self, nvml_standin: Standin, tmp_path: Path) -> None:
        nvml_standin(
            [
                {
                    "fail.nvmlDeviceGetCurrentClocksEventReasons": FUNCTION_NOT_FOUND,
                    "fail.nvmlDeviceGetMemoryInfo_v2": FUNCTION_NOT_FOUND,
                    "fail.nvmlDeviceGetTemperature": FUNCTION_NOT_FOUND,
                    "clocks_event_reasons": 0x20,
                }
            ]
        )
        report = read(tmp_path)
        throttle = seen(report, "gpu.throttle")
        assert throttle.value == "sw_thermal_slowdown"
        assert throttle.place.api == "nvmlDeviceGetCurrentClocksThrottleReasons"
        # The first version counts the driver's own reserve as used.
        assert value(report, "gpu.memory_used") == 61 * GIB + GIB // 2
        if hasattr(pynvml, "nvmlDeviceGetTemperatureV"):
            assert value(report, "gpu.temperature") == 58

    def test_a_device_that_tells_hardly_anything(
        self, nvml_standin: Standin, tmp_path: Path
    ) -> None:
        bare = {key: None for key in BUSY if key not in ("name", "power")}
        nvml_standin([bare])
        report = read(tmp_path)
        assert report.status == "ok"
        assert value(report, "gpu.power") == 612.0
        assert "gpu.power_share" not in quantities(report)

    def test_a_device_that_tells_nothing_is_unreadable(
        self, nvml_standin: Standin, tmp_path: Path
    ) -> None:
        nvml_standin([{}, dict.fromkeys(BUSY)])
        report = read(tmp_path)
        assert report.status == "partial"
        assert value(report, "gpu.readable", "GPU 1") is False


class TestLost:
    @pytest.mark.parametrize(
        "function",
        [
            "nvmlDeviceGetHandleByIndex_v2",
            "nvmlDeviceGetName",
            "nvmlDeviceGetPowerUsage",
            "nvmlDeviceGetNvLinkState",
            "nvmlDeviceGetMigMode",
        ],
    )
    def test_at_any_call(self, nvml_standin: Standin, tmp_path: Path, function: str) -> None:
        nvml_standin([{}, {"lost_at": function}, {}])
        report = read(tmp_path)
        assert report.status == "partial"
        assert "GPU 1" in report.message
        assert "lost" in report.message
        assert value(report, "gpu.readable", "GPU 1") is False
        assert "lost" in str(seen(report, "gpu.readable", "GPU 1").text)
        for other in ("GPU 0", "GPU 2"):
            assert value(report, "gpu.readable", other) is True
            assert value(report, "gpu.power_share", other) > 0

    def test_what_it_told_before_is_kept(self, nvml_standin: Standin, tmp_path: Path) -> None:
        nvml_standin([{"lost_at": "nvmlDeviceGetTemperature"}])
        report = read(tmp_path)
        assert report.status == "failed"
        assert value(report, "gpu.power") == 612.0

    def test_one_that_needs_a_reset(self, nvml_standin: Standin, tmp_path: Path) -> None:
        nvml_standin([{}, {"fail.*": RESET_REQUIRED}])
        report = read(tmp_path)
        assert value(report, "gpu.readable", "GPU 1") is False
        assert "restart" in str(seen(report, "gpu.readable", "GPU 1").text)

    def test_one_that_may_not_be_opened(self, nvml_standin: Standin, tmp_path: Path) -> None:
        nvml_standin([{"fail.nvmlDeviceGetHandleByIndex_v2": NO_PERMISSION}, {}])
        report = read(tmp_path)
        assert report.status == "partial"
        assert "Permission" in str(seen(report, "gpu.readable").text)


class TestHanging:
    def test_the_others_are_read_all_the_same(self, nvml_standin: Standin) -> None:
        nvml_standin([{}, {}, {"hang.nvmlDeviceGetTemperature": 1}, {}])
        found = probe_gpus(limit=8, patience=1)
        assert [gpu["readable"] for gpu in found["gpus"]] == [True, True, False, True]
        assert found["status"] == "partial"
        hung = found["gpus"][2]
        assert "did not answer" in hung["reason"]
        assert hung["readings"]["power"] == 612.0
        assert "temperature" not in hung["readings"]
        assert found["gpus"][3]["readings"]["temperature"] == 58

    def test_while_being_opened(self, nvml_standin: Standin) -> None:
        nvml_standin([{"hang.nvmlDeviceGetHandleByIndex_v2": 1}, {}])
        found = probe_gpus(limit=8, patience=1)
        assert [gpu["readable"] for gpu in found["gpus"]] == [False, True]
        assert "being opened" in found["gpus"][0]["reason"]

    def test_all_of_them_within_the_time_limit(self, nvml_standin: Standin) -> None:
        nvml_standin([{"hang.nvmlDeviceGetName": 1}] * 16)
        started = time.monotonic()
        found = probe_gpus(limit=2.5, patience=1)
        assert time.monotonic() - started < 4
        assert found["status"] == "failed"
        assert len(found["gpus"]) == 16
        assert all(not gpu["readable"] and gpu["reason"] for gpu in found["gpus"])
        assert "did not answer" in found["gpus"][0]["reason"]
        assert "not reached" in found["gpus"][15]["reason"]

    def test_in_its_initialisation(self, nvml_standin: Standin) -> None:
        nvml_standin([{}], {"hang.nvmlInitWithFlags": 1})
        found = probe_gpus(limit=1)
        assert found["status"] == "timed_out"
        assert "hangs" in found["message"]
        assert found["gpus"] == []

    def test_a_worker_that_cannot_be_killed_is_not_waited_for(
        self, nvml_standin: Standin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        nvml_standin([{"hang.nvmlDeviceGetName": 1}, {}])
        kill = subprocess.Popen.kill
        monkeypatch.setattr(subprocess.Popen, "kill", lambda _process: None)
        started = time.monotonic()
        try:
            found = probe_gpus(limit=6, patience=1)
            assert time.monotonic() - started < 6
            assert [gpu["readable"] for gpu in found["gpus"]] == [False, True]
            assert gpu_probe._abandoned
        finally:
            for process in gpu_probe._abandoned:
                kill(process)
                process.wait()
            gpu_probe._abandoned.clear()

    def test_a_worker_nobody_reads_ends_itself(self, nvml_standin: Standin) -> None:
        nvml_standin([{"hang.nvmlDeviceGetName": 1}])
        ended = subprocess.run(
            [sys.executable, "-m", "trainwarden.evidence.nvml", "--limit", "1"],
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert ended.returncode < 0


class TestDying:
    def test_a_library_that_crashes_on_a_device(self, nvml_standin: Standin) -> None:
        nvml_standin([{}, {"crash.nvmlDeviceGetPowerUsage": 1}, {}])
        found = probe_gpus()
        assert [gpu["readable"] for gpu in found["gpus"]] == [True, False, True]
        assert "signal 11" in found["gpus"][1]["reason"]

    def test_a_library_that_crashes_at_once(self, nvml_standin: Standin) -> None:
        nvml_standin([{}], {"crash.nvmlInitWithFlags": 1})
        found = probe_gpus()
        assert found["status"] == "failed"
        assert "signal 11" in found["message"]

    def test_a_worker_that_cannot_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gpu_probe, "nowhere", lambda: False)
        monkeypatch.setattr(sys, "executable", "/nonexistent/python")
        found = probe_gpus()
        assert found["status"] == "failed"
        assert "process" in found["message"]


class TestMig:
    INSTANCES = {  # noqa: RUF012
        "mig": 1,
        "utilization_gpu": None,
        "mig0.uuid": "MIG-aaaa",
        "mig0.name": "NVIDIA H100 80GB HBM3 MIG 3g.40gb",
        "mig0.memory_total": 40 * GIB,
        "mig0.memory_used": 11 * GIB,
        "mig0.gpu_instance": 2,
        "mig0.compute_instance": 0,
        "mig3.uuid": "MIG-bbbb",
        "mig3.memory_total": 20 * GIB,
        "mig3.memory_used": 0,
    }

    def test_instances_stand_under_their_device(
        self, nvml_standin: Standin, tmp_path: Path
    ) -> None:
        nvml_standin([self.INSTANCES, {}])
        report = read(tmp_path)
        assert report.status == "ok"
        assert value(report, "gpu.mig") is True
        assert "gpu.utilization" not in quantities(report)
        assert value(report, "gpu.uuid", "GPU 0 MIG 0") == "MIG-aaaa"
        assert value(report, "gpu.memory_used", "GPU 0 MIG 0") == 11 * GIB
        assert value(report, "gpu.memory_total", "GPU 0 MIG 3") == 20 * GIB
        assert value(report, "gpu.mig", "GPU 1") is False
        assert not quantities(report, "GPU 0 MIG 1")

    def test_instances_that_may_not_be_listed(self, nvml_standin: Standin, tmp_path: Path) -> None:
        nvml_standin([{**self.INSTANCES, "fail.nvmlDeviceGetMaxMigDeviceCount": NO_PERMISSION}])
        report = read(tmp_path)
        assert report.status == "ok"
        assert value(report, "gpu.mig") is True
        assert "instances: Insufficient Permissions" in str(seen(report, "gpu.readable").text)


class TestProcesses:
    def test_the_job_and_strangers_are_told_apart(
        self, nvml_standin: Standin, tmp_path: Path
    ) -> None:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        try:
            unseen = 4_194_301
            listed = f"{child.pid}:{34 * GIB},{os.getpid()}:{2 * GIB},{unseen}:-"
            nvml_standin([{"processes": listed}, {"processes": ""}])
            report = read(tmp_path, pids=(child.pid,))
        finally:
            child.communicate(b"\n")
        processes = seen(report, "gpu.processes")
        assert f"pid {child.pid} (job) 34.0 GiB" in str(processes.value)
        assert f"pid {os.getpid()} (stranger) 2.0 GiB" in str(processes.value)
        assert f"pid {unseen} (unknown) memory not told" in str(processes.value)
        assert "not visible from here" in str(processes.text)
        assert value(report, "gpu.job_memory") == 34 * GIB
        assert value(report, "gpu.strangers") == 1
        assert value(report, "gpu.processes", "GPU 1") == "none"
        assert value(report, "gpu.job_memory", "GPU 1") == 0

    def test_pids_of_another_namespace_say_nothing_of_the_job(
        self, nvml_standin: Standin, tmp_path: Path
    ) -> None:
        # In a container NVML tells the host's pids: the job's own look like nobody's.
        nvml_standin([{"processes": f"4194301:{34 * GIB}"}, {"processes": ""}])
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        try:
            report = read(tmp_path, pids=(child.pid,))
        finally:
            child.communicate(b"\n")
        assert "(unknown)" in str(value(report, "gpu.processes"))
        assert {o.subject for o in report.observations if o.quantity == "gpu.job_memory"} == {
            "GPU 1"
        }

    def test_with_an_unknown_job_owners_are_unknown(
        self, nvml_standin: Standin, tmp_path: Path
    ) -> None:
        nvml_standin([{"processes": f"{os.getpid()}:{GIB}"}])
        report = read(tmp_path)
        assert "(unknown)" in str(value(report, "gpu.processes"))
        assert "gpu.strangers" not in quantities(report)

    def test_devices_assigned_to_the_job(self, nvml_standin: Standin, tmp_path: Path) -> None:
        nvml_standin([{}] * 4)
        child = subprocess.Popen(
            [sys.executable, "-c", "print(flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "2,3"},
        )
        try:
            assert child.stdout is not None
            child.stdout.readline()
            report = read(tmp_path, pids=(child.pid,))
        finally:
            child.communicate(b"\n")
        assigned = seen(report, "gpu.assigned", "job")
        assert assigned.value == "2,3"
        assert assigned.place.pid == child.pid
        # All are reported nevertheless.
        assert all(value(report, "gpu.readable", f"GPU {index}") for index in range(4))


class TestNoDriver:
    def test_this_machine_without_the_stand_in(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("NVML_STANDIN", raising=False)
        report = read(tmp_path)
        if report.status == "absent":
            assert report.message.startswith("no NVIDIA GPU to read: ")
            assert report.observations == ()
        else:
            # A machine that has GPUs: whatever they are, they are counted and judged readable.
            assert report.message

    def test_nothing_of_nvidia_costs_no_process(
        self, no_pci: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cache, node = tmp_path / "ld.so.cache", tmp_path / "nvidiactl"
        cache.write_bytes(b"glibc-ld.so.cache1.1 libm.so.6")
        monkeypatch.setattr(gpu_probe, "LOADER_CACHE", cache)
        monkeypatch.setattr(gpu_probe, "DEVICE_NODES", (node,))
        monkeypatch.setattr(sys, "executable", "/nonexistent/python")
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        assert gpu_probe.nowhere()
        assert probe_gpus()["status"] == "absent"
        # Any sign of a driver, and it is asked.
        for sign in (tmp_path / gpu_probe.LIBRARY, node):
            sign.touch()
            assert not gpu_probe.nowhere()
            sign.unlink()
        cache.write_bytes(b"libc.so.6 libnvidia-ml.so.1")
        assert not gpu_probe.nowhere()
        cache.unlink()
        assert not gpu_probe.nowhere()
        cache.write_bytes(b"")
        plug_in(no_pci)
        assert not gpu_probe.nowhere()

    def test_no_library(self, no_pci: Path) -> None:
        status, message = gpu_probe._without_driver(12, "NVML Shared Library Not Found")
        assert status == "absent"
        assert message.startswith("no NVIDIA GPU to read: there is no libnvidia-ml.so.1")
        plug_in(no_pci)
        status, message = gpu_probe._without_driver(12, "NVML Shared Library Not Found")
        assert status == "failed"
        assert "PCI bus" in message

    def test_driver_not_loaded(self, nvml_standin: Standin, tmp_path: Path, no_pci: Path) -> None:
        nvml_standin([{}], {"fail.nvmlInitWithFlags": DRIVER_NOT_LOADED})
        report = read(tmp_path)
        assert report.status == "absent"
        assert report.message.startswith("no NVIDIA GPU to read: the NVIDIA driver is not loaded")
        plug_in(no_pci)
        assert read(tmp_path).status == "failed"

    @pytest.mark.parametrize(("vendor", "kind"), [("0x8086", "0x030000"), ("0x10de", "0x040300")])
    def test_other_devices_on_the_bus_are_no_nvidia_gpu(
        self, no_pci: Path, vendor: str, kind: str
    ) -> None:
        plug_in(no_pci, vendor, kind)
        assert not gpu_probe.nvidia_on_pci()

    def test_driver_without_devices(self, nvml_standin: Standin, tmp_path: Path) -> None:
        nvml_standin([])
        report = read(tmp_path)
        assert report.status == "absent"
        assert "no NVIDIA GPU to read" in report.message
        assert value(report, "gpu.count", None) == 0

    @pytest.mark.parametrize(
        ("code", "advice"),
        [
            (MISMATCH, "differ in version"),
            (NO_PERMISSION, "/dev/nvidia"),
            (LOST, "Xid"),
            (UNKNOWN, "nvidia-smi"),
        ],
    )
    def test_a_driver_that_refuses_says_what_to_do(
        self, nvml_standin: Standin, tmp_path: Path, code: int, advice: str
    ) -> None:
        nvml_standin([{}], {"fail.nvmlInitWithFlags": code})
        report = read(tmp_path)
        assert report.status == "failed"
        assert advice in report.message
        assert report.observations == ()


def test_a_folder_with_modules_named_like_the_standard_librarys_is_harmless(
    nvml_standin: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml_standin([{}])
    for module in ("json", "signal", "string", "pynvml"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('the wrong module')\n")
    monkeypatch.chdir(tmp_path)
    assert probe_gpus()["status"] == "ok"


def test_hostile_names_are_cleaned(nvml_standin: Standin, tmp_path: Path) -> None:
    nvml_standin([{"name": "H100\x1b[31m token=abcdefgh123"}])
    assert value(read(tmp_path), "gpu.name") == "H100 token=[masked]"


def test_a_replay_reads_no_gpu_of_this_machine(nvml_standin: Standin, tmp_path: Path) -> None:
    nvml_standin([{}])
    report = read(tmp_path, live=False)
    assert report.status == "absent"
    assert report.observations == ()
