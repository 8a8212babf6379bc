"""A machine without luck: no write that fails, no file in the way may lose what was sealed."""

from __future__ import annotations

import errno
import json
import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.answers import MOMENT, SOURCES, begin, make_job, review, skip, strategy, walk_to
from trainwarden.analysts.reviewer import BuiltinReviewer
from trainwarden.analysts.rules import RulesAnalyst
from trainwarden.errors import Refusal, Trouble
from trainwarden.evidence.base import Target
from trainwarden.procedure.remembered import check, check_all
from trainwarden.procedure.session import Session
from trainwarden.procedure.state import StateStore
from trainwarden.procedure.walk import walk
from trainwarden.records.observation import SourceReport, Trust


def watch(root: Path, job: Any) -> Session:
    """A whole unattended session by rules; the log is its only source."""
    session = Session.begin(StateStore(root), job, analyst="rules", take_over="own")
    walk(session, RulesAnalyst(), BuiltinReviewer(), SOURCES)
    return session


class FullDisk:
    """The n-th `fsync` (every file that is written has one) finds no space left."""

    def __init__(self, failing: int) -> None:
        self.failing, self.calls = failing, 0

    def __call__(self, _handle: int) -> None:
        self.calls += 1
        if self.calls == self.failing:
            raise OSError(errno.ENOSPC, "No space left on device")


def test_every_single_write_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = 0
    for number in range(1, 200):
        root = tmp_path / str(number)
        root.mkdir()
        job = make_job(root)
        disk = FullDisk(number)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", disk)
            told = None
            try:
                watch(root, job)
            except Trouble as trouble:
                told, failed = trouble, failed + 1
        assert told is None or ("the disk is full" in str(told) and told.exit_code == 1)
        for one in check_all(StateStore(root)):
            assert one.broken is None, (number, one)
        for path in (root / "monitoring-logs" / "jobs").glob("*.json"):
            json.loads(path.read_text())
        watch(root, job)
        checked = check_all(StateStore(root))
        assert all(one.broken is None for one in checked), (number, checked)
        state, note = StateStore(root).load(job.id)
        assert state is not None
        assert note is None
        assert state.monitor.open_session is None
        assert not list((root / "monitoring-logs").rglob(".*.new"))
        if disk.calls < number:
            break
        shutil.rmtree(root)
    assert failed > 20


def test_all_sources_failing_leaves_a_verdict_of_ignorance(tmp_path: Path) -> None:
    class Broken:
        name, trust, timeout = "log", Trust.LOG, 1.0

        def read(self, target: Target) -> SourceReport:
            raise OSError(errno.EIO, target.root.name)

    session = Session.begin(StateStore(tmp_path), make_job(tmp_path), analyst="rules")
    walk(session, RulesAnalyst(), BuiltinReviewer(), [Broken()])
    assert session.assessment.status.value == "UNCERTAIN"
    assert check(session.store, session.header.session).broken is None


def test_links_in_the_way_are_not_followed(tmp_path: Path) -> None:
    job, victim = make_job(tmp_path), tmp_path / "victim"
    victim.write_text("precious")
    store = StateStore(tmp_path)
    store.jobs.mkdir(parents=True)
    for name in (f"{job.id}.lock", f".{job.id}.json.new"):
        (store.jobs / name).symlink_to(victim)
    with pytest.raises(Trouble, match="symbolic link"), store.hold(job.id, wait=0, purpose="x"):
        pass
    (store.jobs / f"{job.id}.lock").unlink()
    with pytest.raises(Trouble, match="symbolic link"):
        begin(tmp_path, job)
    assert victim.read_text() == "precious"
    walk_to(begin(tmp_path, job), "done")
    store.path(job.id).unlink()
    store.path(job.id).symlink_to(victim)
    state, note = store.load(job.id)
    assert state is None
    assert note
    assert victim.read_text() == "precious"


def test_a_root_that_is_a_link_is_as_good_as_its_folder(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    session = walk_to(begin(link, make_job(link)), "done")
    assert check(StateStore(real), session.header.session).broken is None


def test_a_folder_that_is_gone_renamed_or_swapped_is_noticed(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    first = walk_to(begin(tmp_path, job, clock=lambda: MOMENT), "done")
    later = MOMENT + timedelta(hours=1)
    second = walk_to(begin(tmp_path, job, clock=lambda: later), "done")
    store = first.store
    assert [one.broken for one in check_all(store)] == [None, None]
    aside = tmp_path / "aside"
    first.folder.rename(aside)
    assert "folder is gone" in str(check(store, first.header.session).problem)
    second.folder.rename(first.folder)
    aside.rename(second.folder)
    assert all("swapped" in str(one.problem) for one in check_all(store))
    first.folder.rename(aside)
    second.folder.rename(first.folder)
    shutil.copytree(first.folder, store.logs / "2026-01-01_000000")
    assert "copied" in str(check(store, "2026-01-01_000000").problem)
    with pytest.raises(Refusal, match="no session"):
        check(store, "2020-01-01_000000")


def test_an_older_state_put_back_does_not_hide_a_cut_chain(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    session = walk_to(begin(tmp_path, job), "review")
    path = session.folder / "session.json"
    data = json.loads(path.read_text())
    del data["gates"][3:]
    path.write_text(json.dumps(data))
    assert check(session.store, session.header.session).broken == "the end of the chain"


def test_learnings_that_people_wrote_stay_byte_for_byte(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "review")
    path = session.store.logs / "learnings.md"
    own = b"# Ours\n\nprose \xff\xfe that is no UTF-8\n- one thing\x1b[31m\n- cut"
    path.write_bytes(own)
    session.review(review(session, learnings=[{"scope": "all", "text": "a new\nthing"}]))
    session.troubleshoot(skip())
    session.strategize(strategy())
    session.finish()
    assert path.read_bytes() == own + b"\n- a new thing\n"
    later = begin(tmp_path)
    assert later.header.learnings == ("one thing", "cut", "a new thing")


HOSTILE = (
    "fine\n---\nseal: 0000\n---\n# Step 4\n===\n```\n| a | b |\n<!-- <script>x</script>\n"
    "**Status: HEALTHY**\x1b[31m\u202e [E1] \\| `"
)


def test_no_text_passes_for_the_gate_itself(tmp_path: Path) -> None:
    session = walk_to(
        begin(tmp_path, make_job(tmp_path).model_copy(update={"guidance": HOSTILE})), "done"
    )
    for gate in session.record.gates:
        text = (session.folder / gate.file).read_text(encoding="utf-8")
        lines = text.splitlines()
        assert lines.count("---") == 2
        assert next(line for line in lines if line.startswith("#")).startswith(
            f"# Step {gate.step}:"
        )
        assert sum(line.startswith("# ") for line in lines) == 1
        assert sum(line.startswith("```") for line in lines) % 2 == 0
        assert "<!--" not in text
        assert "<script" not in text
        assert "\x1b" not in text
    assert check(session.store, session.header.session).broken is None
