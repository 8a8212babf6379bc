from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
from pathlib import Path

import pytest

from trainwarden.evidence.base import Target
from trainwarden.evidence.log_observations import MAX_EVENTS
from trainwarden.evidence.log_readings import load_readings, positions, read_log
from trainwarden.evidence.logs import LogSource
from trainwarden.metrics.reader import LogReader
from trainwarden.records.job import Job
from trainwarden.records.observation import SourceReport


def lines(begin: int, end: int) -> str:
    return "".join(f"iter {i}: loss {9 - i / 100:.4f}, time 40.00ms\n" for i in range(begin, end))


def target(tmp_path: Path, *files: Path, cache: bool = True) -> Target:
    return Target(
        job=Job(id="job", logs=tuple(map(str, files))),
        root=tmp_path,
        logs=files,
        cache_dir=tmp_path / "cache" if cache else None,
    )


def look(tmp_path: Path, *files: Path) -> tuple[SourceReport, Target]:
    at = target(tmp_path, *files)
    return LogSource().read(at), at


def loss(at: Target, file: Path) -> list[tuple[float, float]]:
    return [(p.step, p.value) for p in at.readings[file].series["loss"].points()]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "train.log"
    file.write_text(lines(0, 50))
    return file


def test_observations_say_where_they_stand(tmp_path: Path, log: Path) -> None:
    report, _ = look(tmp_path, log)
    assert report.status == "ok"
    found = {(o.quantity, o.stat): o for o in report.observations}
    last = found["loss", "last"]
    assert (last.value, last.step) == (8.51, 49)
    assert last.place.offset is not None
    assert last.place.line == 50
    raw = log.read_bytes()
    assert raw[last.place.offset :].startswith(b"iter 49: loss 8.5100")
    assert raw[: last.place.offset].count(b"\n") == 49
    assert last.text == "iter 49: loss 8.5100, time 40.00ms"
    assert found["loss", "first"].value == 9.0
    assert found["loss", "min"].value == 8.51
    assert found["step", "last"].value == 49
    assert found["log.ended", "last"].value == "running"
    assert found["log.runs", "last"].value == 1
    assert found["log.size", "last"].value == log.stat().st_size
    assert found["log.interval", "median"].value == pytest.approx(0.04)


def test_how_far_the_gradient_norm_went_before_it_was_none_can_be_cited(tmp_path: Path) -> None:
    norms = ["0.8", "0.9", "12.1", "9.4", "nan", "nan"]
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {n}: loss 3.1, grad_norm {v}\n" for n, v in enumerate(norms)))
    report, _ = look(tmp_path, log)
    most = next(o for o in report.observations if (o.quantity, o.stat) == ("grad_norm", "max"))
    assert (most.value, most.step) == (12.1, 2)


