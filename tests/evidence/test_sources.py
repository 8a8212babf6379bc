"""The register of sources."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from trainwarden import plugins
from trainwarden.evidence import sources
from trainwarden.evidence.base import Target
from trainwarden.records.job import Job
from trainwarden.records.observation import SourceReport, Trust


def test_every_built_in_source_keeps_the_contract() -> None:
    loaded = {entry.name: sources.load(entry) for entry in sources.BUILTIN}
    for entry in sources.BUILTIN:
        source = loaded[entry.name]
        assert not isinstance(source, sources.Unloadable), entry
        assert source.name == entry.name
        assert source.trust is entry.trust
        assert source.timeout > 0


class Extra:
    """A plug-in's source."""

    name: ClassVar[str] = "extra"
    trust: ClassVar[Trust] = Trust.TRACKER
    timeout: ClassVar[float] = 5.0

    def read(self, target: Target) -> SourceReport:
        return SourceReport(source=self.name, trust=self.trust, status="ok", message=target.job.id)


class Unmakable(Extra):
    def __init__(self) -> None:
        raise RuntimeError("no such service")


def test_sources_of_plug_ins_come_last_and_broken_ones_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offered = plugins.Plugins(sources=(Extra, Extra(), Unmakable), problems=["plug-in x: gone"])
    monkeypatch.setattr(plugins, "plugins", lambda: offered)
    found = sources.builtin_sources()
    target = Target(job=Job(id="job"), root=tmp_path)
    reports = [source.read(target) for source in found[len(sources.BUILTIN) :]]
    assert [(r.source, r.status) for r in reports] == [
        ("extra", "ok"),
        ("extra", "ok"),
        ("plugins", "failed"),
    ]
    assert "plug-in x: gone" in reports[-1].message
    assert "no such service" in reports[-1].message


def test_built_in_ones_come_first_and_in_order() -> None:
    names = [source.name for source in sources.builtin_sources()]
    assert names[: len(sources.BUILTIN)] == [entry.name for entry in sources.BUILTIN]


@pytest.mark.parametrize(
    ("module", "attribute"),
    [("trainwarden.no_such_module", "Source"), ("trainwarden.evidence.base", "NoSuchSource")],
)
def test_one_that_cannot_be_loaded_is_reported(tmp_path: Path, module: str, attribute: str) -> None:
    source = sources.load(sources.Entry("magic", Trust.HARDWARE, module, attribute))
    report = source.read(Target(job=Job(id="job"), root=tmp_path))
    assert (report.source, report.status, report.trust) == ("magic", "failed", Trust.HARDWARE)
    assert "cannot be loaded" in report.message
