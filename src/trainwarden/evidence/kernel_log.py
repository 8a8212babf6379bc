"""Lines of the kernel's log to the events that can end or harm a training run: pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cache
from typing import Any

MAX_LINE = 2000


@dataclass(frozen=True)
class KernelEvent:
    """One line that matters. `text` is the kernel's message, raw: clean it before it is shown."""

    kind: str
    """The observation's quantity: kernel.xid, kernel.oom_kill, kernel.io_error, …"""
    value: int | str
    text: str
    time: float | None = None
    """Unix seconds, where the line's stamp and the boot time allow."""
    pid: int | None = None
    comm: str | None = None
    device: str | None = None
    """PCI address, block device or file system."""


# Records of /dev/kmsg: priority, sequence number, microseconds since boot, flags; message.
_KMSG = re.compile(r"(\d+),\d+,(\d+),[^;]{0,100};(.*)", re.S)
_DMESG = re.compile(r"(?:<(\d+)>)?\[ *(\d+\.\d+)\](?:\[ *[TC]\d+\])? ?(.*)", re.S)
_DMESG_T = re.compile(r"\[(\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4})\] ?(.*)", re.S)
_UNIX = re.compile(r"(\d{9,11}\.\d+) \S+ kernel: ?(.*)", re.S)
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?) \S+ kernel: ?(.*)", re.S
)
_SYSLOG = re.compile(r"\w{3} [ \d]\d \d\d:\d\d:\d\d \S+ kernel: ?(.*)", re.S)


def split_stamp(line: str, boot_time: float | None) -> tuple[float | None, str] | None:
    """Unix seconds (where known) and message of a line; None for what the kernel did not write.

    Read are the forms of /dev/kmsg, `dmesg`, `dmesg -T` and journalctl or syslog.
    """

    def since_boot(seconds: float) -> float | None:
        return None if boot_time is None else boot_time + seconds

    if match := _KMSG.fullmatch(line):
        # Programs can write to /dev/kmsg too; what they write has a facility above 0.
        return (since_boot(int(match[2]) / 1e6), match[3]) if int(match[1]) >> 3 == 0 else None
    if match := _DMESG.fullmatch(line):
        if match[1] and int(match[1]) >> 3:
            return None
        return since_boot(float(match[2])), match[3]
    if match := _DMESG_T.fullmatch(line):
        return _moment(match[1], "%a %b %d %H:%M:%S %Y"), match[2]
    if match := _UNIX.fullmatch(line):
        return float(match[1]), _unstamped(match[2])
    if match := _ISO.fullmatch(line):
        text = match[1].replace(" ", "T").replace(",", ".").replace("Z", "+00:00")
        text = re.sub(r"\.\d+", "", re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text))
        try:
            return datetime.fromisoformat(text).timestamp(), _unstamped(match[2])
        except ValueError:
            return None, _unstamped(match[2])
    if match := _SYSLOG.fullmatch(line):
        return None, _unstamped(match[1])
    return None


def _unstamped(message: str) -> str:
    match = _DMESG.fullmatch(message)
    return match[3] if match else message


def _moment(text: str, form: str) -> float | None:
    try:
        return datetime.strptime(text, form).astimezone(timezone.utc).timestamp()
    except (ValueError, OverflowError):
        return None


def parse_kernel_log(
    lines: Iterable[str], boot_time: float | None, since: float | None = None
) -> list[KernelEvent]:
    """Events in a kernel log, in its order.

    `boot_time` and `since` are Unix seconds; lines stamped before `since` are left out, those
    whose time is not known are kept. A kill that the kernel tells in several lines is one event.
    """
    events: list[KernelEvent] = []
    killed: dict[int | None, int] = {}
    for line in lines:
        if line[:1] in (" ", "\t"):  # a record's key=value annotations
            continue
        stamped = split_stamp(line[:MAX_LINE].rstrip("\n"), boot_time)
        if stamped is None:
            continue
        time, message = stamped
        if since is not None and time is not None and time < since:
            continue
        if not _WORTH.search(message):
            continue
        for pattern, make in _rules():
            if match := pattern.match(message):
                event = make(match, message)
                break
        else:
            continue
        if event is None:
            continue
        event = replace(event, time=time)
        same = killed.get(event.pid) if event.kind == "kernel.oom_kill" else None
        if same is not None and _one_kill(events[same], event):
            # Of its lines, this one tells how much memory the process had.
            if "Killed process" in event.text:
                events[same] = event
            continue
        if event.kind == "kernel.oom_kill":
            killed[event.pid] = len(events)
        events.append(event)
    return events


