"""Real logs, where a collection of them lies beside the repository."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.views import read_file, view
from trainwarden.diagnosis import diagnose
from trainwarden.records.finding import Severity

SHARED = Path(__file__).parents[2] / "../shared"
CORPUS, INCIDENTS = SHARED / "corpus", SHARED / "incidents"
LARGEST = 400_000
"""Bytes: larger logs say nothing more here and take their time."""


def sound_logs() -> list[Path]:
    manifest = CORPUS / "manifest.jsonl"
    if not manifest.exists():
        return []
    entries = [json.loads(line) for line in manifest.read_text().splitlines()]
    files = [CORPUS / e["file"] for e in entries if e["labels"]["fault"] in ("none", None)]
    text = [f for f in files if f.suffix not in {".wandb", ".tfevents"}]
    return [f for f in text if f.exists() and f.stat().st_size < LARGEST]


def incidents() -> list[Path]:
    return sorted(INCIDENTS.glob("*/answer.json"))


def loud(path: Path) -> dict[str, str]:
    found = diagnose(view(read_file(path), live=False))
    return {f.kind: f.summary for f in found if f.severity is not Severity.INFO}


@pytest.mark.skipif(not CORPUS.exists(), reason="no collection of real logs here")
@pytest.mark.parametrize("path", sound_logs(), ids=lambda path: path.stem)
def test_sound_log_is_met_with_silence(path: Path) -> None:
    assert loud(path) == {}


@pytest.mark.skipif(not INCIDENTS.exists(), reason="no collection of incidents here")
def test_most_incidents_that_a_log_can_tell_of_are_named() -> None:
    named, told, alarms = 0, 0, []
    for answer in incidents():
        said: dict[str, Any] = json.loads(answer.read_text())
        found = loud(answer.with_name("log.txt"))
        if said["kind"] == "healthy_false_alarm":
            alarms += [answer.parent.name] if found else []
        elif said["can_be_told_from_log"]:
            told += 1
            named += said["kind"] in found
    assert alarms == []
    assert named >= 0.6 * told
