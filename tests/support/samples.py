"""Sample logs of formats: what is read of each, and lines that only look like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from trainwarden.metrics.formats import Line, LineFormat
from trainwarden.metrics.lines import ESCAPES, strip
from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.reading import Reading


@dataclass
class Sample:
    """A small log, the step that it reaches, and the last value of each series named."""

    log: str
    reads: dict[str, float]
    step: float | None = None
    total: int | None = None
    format: str = ""
    """The format's class, where its file has several."""


def samples(path: Path) -> list[Sample]:
    """Those of a format's file of samples."""
    return [Sample(**entry) for entry in yaml.safe_load(path.read_text())["samples"]]


def look_alikes(path: Path) -> list[str]:
    """Lines that the format must leave alone."""
    found: list[str] = yaml.safe_load(path.read_text()).get("look-alikes", [])
    return found


def said(format_: LineFormat, log: str) -> list[str]:
    """The lines of which the format itself says something, each with its memory of those before."""
    memory: dict[str, object] = {}
    found = []
    for text in log.replace("\r", "\n").split("\n"):
        text = ESCAPES.sub("", text.encode().decode("latin-1"))
        if text.strip():
            line = Line(text, strip(text).start, 0, 1)
            hinted = not format_.hints or any(hint in text.lower() for hint in format_.hints)
            row = format_.parse(line, memory) if hinted else None
            if row is not None:
                found.append(text)
    return found


def reading(pieces: Sequence[bytes], formats: Sequence[LineFormat] | None) -> Reading:
    """What is read of a log that comes in pieces."""
    reader = LogReader("log", formats)
    for piece in pieces:
        reader.feed(piece)
    reader.finish(complete=True)
    return reader.reading


def verify(
    format_: LineFormat,
    sample: Sample,
    others: Sequence[str] = (),
    formats: Sequence[LineFormat] | None = None,
) -> None:
    """Read a sample whole and byte by byte; the format must know it, and leave `others` alone."""
    assert said(format_, sample.log), "the format itself reads none of the lines"
    data = sample.log.encode()
    whole = reading([data], formats)
    assert reading([data[at : at + 1] for at in range(len(data))], formats) == whole
    found = {
        name: one.last.value
        for name, one in whole.series.items()
        if name in sample.reads and one.last is not None
    }
    assert found == pytest.approx(sample.reads, nan_ok=True), sorted(whole.series)
    if sample.step is not None:
        assert whole.last_step == sample.step
    if sample.total is not None:
        assert whole.total_steps == sample.total
    for line in others:
        assert not said(format_, line), line