def _one_kill(first: KernelEvent, then: KernelEvent) -> bool:
    """Whether two lines on one pid tell of one kill: pids are used again, but not so soon."""
    return first.time is None or then.time is None or then.time - first.time < 60


Make = Callable[["re.Match[str]", str], "KernelEvent | None"]


def _pid(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and len(text) < 10 else None


def _xid(match: re.Match[str], text: str) -> KernelEvent:
    return KernelEvent(
        "kernel.xid", int(match["xid"]), text, pid=_pid(match["pid"]), comm=match["comm"],
        device=match["pci"],
    )  # fmt: skip


def _killed(match: re.Match[str], text: str) -> KernelEvent:
    pid = int(match["pid"])
    return KernelEvent("kernel.oom_kill", pid, text, pid=pid, comm=match["comm"])


def _io(match: re.Match[str], text: str) -> KernelEvent | None:
    device = match["dev"]
    # Drives without a medium report errors whenever something looks at them.
    if re.fullmatch(r"(fd|sr|loop)\d+", device):
        return None
    return KernelEvent("kernel.io_error", device, text, device=device)


def _named(kind: str, value: str | None = None) -> Make:
    """An event whose value is `value`, or else the device or name the pattern found."""

    def make(match: re.Match[str], text: str) -> KernelEvent:
        groups: dict[str, Any] = match.groupdict()
        device, comm, pid = groups.get("dev"), groups.get("comm"), _pid(groups.get("pid"))
        said = value or (pid if pid is not None else device or comm or "yes")
        return KernelEvent(kind, said, text, pid=pid, comm=comm, device=device)

    return make


_DEV = r"(?P<dev>[\w.:!/-]{1,60})"
# What the kernel itself prints stands at the beginning of a message; the same words further in
# are a quotation (of a command name, say) and are not matched.
_PATTERNS: tuple[tuple[str, Make], ...] = (
    (
        r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]+)\): (?P<xid>\d{1,4})\b"
        r"(?:, pid='?(?P<pid>\d+|<unknown>)'?)?(?:, name=(?P<comm>[^,]{1,60}))?",
        _xid,
    ),
    (
        r"NVRM: (?:(?:The NVIDIA )?GPU (?:at )?(?:PCI:)?"
        r"(?P<dev>[0-9a-fA-F:]{4,13}[0-9a-fA-F.]{2,4}):? "
        r".{0,200}?)?(?:GPU has )?fallen off the bus",
        _named("kernel.gpu_lost"),
    ),
    (
        r"(?:(?:Memory cgroup )?[Oo]ut of memory(?: \([^)]*\))?: )?"
        r"Killed process (?P<pid>\d{1,9}),? \((?P<comm>.{0,64}?)\)",
        _killed,
    ),
    (
        r"(?:Memory cgroup out of memory|Out of memory): Kill process (?P<pid>\d{1,9}) "
        r"\((?P<comm>.{0,64}?)\) score",
        _killed,
    ),
    (
        r"oom-kill:constraint=.*?,task=(?P<comm>.{0,64}?),pid=(?P<pid>\d{1,9}),uid=",
        _killed,
    ),
    (r"oom_reaper: reaped process (?P<pid>\d{1,9}) \((?P<comm>.{0,64}?)\)", _killed),
    (
        r"(?:blk_update_request: |print_req_error: )?"
        rf"(?:I/O error|critical (?:medium|target|space allocation) error), dev {_DEV},? ",
        _io,
    ),
    (rf"Buffer I/O error on (?:dev(?:ice)? ){_DEV}, ", _io),
    (rf"EXT[234]-fs error \(device {_DEV}\)", _io),
    (rf"EXT[234]-fs \({_DEV}\): .*(?:I/O error|failed to convert|Delayed block alloc)", _io),
    (rf"JBD2: .*(?:I/O error|Error -?\d+).*? (?:on|for) {_DEV}", _io),
    (rf"XFS \({_DEV}\): .*(?:I/O error|[Cc]orruption (?:detected|of in-memory))", _io),
    (rf"BTRFS (?:error|critical) \(device {_DEV}", _io),
    (rf"nvme {_DEV}: .*(?:timeout|controller is down|I/O Error|Device not ready)", _io),
    (rf"nfs: server {_DEV} not responding", _named("kernel.io_error")),
    (
        r"(?:Lustre|LustreError): .*?(?P<dev>[\w.-]{1,60}): Connection to .* was lost",
        _named("kernel.io_error"),
    ),
    (
        rf"EXT[234]-fs (?:error )?\((?:device )?{_DEV}\): Remounting filesystem read-only",
        _named("kernel.read_only"),
    ),
    (
        rf"XFS \({_DEV}\): .*(?:Shutting down filesystem|[Ff]ilesystem has been shut down)",
        _named("kernel.read_only"),
    ),
    (rf"BTRFS.*\(device {_DEV}.*\): forced readonly", _named("kernel.read_only")),
    (
        r"(?:NMI )?(?:watchdog: )?(?:BUG: )?soft lockup - CPU#\d+ stuck for \d+s! "
        r"\[(?P<comm>[^\]]{0,64}?):(?P<pid>\d{1,9})\]",
        _named("kernel.lockup", "soft lockup"),
    ),
    (
        r"(?:NMI )?watchdog: Watchdog detected hard LOCKUP on cpu",
        _named("kernel.lockup", "hard lockup"),
    ),
    (
        r"INFO: task (?P<comm>.{0,64}):(?P<pid>\d{1,9}) blocked for more than \d+ seconds",
        _named("kernel.lockup", "hung task"),
    ),
    (
        r"(?:rcu: )?INFO: rcu_\w+ (?:self-)?detected (?:expedited )?stalls? on",
        _named("kernel.lockup", "rcu stall"),
    ),
    (r"Kernel panic - not syncing", _named("kernel.lockup", "panic")),
    (
        r"(?P<comm>[^\[\]]{1,64})\[(?P<pid>\d{1,9})\]: segfault at [0-9a-f]+ ip ",
        _named("kernel.segfault"),
    ),
    (
        r"traps: (?P<comm>[^\[\]]{1,64})\[(?P<pid>\d{1,9})\] "
        r"(?:general protection|trap [\w ]+|invalid opcode)",
        _named("kernel.segfault"),
    ),
    (
        r"mce: \[Hardware Error\]: (?:Machine check|CPU \d+: Machine Check)",
        _named("kernel.hardware_error", "machine check"),
    ),
    (
        r"EDAC [\w ]*MC\d+: \d+ UE ",
        _named("kernel.hardware_error", "uncorrected memory error"),
    ),
    (r"EDAC [\w ]*MC\d+: \d+ CE ", _named("kernel.hardware_error", "corrected memory error")),
    (
        r"(?:\{\d+\})?\[Hardware Error\]: event severity: (?:fatal|recoverable)",
        _named("kernel.hardware_error", "uncorrected hardware error"),
    ),
    (
        r"(?:Memory failure: 0x[0-9a-f]+: (?:recovery action|Killing|Sending SIGBUS))",
        _named("kernel.hardware_error", "memory page failed"),
    ),
    (
        rf"(?:pcieport |nvidia |mlx5_core |nvme )?{_DEV}: (?:AER: )?PCIe Bus Error: "
        r"severity=Uncorrect",
        _named("kernel.hardware_error", "uncorrected PCIe error"),
    ),
    (
        rf"mlx5_core {_DEV}(?: \S+)?: (?:Port: \d+ Link DOWN|Link down)",
        _named("kernel.link_down"),
    ),
)

# Words of which every rule has one: most lines have none, and the rules are dear to compile.
_WORTH = re.compile(
    r"Xid|fallen off|[Kk]ill|oom|[Ee]rror|EXT\d|JBD2|XFS|BTRFS|nvme|nfs:|Lustre|lock ?up|LOCKUP"
    r"|blocked for|stall|panic|segfault|traps:|EDAC|Memory failure|mlx5"
)


@cache
def _rules() -> tuple[tuple[re.Pattern[str], Make], ...]:
    return tuple((re.compile(pattern), make) for pattern, make in _PATTERNS)
