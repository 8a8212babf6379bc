"""What NVML tells of every GPU, as a worker process that a hung driver may take with it.

`python -m trainwarden.evidence.nvml [--skip 3,5] [--limit SECONDS]` prints one JSON line per thing
read, each flushed at once, so that whoever reads them has all that was told before a call hung:

    {"driver": "550.54.15", "nvml": "12.550.54.15", "count": 8}      or {"error": …, "code": …}
    {"gpu": 0}                                                       a device begins
    {"gpu": 0, "name": "power", "value": 312.4, "call": "nvmlDeviceGetPowerUsage"}
    {"gpu": 0, "name": "ecc_corrected", "absent": "Not Supported", "call": …}
    {"gpu": 0, "mig": 1, "name": "memory", "value": {…}, "call": …}  of an instance of it
    {"gpu": 0, "unreadable": "GPU is lost", "call": …}               it gave up in this call
    {"gpu": 0, "done": true}

Values are in watts, bytes, MHz, degrees Celsius and shares of 1.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

REASONS = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
    0x200: "board_limit",
    0x400: "reliability",
}
"""NVML's clocks event reasons (formerly throttle reasons), as nvidia-smi names them."""

_GONE = {15, 16}  # GPU_IS_LOST, RESET_REQUIRED: nothing more comes from the device.
_NEXT = {2, 13, 25}  # INVALID_ARGUMENT, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH
_UNKNOWN_ULL = 2**64 - 1
_UNKNOWN_UINT = 2**32 - 1

Call = tuple[Any, ...]
"""A function of pynvml by name, and the arguments after the handle."""


class Wanted(NamedTuple):
    """One reading: the calls that give it, the first that is known wins, and how to read it."""

    name: str
    calls: tuple[Call, ...]
    convert: Callable[[Any], Any] = lambda value: value


def _share(percent: int) -> float:
    return percent / 100


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000


def _reasons(mask: int) -> list[str]:
    unknown = mask & ~sum(REASONS)
    named = [name for bit, name in REASONS.items() if mask & bit]
    return named + ([f"0x{unknown:x}"] if unknown else [])


def _processes(found: list[Any]) -> list[dict[str, int | None]]:
    def known(value: int | None, unknown: int) -> int | None:
        return None if value is None or value == unknown else int(value)

    return [
        {
            "pid": int(process.pid),
            "memory": known(process.usedGpuMemory, _UNKNOWN_ULL),
            "gpu_instance": known(getattr(process, "gpuInstanceId", None), _UNKNOWN_UINT),
        }
        for process in found
    ]


