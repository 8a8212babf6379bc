"""Logs that lie in several files, rotated and packed, are read as the one log that they are."""

from __future__ import annotations

import bz2
import gzip
import logging
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from logging.handlers import RotatingFileHandler, TimedRotatingFileHandler
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwarden.analysts.rereading import reread
from trainwarden.evidence import opened
from trainwarden.evidence.base import Target
from trainwarden.evidence.follow import follow
from trainwarden.evidence.log_files import expand
from trainwarden.evidence.log_readings import load_readings, positions, read_as_far, read_log
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
        if item.place.offset is not None and item.quantity in {"loss", "step"}:
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


# As logs are rotated in truth --------------------------------------------------------------------


def write_with(handler: logging.Handler, begin: int, end: int) -> None:
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for i in range(begin, end):
        message = f"step {i} | loss {9 - i / 1000:.4f}"
        handler.emit(logging.LogRecord("train", logging.INFO, __file__, 1, message, None, None))


@pytest.mark.parametrize("looks", [(), (130,), (50, 200, 350)])
def test_a_rotating_handler(tmp_path: Path, looks: tuple[int, ...]) -> None:
    log = tmp_path / "train.log"
    handler = RotatingFileHandler(log, maxBytes=4_000, backupCount=30)
    begin = 0
    for end in (*looks, 400):
        write_with(handler, begin, end)
        report, target = look(tmp_path, log)
        assert report.status == "ok"
        assert steps(target.readings[log]) == list(range(end))
        cited(report)
        begin = end
    handler.close()
    assert len(list(tmp_path.glob("train.log.*"))) > 3
    first = next(o for o in report.observations if (o.quantity, o.stat) == ("loss", "first"))
    assert first.place.file == str(pieces_of(log)[0])
    (past,) = load_readings(tmp_path / "cache", "job", [log])
    assert past.to_json() == target.readings[log].to_json()


