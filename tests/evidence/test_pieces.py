"""Logs that lie in several files, rotated and packed, are read as the one log that they are."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwarden.analysts.rereading import reread
from trainwarden.evidence.base import Target
from trainwarden.evidence.follow import follow
from trainwarden.evidence.log_files import expand
from trainwarden.evidence.log_readings import read_log
from trainwarden.evidence.logs import LogSource
from trainwarden.evidence.pieces import pieces_of
from trainwarden.metrics.reading import Reading
from trainwarden.records.job import Job
from trainwarden.records.observation import SourceReport

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstd.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def lines(begin: int, end: int, base: float = 9.0) -> str:
    return "".join(
        f"step {i} | loss {base - i / 1000:.4f} | lr 3.0e-04 | {i % 7} s\n"
        for i in range(begin, end)
    )


def look(root: Path, *logs: Path) -> tuple[SourceReport, Target]:
    job = Job(id="job", logs=tuple(map(str, logs)))
    target = Target(job=job, root=root, logs=logs, cache_dir=root / "cache")
    return LogSource().read(target), target


def steps(reading: Reading) -> list[float]:
    return [point.step for point in reading.series["loss"].points()]


def told(reading: Reading) -> Reading:
    """A reading without the names of files and what is noted of them."""
    return replace(reading, file="", pieces=(), notes=[])


def cited(report: SourceReport) -> None:
    """Every place cited can be read again, and agrees."""
    for item in report.observations:
        if item.place.offset is not None and item.stat != "median" and item.text is not None:
            again = reread(item.model_copy(update={"id": "E1"}))
            assert again is None or again.agrees, (item, again)
            if again is not None and item.quantity == "loss":
                assert again.found == item.value


# How a log is told from its pieces ---------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ["train.log.3.gz", "train.log.2.gz", "train.log.1"],
        ["train.log.10", "train.log.9", "train.log.1"],
        ["train.log-20260101.gz", "train.log-20260102.gz", "train.log-20260103"],
        ["train.log-2026010109", "train.log-2026010110"],
        ["train.log.2026-12-01", "train.log.2026-12-02"],
        ["train.log.2026-12-01_09-59-59", "train.log.2026-12-01_10-00-00"],
        ["train.2026-12-01_09-59-59_000001.log.gz", "train.2026-12-01_09-59-59_000002.log"],
        ["train-20260101.log.zst", "train-20260102.log.zst"],
        ["train.2.log", "train.1.log"],
        ["train.log-1767225600.xz", "train.log-1767229200.xz"],
        ["train.log.old"],
        ["train.log.gz"],
    ],
)
def test_names_tell_which_piece_is_older(tmp_path: Path, names: list[str]) -> None:
    for number, name in enumerate([*names, "train.log"]):
        text = lines(number * 10, number * 10 + 10).encode()
        (tmp_path / name).write_bytes(PACK.get(Path(name).suffix, bytes)(text))
    (tmp_path / "other.log.1").write_text(lines(0, 10))
    assert [path.name for path in pieces_of(tmp_path / "train.log")] == [*names, "train.log"]
    assert steps(read_log(tmp_path / "train.log")) == list(range(10 * len(names) + 10))


def test_a_file_of_another_run_that_only_has_a_number_is_no_piece(tmp_path: Path) -> None:
    """A name that is taken gets a number: the file with the number is the newer one."""
    first, second = tmp_path / "train.log", tmp_path / "train.log.1"
    first.write_text("".join(f"2026-01-01 10:00:{i:02d} step {i} loss 3.{i}\n" for i in range(9)))
    second.write_text("".join(f"2026-01-02 10:00:{i:02d} step {i} loss 2.{i}\n" for i in range(9)))
    assert pieces_of(first) == [first]
    plain = tmp_path / "plain.log"
    plain.write_text(lines(0, 9))
    plain.with_name("plain.log.1").write_text(lines(0, 9, 5.0))
    os.utime(plain, (1_700_000_000, 1_700_000_000))
    assert pieces_of(plain) == [plain]


def test_an_older_run_in_the_older_piece_is_a_restart(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.with_name("train.log.1").write_text(lines(0, 40))
    log.write_text(lines(0, 20, 5.0))
    reading = read_log(log)
    assert (reading.runs, reading.last_step) == (2, 19)


def test_logs_of_epochs_and_of_runs_by_date_stay_apart(tmp_path: Path) -> None:
    epochs = [tmp_path / f"epoch_{n}.log" for n in (1, 2, 3)]
    for n, path in enumerate(epochs):
        path.write_text(lines(n * 10, n * 10 + 10))
    assert sorted(expand([tmp_path])) == epochs
    runs = tmp_path / "runs"
    runs.mkdir()
    dated = [runs / f"train_2026010{n}.log" for n in (1, 2)]
    for path in dated:
        path.write_text(lines(0, 20))
    assert sorted(expand([runs])) == dated
    days = tmp_path / "days"
    days.mkdir()
    for n in (1, 2, 3):
        text = lines(n * 20, n * 20 + 20).encode()
        (days / f"log-2026010{n}.zst").write_bytes(zstd.compress(text))
    assert [path.name for path in expand([days])] == ["log-20260103.zst"]
    assert expand([days / "log-*.zst"]) == expand([days])
    assert steps(read_log(days / "log-20260103.zst")) == list(range(20, 80))


def test_pieces_are_no_logs_of_their_own(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.with_name("train.log.2.gz").write_bytes(gzip.compress(lines(0, 10).encode()))
    log.with_name("train.log.1").write_text(lines(10, 20))
    log.write_text(lines(20, 30))
    for some in ([tmp_path], [tmp_path / "train.log*"], [log, log.with_name("train.log.1")]):
        assert expand(some) == [log]
        report, target = look(tmp_path, *some)
        assert list(target.readings) == [log]
        assert steps(target.readings[log]) == list(range(30))
        assert {o.value for o in report.observations if o.quantity == "log.runs"} == {1}
    alone = log.with_name("train.log.1")
    assert expand([alone]) == [alone]


# Reading -----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_split_gives_the_reading_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("split")
    text = (
        "loading the model\n"
        + lines(0, 60)
        + "saving checkpoint to out/60\n"
        + lines(60, 90)
        + "Traceback (most recent call last):\nRuntimeError: CUDA error: out of memory\n"
        + lines(40, 120)
    ).encode()
    whole = folder / "whole.log"
    whole.write_bytes(text)
    middle = data.draw(st.booleans(), label="within lines")
    ends = [i + 1 for i, byte in enumerate(text) if byte == 10]
    places = st.integers(1, len(text) - 1) if middle else st.sampled_from(ends[:-1])
    cuts = sorted(data.draw(st.lists(places, min_size=1, max_size=5, unique=True)))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    packs = data.draw(st.lists(st.sampled_from(sorted(PACK)), min_size=6, max_size=6))
    log = folder / "train.log"
    known = None
    sessions = data.draw(st.integers(0, 2 ** len(parts) - 1), label="when it is looked at")
    for number, part in enumerate(parts):
        for age in range(number, 0, -1):
            for old in list(folder.glob(f"train.log.{age}*")):
                suffix = old.suffix if old.suffix in PACK else ""
                new = folder / f"train.log.{age + 1}{suffix}"
                old.rename(new)
        if number:
            pack = packs[number]
            old = folder / f"train.log.1{pack}"
            old.write_bytes(PACK[pack](log.read_bytes()))
            log.unlink()
        log.write_bytes(part)
        if sessions >> number & 1:
            known = follow(log, known)
    followed = follow(log, known)
    expected = read_log(whole)
    got = followed.reading()
    expected_state = follow(whole).reading()
    assert told(got) == told(expected_state)
    assert got.to_json() == expected.to_json() | {"ended": got.ended}
    for series in got.series.values():
        for point in series.points():
            file, at = got.place(point.offset)
            assert at is not None
            content = Path(file).read_bytes()
            suffix = Path(file).suffix
            unpack: Any = {".gz": gzip.decompress, ".zst": zstd.decompress}
            unpack |= {".bz2": bz2.decompress, ".xz": lzma.decompress}
            there = unpack.get(suffix, bytes)(content)[at:]
            assert text[point.offset :].startswith(there[:40])
    shutil.rmtree(folder)