def test_only_the_new_part_is_read(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(tmp_path, log)
    fed: list[int] = []
    feed = LogReader.feed
    monkeypatch.setattr(
        LogReader, "feed", lambda self, data: (fed.append(len(data)), feed(self, data))[1]
    )
    added = lines(50, 60)
    with log.open("a") as stream:
        stream.write(added)
    report, at = look(tmp_path, log)
    assert report.status == "ok"
    assert sum(fed) == len(added)
    assert [step for step, _ in loss(at, log)] == list(range(60))
    assert at.readings[log].bytes == log.stat().st_size


def test_following_gives_what_reading_at_once_gives(tmp_path: Path) -> None:
    text = lines(0, 40) + "Traceback (most recent call last):\nValueError: x\n" + lines(30, 80)
    log = tmp_path / "train.log"
    log.write_text("")
    for cut in range(0, len(text) + 1, 97):
        with log.open("a") as stream:
            stream.write(text[log.stat().st_size : cut])
        look(tmp_path, log)
    with log.open("a") as stream:
        stream.write(text[log.stat().st_size :])
    _, at = look(tmp_path, log)
    whole = read_log(log)
    assert at.readings[log].to_json() == whole.to_json()
    assert at.readings[log].runs == 2


def test_an_incomplete_last_line(tmp_path: Path, log: Path) -> None:
    with log.open("a") as stream:
        stream.write("iter 50: loss 8.4")
    _, at = look(tmp_path, log)
    assert loss(at, log)[-1][0] == 49
    with log.open("a") as stream:
        stream.write("999, time 40.00ms\n")
    _, at = look(tmp_path, log)
    assert loss(at, log)[-1] == (50, 8.4999)
    assert len(loss(at, log)) == 51


def test_rotation_reads_the_old_file_to_its_end(tmp_path: Path, log: Path) -> None:
    look(tmp_path, log)
    with log.open("a") as stream:
        stream.write(lines(50, 60))
    log.rename(tmp_path / "train.log.1")
    log.write_text(lines(60, 70))
    report, at = look(tmp_path, log)
    assert [step for step, _ in loss(at, log)] == list(range(70))
    assert "rotated" in report.message
    first = next(o for o in report.observations if (o.quantity, o.stat) == ("loss", "first"))
    assert (first.place.file, first.place.offset) == (str(tmp_path / "train.log.1"), 0)
    assert first.text is not None
    assert first.text.startswith("iter 0:")
    last = next(o for o in report.observations if (o.quantity, o.stat) == ("loss", "last"))
    assert log.read_bytes()[last.place.offset or 0 :].startswith(b"iter 69:")


def test_copytruncate(tmp_path: Path, log: Path) -> None:
    look(tmp_path, log)
    shutil.copy(log, tmp_path / "train.log.1")
    log.write_text(lines(50, 55))
    report, at = look(tmp_path, log)
    assert [step for step, _ in loss(at, log)] == list(range(55))
    assert "rotated" in report.message


def test_truncation_without_a_copy(tmp_path: Path, log: Path) -> None:
    look(tmp_path, log)
    with log.open("r+") as stream:
        stream.truncate(0)
        stream.write(lines(0, 5))
    report, at = look(tmp_path, log)
    assert [step for step, _ in loss(at, log)] == list(range(5))
    assert "truncated" in report.message


def test_truncated_and_grown_past_the_old_length(tmp_path: Path, log: Path) -> None:
    look(tmp_path, log)
    log.write_text("other beginning\n" + lines(0, 500))
    report, at = look(tmp_path, log)
    assert len(loss(at, log)) == 500
    assert "truncated" in report.message


def test_replaced_by_another_file(tmp_path: Path, log: Path) -> None:
    look(tmp_path, log)
    other = tmp_path / "new"
    other.write_text("fresh run\n" + lines(0, 3))
    other.replace(log)
    report, at = look(tmp_path, log)
    assert [step for step, _ in loss(at, log)] == [0, 1, 2]
    assert "replaced" in report.message


def test_replaced_by_a_longer_copy_goes_on(tmp_path: Path, log: Path) -> None:
    look(tmp_path, log)
    other = tmp_path / "new"
    other.write_text(lines(0, 60))
    other.replace(log)
    _, at = look(tmp_path, log)
    assert [step for step, _ in loss(at, log)] == list(range(60))


def test_a_restarted_run_appended(tmp_path: Path, log: Path) -> None:
    look(tmp_path, log)
    with log.open("a") as stream:
        stream.write(lines(0, 10))
    report, at = look(tmp_path, log)
    assert at.readings[log].runs == 2
    assert at.readings[log].last_step == 9
    assert any(o.quantity == "log.event" and o.value == "resume" for o in report.observations)


def test_a_damaged_cache_is_set_aside(tmp_path: Path, log: Path) -> None:
    look(tmp_path, log)
    (cache,) = (tmp_path / "cache").glob("*.reading.json")
    for damage in (b"", b"{", b"[]", b'{"version": 99}', cache.read_bytes()[:-40]):
        cache.write_bytes(damage)
        report, at = look(tmp_path, log)
        assert report.status == "partial"
        assert "set aside" in report.message
        assert len(loss(at, log)) == 50
    assert list((tmp_path / "cache").glob("*corrupt*"))
    assert load_readings(tmp_path / "cache", "job", [log])[0].last_step == 49


def test_the_past_is_read_from_the_cache_alone(tmp_path: Path, log: Path) -> None:
    _, at = look(tmp_path, log)
    now = at.readings[log].to_json()
    where = positions(tmp_path / "cache", at.job)
    assert where[str(log)]["offset"] == log.stat().st_size
    log.unlink()
    (past,) = load_readings(tmp_path / "cache", at.job)
    assert past.to_json() == now
    assert load_readings(tmp_path / "cache", "another", [log]) == []


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (None, "absent", "no such file"),
        (b"", "partial", "empty"),
        (b"just words\n" * 5, "partial", "no step or metric"),
        (os.urandom(5000), "partial", ""),
        (b"x" * (3 << 20), "partial", "1 MiB"),
    ],
)
def test_bad_logs_are_reported(
    tmp_path: Path, content: bytes | None, status: str, words: str
) -> None:
    log = tmp_path / "bad.log"
    if content is not None:
        log.write_bytes(content)
    report, _ = look(tmp_path, log)
    assert report.status == status
    assert words in report.message


