"""Where sources register: the built-in ones by name, others through plugins."""

from __future__ import annotations

import importlib
import sys
from typing import Any, ClassVar, NamedTuple

from trainwarden.evidence.base import Source, Target
from trainwarden.records.hostile import clean
from trainwarden.records.observation import SourceReport, Trust


class Entry(NamedTuple):
    """A source that is only imported when it is needed."""

    name: str
    trust: Trust
    module: str
    attribute: str


BUILTIN = (
    Entry("log", Trust.LOG, "trainwarden.evidence.logs", "LogSource"),
    Entry("process", Trust.PROCESS, "trainwarden.evidence.processes", "ProcessSource"),
    Entry("gpu", Trust.HARDWARE, "trainwarden.evidence.gpu", "GpuSource"),
    Entry("host", Trust.HARDWARE, "trainwarden.evidence.host", "HostSource"),
    Entry("storage", Trust.PROCESS, "trainwarden.evidence.storage", "StorageSource"),
    Entry("kernel", Trust.HARDWARE, "trainwarden.evidence.kernel", "KernelSource"),
)


class Unloadable:
    """Stands where a source could not be loaded, so that its absence is reported."""

    name: ClassVar[str] = "source"
    trust: ClassVar[Trust] = Trust.TRACKER
    timeout: ClassVar[float] = 1.0

    def __init__(self, name: str, trust: Trust, why: str) -> None:
        self._report = SourceReport(
            source=name,
            trust=trust,
            status="failed",
            message=clean(f"cannot be loaded: {why}", 1_000),
        )

    def read(self, target: Target) -> SourceReport:  # noqa: ARG002
        """Say why there is nothing."""
        return self._report


def load(entry: Entry) -> Source:
    """Import and make a source; one that cannot be is replaced by what reports so."""
    try:
        module = importlib.import_module(entry.module)
        source: Source = getattr(module, entry.attribute)()
    except Exception as error:
        # A missing library costs this source, never the watch.
        return Unloadable(entry.name, entry.trust, f"{type(error).__name__}: {error}")
    return source


def builtin_sources() -> list[Source]:
    """The sources of every watch, in the order of their reports: built-in ones, then plugins'."""
    return [*(load(entry) for entry in BUILTIN), *plugin_sources()]


def plugin_sources() -> list[Source]:
    """What other packages add through the hook `trainwarden_sources`, as classes or instances.

    Plug-ins that could not be used are reported by one more source, `plugins`.
    """
    from trainwarden.plugins import plugins

    found, problems = plugins(), list(plugins().problems)
    sources: list[Source] = []
    for offered in found.sources:
        try:
            sources.append(offered() if isinstance(offered, type) else offered)
        except Exception as error:
            problems.append(f"source {offered.__name__}: {type(error).__name__}: {error}")
    if problems:
        sources.append(Unloadable("plugins", Trust.TRACKER, "; ".join(problems)))
    return sources


def own_sample(report: SourceReport) -> dict[str, Any]:
    """What the source of this report keeps for its next session.

    It is asked through a function `sample_row(report)` of its class or module, where it has one.
    """
    for entry in BUILTIN:
        module = sys.modules.get(entry.module) if entry.name == report.source else None
        for owner in (getattr(module, entry.attribute, None), module):
            if sampler := getattr(owner, "sample_row", None):
                row: dict[str, Any] = sampler(report)
                return row
    return {}
