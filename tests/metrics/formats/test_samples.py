"""Each format reads its samples, and each has some (`<its file>.yaml` beside this one)."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.samples import Sample, look_alikes, samples, verify
from trainwarden.metrics.formats import LineFormat, builtin_formats

HERE = Path(__file__).parent
FORMATS = {type(one).__name__: one for one in builtin_formats()}
FILES = {name: type(one).__module__.rpartition(".")[2] for name, one in FORMATS.items()}


def cases() -> list[object]:
    found = []
    for path in sorted(HERE.glob("*.yaml")):
        own = [name for name, file in FILES.items() if file == path.stem]
        for number, sample in enumerate(samples(path)):
            name = sample.format or "".join(own)
            found.append(pytest.param(FORMATS[name], sample, path, id=f"{path.stem}-{number}"))
    return found


@pytest.mark.parametrize(("format_", "sample", "path"), cases())
def test_the_sample_is_read(format_: LineFormat, sample: Sample, path: Path) -> None:
    verify(format_, sample, look_alikes(path))


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_has_samples_and_look_alikes(name: str) -> None:
    path = HERE / f"{FILES[name]}.yaml"
    own = [one for one in FILES if FILES[one] == FILES[name]]
    assert any((sample.format or "".join(own)) == name for sample in samples(path))
    assert look_alikes(path)