def test_a_handler_that_packs_what_it_rotates(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    handler = RotatingFileHandler(log, maxBytes=4_000, backupCount=30)
    handler.namer = lambda name: name + ".gz"

    def pack(source: str, target: str) -> None:
        Path(target).write_bytes(gzip.compress(Path(source).read_bytes()))
        Path(source).unlink()

    handler.rotator = pack
    for end in (100, 250, 400):
        write_with(handler, end - 150 if end > 100 else 0, end)
        report, target = look(tmp_path, log)
        assert steps(target.readings[log]) == list(range(end))
        cited(report)
    handler.close()


def test_a_handler_that_rotates_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "train.log"
    handler = TimedRotatingFileHandler(log, when="S", backupCount=9)
    for part in range(4):
        write_with(handler, part * 20, part * 20 + 20)
        monkeypatch.setattr("time.time", lambda at=handler.rolloverAt + 1: float(at))
        if part == 1:
            look(tmp_path, log)
    handler.close()
    monkeypatch.undo()
    assert len(pieces_of(log)) >= 3
    _, target = look(tmp_path, log)
    assert steps(target.readings[log]) == list(range(80))
    assert steps(read_log(log)) == list(range(80))


LOGROTATE = shutil.which("logrotate") or shutil.which("logrotate", path="/usr/sbin:/sbin")


@pytest.mark.skipif(LOGROTATE is None, reason="logrotate is not installed")
@pytest.mark.parametrize(
    "options",
    [
        "copytruncate",
        "copytruncate\n compress\n delaycompress",
        "create\n compress",
        "nocreate\n dateext\n dateformat -%Y%m%d-%s",
        "create\n compress\n compresscmd /usr/bin/env\n compressoptions xz\n compressext .xz",
    ],
)
@pytest.mark.parametrize("between", [False, True], ids=["at once", "watched"])
def test_logrotate(tmp_path: Path, options: str, between: bool) -> None:
    folder = tmp_path / "logs"
    folder.mkdir(mode=0o755)
    log = folder / "train.log"
    config = tmp_path / "rotate.conf"
    config.write_text(f"{log} {{\n rotate 20\n size 1\n missingok\n {options}\n}}\n")
    config.chmod(0o644)
    for part in range(5):
        with log.open("a") as stream:
            stream.write(lines(part * 30, part * 30 + 30))
        if between and part % 2 == 0:
            _, target = look(tmp_path, log)
            assert steps(target.readings[log]) == list(range(part * 30 + 30))
        if part < 4:
            command = [str(LOGROTATE), "-f", "-s", str(tmp_path / "state"), str(config)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            if "dateext" in options:
                # A second for each name.
                last = max(folder.glob("train.log-*"))
                last.rename(folder / f"train.log-20260101-176722560{part}")
    assert len(pieces_of(log)) == 5
    report, target = look(tmp_path, folder)
    assert steps(target.readings[log]) == list(range(150))
    assert target.readings[log].runs == 1
    cited(report)


def test_who_goes_on_writing_where_it_was_leaves_a_hole(tmp_path: Path) -> None:
    """`python train.py > train.log` under copytruncate: no O_APPEND, and lines cut by buffers."""
    log = tmp_path / "train.log"
    text = lines(0, 400).encode()
    with log.open("wb", buffering=0) as stream:
        written = 0
        for end in (5_003, 9_004, len(text)):
            stream.write(text[written:end])
            written = end
            if end == 5_003:
                look(tmp_path, log)
            if end < len(text):
                for age in (2, 1):
                    old = log.with_name(f"train.log.{age}")
                    if old.exists():
                        old.rename(log.with_name(f"train.log.{age + 1}"))
                shutil.copy(log, log.with_name("train.log.1"))
                os.truncate(log, 0)
    assert log.read_bytes().startswith(b"\0" * 5_000)
    report, target = look(tmp_path, log)
    assert steps(target.readings[log]) == list(range(400))
    cited(report)
    assert steps(read_log(log)) == list(range(400))
    assert told(follow(log).reading()).series == told(target.readings[log]).series


def test_what_is_rotated_after_it_was_cited_is_found_again(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.with_name("train.log.1").write_text(lines(0, 40))
    log.write_text(lines(40, 80))
    report, _ = look(tmp_path, log)
    stood = positions(tmp_path / "cache", "job", [log])
    ends = {name: at["offset"] for name, at in stood.items()}
    log.with_name("train.log.1").rename(log.with_name("train.log.2"))
    log.with_name("train.log.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.write_text(lines(80, 100))
    cited(report)
    again = read_as_far(log, ends)
    assert steps(again) == list(range(80))
    assert steps(read_as_far(log.with_name("train.log.2"), ends)) == list(range(80))
    for old in log.parent.glob("train.log.*"):
        old.unlink()
    with pytest.raises(OSError, match="gone"):
        read_as_far(log, ends)


def test_rotated_faster_than_it_is_looked_at(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(lines(0, 40))
    look(tmp_path, log)
    log.with_name("train.log.1").write_text(lines(60, 80))
    log.write_text(lines(80, 100))
    report, target = look(tmp_path, log)
    assert steps(target.readings[log]) == [*range(40), *range(60, 100)]
    assert "rotated away before it was read" in report.message
    first = next(o for o in report.observations if (o.quantity, o.stat) == ("loss", "first"))
    assert (first.value, first.place.offset) == (9.0, None)
    cited(report)


def test_a_rotation_while_the_files_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "train.log"
    log.with_name("train.log.1").write_text(lines(0, 40))
    log.write_text(lines(40, 80))
    moved = []

    def opening(path: Path) -> Any:
        stream = plain(path)
        if path.name == "train.log.1" and not moved:
            moved.append(path)
            path.rename(path.with_name("train.log.2"))
            log.rename(path)
            log.write_text(lines(80, 90))
        return stream

    plain = opened.open_log
    monkeypatch.setattr(opened, "open_log", opening)
    assert steps(read_log(log)) == list(range(90))
    assert moved


def test_a_log_that_is_packed_away_at_its_end(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(lines(0, 40))
    look(tmp_path, log)
    with log.open("a") as stream:
        stream.write(lines(40, 60))
    log.with_name("train.log.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    report, target = look(tmp_path, log)
    assert report.status == "ok"
    assert steps(target.readings[log]) == list(range(60))
    cited(report)
