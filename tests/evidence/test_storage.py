"""Disks and checkpoints, on real folders with real files."""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
import zipfile
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.evidence import checkpoints
from trainwarden.evidence.base import Target
from trainwarden.evidence.checkpoint_files import file_problem
from trainwarden.evidence.checkpoints import scan
from trainwarden.evidence.storage import StorageSource, run_folders, time_until_full
from trainwarden.records.job import Job
from trainwarden.records.observation import Observation, SourceReport

NOW = datetime(2030, 1, 1, 12, tzinfo=timezone.utc)


def ago(path: Path, seconds: float) -> Path:
    """Set the last write of a file, or of all in a folder, to before `NOW`."""
    moment = NOW.timestamp() - seconds
    for inner in [*path.rglob("*"), path] if path.is_dir() else [path]:
        os.utime(inner, (moment, moment))
    return path


def npz(path: Path, size: int = 1000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, weights=np.zeros(size), step=1)
    return path


def torch_like(path: Path, size: int = 5000) -> Path:
    """A zip archive laid out as `torch.save` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
        archive.writestr("archive/data/0", b"\1" * size)
    return path


def safetensors(path: Path, size: int = 4000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    header = json.dumps(
        {"__metadata__": {}, "w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}
    ).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\1" * size)
    return path


def cut(path: Path, keep: float = 0.5) -> Path:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    return path


def problems(folder: Path, now: float = NOW.timestamp()) -> dict[str, list[str]]:
    return {one.path.name: one.problems for one in scan([folder], now).incomplete}


def named(folder: Path) -> dict[str, tuple[int | None, int | None]]:
    found = scan([folder], NOW.timestamp()).checkpoints
    return {str(one.path.relative_to(folder)): (one.step, one.epoch) for one in found}


# --- one file --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "make"),
    [("m.npz", npz), ("m.pt", torch_like), ("m.safetensors", safetensors)],
)
def test_whole_and_cut_files(tmp_path: Path, name: str, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path / name)
    assert file_problem(path, path.stat().st_size) is None
    whole = path.read_bytes()
    for keep in (0.02, 0.3, 0.7, 0.99):
        path.write_bytes(whole[: max(9, int(len(whole) * keep))])
        said = file_problem(path, path.stat().st_size)
        assert said is not None, keep
        assert "truncated" in said or "zip archive" in said
    path.write_bytes(b"\0" * len(whole))
    assert file_problem(path, len(whole)) == "begins with zeros only"
    path.write_bytes(b"")
    assert file_problem(path, 0) == "has zero bytes"


def test_hdf5_superblocks(tmp_path: Path) -> None:
    path = tmp_path / "m.h5"
    signature = b"\x89HDF\r\n\x1a\n"
    for head in (
        signature + bytes([0, 0, 0, 0, 0, 8, 8, 0]) + b"\1" * 8 + struct.pack("<4Q", 0, 0, 900, 0),
        signature + bytes([2, 8, 8, 0]) + struct.pack("<4Q", 0, 0, 900, 0),
    ):
        path.write_bytes(head.ljust(900, b"\1"))
        assert file_problem(path, 900) is None
        path.write_bytes(head.ljust(600, b"\1"))
        assert "900 bytes" in (file_problem(path, 600) or "")


def test_older_torch_files_and_others_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.pth"
    path.write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
    assert file_problem(path, path.stat().st_size) is None


@given(st.binary(min_size=1, max_size=200), st.sampled_from([".pt", ".safetensors", ".npz", ".h5"]))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes, suffix: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    for content in (data, b"\x89HDF\r\n\x1a\n" + data, struct.pack("<Q", len(data)) + data):
        path.write_bytes(content)
        said = file_problem(path, len(content))
        assert said is None or isinstance(said, str)


# --- what counts as one ----------------------------------------------------------------------


def test_names_of_many_trainers(tmp_path: Path) -> None:
    torch_like(tmp_path / "checkpoint-500/pytorch_model.bin")
    torch_like(tmp_path / "checkpoint-500/global_step500/mp_rank_00_model_states.pt")
    npz(tmp_path / "ckpts/ckpt_000100.npz")
    npz(tmp_path / "ckpts/step_200.npz")
    torch_like(tmp_path / "lightning_logs/version_0/checkpoints/epoch=3-step=99.ckpt")
    torch_like(tmp_path / "ckpt.pt")
    safetensors(tmp_path / "model_1000.safetensors")
    torch_like(tmp_path / "save/iter_0001000/mp_rank_00/model_optim_rng.pt")
    (tmp_path / "dcp/step-40").mkdir(parents=True)
    (tmp_path / "dcp/step-40/__0_0.distcp").write_bytes(b"x" * 10)
    (tmp_path / "dcp/step-40/.metadata").write_bytes(b"x" * 10)
    (tmp_path / "orbax/7000/default/d").mkdir(parents=True)
    (tmp_path / "orbax/7000/_CHECKPOINT_METADATA").write_text("{}")
    (tmp_path / "orbax/7000/default/manifest.ocdbt").write_bytes(b"x")
    torch_like(tmp_path / "global_step_20/actor/model_world_size_8_rank_0.pt")
    for part in ("index", "data-00000-of-00001"):
        (tmp_path / f"tf/model.ckpt-30.{part}").parent.mkdir(exist_ok=True)
        (tmp_path / f"tf/model.ckpt-30.{part}").write_bytes(b"x")
    torch_like(tmp_path / "epoch_12.pth")
    torch_like(tmp_path / "best/train_state.pt")
    ago(tmp_path, 1000)
    found = named(tmp_path)
    assert found == {
        "checkpoint-500": (500, None),
        "ckpts/ckpt_000100.npz": (100, None),
        "ckpts/step_200.npz": (200, None),
        "lightning_logs/version_0/checkpoints/epoch=3-step=99.ckpt": (99, 3),
        "ckpt.pt": (None, None),
        "model_1000.safetensors": (1000, None),
        "save/iter_0001000": (1000, None),
        "dcp/step-40": (40, None),
        "orbax/7000": (7000, None),
        "global_step_20": (20, None),
        "tf/model.ckpt-30.data-00000-of-00001": (30, None),
        "epoch_12.pth": (None, 12),
        "best/train_state.pt": (None, None),
    }
    assert problems(tmp_path) == {}


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    npz(tmp_path / "train.npz")
    npz(tmp_path / "dataset_1.npz")
    (tmp_path / "val.bin").write_bytes(b"x")
    (tmp_path / "tokenizer.model").write_bytes(b"x")
    (tmp_path / "training_args.bin").write_bytes(b"x")
    (tmp_path / "metrics.csv").write_text("x")
    (tmp_path / "epoch_3").mkdir()
    (tmp_path / "epoch_3/sample.png").write_bytes(b"x")
    torch_like(tmp_path / ".venv/lib/model.pt")
    torch_like(tmp_path / "elsewhere/model.pt")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "last.ckpt").symlink_to(tmp_path / "elsewhere/model.pt")
    assert named(tmp_path) == {"elsewhere/model.pt": (None, None)}


def test_a_numbered_folder_may_be_a_run(tmp_path: Path) -> None:
    torch_like(tmp_path / "runs/7/checkpoints/step_100.pt")
    torch_like(tmp_path / "runs/7/checkpoints/step_200.pt")
    torch_like(tmp_path / "step_1/step_10.pt")
    assert set(named(tmp_path)) == {
        "runs/7/checkpoints/step_100.pt",
        "runs/7/checkpoints/step_200.pt",
        "step_1/step_10.pt",
    }


# --- what is broken --------------------------------------------------------------------------


def hf(folder: Path, step: int, seconds: float) -> Path:
    path = folder / f"checkpoint-{step}"
    safetensors(path / "model.safetensors", 8000)
    torch_like(path / "optimizer.pt")
    (path / "trainer_state.json").write_text("{}")
    return ago(path, seconds)


def test_a_file_that_siblings_have_is_missing(tmp_path: Path) -> None:
    for step in (100, 200, 300):
        hf(tmp_path, step, 4000 - step)
    (hf(tmp_path, 400, 100) / "optimizer.pt").unlink()
    assert problems(tmp_path) == {"checkpoint-400": ["lacks optimizer.pt, which its siblings have"]}


def test_an_empty_folder_a_truncated_file_and_leftovers(tmp_path: Path) -> None:
    hf(tmp_path, 100, 900)
    ago(cut(hf(tmp_path, 200, 800) / "model.safetensors"), 800)
    (tmp_path / "checkpoint-300").mkdir()
    ago(tmp_path / "checkpoint-300", 700)
    (tmp_path / "tmp-checkpoint-400").mkdir()
    ago(tmp_path / "tmp-checkpoint-400", 600)
    ago(npz(tmp_path / "ckpt_1.npz").rename(tmp_path / "ckpt_1.npz.tmp"), 600)
    found = problems(tmp_path)
    assert found["checkpoint-200"][0].startswith("model.safetensors is truncated")
    assert found["checkpoint-300"] == ["holds no state"]
    assert found["tmp-checkpoint-400"] == ["is a temporary copy that was never finished"]
    assert found["ckpt_1.npz.tmp"][0] == "is a temporary copy that was never finished"
    assert "checkpoint-100" not in found


def test_much_smaller_than_its_siblings(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        ago(npz(tmp_path / f"ckpt_{step}.npz", 5000), 1000 - step)
    ago(npz(tmp_path / "ckpt_40.npz", 100), 500)
    (said,) = problems(tmp_path)["ckpt_40.npz"]
    assert "where its siblings have" in said


def test_shards_and_parts(tmp_path: Path) -> None:
    for number in (1, 2, 4):
        safetensors(tmp_path / f"model-{number:05d}-of-00004.safetensors")
    (tmp_path / "model.ckpt-7.index").write_bytes(b"x")
    (tmp_path / "step-9").mkdir()
    (tmp_path / "step-9/__0_0.distcp").write_bytes(b"x")
    ago(tmp_path, 500)
    found = problems(tmp_path)
    assert found["model-00001-of-00004.safetensors"] == ["has 3 of 4 shards of model.safetensors"]
    assert found["model.ckpt-7.index"] == ["model.ckpt-7.index is there without its data"]
    assert found["step-9"] == ["its .metadata, written last, is missing"]


def test_what_is_being_written_is_not_broken(tmp_path: Path) -> None:
    path = ago(cut(npz(tmp_path / "ckpt_10.npz")), 5)
    assert problems(tmp_path) == {}
    assert scan([tmp_path], NOW.timestamp()).checkpoints[0].writing
    dead = scan([tmp_path], NOW.timestamp(), may_be_writing=False)
    assert len(dead.incomplete) == 1
    ago(path, 600)
    assert len(problems(tmp_path)) == 1


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MAX_ENTRIES", 50)
    for number in range(20):
        hf(tmp_path, number, 1000 - number)
    result = scan([tmp_path / "none", tmp_path], NOW.timestamp())
    assert 1 <= len(result.checkpoints) < 20
    assert result.checkpoints[-1].step == 19
    assert result.incomplete == []
    assert any("stopped looking" in note for note in result.notes)
    assert any("No such file" in note for note in result.notes)


# --- the source ------------------------------------------------------------------------------


def target(folder: Path, **more: object) -> Target:
    return Target(job=Job(id="job"), root=folder, now=lambda: NOW, **more)  # type: ignore[arg-type]


def one(report: SourceReport, quantity: str) -> Observation | None:
    found = [seen for seen in report.observations if seen.quantity == quantity]
    assert len(found) <= 1
    return found[0] if found else None


def value(report: SourceReport, quantity: str) -> object:
    found = one(report, quantity)
    return found.value if found else None


def test_report(tmp_path: Path) -> None:
    log = tmp_path / "logs/train.log"
    log.parent.mkdir()
    log.write_text("step 1\n")
    for step in (100, 200, 300):
        hf(tmp_path / "out", step, 1000 - step)
    report = StorageSource().read(
        target(tmp_path, logs=(log,), config={"train": {"output_dir": "out"}})
    )
    assert report.status == "ok", report.message
    space = shutil.disk_usage(tmp_path)
    assert value(report, "disk.total") == pytest.approx(space.total, rel=0.2)
    assert value(report, "disk.free") == pytest.approx(space.free, rel=0.1)
    assert value(report, "checkpoint.count") == 3
    assert value(report, "checkpoint.age") == 700
    assert value(report, "checkpoint.step") == 300
    assert value(report, "checkpoint.interval") == 100
    assert value(report, "checkpoint.incomplete") == 0
    interval = one(report, "checkpoint.interval")
    assert interval is not None
    assert interval.text == "every 100 steps"
    age = one(report, "checkpoint.age")
    assert age is not None
    assert age.place.file == str(tmp_path / "out/checkpoint-300")
    size = value(report, "checkpoint.size")
    full = one(report, "disk.full_in")
    assert full is not None
    assert full.value == pytest.approx(value(report, "disk.free") / size * 100, rel=1e-3)  # type: ignore[operator]
    row = StorageSource.sample_row(report)
    assert row["disk_free"] == value(report, "disk.free")
    assert row["disk_folder"] == str(tmp_path / "out")
    assert row["checkpoint_step"] == 300


def test_other_runs_beside_the_log_do_not_count(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 1\n")
    hf(tmp_path / "mine", 100, 900)
    hf(tmp_path / "other", 700, 100)
    config = {"output_dir": "mine"}
    report = StorageSource().read(target(tmp_path, logs=(log,), config=config))
    assert value(report, "checkpoint.step") == 100
    report = StorageSource().read(target(tmp_path, logs=(log,), config={"output_dir": "none"}))
    assert value(report, "checkpoint.count") == 2


def test_rotated_checkpoints_fill_no_disk(tmp_path: Path) -> None:
    for step in (100, 200, 300):
        hf(tmp_path, step, 1000 - step)
    report = StorageSource().read(
        target(tmp_path, checkpoint_dirs=(tmp_path,), config={"save_total_limit": 3})
    )
    assert one(report, "disk.full_in") is None


def test_growth_since_earlier_sessions(tmp_path: Path) -> None:
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize

    def row(seconds: float, more: float, **others: object) -> dict[str, object]:
        return {
            "time": (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z"),
            "disk_free": free + more,
            **others,
        }

    earlier = (row(2000, 2e12), row(1000, 1e12, disk_folder=str(tmp_path)),
               row(500, 9e15, disk_folder="/elsewhere"))  # fmt: skip
    report = StorageSource().read(target(tmp_path, checkpoint_dirs=(tmp_path,), earlier=earlier))
    assert value(report, "disk.full_in") == pytest.approx(free / 1e9, rel=0.01)


def test_the_newest_is_broken_and_the_one_before_is_whole(tmp_path: Path) -> None:
    for step in (100, 200, 300):
        hf(tmp_path, step, 1000 - step)
    ago(cut(tmp_path / "checkpoint-300/model.safetensors"), 700)
    report = StorageSource().read(target(tmp_path, checkpoint_dirs=(tmp_path,)))
    broken = one(report, "checkpoint.incomplete")
    assert broken is not None
    assert broken.value == 1
    assert broken.step == 300
    assert "checkpoint-300: model.safetensors is truncated" in (broken.text or "")
    whole = one(report, "checkpoint.whole_age")
    assert whole is not None
    assert (whole.value, whole.step) == (800, 200)


def test_no_checkpoints_yet_missing_folders_and_replays(tmp_path: Path) -> None:
    report = StorageSource().read(target(tmp_path, checkpoint_dirs=(tmp_path,)))
    assert value(report, "checkpoint.count") == 0
    assert one(report, "checkpoint.incomplete") is None
    report = StorageSource().read(target(tmp_path, checkpoint_dirs=(tmp_path / "none",)))
    assert "does not exist" in report.message
    assert value(report, "disk.free") is not None
    unknown = StorageSource().read(target(tmp_path))
    assert unknown.status == "partial"
    assert {seen.quantity for seen in unknown.observations} >= {"disk.free", "disk.total"}
    report = StorageSource().read(target(tmp_path, checkpoint_dirs=(tmp_path,), live=False))
    assert (report.status, report.observations) == ("absent", ())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_folder(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir(mode=0o000)
    try:
        report = StorageSource().read(target(tmp_path, checkpoint_dirs=(tmp_path,)))
    finally:
        inner.chmod(0o700)
    assert report.status == "partial"
    assert "Permission denied" in report.message


def test_a_stale_mount_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.stat

    def stale(path: Path, **options: bool) -> os.stat_result:
        if path.name == "nfs":
            raise OSError(errno.ESTALE, "Stale file handle", str(path))
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", stale)
    folders = (tmp_path / "nfs", tmp_path)
    report = StorageSource().read(target(tmp_path, checkpoint_dirs=folders))
    assert value(report, "disk.free") is not None
    report = StorageSource().read(target(tmp_path, checkpoint_dirs=folders[:1]))
    assert report.status == "partial"
    assert "nfs: Stale file handle" in report.message


def test_folders_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "conf/runs").mkdir(parents=True)
    config = tmp_path / "conf/train.yaml"
    job = Job(id="job", config=str(config))
    beside = Target(job=job, root=tmp_path / "x", config={"output_dir": "runs"})
    assert run_folders(beside) == (tmp_path / "conf/runs",)
    log = tmp_path / "x/out/logs/train.log"
    inside = Target(job=job, root=tmp_path / "x", config={"output_dir": "out"}, logs=(log,))
    assert run_folders(inside) == (tmp_path / "x/out",)


@pytest.mark.parametrize(
    ("free", "earlier", "expected"),
    [
        (1000.0, [(0.0, 3000.0), (100.0, 2000.0)], 100.0),
        (1000.0, [(0.0, 3000.0), (100.0, 2000.0), (150.0, 1.0)], None),
        (3000.0, [(0.0, 3000.0)], None),
        (4000.0, [(0.0, 3000.0)], None),
        (1000.0, [(190.0, 3000.0)], None),
        (1000.0, [], None),
    ],
)
def test_time_until_full(
    free: float, earlier: list[tuple[float, float]], expected: float | None
) -> None:
    got = time_until_full(free, 200.0, earlier)
    if len(earlier) == 3:  # an outlier bends the pace, but does not make it nonsense
        assert got is not None
        assert 30 < got < 300
    else:
        assert got == expected
