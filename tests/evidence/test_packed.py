"""Packed logs: told by their bytes, unpacked as they are read, damaged, cut, growing, bombs."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import resource
import sys
import tarfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from trainwarden.analysts.rereading import line_at
from trainwarden.evidence import follow as following
from trainwarden.evidence.base import Target
from trainwarden.evidence.excerpts import numbered
from trainwarden.evidence.follow import follow
from trainwarden.evidence.log_readings import read_log
from trainwarden.evidence.logs import LogSource
from trainwarden.evidence.packed import Unpacked, open_log
from trainwarden.metrics.reader import LogReader
from trainwarden.records.job import Job
from trainwarden.records.observation import SourceReport

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": zstd.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
every = pytest.mark.parametrize("kind", sorted(PACK))


def lines(begin: int, end: int) -> bytes:
    rows = (f"step {i} | loss {9 - i / 1000:.4f} | {hash(i * 0.7)} ns\n" for i in range(begin, end))
    return "".join(rows).encode()


def look(root: Path, *logs: Path) -> tuple[SourceReport, Target]:
    job = Job(id="job", logs=tuple(map(str, logs)))
    target = Target(job=job, root=root, logs=logs, cache_dir=root / "cache")
    return LogSource().read(target), target


@every
def test_bytes_tell_not_names(tmp_path: Path, kind: str) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(PACK[kind](lines(0, 300)))
    report, target = look(tmp_path, log)
    assert report.status == "ok"
    assert target.readings[log].last_step == 299
    last = next(o for o in report.observations if (o.quantity, o.stat) == ("loss", "last"))
    assert last.place.offset is not None
    assert lines(0, 300)[last.place.offset :].startswith(b"step 299 ")
    assert last.place.line == 300
    assert line_at(log, last.place.offset) == lines(299, 300).rstrip()
    plain = tmp_path / "named.log.gz"
    plain.write_bytes(lines(0, 30))
    assert read_log(plain).last_step == 29


@every
def test_several_packed_parts_in_one_file(tmp_path: Path, kind: str) -> None:
    log = tmp_path / f"train.log.{kind}"
    log.write_bytes(PACK[kind](lines(0, 100)) + PACK[kind](lines(100, 200)))
    assert read_log(log).series["loss"].count == 200


@every
def test_a_file_that_is_cut_gives_what_can_be_read(tmp_path: Path, kind: str) -> None:
    log = tmp_path / f"train.log.{kind}"
    text = lines(0, 40_000)
    whole = PACK[kind](text)
    log.write_bytes(whole[: len(whole) * 2 // 3])
    report, target = look(tmp_path, log)
    reading = target.readings[log]
    assert report.status == "ok"
    assert 8_000 < (reading.last_step or 0) < 39_900
    assert "ends within packed data" in report.message
    log.write_bytes(whole)
    report, target = look(tmp_path, log)
    assert target.readings[log].series["loss"].count == 40_000
    assert "ends within" not in report.message


@every
def test_damaged_files_are_said_and_stop_nothing(tmp_path: Path, kind: str) -> None:
    whole = PACK[kind](lines(0, 20_000))
    log, bad = tmp_path / "train.log", tmp_path / f"train.log.1.{kind}"
    noise = random.Random(7).randbytes(5_000)
    bad.write_bytes(whole[: len(whole) // 2] + noise)
    log.write_bytes(lines(20_000, 20_100))
    report, target = look(tmp_path, log)
    assert bad.name in report.message
    assert "damaged" in report.message or "ends within packed data" in report.message
    assert target.readings[log].series["loss"].last is not None
    assert target.readings[log].series["loss"].last.value == pytest.approx(9 - 20.099)


def test_a_wrong_checksum_is_a_problem(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(lines(0, 2_000)))
    whole[-6] ^= 0xFF
    bad, log = tmp_path / "bad.log.gz", tmp_path / "train.log"
    bad.write_bytes(whole)
    log.write_bytes(lines(0, 100))
    report, target = look(tmp_path, bad, log)
    assert report.status == "partial"
    assert f"{bad}: damaged" in report.message
    assert target.readings[log].last_step == 99
    assert target.readings[bad].series["loss"].count == 2_000


def test_what_is_no_packed_text_is_said(tmp_path: Path) -> None:
    archive = tmp_path / "logs.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo("train.log")
        info.size = 9
        tar.addfile(info, io.BytesIO(b"step 1\n..."))
    for path, content in [(archive, None), (tmp_path / "a.log", b"PK\x03\x04" + bytes(90))]:
        if content is not None:
            path.write_bytes(content)
        report, _ = look(tmp_path, path)
        assert report.status == "failed"
        assert "unpack it first" in report.message


def test_zstd_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "train.log.zst"
    log.write_bytes(zstd.compress(lines(0, 9)))
    for name in ("compression", "backports"):
        monkeypatch.setitem(sys.modules, name, None)
    report, _ = look(tmp_path, log)
    assert report.status == "failed"
    assert "pip install backports.zstd" in report.message


def feeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    fed: list[int] = []
    feed = LogReader.feed
    monkeypatch.setattr(
        LogReader, "feed", lambda self, data: (fed.append(len(data)), feed(self, data))[1]
    )
    return fed


@every
def test_an_unchanged_file_is_not_read_again(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / f"train.log.{kind}"
    log.write_bytes(PACK[kind](lines(0, 5_000)))
    _, before = look(tmp_path, log)
    fed = feeds(monkeypatch)
    read = following._Following._read
    monkeypatch.setattr(following._Following, "_read", None)
    os.utime(log)
    report, after = look(tmp_path, log)
    assert report.status == "ok"
    assert fed == []
    assert after.readings[log].to_json() == before.readings[log].to_json()
    monkeypatch.setattr(following._Following, "_read", read)
    log.write_bytes(PACK[kind](lines(0, 5_000)) + PACK[kind](lines(5_000, 5_010)))
    _, grown = look(tmp_path, log)
    assert sum(fed) == len(lines(5_000, 5_010))
    assert grown.readings[log].series["loss"].count == 5_010


def test_a_file_that_a_pipe_still_packs(tmp_path: Path) -> None:
    """`python train.py | gzip > train.log.gz`, looked at as it grows."""
    log, packer = tmp_path / "train.log.gz", zlib.compressobj(wbits=31)
    seen = 0
    with log.open("wb", buffering=0) as stream:
        for begin in range(0, 200_000, 20_000):
            stream.write(packer.compress(lines(begin, begin + 20_000)))
            report, target = look(tmp_path, log)
            if reading := target.readings.get(log):
                assert (reading.last_step or 0) >= seen, report.message
                seen = reading.last_step or 0
                assert seen < begin + 20_000
        assert seen > 100_000
        stream.write(packer.flush())
    _, target = look(tmp_path, log)
    assert target.readings[log].series["loss"].count == 200_000
    whole = tmp_path / "whole.log"
    whole.write_bytes(lines(0, 200_000))
    mine, theirs = target.readings[log].to_json(), read_log(whole).to_json()
    assert mine | {"ended": 0} == theirs | {"ended": 0}


@pytest.mark.parametrize(
    ("kind", "fill"), [("gz", b"step 1\n"), ("zst", b"\0"), ("xz", b"a"), ("zst", b"a")]
)
def test_a_bomb_exhausts_neither_memory_nor_time(tmp_path: Path, kind: str, fill: bytes) -> None:
    log = tmp_path / f"train.log.{kind}"
    block = PACK[kind](fill * ((64 << 20) // len(fill)))
    log.write_bytes(block * 400)  # 25 GB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.monotonic()
    followed = follow(log, None, deadline=begun + 2.0)
    assert time.monotonic() - begun < 8.0
    assert not followed.complete
    list(numbered(log, [24 << 30], seconds=1.0))
    assert time.monotonic() - begun < 16.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_a_header_may_not_ask_for_memory(tmp_path: Path) -> None:
    packer = lzma.LZMACompressor(filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}])
    log = tmp_path / "train.log.xz"
    log.write_bytes(packer.compress(lines(0, 9)) + packer.flush())
    report, _ = look(tmp_path, log)
    assert report.status == "failed"
    assert "cannot be unpacked" in report.message


@every
def test_a_packed_text_is_sought_in(tmp_path: Path, kind: str) -> None:
    log = tmp_path / f"train.log.{kind}"
    text = lines(0, 60_000)
    log.write_bytes(PACK[kind](text))
    with open_log(log) as stream:
        assert isinstance(stream, Unpacked)
        for offset in (0, 70_000, 1_000_000, 5, len(text) - 3):
            assert stream.seek(offset) == stream.tell() == offset
            assert stream.read(50) == text[offset : offset + 50]
        assert stream.read() == b""
        assert stream.seek(len(text) + 10) == len(text)
    places = [0, len(lines(0, 100)), len(lines(0, 59_000)), len(lines(0, 59_001))]
    found = {at: (number, line) for at, number, line in numbered(log, places)}
    assert [found[at][0] for at in places] == [1, 101, 59_001, 59_002]
    assert found[places[2]][1] == lines(59_000, 59_001).rstrip()