def test_no_log_and_no_permission(tmp_path: Path, log: Path) -> None:
    assert LogSource().read(target(tmp_path)).status == "absent"
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    log.chmod(0)
    report, _ = look(tmp_path, log)
    assert report.status == "failed"
    assert "permission" in report.message


def test_a_folder_that_cannot_hold_the_cache(tmp_path: Path, log: Path) -> None:
    at = target(tmp_path, log)
    at.cache_dir = log / "under-a-file"
    report = LogSource().read(at)
    assert report.status == "partial"
    assert "not written" in report.message
    assert at.readings[log].last_step == 49


def test_folders_patterns_and_ranks(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "rank0.log").write_text(lines(0, 30))
    (folder / "rank1.log").write_text("[rank1] nothing here\n")
    (folder / "weights.bin").write_bytes(b"\0" * 10)
    _, at = look(tmp_path, folder)
    assert [path.name for path in at.readings] == ["rank0.log", "rank1.log"]
    _, at = look(tmp_path, folder / "rank*.log")
    assert [path.name for path in at.readings] == ["rank0.log", "rank1.log"]
    (tmp_path / "none").mkdir()
    report, _ = look(tmp_path, tmp_path / "none")
    assert report.status == "absent"
    with pytest.raises(IsADirectoryError):
        read_log(folder)


def test_what_a_log_says_is_shown_clean(tmp_path: Path, log: Path) -> None:
    with log.open("a") as stream:
        stream.write("\x1b]0;title\x07RuntimeError: token=abcdefgh12345678 \x1b[31mred\n")
    report, _ = look(tmp_path, log)
    event = next(o for o in report.observations if o.quantity == "log.event")
    assert event.text is not None
    assert "\x1b" not in event.text
    assert "abcdefgh12345678" not in event.text


def test_time_running_out_is_taken_up_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "train.log"
    log.write_text(lines(0, 60_000))
    monkeypatch.setattr(LogSource, "timeout", 0.0)
    report, at = look(tmp_path, log)
    assert report.status == "partial"
    assert "ran out" in report.message
    before = at.readings[log].last_step or 0
    assert before < 59_999
    monkeypatch.undo()
    _, at = look(tmp_path, log)
    assert at.readings[log].last_step == 59_999
    assert at.readings[log].series["loss"].count == 60_000