IDENTITY = (
    Wanted("name", (("nvmlDeviceGetName",),), str),
    Wanted("uuid", (("nvmlDeviceGetUUID",),), str),
)
MEMORY = (
    # The second version tells what the driver itself reserves apart from what is used.
    Wanted(
        "memory",
        (("nvmlDeviceGetMemoryInfo", 0x2000028), ("nvmlDeviceGetMemoryInfo",)),
        lambda memory: {"used": int(memory.used), "total": int(memory.total)},
    ),
)
READINGS = (
    *IDENTITY,
    Wanted("pci_bus_id", (("nvmlDeviceGetPciInfo",),), lambda info: str(info.busId)),
    Wanted(
        "utilization",
        (("nvmlDeviceGetUtilizationRates",),),
        lambda rates: {"gpu": _share(rates.gpu), "memory": _share(rates.memory)},
    ),
    *MEMORY,
    Wanted("power", (("nvmlDeviceGetPowerUsage",),), _watts),
    Wanted("power_limit", (("nvmlDeviceGetEnforcedPowerLimit",),), _watts),
    Wanted("power_limit_default", (("nvmlDeviceGetPowerManagementDefaultLimit",),), _watts),
    Wanted(
        "power_limit_range",
        (("nvmlDeviceGetPowerManagementLimitConstraints",),),
        lambda limits: [_watts(limit) for limit in limits],
    ),
    Wanted("clock_sm", (("nvmlDeviceGetClockInfo", 1),)),
    Wanted("clock_sm_max", (("nvmlDeviceGetMaxClockInfo", 1),)),
    Wanted("clock_memory", (("nvmlDeviceGetClockInfo", 2),)),
    Wanted("clock_memory_max", (("nvmlDeviceGetMaxClockInfo", 2),)),
    Wanted(
        "throttle",
        (
            ("nvmlDeviceGetCurrentClocksEventReasons",),
            ("nvmlDeviceGetCurrentClocksThrottleReasons",),
        ),
        _reasons,
    ),
    Wanted("temperature", (("nvmlDeviceGetTemperature", 0), ("nvmlDeviceGetTemperatureV", 0))),
    Wanted("temperature_slowdown", (("nvmlDeviceGetTemperatureThreshold", 1),)),
    Wanted("performance_state", (("nvmlDeviceGetPerformanceState",),)),
    Wanted("persistence", (("nvmlDeviceGetPersistenceMode",),), bool),
    Wanted("ecc_corrected", (("nvmlDeviceGetTotalEccErrors", 0, 0),)),
    Wanted("ecc_uncorrected", (("nvmlDeviceGetTotalEccErrors", 1, 0),)),
    Wanted("ecc_corrected_aggregate", (("nvmlDeviceGetTotalEccErrors", 0, 1),)),
    Wanted("ecc_uncorrected_aggregate", (("nvmlDeviceGetTotalEccErrors", 1, 1),)),
    Wanted("retired_single_bit", (("nvmlDeviceGetRetiredPages", 0),), len),
    Wanted("retired_double_bit", (("nvmlDeviceGetRetiredPages", 1),), len),
    Wanted("retired_pending", (("nvmlDeviceGetRetiredPagesPendingStatus",),), bool),
    Wanted(
        "remapped_rows",
        (("nvmlDeviceGetRemappedRows",),),
        lambda rows: {
            "corrected": rows[0],
            "uncorrected": rows[1],
            "pending": bool(rows[2]),
            "failed": bool(rows[3]),
        },
    ),
    Wanted("pcie_gen", (("nvmlDeviceGetCurrPcieLinkGeneration",),)),
    Wanted("pcie_gen_max", (("nvmlDeviceGetMaxPcieLinkGeneration",),)),
    Wanted("pcie_width", (("nvmlDeviceGetCurrPcieLinkWidth",),)),
    Wanted("pcie_width_max", (("nvmlDeviceGetMaxPcieLinkWidth",),)),
    Wanted("pcie_replays", (("nvmlDeviceGetPcieReplayCounter",),)),
    Wanted("processes", (("nvmlDeviceGetComputeRunningProcesses",),), _processes),
)
"""In the order read: what a device is first, what may be slow last."""

INSTANCE_READINGS = (
    *IDENTITY,
    *MEMORY,
    Wanted("gpu_instance", (("nvmlDeviceGetGpuInstanceId",),)),
    Wanted("compute_instance", (("nvmlDeviceGetComputeInstanceId",),)),
    Wanted("processes", (("nvmlDeviceGetComputeRunningProcesses",),), _processes),
)


class Gone(Exception):
    """The device answers no more: it fell off the bus, or waits for a reset."""

    def __init__(self, reason: str, call: str) -> None:
        super().__init__(reason)
        self.reason, self.call = reason, call


def _ask(nvml: Any, handle: Any, calls: tuple[Call, ...]) -> tuple[Any, str]:
    """The answer of the first call that driver and bindings know, and its name.

    Raises NVMLError where the device refuses, Gone where it is lost, AttributeError where these
    bindings have none of the calls.
    """
    for index, (call, *arguments) in enumerate(calls):
        try:
            return getattr(nvml, call)(handle, *arguments), call
        except AttributeError:
            if index == len(calls) - 1:
                raise
        except nvml.NVMLError as error:
            if error.value in _GONE:
                raise Gone(str(error), call) from None
            if error.value not in _NEXT or index == len(calls) - 1:
                raise
    raise AttributeError("no call given")


def _read(nvml: Any, handle: Any, wanted: tuple[Wanted, ...]) -> Iterator[dict[str, Any]]:
    for name, calls, convert in wanted:
        line = {"name": name, "call": calls[0][0]}
        try:
            answer, line["call"] = _ask(nvml, handle, calls)
            line["value"] = convert(answer)
        except Gone:
            raise
        except Exception as error:
            # Whatever one reading does, the others go on.
            line["absent"] = str(error) or type(error).__name__
        yield line


