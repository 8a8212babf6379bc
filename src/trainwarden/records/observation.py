"""Observations: single things seen, each with the place where it can be seen again."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

from trainwarden.records.base import Moment, Record, Scalar


class Trust(IntEnum):
    """How far a kind of source is believed; where sources disagree the higher one wins."""

    TRACKER = 1
    LOG = 2
    PROCESS = 3
    HARDWARE = 4


class Place(Record):
    """Where in its source an observation stands, so that another reader can look again."""

    file: str | None = None
    offset: int | None = None
    """Byte offset of the beginning of the line (or record) in `file`; of a database, a row's id."""
    line: int | None = None
    device: str | None = None
    pid: int | None = None
    api: str | None = None
    """The call or object that gave the value, e.g. `nvmlDeviceGetPowerUsage`, `/proc/7/status`."""


class Observation(Record):
    """One thing seen.

    `quantity` is canonical and dotted by what it belongs to: metrics of the run stand bare
    (`loss`, `step`, `learning_rate`), the rest is prefixed (`gpu.power`, `process.rss`,
    `disk.free`, `checkpoint.age`, `host.memory_available`, `kernel.xid`, `log.ended`).
    `stat` tells what of the quantity the value is (`last`, `first`, `min`, `max`, `median`,
    `count`, `growth`). `subject` tells whose it is where there are several (`GPU 3`, `pid 71`).
    """

    id: str = ""
    quantity: str
    stat: str = "last"
    subject: str | None = None
    value: Scalar
    unit: str | None = None
    step: int | None = None
    time: Moment | None = None
    source: str
    trust: Trust
    place: Place = Place()
    text: str | None = None
    """A cleaned, cut and masked excerpt of what was read."""


class SourceReport(Record):
    """What one source gave in one reading; a source that could not be read says why."""

    source: str
    trust: Trust
    status: Literal["ok", "absent", "partial", "failed", "timed_out"]
    message: str = ""
    seconds: float = 0.0
    observations: tuple[Observation, ...] = ()


class Disagreement(Record):
    """Two sources that say different things of one quantity; the lower-level one is believed."""

    quantity: str
    believed: str
    """Observation id of the source with the higher trust."""
    doubted: str
    remark: str