def test_memory_stays_bounded(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    with log.open("w") as stream:
        for begin in range(0, 300_000, 10_000):
            stream.write(lines(begin, begin + 10_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    look(tmp_path, log)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000
    (cache,) = (tmp_path / "cache").glob("*.reading.json")
    assert cache.stat().st_size < 1_000_000
    assert json.loads(cache.read_text())["position"]["offset"] == log.stat().st_size


def test_events_are_cut_to_the_weighty_ones(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("Grad overflow on iteration 0\n" * 500 + lines(0, 9) + "Killed\n")
    report, _ = look(tmp_path, log)
    events = [o for o in report.observations if o.quantity == "log.event"]
    assert len(events) <= MAX_EVENTS
    assert events[-1].value == "killed"


def test_rotation_that_packs_the_old_file(tmp_path: Path, log: Path) -> None:
    look(tmp_path, log)
    with gzip.open(tmp_path / "train.log.1.gz", "wb") as packed:
        packed.write(log.read_bytes() + lines(50, 60).encode())
    (tmp_path / "train.log.2.gz").write_bytes(b"not packed at all")
    log.write_text(lines(60, 70))
    report, at = look(tmp_path, log)
    assert [step for step, _ in loss(at, log)] == list(range(70))
    assert "train.log.1.gz was read to its end" in report.message


def test_a_log_deleted_or_rotated_while_it_is_read(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = LogReader.feed

    def move(self: LogReader, data: bytes) -> None:
        feed(self, data)
        if log.exists():
            log.rename(tmp_path / "train.log.1")

    monkeypatch.setattr(LogReader, "feed", move)
    report, at = look(tmp_path, log)
    assert report.status == "ok"
    assert len(loss(at, log)) == 50
    monkeypatch.undo()
    log.write_text(lines(50, 60))
    _, at = look(tmp_path, log)
    assert [step for step, _ in loss(at, log)] == list(range(60)), "it was the old file's position"


def test_the_log_of_the_first_rank_comes_first(tmp_path: Path) -> None:
    for rank in (0, 1, 2, 10):
        (tmp_path / f"run.rank{rank}.log").write_text(lines(0, 30 + rank))
    report, at = look(tmp_path, tmp_path / "run.rank*.log")
    assert [path.name for path in at.readings] == [f"run.rank{i}.log" for i in (0, 1, 2, 10)]
    steps = [o for o in report.observations if o.quantity == "step"]
    assert [o.subject for o in steps] == [None, *(f"run.rank{i}.log" for i in (1, 2, 10))]
    # Some trainers print the loss from their last rank alone.
    (tmp_path / "run.rank0.log").write_text("step 1 lr 0.1\nstep 2 lr 0.1\n")
    _, at = look(tmp_path, tmp_path / "run.rank*.log")
    assert next(path.name for path in at.readings) == "run.rank1.log"


def test_of_hundreds_of_metrics_the_key_ones_are_told(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    many = " - ".join(f"timing_s/part_{i}:{i}.5" for i in range(300))
    log.write_text(
        "".join(
            f"step:{i} - {many} - critic/score/mean:0.{i} - actor/pg_loss:0.{i} - "
            f"response_length/mean:7{i} - actor/grad_norm:1.{i} - critic/rewards/mean:2.{i}\n"
            for i in range(1, 40)
        )
    )
    report, _ = look(tmp_path, log)
    assert len(report.observations) <= 150
    told = {o.quantity for o in report.observations}
    assert {"loss", "grad_norm", "reward", "critic/score/mean", "response_length/mean"} <= told


def test_variants_of_a_benchmark_do_not_crowd_out_the_metrics_of_training(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    many = " - ".join(f"val-aux/aime/reward/best@{i}/mean:0.{i}" for i in range(1, 80))
    log.write_text(
        "".join(
            f"step:{i} - actor/pg_loss:0.{i} - response_length/clip_ratio:0.{i} - {many}\n"
            for i in range(1, 9)
        )
    )
    report, _ = look(tmp_path, log)
    told = {o.quantity for o in report.observations}
    assert {"loss", "response_length/clip_ratio", "eval_aux/aime/reward/best_1/mean"} <= told


def test_counted_lines_become_steps_where_the_config_says_how_many(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"{{'loss': {3 - n / 30}, 'epoch': {n / 30}}}\n" for n in range(1, 31)))

    def steps(**config: int) -> tuple[int | None, float]:
        target = Target(job=Job(id="j"), root=tmp_path, logs=(log,), config=config)
        LogSource().read(target)
        (reading,) = target.readings.values()
        last = reading.series["loss"].last
        assert last is not None
        return reading.last_step, last.step

    assert steps() == (30, 30)
    assert steps(logging_steps=10, max_steps=400) == (300, 300)
    assert steps(logging_steps=10, max_steps=200) == (30, 30), "it cannot be past its own end"
