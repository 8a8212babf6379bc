"""Whether files that are no logs of trainings are taken for some."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainwarden.metrics.names import canonical
from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.reading import Reading

LARGEST = 1 << 20
"""Of larger files only so many bytes are read."""
MEASURES = frozenset(
    {"loss", "accuracy", "perplexity", "reward", "kl", "entropy", "grad_norm", "learning_rate"}
)


def files(places: Iterable[str | Path]) -> Iterator[Path]:
    """The regular files below some folders, each once."""
    for place in places:
        for folder, _folders, names in os.walk(place):
            for name in names:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    yield path


def false_series(reading: Reading) -> list[str]:
    """Names of the series that claim to measure a training."""
    return [
        name
        for name in reading.series
        if name.removeprefix("eval_") in MEASURES or canonical(name)[0].name in MEASURES
    ]


def read(path: Path) -> Reading | None:
    """What is read of a file; None where it is binary or cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST)
    except OSError:
        return None
    if b"\0" in data[:4096] or not data:
        return None
    reader = LogReader(path.name)
    reader.feed(data)
    reader.finish(complete=True)
    return reader.reading
