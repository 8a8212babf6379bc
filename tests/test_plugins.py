from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pluggy
import pytest

from trainwarden import hookspecs, plugins
from trainwarden.hookspecs import hookimpl
from trainwarden.metrics.formats import Line, Pair, Row, builtin_formats
from trainwarden.metrics.reader import LogReader


class Shouting:
    """A format of another package: `LOSS!2.5!`."""

    name = "shouting"
    hints = ("loss!",)
    exclusive = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        del memory
        if not line.text.startswith("LOSS!"):
            return None
        return Row(self.name, [Pair("loss", float(line.text.split("!")[1]))])


class Good:
    @hookimpl
    def trainwarden_log_formats(self) -> list[Any]:
        return [Shouting()]

    @hookimpl
    def trainwarden_detectors(self) -> list[Any]:
        return [len]


class Broken:
    @hookimpl
    def trainwarden_log_formats(self) -> list[Any]:
        raise RuntimeError("no such thing")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    plugins.plugins.cache_clear()
    yield
    plugins.plugins.cache_clear()


def test_a_broken_plugin_is_reported_and_spoils_no_other() -> None:
    manager = pluggy.PluginManager("trainwarden")
    manager.add_hookspecs(hookspecs)
    manager.register(Broken(), name="broken")
    manager.register(Good(), name="good")
    found = plugins.gather(manager, [])
    assert [format_.name for format_ in found.formats] == ["shouting"]
    assert found.detectors == (len,)
    assert found.sources == ()
    assert found.problems == ["plug-in broken: log_formats: RuntimeError: no such thing"]


def test_entry_points_are_loaded_and_a_missing_module_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> None:
        raise ImportError("no module named nowhere")

    points = [
        SimpleNamespace(name="nowhere", load=missing),
        SimpleNamespace(name="good", load=Good),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: points)
    assert [format_.name for format_ in plugins.log_formats()] == ["shouting"]
    assert plugins.sources() == ()
    assert plugins.detectors() == (len,)
    assert plugins.plugins().problems == ["plug-in nowhere: ImportError: no module named nowhere"]


def test_a_format_of_a_plugin_reads_its_lines() -> None:
    reader = LogReader("log", (Shouting(), *builtin_formats()))
    reader.feed(b"LOSS!2.5!\nLOSS!2.0!\niter 3: loss 1.5\n")
    assert reader.reading.format == "shouting"
    assert reader.reading.series["loss"].count == 3
