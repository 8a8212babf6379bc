"""All GPUs as plain data, through a worker that is left behind when the driver does not answer."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import trainwarden
from trainwarden.records.hostile import clean

LIMIT = 7.5
"""Seconds for everything; the source still has to tell whose processes it saw."""
PATIENCE = 3.0
"""Seconds without a word after which the device being read counts as hung."""
NVIDIA = "0x10de"
PCI_DEVICES = Path("/sys/bus/pci/devices")
LIBRARY = "libnvidia-ml.so.1"
LOADER_CACHE = Path("/etc/ld.so.cache")
DEVICE_NODES = tuple(
    map(
        Path,
        (
            "/dev/nvidiactl",
            "/dev/nvidia0",
            "/dev/dxg",
            "/proc/driver/nvidia",
            "/run/opengl-driver/lib",
        ),
    )
)

_abandoned: list[subprocess.Popen[bytes]] = []
"""Killed but perhaps stuck in the driver: kept so that nothing ever waits for them."""


class Silent(Exception):
    """No line came for as long as was allowed; the message says how long that was."""


class Worker:
    """One run of `trainwarden.evidence.nvml`, read line by line against the clock."""

    def __init__(self, skip: set[int], seconds: float) -> None:
        """Start it. Raises OSError where no process can be started."""
        package = Path(trainwarden.__file__).parents[1]
        # The same search path as this process, whichever way that was made; and not started in
        # the current folder, whose modules `-m` would put before the standard library's.
        path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)
        command = [sys.executable, "-m", "trainwarden.evidence.nvml"]
        command += ["--limit", str(int(seconds) + 5)]
        command += ["--skip", ",".join(map(str, sorted(skip)))] if skip else []
        self.process = subprocess.Popen(  # noqa: S603
            command,
            cwd=package,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.stray = "no message"
        """The last line that is none of the worker's own."""

    def lines(self, patience: float, deadline: float) -> Iterator[dict[str, Any]]:
        """What it tells. Raises Silent when a line keeps us waiting longer than `patience`.

        The first line waits for the interpreter, the library and its initialisation, so only
        `deadline` (of `time.monotonic`) bounds it.
        """
        assert self.process.stdout is not None  # noqa: S101
        descriptor = self.process.stdout.fileno()
        rest, waiting_until = b"", deadline
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while True:
                left = min(waiting_until, deadline) - time.monotonic()
                if left <= 0 or not selector.select(left):
                    over = deadline <= waiting_until
                    raise Silent("until time was up" if over else f"for {patience:g} s")
                chunk = os.read(descriptor, 1 << 16)
                if not chunk:
                    return
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    told = self._parse(line)
                    if told is not None:
                        yield told
                waiting_until = time.monotonic() + patience

    def _parse(self, line: bytes) -> dict[str, Any] | None:
        try:
            told = json.loads(line)
        except ValueError:
            told = None
        if isinstance(told, dict):
            return told
        self.stray = clean(line.decode("utf-8", "replace"))
        return None

    def end(self) -> str:
        """Kill it if it still runs, and tell how it ended; never waits for one that is stuck."""
        with suppress(OSError):
            self.process.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()
        try:
            code = self.process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            _abandoned.append(self.process)
            return "it is stuck in the driver and cannot be killed"
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def nvidia_on_pci() -> bool:
    """Whether the PCI bus shows an NVIDIA display or 3D controller (False where unreadable)."""
    for device in PCI_DEVICES.glob("*"):
        with suppress(OSError):
            vendor = (device / "vendor").read_text().strip()
            if vendor == NVIDIA and (device / "class").read_text().startswith("0x03"):
                return True
    return False


def nowhere() -> bool:
    """Whether nothing on this machine speaks of NVIDIA: no library, no device node, no PCI device.

    What costs a process to find out is then known at once. False where in doubt.
    """
    if sys.platform != "linux" or nvidia_on_pci():
        return False
    if any(path.exists() for path in DEVICE_NODES):
        return False
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if any((Path(folder) / LIBRARY).exists() for folder in folders if folder):
        return False
    try:
        return LIBRARY.encode() not in LOADER_CACHE.read_bytes()
    except OSError:
        return False


def _without_driver(code: Any, told: str) -> tuple[str, str]:
    """Status and message where NVML could not be set up."""
    if code == "bindings":
        return "failed", f"GPUs cannot be read: {told}; install nvidia-ml-py beside trainwarden"
    if code in (9, 12):
        what = "the NVIDIA driver is not loaded" if code == 9 else "there is no libnvidia-ml.so.1"
        if nvidia_on_pci():
            return "failed", (
                f"an NVIDIA GPU is on the PCI bus but {what}: load or install the driver, or start "
                "the container with GPU access (--gpus all)"
            )
        return "absent", f"no NVIDIA GPU to read: {what}, and the PCI bus shows no NVIDIA GPU"
    advice = {
        4: "give this user access to /dev/nvidia* (group, or the container's device rules)",
        17: "the operating system or the container blocks access to /dev/nvidia*: allow it",
        18: "library and kernel module of the driver differ in version, as after an upgrade: "
        "reboot, or unload and load the nvidia modules",
        15: "a GPU fell off the bus: look for an Xid in the kernel log, then reboot",
        16: "a GPU waits for a reset (nvidia-smi --gpu-reset), which stops what runs on it",
    }.get(code, "see whether nvidia-smi works, and the kernel log")
    return "failed", f"the NVIDIA driver refused (NVML error {code}: {told}): {advice}"


def _new_device(index: int) -> dict[str, Any]:
    return {
        "index": index,
        "readable": False,
        "reason": "",
        "readings": {},
        "calls": {},
        "absent": {},
        "mig": {},
    }


