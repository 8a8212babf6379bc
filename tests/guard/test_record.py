from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from trainwarden.guard import record


def open_file(root: Path, client: str, session: str, **changed: object) -> Path:
    """An open session as the runtime writes it."""
    data = {
        "session": session,
        "job": "job-1",
        "client": client,
        "root": str(root),
        "authority": "observe",
        "next": 1,
        "revision": 1,
        "command": "trainwarden predict",
        "evidence": [],
        "config": [],
        **changed,
    }
    path = Path(record.open_path(str(root), client, session))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path


def test_nothing_is_open_where_nothing_was_ever_watched(tmp_path: Path) -> None:
    assert record.open_sessions(str(tmp_path), "c") == ([], 0)
    (tmp_path / "monitoring-logs").write_text("a file where a folder is meant")
    assert record.open_sessions(str(tmp_path), "c") == ([], 0)


def test_a_client_holds_its_own_sessions_and_others_only_count(tmp_path: Path) -> None:
    open_file(tmp_path, "c", "s1")
    open_file(tmp_path, "c", "s2", next=4)
    open_file(tmp_path, "cc", "s3")
    open_file(tmp_path, record.NOBODY, "s4")
    held, count = record.open_sessions(str(tmp_path), "c")
    assert [(session.session, session.next) for session in held] == [("s1", 1), ("s2", 4)]
    assert count == 4


def test_a_session_survives_being_written_and_read(tmp_path: Path) -> None:
    path = open_file(tmp_path, "c", "s1", evidence=["/a b/train.log"])
    session = record.opened(str(tmp_path), path.name)
    assert session is not None
    assert session.as_data() == json.loads(path.read_text())


@pytest.mark.parametrize("text", ["", "{", '{"session": "s1"}', "[]"])
def test_a_session_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path, text: str) -> None:
    open_file(tmp_path, "c", "s1").write_text(text)
    with pytest.raises((ValueError, KeyError, TypeError)):
        record.open_sessions(str(tmp_path), "c")


def test_a_client_cannot_name_a_file_elsewhere(tmp_path: Path) -> None:
    path = Path(record.seen_path(str(tmp_path), "../../x y.é"))
    assert path.parent == Path(record.folder(str(tmp_path))) / "seen"


def test_events_are_kept_in_order_and_a_torn_one_is_left_out(tmp_path: Path) -> None:
    root = str(tmp_path)
    record.append(root, "c", "began", tool_use="t1")
    record.append(root, "c", "refused", tool_use="t1", why="x" * (record.MOST + 5))
    with Path(record.seen_path(root, "c")).open("a") as file:
        file.write('no json\n["no event"]\n{"event": "ended", "tool_u')
    found = record.events(root, "c")
    assert [event["event"] for event in found] == ["began", "refused"]
    assert len(found[1]["why"]) == record.MOST
    assert found[0]["at"] <= found[1]["at"]
    assert record.events(root, "another") == []


def _write(root: str, name: int) -> None:
    for _ in range(50):
        record.append(root, "c", "call", tool_use=str(name), commands=[["x" * 3000]])


def test_writers_at_once_do_not_tear_each_other(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(str(tmp_path), n)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(record.events(str(tmp_path), "c")) == 200
