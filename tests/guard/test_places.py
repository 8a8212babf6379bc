"""Which files are code or config, and which could tell of a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.ground import Project
from trainwarden.guard.places import Ground, ending, inside, kind, looks_like_checkpoint, spread


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("train.py", "code"), ("run.SH", "code"), ("kernel.cu", "code"), ("job.sbatch", "code"),
        ("config.yaml", "config"), ("base.yml", "config"), ("pyproject.toml", "config"),
        ("ds_config.json", "config"), ("training_args.json", "config"), ("package.json", "config"),
        ("Dockerfile", "config"), ("Dockerfile.gpu", "config"), ("Makefile", "config"),
        ("requirements-dev.txt", "config"), ("README.md", "config"), ("logging.yaml", "config"),
        ("eval_config.yaml", "config"), ("train.log", ""), ("train.log.py.log", ""),
        ("x.jsonl", ""),
        ("trainer_state.json", ""), ("all_results.json", ""), ("data.json", ""),
        ("metrics.yaml", ""),
        ("eval_results.md", ""), ("nohup.out", ""), ("slurm-1.out", ""), ("notebook.ipynb", ""),
        ("plot.png", ""), ("events.out.tfevents.1", ""), ("run.wandb", ""), ("notes.txt", ""),
        ("loss.csv", ""), ("log", ""), ("model.pt", ""), ("config.yaml.bak", ""),
        ("config.log", ""),
        ("state.json", ""), ("config_state.json", ""), (".env", ""), ("", ""),
    ],
)  # fmt: skip
def test_kinds_by_name(name: str, expected: str) -> None:
    assert kind(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("eval.yaml", "config"), ("metrics.yaml", "config"), ("llama.json", "config"),
     ("results.yaml", ""), ("trainer_state.json", ""), ("train.log", ""), ("x.csv", "")],
)  # fmt: skip
def test_kinds_in_a_folder_of_configs(name: str, expected: str) -> None:
    assert kind(name, beside=True) == expected


@pytest.mark.parametrize(
    "name",
    ["checkpoint-500", "epoch=3-step=9.ckpt", "model.safetensors", "global_step100", "a.pt"],
)
def test_names_that_tell_how_far_a_run_is(name: str) -> None:
    assert looks_like_checkpoint(name)


@pytest.mark.parametrize("name", ["checkpoint.py", "epochs.py", "train.py", "steps", "model"])
def test_names_that_do_not(name: str) -> None:
    assert not looks_like_checkpoint(name)


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False), ("/A/b", "/a", True),
        ("/a", "/a/b", False), ("/x", "/", True), ("/a/b", "/a/", True),
    ],
)  # fmt: skip
def test_inside(path: str, folder: str, expected: bool) -> None:
    assert inside(path, folder) is expected


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.py", ".py"), ("**/x*.PY", ".py"), ("*", ""), ("*.p*", ""), ("*.[p]y", ""),
        ("!*.py", ""),
        ("a.b/*", ""), ("*.{py,log}", ""), ("x.py/..", ""),
    ],
)  # fmt: skip
def test_the_ending_of_a_glob(glob: str, expected: str) -> None:
    assert ending(glob) == expected


def test_braces_of_a_glob_are_spread() -> None:
    assert spread("*.{py,yaml}") == ["*.py", "*.yaml"]
    assert spread("*.py") == ["*.py"]
    assert all(ending(part) == "" for part in spread("*.{p{y,l},x}"))


def test_an_output_folder_that_is_the_whole_project_leaves_code_and_config(tmp_path: Path) -> None:
    project = Project(tmp_path)
    held = project.open()
    held.evidence = [str(project.root)]
    ground = Ground(str(project.root), str(project.root), "", [held])
    assert ground.unseen("train.py") is None
    assert ground.unseen("config.yaml") is None
    assert ground.unseen("train.log") is not None
    assert ground.unseen("outputs/notes.yaml") is not None


def test_a_config_that_the_job_names_may_lie_anywhere(tmp_path: Path) -> None:
    project = Project(tmp_path)
    held = project.open()
    held.config = [str(project.elsewhere / "stray.yaml"), str(project.root / "outputs/notes.yaml")]
    ground = Ground(str(project.root), str(project.root), "", [held])
    assert ground.unseen(str(project.elsewhere / "stray.yaml")) is None
    assert ground.unseen("outputs/notes.yaml") is None
    assert ground.unseen("outputs/checkpoint-500/config.json") is not None
    (project.elsewhere / "train.py").write_text("")
    assert ground.unseen(str(project.elsewhere / "train.py")) is None
    assert ground.unseen(str(project.elsewhere / "other.yaml")) is not None


def test_a_new_hard_link_or_device_is_not_read(tmp_path: Path) -> None:
    project = Project(tmp_path)
    ground = Ground(str(project.root), str(project.root), "", [project.open()])
    os.link(project.root / "train.py", project.root / "twin.py")
    os.mkfifo(project.root / "pipe.py")
    assert "hard link" in str(ground.unseen("twin.py"))
    assert "regular" in str(ground.unseen("pipe.py"))


def test_a_folder_of_config_alone_is_searched_whole(tmp_path: Path) -> None:
    project = Project(tmp_path)
    ground = Ground(str(project.root), str(project.root), "", [project.open()])
    assert ground.unsearched("configs", []) is None
    (project.root / "configs/notes.log").write_text("x")
    assert ground.unsearched("configs", []) is not None
    assert ground.unsearched("configs", ["*.yaml"]) is None
    assert ground.unsearched("configs", ["*.yaml", "*.log"]) is not None


def test_the_config_of_a_downloaded_model_is_read(tmp_path: Path) -> None:
    project = Project(tmp_path)
    ground = Ground(str(project.root), str(project.root), "", [project.open()])
    model = tmp_path / "hub" / "models--a--b"
    snapshot = model / "snapshots" / "0a1b"
    snapshot.mkdir(parents=True)
    (model / "blobs").mkdir()
    for name in ("config.json", "README.md", "trainer_state.json"):
        (model / "blobs" / f"digest-{name[:3]}").write_text("{}")
        (snapshot / name).symlink_to(f"../../blobs/digest-{name[:3]}")
    (snapshot / "away.yaml").symlink_to(project.root / "train.log")
    (snapshot / "model-00001-of-2.safetensors").write_text("x")
    assert ground.unseen(f"{snapshot}/config.json") is None
    assert ground.unlisted(str(snapshot)) is None
    for name in ("README.md", "trainer_state.json", "away.yaml", "../../../other.json"):
        assert ground.unseen(f"{snapshot}/{name}") is not None
    held = project.open()
    held.evidence = [str(model)]
    ground = Ground(str(project.root), str(project.root), "", [held])
    assert ground.unseen(f"{snapshot}/config.json") is not None


def test_the_client_may_jot_down_in_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "a.yaml").write_text("x")
    monkeypatch.setenv("CLAUDE_CODE_TMPDIR", str(scratch))
    ground = Ground(str(project.root), str(project.root), "", [project.open(4)])
    assert ground.unwritten(str(scratch / "a.yaml")) is None
    assert ground.unwritten(str(scratch / ".git/config")) is not None
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(scratch))
    assert ground.unwritten(str(scratch / "a.yaml")) is not None


def test_what_is_kept_may_be_kept_elsewhere(tmp_path: Path) -> None:
    project = Project(tmp_path)
    shelf = tmp_path / "shelf"
    (project.root / "monitoring-logs").rename(shelf)
    (project.root / "monitoring-logs").symlink_to(shelf)
    ground = Ground(str(project.root), str(project.root), "", [project.open()])
    for path in ("monitoring-logs/x.md", str(shelf / "jobs/job.json"), "gate/x"):
        assert ground.is_kept(path), path
        assert ground.unchanged(path) is not None, path
    assert not ground.is_kept(str(tmp_path / "x"))
    assert ground.unseen("monitoring-logs/2026-11-01_120000/4-metrics.md") is None
    assert ground.unseen("monitoring-logs/readings/job.json") is not None


@pytest.mark.parametrize(
    "name", ["trainer_state.json", "metrics.yaml", "train.log", "log_history.json", "run.jsonl"]
)
def test_results_are_not_read_as_config(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path)
    (project.root / name).write_text("{}")
    session = project.open()
    session.config = [*session.config, str(project.root / name)]
    session.evidence = []
    ground = Ground(str(project.root), str(project.root), "", [session])
    assert ground.unseen(name) is not None


@pytest.mark.parametrize("name", ["run.json", "exp-1.txt", "params", "log_config.json"])
def test_a_config_may_be_called_anything_else(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path)
    (project.root / name).write_text("{}")
    session = project.open()
    session.config = [str(project.root / name)]
    ground = Ground(str(project.root), str(project.root), "", [session])
    assert ground.unseen(name) is None
    session.evidence = [str(project.root / name)]
    ground = Ground(str(project.root), str(project.root), "", [session])
    assert ground.unseen(name) is not None


@given(st.text())
def test_no_path_breaks_the_judgement(path: str) -> None:
    ground = Ground("/tmp", "/tmp/project", "/tmp/plugin", [])
    for judge in (ground.unseen, ground.unlisted, ground.unwritten, ground.unchanged):
        assert judge(path) is None or isinstance(judge(path), str)
    ground.unsearched(path, [path])
    kind(path)