def _take(devices: dict[int, dict[str, Any]], line: dict[str, Any]) -> None:
    """Put one line of the worker where it belongs."""
    device = devices.setdefault(line["gpu"], _new_device(line["gpu"]))
    if "unreadable" in line:
        device["reason"] = f"{clean(str(line['unreadable']))} (at {line['call']})"
    if "done" in line:
        vital = ("utilization", "memory", "power", "temperature")
        told = any(name in device["readings"] for name in vital)
        device["readable"] = told and not device["reason"]
        if not told and not device["reason"]:
            device["reason"] = "none of utilisation, memory, power and temperature could be read"
    if "name" not in line:
        return
    if "mig" in line:
        device = device["mig"].setdefault(line["mig"], {"readings": {}, "calls": {}, "absent": {}})
    device["calls"][line["name"]] = line["call"]
    if "value" in line:
        value = line["value"]
        device["readings"][line["name"]] = clean(value) if isinstance(value, str) else value
    else:
        device["absent"][line["name"]] = clean(str(line["absent"]))


class _Probe:
    """Rounds of workers, each leaving out what the ones before it read or hung on."""

    def __init__(self, limit: float, patience: float) -> None:
        self.limit, self.patience = limit, patience
        self.started = time.monotonic()
        self.deadline = self.started + limit
        self.head: dict[str, Any] = {"driver": None, "nvml": None, "count": None}
        self.devices: dict[int, dict[str, Any]] = {}
        self.finished: set[int] = set()
        self.current: int | None = None
        """The device being read."""
        self.failure = ("", "")
        """Status and message of the last round that did not come to its end."""

    def round(self) -> bool:
        """Run one worker; true when it came to its end."""
        self.current, greeted = None, False
        try:
            worker = Worker(self.finished, self.deadline - time.monotonic())
        except OSError as error:
            self.failure = ("failed", f"no process could be started to read the GPUs: {error}")
            return False
        silence = ""
        try:
            for line in worker.lines(self.patience, self.deadline):
                greeted = True
                if "error" in line:
                    told = clean(str(line["error"]))
                    self.failure = _without_driver(line.get("code"), told)
                    return False
                if "count" in line:
                    self.head = {key: line.get(key) for key in self.head}
                else:
                    self._device(line)
        except Silent as silent:
            silence = str(silent)
        finally:
            ended = worker.end()
        if silence and not greeted:
            self.failure = (
                "timed_out",
                f"the NVIDIA driver said nothing {silence} while being set up: it hangs; look for "
                "an Xid in the kernel log, a reboot may be needed",
            )
        elif silence:
            self.failure = ("partial", f"did not answer: nothing {silence}")
        else:
            self.failure = ("failed", f"the GPU reader died ({ended}): {worker.stray}")
        return not silence and self.current is None and ended == "exit code 0"

    def _device(self, line: dict[str, Any]) -> None:
        _take(self.devices, line)
        self.current = line["gpu"]
        if "done" in line:
            self.finished.add(line["gpu"])
            self.current = None

    def run(self) -> dict[str, Any]:
        """All rounds, and what they gave."""
        while not self.round():
            if self.head["count"] is None:
                status, message = self.failure
                return {"status": status, "message": message, **self.head, "gpus": []}
            if self.current is None:
                break
            device = self.devices[self.current]
            last = next(reversed(device["calls"].values()), "being opened")
            device["reason"] = f"{self.failure[1]}, after {last}"
            self.finished.add(self.current)
            # What hung once may hang again, and the others want their share of the time.
            self.patience = max(1.0, self.patience / 2)
            if self.deadline - time.monotonic() < self.patience:
                break
        for index in range(self.head["count"]):
            device = self.devices.setdefault(index, _new_device(index))
            if index not in self.finished:
                device["reason"] = f"not reached within {self.limit:g} s ({self.failure[1]})"
        gpus = [self.devices[index] for index in sorted(self.devices)]
        return {**_summary(gpus, self.head["driver"]), **self.head, "gpus": gpus}


def _summary(gpus: list[dict[str, Any]], driver: str | None) -> dict[str, Any]:
    version = f"driver {driver or 'of unknown version'}"
    lost = [gpu for gpu in gpus if not gpu["readable"]]
    if not gpus:
        return {"status": "absent", "message": f"no NVIDIA GPU to read: {version} shows none"}
    if not lost:
        return {"status": "ok", "message": f"{len(gpus)} GPUs read, {version}"}
    which = "; ".join(f"GPU {gpu['index']}: {gpu['reason']}" for gpu in lost)
    return {
        "status": "failed" if len(lost) == len(gpus) else "partial",
        "message": f"{len(lost)} of {len(gpus)} GPUs cannot be read: {which}",
    }


def probe_gpus(limit: float = LIMIT, patience: float = PATIENCE) -> dict[str, Any]:
    """Read every GPU that NVML shows, within `limit` seconds; never raises, never hangs.

    Returns `status` (ok, partial, absent, failed, timed_out), `message`, `driver`, `nvml`,
    `count` (None where NVML did not tell) and `gpus`: for each device `index`, `readable`,
    `reason` (why not), `readings` and `absent` (both by name, see `evidence.nvml.READINGS`),
    `calls` (the NVML function behind each) and `mig` (the same, by instance).

    A device that keeps silent for `patience` seconds is reported as such, and the others are read
    by another worker that leaves it out.
    """
    if nowhere():
        status, message = _without_driver(12, "")
        none: dict[str, Any] = {"driver": None, "nvml": None, "count": None, "gpus": []}
        return {"status": status, "message": message, **none}
    return _Probe(limit, patience).run()
