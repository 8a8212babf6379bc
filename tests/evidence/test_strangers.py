"""Log formats of other packages, installed for real."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.packages import install, told

SUPPORT = Path(__file__).parents[1] / "support"
LOG = "".join(f"step {i}: loss {3 - i / 50:.2f}\n" for i in range(1, 41))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("broken")
    shutil.copytree(SUPPORT / "broken_formats", folder / "source")
    install(folder / "source", folder / "site")
    return folder / "site"


def test_whatever_they_do_the_log_is_read_and_it_is_told(site: Path, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(LOG)
    shown = told(log, site).splitlines()
    assert "step 40" in shown[0]
    (loss,) = [line.split() for line in shown if line.startswith("loss ")]
    assert loss[2:] == ["40", "1", "2.98", "40", "2.2"]
    notes = [line for line in shown if line.startswith("note: ")]
    wanted = {
        "importing": "broken at import",
        "asking": "broken when asked",
        "Faceless": "AttributeError",
        "raising": "broken while parsing",
        "leaving": "SystemExit: 3",
        "dying": "its process ended",
        "backtracking": "no answer within",
        "sleeping": "no answer within",
        "hoarding": "remembers too much",
        "odd": "not JSON serializable",
        "a-text": "parse gave str",
        "no-pairs": "TypeError",
        "no-number": "could not convert",
        "no-name": "name",
        "far-off": "a span is",
        "phase": "dreaming",
        "kind": "other",
        "rank": "first",
        "loose": "invalid literal",
        "endless": "9999 pairs",
    }
    for name, why in wanted.items():
        (note,) = [
            line for line in notes if f" {name} is left out: " in line or f" {name}: " in line
        ]
        assert why in note, note
