"""Compiles the stand-in NVML library and writes the file that sets it up."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "evidence" / "nvml_standin" / "nvml.c"
GIB = 2**30

# Codes of nvmlReturn_t, for faults.
INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED = 2, 3, 4, 9
FUNCTION_NOT_FOUND, LOST, RESET_REQUIRED, MISMATCH, UNKNOWN = 13, 15, 16, 18, 999

BUSY: dict[str, Any] = {
    "name": "NVIDIA H100 80GB HBM3",
    "utilization_gpu": 97,
    "utilization_memory": 54,
    "memory_total": 80 * GIB,
    "memory_used": 61 * GIB,
    "memory_reserved": GIB // 2,
    "power": 612_000,
    "power_limit": 700_000,
    "power_limit_default": 700_000,
    "power_limit_min": 200_000,
    "power_limit_max": 700_000,
    "clock_sm": 1755,
    "clock_sm_max": 1980,
    "clock_memory": 2619,
    "clock_memory_max": 2619,
    "clocks_event_reasons": 0,
    "temperature": 58,
    "temperature_slowdown": 87,
    "performance_state": 0,
    "persistence": 1,
    "ecc_corrected_volatile": 0,
    "ecc_uncorrected_volatile": 0,
    "ecc_corrected_aggregate": 0,
    "ecc_uncorrected_aggregate": 0,
    "remapped_corrected": 0,
    "remapped_uncorrected": 0,
    "remap_pending": 0,
    "remap_failed": 0,
    "pcie_gen": 5,
    "pcie_gen_max": 5,
    "pcie_width": 16,
    "pcie_width_max": 16,
    "pcie_replays": 0,
    "nvlinks": "1" * 18,
    "processes": "",
    "mig": 0,
}
"""A healthy device at work, in NVML's own units; retired pages are not supported, as on H100."""

IDLE: dict[str, Any] = {
    **BUSY,
    "utilization_gpu": 0,
    "utilization_memory": 0,
    "memory_used": 0,
    "power": 70_000,
    "clock_sm": 345,
    "clocks_event_reasons": 1,
    "temperature": 31,
}


def compiler() -> str | None:
    """The machine's C compiler, if it has one."""
    named = os.environ.get("CC")
    return next(
        (found for cc in (named, "cc", "gcc", "clang") if cc and (found := shutil.which(cc))), None
    )


def build(folder: Path) -> Path:
    """Compile the library into `folder`; returns its path. Raises CalledProcessError."""
    library = folder / "libnvidia-ml.so.1"
    command = [compiler() or "cc", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", str(library), str(SOURCE)], check=True)
    return library


def write(
    path: Path, devices: Iterable[Mapping[str, Any]], system: Mapping[str, Any] | None = None
) -> Path:
    """Write a setup: what each device adds to `BUSY` (None takes a key away), and the faults.

    Keys are those that nvml.c reads, e.g. `{"power": 90_000, "hang.nvmlDeviceGetTemperature": 1,
    "mig0.uuid": "MIG-…"}`; `system` holds those of no device: `{"fail.nvmlInitWithFlags": 18}`.
    """
    devices = list(devices)
    lines: dict[str, Any] = {"driver": "550.54.15", "nvml": "12.550.54.15", "count": len(devices)}
    lines.update(system or {})
    for index, changes in enumerate(devices):
        own = {"uuid": f"GPU-{index:08x}-0000", "pci_bus_id": f"00000000:{index + 1:02X}:00.0"}
        for key, value in {**BUSY, **own, **changes}.items():
            if value is not None:
                lines[f"{index}.{key}"] = value
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return path
