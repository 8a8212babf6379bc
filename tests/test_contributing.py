"""The walk through a new log format in CONTRIBUTING.md works as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path, PurePath

import pytest

from support.packages import ROOT, install, told
from support.samples import look_alikes, samples, verify
from trainwarden.metrics.formats import LineFormat, builtin_formats

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
FILES = dict(re.findall(r"```\w+\n# ([\w./]+\.\w+)\n(.*?)```", TEXT, re.DOTALL))


def test_each_file_is_there_once() -> None:
    assert {PurePath(name).name for name in FILES} == {
        *("acme.py", "acme.yaml", "acme_trainwarden.py", "pyproject.toml")
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, body in FILES.items():
        (tmp_path / PurePath(name).name).write_text(body)
    return tmp_path


def test_the_file_reads_its_samples(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "acme", raising=False)
    import acme  # type: ignore[import-not-found]

    format_ = acme.Acme()
    assert isinstance(format_, LineFormat)
    path = folder / "acme.yaml"
    assert samples(path)
    assert look_alikes(path)
    for sample in samples(path):
        verify(format_, sample, look_alikes(path), (format_, *builtin_formats()))
    sys.modules.pop("acme")


def test_the_package_is_installed_and_its_logs_are_read(folder: Path) -> None:
    site = folder / "site"
    install(folder, site)
    (sample,) = samples(folder / "acme.yaml")
    log = folder / "train.log"
    log.write_text(sample.log)
    shown = told(log, site)
    assert shown.startswith("acme, ")
    for name in sample.reads:
        assert re.search(rf"^{name} ", shown, re.MULTILINE)
    assert "note: " not in shown


def test_the_commands_name_what_exists() -> None:
    for name in re.findall(r"`(?:\.venv/bin/pytest )?((?:tests|benchmarks)/[\w/.]+)", TEXT):
        assert (ROOT / name).exists(), name
    rooms = "metrics|evidence|diagnosis|records"
    for name in re.findall(rf"`((?:{rooms})/[\w/.]+\.(?:py|yaml))`", TEXT):
        assert (ROOT / "src/trainwarden" / name).exists(), name