def _links(nvml: Any, handle: Any) -> dict[str, Any]:
    """NVLinks by number, true for those that are up."""
    line: dict[str, Any] = {"name": "nvlinks", "call": "nvmlDeviceGetNvLinkState"}
    links: dict[str, bool] = {}
    for link in range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", 18)):
        try:
            state, _ = _ask(nvml, handle, (("nvmlDeviceGetNvLinkState", link),))
            links[str(link)] = bool(state)
        except nvml.NVMLError as error:
            line["absent"] = str(error)
            if error.value != nvml.NVML_ERROR_NOT_SUPPORTED or link == 0:
                break
    if links:
        line.pop("absent", None)
        line["value"] = links
    return line


def _mig(nvml: Any, handle: Any) -> Iterator[dict[str, Any]]:
    """Whether the device is cut into instances (MIG), and each instance's readings."""
    call = "nvmlDeviceGetMigMode"
    try:
        (current, _pending), _ = _ask(nvml, handle, ((call,),))
    except nvml.NVMLError as error:
        yield {"name": "mig", "absent": str(error), "call": call}
        return
    yield {"name": "mig", "value": bool(current), "call": call}
    if not current:
        return
    most, _ = _ask(nvml, handle, (("nvmlDeviceGetMaxMigDeviceCount",),))
    for index in range(most):
        try:
            instance, _ = _ask(nvml, handle, (("nvmlDeviceGetMigDeviceHandleByIndex", index),))
        except nvml.NVMLError as error:
            if error.value != nvml.NVML_ERROR_NOT_FOUND:
                yield {"mig": index, "absent": str(error), "name": "handle", "call": call}
            continue
        for line in _read(nvml, instance, INSTANCE_READINGS):
            yield {"mig": index, **line}


def read_device(nvml: Any, index: int) -> Iterator[dict[str, Any]]:
    """All lines of one device; whatever goes wrong is told in one of them."""
    yield {"gpu": index}
    call = "nvmlDeviceGetHandleByIndex"
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        call = ""
        for line in _read(nvml, handle, READINGS):
            yield {"gpu": index, **line}
        yield {"gpu": index, **_links(nvml, handle)}
        for line in _mig(nvml, handle):
            yield {"gpu": index, **line}
    except Gone as gone:
        yield {"gpu": index, "unreadable": gone.reason, "call": gone.call}
    except Exception as error:
        told = str(error) or type(error).__name__
        if call:
            yield {"gpu": index, "unreadable": told, "call": call}
        else:
            yield {"gpu": index, "name": "instances", "absent": told, "call": "nvmlDeviceGetMig…"}
    yield {"gpu": index, "done": True}


def read_all(nvml: Any, skip: frozenset[int]) -> Iterator[dict[str, Any]]:
    """The driver's line, then those of each device that is not skipped."""
    try:
        nvml.nvmlInit()
        head: dict[str, Any] = {"count": nvml.nvmlDeviceGetCount()}
    except nvml.NVMLError as error:
        yield {"error": str(error), "code": int(error.value)}
        return
    for name, call in (
        ("driver", "nvmlSystemGetDriverVersion"),
        ("nvml", "nvmlSystemGetNVMLVersion"),
    ):
        try:
            head[name] = str(getattr(nvml, call)())
        except nvml.NVMLError as error:
            head[f"{name}_absent"] = str(error)
    yield head
    for index in range(head["count"]):
        if index not in skip:
            yield from read_device(nvml, index)


def _option(arguments: list[str], name: str, default: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments[:-1] else default


def main(arguments: list[str]) -> int:
    """Print the lines; exit code 0 unless the bindings are missing or the arguments are wrong."""
    # Not waited for by anyone once it hangs, so it ends itself: the default action of SIGALRM
    # reaches a process even inside a library's call.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(max(1, int(_option(arguments, "--limit", "60"))))
    skip = frozenset(int(part) for part in _option(arguments, "--skip", "").split(",") if part)

    def tell(line: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    try:
        import pynvml
    except ImportError as error:
        tell({"error": str(error), "code": "bindings"})
        return 1
    for line in read_all(pynvml, skip):
        tell(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
