from __future__ import annotations

import json
import multiprocessing
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwarden.errors import Trouble
from trainwarden.procedure.state import StateStore
from trainwarden.records.job import Job
from trainwarden.records.state import JobState

JOB = Job(id="job-1", config="/runs/a/config.yaml")
NOW = datetime(2026, 1, 2, tzinfo=timezone.utc)


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    return StateStore(tmp_path)


def nothing(state: JobState) -> None:
    del state


def test_namespaces_and_unknown_fields_stay(store: StateStore) -> None:
    store.update(JOB, NOW, nothing, "meta", "monitor", "strategy")
    path = store.path(JOB.id)
    raw = json.loads(path.read_text())
    raw["plugin"] = {"kept": [1]}
    raw["monitor"]["future"] = "kept"
    raw["strategy"]["decisions"] = [{"chosen": "x", "why": "kept"}]
    path.write_text(json.dumps(raw))

    def change(state: JobState) -> None:
        state.monitor.learnings.append("new")
        state.strategy.decisions.append({"never": "written"})

    store.update(JOB, NOW, change, "monitor")
    after = json.loads(path.read_text())
    assert after["plugin"] == {"kept": [1]}
    assert after["monitor"]["future"] == "kept"
    assert after["monitor"]["learnings"] == ["new"]
    assert after["strategy"]["decisions"] == [{"chosen": "x", "why": "kept"}]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"meta": 3}', b"null", b"[" * 9000]
)
def test_a_corrupt_state_is_kept_aside(store: StateStore, content: bytes) -> None:
    store.jobs.mkdir(parents=True)
    path = store.path(JOB.id)
    path.write_bytes(content)
    state, note = store.load(JOB.id)
    assert state is None
    assert note is not None
    kept = path.with_name(path.name + ".corrupt-1")
    assert str(kept) in note
    assert kept.read_bytes() == content
    store.update(JOB, NOW, nothing, "meta")
    path.write_bytes(content)
    store.load(JOB.id)
    assert kept.read_bytes() == path.with_name(path.name + ".corrupt-2").read_bytes()


def test_a_newer_state_is_refused_and_untouched(store: StateStore) -> None:
    store.update(JOB, NOW, nothing, "meta")
    path = store.path(JOB.id)
    raw = json.loads(path.read_text()) | {"schema_version": 99}
    path.write_text(json.dumps(raw))
    with pytest.raises(Trouble, match="newer trainwarden"):
        store.load(JOB.id)
    with pytest.raises(Trouble):
        store.update(JOB, NOW, nothing, "meta")
    assert json.loads(path.read_text()) == raw


def test_the_clock_set_back_does_not_move_last_updated(store: StateStore) -> None:
    store.update(JOB, NOW, nothing, "meta")
    store.update(JOB, NOW.replace(year=2020), nothing, "meta")
    state, _ = store.load(JOB.id)
    assert state is not None
    assert state.meta.last_updated == NOW


def _holder(root: str, ready: object, release: object) -> None:
    with StateStore(Path(root)).hold(JOB.id, wait=5, purpose="holder"):
        ready.set()  # type: ignore[attr-defined]
        release.wait(20)  # type: ignore[attr-defined]


def test_a_held_job_is_refused_clearly_and_free_afterwards(store: StateStore) -> None:
    context = multiprocessing.get_context("spawn")
    ready, release = context.Event(), context.Event()
    process = context.Process(target=_holder, args=(str(store.logs.parent), ready, release))
    process.start()
    try:
        assert ready.wait(20)
        with (
            pytest.raises(Trouble, match=r"another trainwarden is at work.*holder"),
            store.hold(JOB.id, wait=0, purpose="second"),
        ):
            pass
    finally:
        release.set()
        process.join(20)
    with store.hold(JOB.id, wait=5, purpose="third"):
        pass


def test_a_killed_holder_leaves_no_lock(store: StateStore) -> None:
    context = multiprocessing.get_context("spawn")
    ready, release = context.Event(), context.Event()
    process = context.Process(target=_holder, args=(str(store.logs.parent), ready, release))
    process.start()
    assert ready.wait(20)
    process.kill()
    process.join(20)
    with store.hold(JOB.id, wait=5, purpose="after"):
        pass


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=40)
@given(
    extra=st.dictionaries(
        st.text(min_size=1, max_size=10).map("x-".__add__), json_values, max_size=4
    )
)
def test_any_unknown_field_survives(
    tmp_path_factory: pytest.TempPathFactory, extra: dict[str, object]
) -> None:
    store = StateStore(tmp_path_factory.mktemp("root"))
    store.update(JOB, NOW, nothing, "meta")
    path = store.path(JOB.id)
    raw = json.loads(path.read_text())
    raw |= extra
    raw["meta"] |= extra
    path.write_text(json.dumps(raw))
    store.update(JOB, NOW, nothing, "meta", "monitor", "strategy")
    after = json.loads(path.read_text())
    for key, value in extra.items():
        assert after[key] == value
        assert after["meta"][key] == value
