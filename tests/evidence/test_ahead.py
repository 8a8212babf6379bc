"""A second process that looks ahead in a large log: the same reading, with it, without, or half."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainwarden.evidence import ahead, follow
from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.reading import Reading
from trainwarden.metrics.survey import Survey


def lines(count: int) -> Iterator[str]:
    """A run with evaluations, words between, a restart, and a loss that becomes nan."""
    noise = random.Random(3)
    for step in [*range(count), *range(count // 2, count)]:
        loss = "nan" if step > count - 50 else f"{2 + noise.random():.4f}"
        yield f"2026-01-02 03:04:05,006 - INFO - step {step} | loss {loss} | lr {3e-4 - step / 1e9}"
        if step % 500 == 0:
            yield f"step {step} | val loss {2 + noise.random():.4f}"
        if step % 700 == 0:
            yield "a loader's worker says that it has opened another shard"
        if step % 900 == 0:
            yield f'{{"step": {step}, "loss": {noise.random()}, "grad_norm": 1.5}}'


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ahead") / "train.log"
    path.write_text("\n".join(lines(20_000)) + "\nstep 20000 | loss 1", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def alone(log: Path) -> Reading:
    return follow.follow(log, None).reading()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "OWN", 60_000)
    monkeypatch.setattr(ahead, "HELPERS", 90_000)
    monkeypatch.setattr(ahead.os, "cpu_count", lambda: 2)


@pytest.fixture
def surveys(monkeypatch: pytest.MonkeyPatch) -> list[Survey | None]:
    """What the helper is found to have found, block by block."""
    found: list[Survey | None] = []
    receive = ahead.Helper.receive

    def noted(self: ahead.Helper, block: bytes) -> Survey | None:
        found.append(receive(self, block))
        return found[-1]

    monkeypatch.setattr(ahead.Helper, "receive", noted)
    return found


def read(log: Path, monkeypatch: pytest.MonkeyPatch) -> Reading:
    monkeypatch.setattr(ahead, "LARGE", 100_000)
    return follow.follow(log, None).reading()


def test_the_reading_is_that_of_one_process(
    log: Path, alone: Reading, surveys: list[Survey | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alone.series["loss"].count > 25_000
    assert alone.runs == 2
    assert repr(read(log, monkeypatch)) == repr(alone)
    assert len(surveys) > 5
    assert sum(len(found.at) for one in surveys if one for found in one.found) > 8_000


def test_a_helper_that_dies_changes_nothing(
    log: Path, alone: Reading, surveys: list[Survey | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    send, sent = ahead.Helper.send, []

    def then_dies(self: ahead.Helper, plan: object, block: bytes) -> None:
        send(self, plan, block)  # type: ignore[arg-type]
        sent.append(block)
        if len(sent) == 3 and self._process:
            self._process.kill()

    monkeypatch.setattr(ahead.Helper, "send", then_dies)
    assert repr(read(log, monkeypatch)) == repr(alone)
    assert surveys[0] is not None
    assert surveys[-1] is None


def test_a_helper_that_cannot_start_changes_nothing(
    log: Path, alone: Reading, surveys: list[Survey | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead.sys, "executable", "/no/python")
    assert repr(read(log, monkeypatch)) == repr(alone)
    assert set(surveys) == {None}


def test_a_small_log_and_a_machine_of_one_core_start_none(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with log.open("rb") as stream:
        assert not ahead.pays(stream, 0)
        monkeypatch.setattr(ahead, "LARGE", 100_000)
        assert ahead.pays(stream, 0)
        monkeypatch.setattr(ahead.os, "cpu_count", lambda: 1)
        assert not ahead.pays(stream, 0)


def test_time_that_runs_out_is_told_and_reading_goes_on(
    log: Path, alone: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "LARGE", 100_000)
    cut = follow.follow(log, None, deadline=0.0)
    assert not cut.complete
    assert isinstance(cut.reader, LogReader)
    assert 0 < cut.position.offset < log.stat().st_size
    assert repr(follow.follow(log, cut).reading()) == repr(alone)
