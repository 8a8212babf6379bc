"""Every GPU of the machine as observations: not only those expected to be busy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar

from trainwarden.evidence.base import Target, absent
from trainwarden.evidence.gpu_probe import probe_gpus
from trainwarden.evidence.gpu_processes import Owners, assignments
from trainwarden.records.base import Scalar
from trainwarden.records.hostile import clean
from trainwarden.records.observation import Observation, Place, SourceReport, Trust

__all__ = ["GpuSource", "idle_power", "power_share", "probe_gpus"]

IDLE_POWER = "gpu.idle_power"
"""Key of a sample row (`Target.earlier`): model name to the lowest idle power seen, in watts."""

PLAIN: dict[str, tuple[str, str | None]] = {
    "name": ("gpu.name", None),
    "uuid": ("gpu.uuid", None),
    "pci_bus_id": ("gpu.pci_bus_id", None),
    "power": ("gpu.power", "W"),
    "power_limit": ("gpu.power_limit", "W"),
    "power_limit_default": ("gpu.power_limit_default", "W"),
    "clock_sm": ("gpu.clock_sm", "MHz"),
    "clock_sm_max": ("gpu.clock_sm_max", "MHz"),
    "clock_memory": ("gpu.clock_memory", "MHz"),
    "clock_memory_max": ("gpu.clock_memory_max", "MHz"),
    "temperature": ("gpu.temperature", "celsius"),
    "temperature_slowdown": ("gpu.temperature_slowdown", "celsius"),
    "performance_state": ("gpu.performance_state", None),
    "persistence": ("gpu.persistence", None),
    "retired_pending": ("gpu.retire_pending", None),
    "pcie_gen": ("gpu.pcie_gen", None),
    "pcie_gen_max": ("gpu.pcie_gen_max", None),
    "pcie_width": ("gpu.pcie_width", "lanes"),
    "pcie_width_max": ("gpu.pcie_width_max", "lanes"),
    "pcie_replays": ("gpu.pcie_replays", None),
    "mig": ("gpu.mig", None),
}
"""Readings that are one value: their canonical quantity and unit."""

ECC = {
    "ecc_corrected": ("gpu.ecc_corrected", "since the driver was loaded"),
    "ecc_uncorrected": ("gpu.ecc_uncorrected", "since the driver was loaded"),
    "ecc_corrected_aggregate": ("gpu.ecc_corrected_aggregate", "over the device's life"),
    "ecc_uncorrected_aggregate": ("gpu.ecc_uncorrected_aggregate", "over the device's life"),
}


def is_idle(readings: Mapping[str, Any]) -> bool:
    """Whether the device does nothing at all, so that its power is an idle power."""
    busy = readings.get("utilization", {}).get("gpu")
    clocks_idle = "gpu_idle" in readings.get("throttle", ())
    unused = readings.get("processes") == []
    return bool(busy == 0 and (clocks_idle or unused))


def idle_power(
    gpus: Iterable[Mapping[str, Any]], earlier: Iterable[Mapping[str, Any]] = ()
) -> dict[str, float]:
    """Lowest idle power known by model name, in watts: of idle devices now, and of past samples.

    A row of `earlier` holds them under `IDLE_POWER`, as `collect.sample_row` writes it.
    """
    lowest: dict[str, float] = {}

    def note(model: object, watts: object) -> None:
        if isinstance(model, str) and isinstance(watts, int | float) and watts > 0:
            lowest[model] = min(float(watts), lowest.get(model, float("inf")))

    for row in earlier:
        kept = row.get(IDLE_POWER)
        for model, watts in kept.items() if isinstance(kept, Mapping) else ():
            note(model, watts)
    for gpu in gpus:
        if is_idle(gpu["readings"]):
            note(gpu["readings"].get("name"), gpu["readings"].get("power"))
    return lowest


def power_share(power: float, limit: float, idle: float | None) -> float:
    """Where `power` stands between idle (0 where not known) and the enforced limit; at least 0.

    All in watts. May exceed 1, since power overshoots its limit for moments.
    """
    floor = idle if idle is not None and idle < limit else 0.0
    return max(0.0, (power - floor) / (limit - floor)) if limit > floor else 0.0


class GpuSource:
    """All GPUs that NVML shows, with who uses them."""

    name: ClassVar[str] = "gpu"
    trust: ClassVar[Trust] = Trust.HARDWARE
    timeout: ClassVar[float] = 10.0

    def read(self, target: Target) -> SourceReport:
        """Look once; every trouble is told in the report."""
        if not target.live:
            return absent(self, "a replay: this machine's GPUs are not those of the run")
        found = probe_gpus()
        seen = list(self._observe(found, target)) if found["count"] is not None else []
        return SourceReport(
            source=self.name,
            trust=self.trust,
            status=found["status"],
            message=found["message"],
            observations=tuple(seen),
        )

    def _observe(self, found: Mapping[str, Any], target: Target) -> Iterator[Observation]:
        now = target.now()
        gpus: list[dict[str, Any]] = found["gpus"]
        driver = f"driver {found['driver'] or 'unknown'}, NVML {found['nvml'] or 'unknown'}"
        yield Observation(
            quantity="gpu.count",
            value=found["count"],
            time=now,
            source=self.name,
            trust=self.trust,
            place=Place(api="nvmlDeviceGetCount"),
            text=driver,
        )
        if not gpus:
            return
        owners = Owners(target)
        for value, pids in assignments(owners.job):
            yield Observation(
                quantity="gpu.assigned",
                subject="job",
                value=value,
                time=now,
                source=self.name,
                trust=Trust.PROCESS,
                place=Place(pid=pids[0], api=f"/proc/{pids[0]}/environ"),
                text=f"CUDA_VISIBLE_DEVICES={value} of pid {', '.join(map(str, pids[:8]))}; "
                "CUDA may number devices in another order than NVML",
            )
        idle = idle_power(gpus, target.earlier)
        for gpu in gpus:
            yield from _Device(gpu, now).observations(owners, idle)


class _Device:
    """One device's (or instance's) readings on their way to observations."""

    def __init__(self, gpu: Mapping[str, Any], now: datetime, instance: int | None = None) -> None:
        self.gpu, self.now, self.instance = gpu, now, instance
        data = gpu if instance is None else gpu["mig"][instance]
        self.readings: Mapping[str, Any] = data["readings"]
        self.calls: Mapping[str, str] = data["calls"]
        self.absent: Mapping[str, str] = data["absent"]
        self.subject = f"GPU {gpu['index']}" + ("" if instance is None else f" MIG {instance}")

    def _see(
        self,
        reading: str,
        quantity: str,
        value: Scalar,
        unit: str | None = None,
        text: str | None = None,
    ) -> Observation:
        return Observation(
            quantity=quantity,
            subject=self.subject,
            value=value,
            unit=unit,
            time=self.now,
            source=GpuSource.name,
            trust=GpuSource.trust,
            place=Place(
                device=str(self.readings.get("uuid", self.subject)), api=self.calls.get(reading)
            ),
            text=text,
        )

    def observations(self, owners: Owners, idle: Mapping[str, float]) -> Iterator[Observation]:
        """All of the device, then all of its instances."""
        if self.instance is None:
            yield self._readable()
        for reading, (quantity, unit) in PLAIN.items():
            if reading in self.readings:
                yield self._see(reading, quantity, self.readings[reading], unit)
        yield from self._load()
        yield from self._power(idle)
        yield from self._health()
        yield from self._users(owners)
        if self.instance is None:
            for instance in sorted(self.gpu["mig"]):
                yield from _Device(self.gpu, self.now, instance).observations(owners, idle)

    def _readable(self) -> Observation:
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.absent.items():
            by_reason.setdefault(reason, []).append(name)
        untold = "; ".join(f"{', '.join(names)}: {why}" for why, names in by_reason.items())
        text = self.gpu["reason"] or (f"not told: {untold}" if untold else "all readings told")
        return self._see("uuid", "gpu.readable", self.gpu["readable"], text=clean(text, 600))

    def _load(self) -> Iterator[Observation]:
        if rates := self.readings.get("utilization"):
            weak = "share of time with any kernel running: full even where ranks only wait"
            yield self._see("utilization", "gpu.utilization", rates["gpu"], "ratio", weak)
            yield self._see("utilization", "gpu.memory_utilization", rates["memory"], "ratio")
        if memory := self.readings.get("memory"):
            yield self._see("memory", "gpu.memory_used", memory["used"], "bytes")
            yield self._see("memory", "gpu.memory_total", memory["total"], "bytes")

    def _power(self, idle_by_model: Mapping[str, float]) -> Iterator[Observation]:
        power, limit = self.readings.get("power"), self.readings.get("power_limit")
        if power is not None and limit:
            idle = idle_by_model.get(self.readings.get("name", ""))
            basis = f"{power:g} W of {limit:g} W enforced, " + (
                "as the share of the limit itself, since no device of this model was seen idle"
                if idle is None or idle >= limit
                else f"above {idle:g} W, the lowest power seen of an idle device of this model"
            )
            share = round(power_share(power, limit, idle), 4)
            yield self._see("power", "gpu.power_share", share, "ratio", basis)
            if idle is not None:
                lowest = "lowest seen of an idle device of this model"
                yield self._see("power", "gpu.idle_power", idle, "W", lowest)
        if "throttle" in self.readings:
            reasons = self.readings["throttle"]
            text = (
                "gpu_idle holds nothing down: there is no work" if "gpu_idle" in reasons else None
            )
            value = ",".join(reasons) or "none"
            yield self._see("throttle", "gpu.throttle", value, text=text)

    def _health(self) -> Iterator[Observation]:
        for reading, (quantity, span) in ECC.items():
            if reading in self.readings:
                yield self._see(reading, quantity, self.readings[reading], "errors", span)
        causes = [self.readings.get(f"retired_{cause}_bit") for cause in ("single", "double")]
        if len(known := [cause for cause in causes if cause is not None]) == 2:
            causes_text = (
                f"{known[0]} for repeated single-bit errors, {known[1]} for double-bit errors"
            )
            yield self._see(
                "retired_double_bit", "gpu.retired_pages", sum(known), "pages", causes_text
            )
        if rows := self.readings.get("remapped_rows"):
            total = rows["corrected"] + rows["uncorrected"]
            rows_text = (
                f"{rows['corrected']} for corrected errors, "
                f"{rows['uncorrected']} for uncorrected errors"
            )
            yield self._see("remapped_rows", "gpu.remapped_rows", total, "rows", rows_text)
            yield self._see("remapped_rows", "gpu.remap_pending", rows["pending"])
            yield self._see("remapped_rows", "gpu.remap_failed", rows["failed"])
        if links := self.readings.get("nvlinks"):
            down = [number for number, up in links.items() if not up]
            value = f"{len(links) - len(down)}/{len(links)} up"
            text = f"down: link {', '.join(down)}" if down else None
            yield self._see("nvlinks", "gpu.nvlink", value, text=text)

    def _users(self, owners: Owners) -> Iterator[Observation]:
        processes = self.readings.get("processes")
        if processes is None:
            return
        described = [owners.describe(process) for process in processes]
        yield self._see(
            "processes",
            "gpu.processes",
            ", ".join(one.brief for one in described) or "none",
            text=clean("; ".join(one.full for one in described), 600) or None,
        )
        ours = [p["memory"] for p, one in zip(processes, described, strict=True) if one.of_job]
        others = [one for one in described if one.of_job is False]
        untold = any(one.of_job is None for one in described)
        # A process of unknown owner may be the job's, so that none seen of it means nothing.
        if owners.job and None not in ours and (ours or not untold):
            memory = sum(ours)
            yield self._see(
                "processes", "gpu.job_memory", memory, "bytes", "of the job's processes"
            )
            yield self._see("processes", "gpu.strangers", len(others), "processes")
