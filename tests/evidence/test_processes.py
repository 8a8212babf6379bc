"""The process source against real processes: growing, stopped, dead, orphaned."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.procs import SLEEPER, Processes, processes, wait_for
from trainwarden.evidence import proctable
from trainwarden.evidence.base import Target
from trainwarden.evidence.lineage import Past
from trainwarden.evidence.processes import ProcessSource, sample_row
from trainwarden.evidence.vitals import slope
from trainwarden.records.job import Job
from trainwarden.records.observation import Observation, SourceReport, Trust

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

LAUNCHER = """
import os, pathlib, subprocess, sys, time
env = dict(os.environ, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29123")
for rank in range(2):
    env["RANK"] = env["LOCAL_RANK"] = str(rank)
    if "--elastic" in sys.argv:
        env["TORCHELASTIC_RUN_ID"] = "none"
    worker = subprocess.Popen([sys.executable, "-S", "train.py", "--lr", "1e-3"], env=env)
    pathlib.Path(f"worker{rank}").write_text(str(worker.pid))
pathlib.Path("ready").touch()
time.sleep(300)
"""


@pytest.fixture
def procs(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as made:
        yield made


def look(
    folder: Path,
    *pids: int,
    earlier: tuple[dict[str, Any], ...] = (),
    window: float = 0.3,
    samples: int = 4,
    logs: tuple[Path, ...] = (),
    live: bool = True,
    after: float = 0.0,
) -> SourceReport:
    target = Target(
        job=Job(id="j", config=str(folder / "none.yaml"), logs=tuple(map(str, logs))),
        root=folder,
        pids=pids,
        earlier=earlier,
        live=live,
        now=lambda: datetime.now(timezone.utc) + timedelta(seconds=after),
    )
    return ProcessSource(window, samples).read(target)


def one(
    report: SourceReport, quantity: str, subject: str = "job", stat: str = "last"
) -> Observation:
    found = [
        o
        for o in report.observations
        if (o.quantity, o.subject, o.stat) == (quantity, subject, stat)
    ]
    assert len(found) == 1, (quantity, subject, stat, report)
    return found[0]


def none(report: SourceReport, quantity: str) -> bool:
    return not [o for o in report.observations if o.quantity == quantity]


def test_a_living_process_is_described(procs: Processes, tmp_path: Path) -> None:
    pid = procs.python(
        "train.py",
        "import pathlib, time\n"
        "log = open('train.log', 'a')\n"
        "pathlib.Path('ready').touch()\n"
        "end = time.monotonic() + 300\n"
        "while time.monotonic() < end: pass\n",
        "--api-key",
        "Zq9xW3vB7nM1kL5jH8gF",
    )
    report = look(tmp_path, pid)
    assert report.status == "ok", report.message
    assert report.trust is Trust.PROCESS
    assert one(report, "process.alive").value is True
    assert one(report, "process.alive").place.pid == pid
    assert one(report, "process.count").value == 1
    assert one(report, "process.state", f"pid {pid}").value == "running"
    assert float(one(report, "process.rss").value) > 1e6
    assert one(report, "process.threads").value == 1
    assert 0 < float(one(report, "process.cpu").value) < 1.6
    assert one(report, "process.open_log", f"pid {pid}").value == str(tmp_path / "train.log")
    started = datetime.fromisoformat(
        str(one(report, "process.started").value).replace("Z", "+00:00")
    )
    assert abs(started.timestamp() - psutil.Process(pid).create_time()) < 2
    assert "Zq9xW3" not in report.model_dump_json()
    assert none(report, "process.launcher_alive")


def test_memory_that_grows_is_measured_within_and_between_sessions(
    procs: Processes, tmp_path: Path
) -> None:
    pid = procs.python(
        "train.py",
        "import pathlib, time\n"
        "kept = []\n"
        "while True:\n"
        "    kept.append(b'x' * 2_000_000)\n"
        "    if len(kept) == 3: pathlib.Path('ready').touch()\n"
        "    time.sleep(0.02 if len(kept) < 200 else 300)\n",
    )
    first = look(tmp_path, pid, window=0.6, samples=7)
    growth = one(first, "process.rss_growth")
    assert growth.unit == "bytes/s"
    assert float(growth.value) > 1e6
    row = sample_row(first)
    assert row["pids"] == {str(pid): pytest.approx(psutil.Process(pid).create_time(), abs=0.02)}
    second = look(tmp_path, pid, earlier=(row,), after=100.0)
    between = one(second, "process.rss", stat="growth")
    gained = float(one(second, "process.rss").value) - row["rss"]
    assert gained > 0
    assert float(between.value) == pytest.approx(gained / 100, rel=0.05)


def test_memory_of_other_processes_is_no_growth(procs: Processes, tmp_path: Path) -> None:
    pid = procs.python("train.py", SLEEPER)
    row = {**sample_row(look(tmp_path, pid)), "pids": {"1": 5.0}, "roots": [1], "rss": 1}
    report = look(tmp_path, pid, earlier=(row,), after=100.0)
    assert not [
        o for o in report.observations if o.stat == "growth" and o.quantity == "process.rss"
    ]
    assert one(report, "process.restarted").value is True


def test_a_steady_process_does_not_grow(procs: Processes, tmp_path: Path) -> None:
    report = look(tmp_path, procs.python("train.py", SLEEPER))
    assert one(report, "process.rss_growth").value == 0
    assert float(one(report, "process.cpu").value) < 0.2


def test_a_stopped_process_is_alive_and_said_to_be_stopped(
    procs: Processes, tmp_path: Path
) -> None:
    pid = procs.python("train.py", SLEEPER)
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    report = look(tmp_path, pid)
    state = one(report, "process.state", f"pid {pid}")
    assert state.value == "stopped"
    assert "SIGCONT" in str(state.text)
    assert one(report, "process.alive").value is True


@pytest.mark.parametrize(
    ("end", "code"), [("os._exit(3)", 3), ("os.kill(os.getpid(), 9)", "signal 9"), ("0", 0)]
)
def test_a_zombie_is_no_life_and_tells_how_it_ended(
    procs: Processes, tmp_path: Path, end: str, code: int | str
) -> None:
    pid = procs.python("train.py", f"import os, pathlib\npathlib.Path('ready').touch()\n{end}\n")
    wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    report = look(tmp_path, pid)
    assert one(report, "process.alive").value is False
    assert one(report, "process.state", f"pid {pid}").value == "zombie"
    assert one(report, "process.exit", f"pid {pid}").value == code
    assert sample_row(report) == {}


def test_a_dead_worker_beside_living_ones(procs: Processes, tmp_path: Path) -> None:
    procs.script("train.py", "import time; time.sleep(300)\n")
    pid = procs.python("torchrun", LAUNCHER, "train.py")
    workers = [int((tmp_path / f"worker{rank}").read_text()) for rank in range(2)]
    first = look(tmp_path, pid)
    assert one(first, "process.count").value == 3
    assert one(first, "process.launcher_alive").value is True
    assert str(one(first, "process.state", f"pid {workers[1]}").text).startswith("rank 1: ")
    row = sample_row(first)
    assert row["roots"] == [pid]
    assert row["ranks"] == {str(workers[0]): "0", str(workers[1]): "1"}
    assert row["launcher"]["name"] == "torchrun"
    os.kill(workers[1], signal.SIGKILL)
    wait_for(lambda: psutil.Process(workers[1]).status() == psutil.STATUS_ZOMBIE)
    second = look(tmp_path, pid, earlier=(row,))
    assert one(second, "process.alive").value is True
    assert one(second, "process.exit", f"pid {workers[1]}").value == "signal 9"


@pytest.mark.parametrize("arguments", [(), ("--elastic",)])
def test_a_launcher_that_died_while_its_workers_live(
    procs: Processes, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    procs.script("train.py", "import time; time.sleep(300)\n")
    pid = procs.python("torchrun", LAUNCHER, "train.py", *arguments)
    workers = [procs.adopt(int((tmp_path / f"worker{rank}").read_text())) for rank in range(2)]
    row = sample_row(look(tmp_path, pid))
    procs.kill(pid)
    # With what the earlier session saw: its pids are enough to find the workers again.
    known = look(tmp_path, earlier=(row,))
    assert one(known, "process.alive").value is True
    assert one(known, "process.count").value == 2
    died = one(known, "process.launcher_alive")
    assert died.value is False
    assert f"launcher torchrun (pid {pid}), seen {row['time']}, is gone" in str(died.text)
    assert "launcher torchrun" in known.message
    assert one(known, "process.state", f"pid {pid}").value == "dead"
    # Without: by what the workers' environment says.
    report = look(tmp_path, *workers)
    assert one(report, "process.launcher_alive").value is False
    assert "was started by a launcher" in str(one(report, "process.launcher_alive").text)


def test_a_shell_script_that_died_while_its_python_lives(procs: Processes, tmp_path: Path) -> None:
    procs.script("train.py", SLEEPER)
    procs.script("run.sh", f"{sys.executable} -S train.py &\necho $! > worker\nwait\necho done\n")
    shell = procs.start("sh", "run.sh")
    worker = procs.adopt(int((tmp_path / "worker").read_text()))
    first = look(tmp_path, shell)
    assert one(first, "process.launcher_alive").value is True
    procs.kill(shell)
    second = look(tmp_path, earlier=(sample_row(first),))
    assert one(second, "process.launcher_alive").value is False
    assert one(second, "process.alive").place.pid == worker


def test_a_process_seen_earlier_that_is_gone(procs: Processes, tmp_path: Path) -> None:
    pid = procs.python("train.py", SLEEPER)
    row = sample_row(look(tmp_path, pid))
    procs.kill(pid)
    report = look(tmp_path, earlier=(row,))
    assert report.status == "ok"
    assert one(report, "process.alive").value is False
    assert f"process {pid}, seen {row['time']}, is gone" in report.message
    assert one(report, "process.state", f"pid {pid}").value == "dead"
    assert none(report, "process.rss")


def test_a_pid_that_is_used_again_is_not_the_job(procs: Processes, tmp_path: Path) -> None:
    pid = procs.python("model.py", SLEEPER)
    row = sample_row(look(tmp_path, pid))
    row["pids"] = {str(pid): row["pids"][str(pid)] - 5_000}
    for report in (look(tmp_path, earlier=(row,)), look(tmp_path, pid, earlier=(row,))):
        assert one(report, "process.alive").value is False
        assert "another process's now" in report.message


def test_a_clock_that_was_set_changes_nothing(procs: Processes, tmp_path: Path) -> None:
    pid = procs.python("train.py", SLEEPER)
    row = sample_row(look(tmp_path, pid))
    row["pids"] = {str(pid): row["pids"][str(pid)] + 7_200}
    row["boot"] = {**row["boot"], "time": row["boot"]["time"] + 7_200}
    assert one(look(tmp_path, earlier=(row,)), "process.alive").value is True


def test_another_boot_and_another_host(procs: Processes, tmp_path: Path) -> None:
    pid = procs.python("model.py", SLEEPER)
    row = sample_row(look(tmp_path, pid))
    rebooted = look(tmp_path, earlier=({**row, "boot": {**row["boot"], "id": "another"}},))
    assert one(rebooted, "process.alive").value is False
    assert "started anew" in rebooted.message
    elsewhere = look(tmp_path, earlier=({**row, "boot": {**row["boot"], "host": "another"}},))
    assert elsewhere.status == "absent"


def test_no_process_ever_seen_is_absent_and_no_death(tmp_path: Path) -> None:
    report = look(tmp_path)
    assert report.status == "absent"
    assert "may have ended, or run elsewhere" in report.message
    assert report.observations == ()


def test_a_replay_has_no_processes(tmp_path: Path) -> None:
    report = look(tmp_path, os.getpid(), live=False)
    assert report.status == "absent"
    assert "replay" in report.message


def test_the_job_is_found_by_the_log_it_writes(procs: Processes, tmp_path: Path) -> None:
    log = tmp_path / "out.log"
    pid = procs.python("model.py", SLEEPER, log=log)
    assert one(look(tmp_path, logs=(log,)), "process.alive").place.pid == pid


def test_the_job_is_found_behind_a_pipe_into_tee(procs: Processes, tmp_path: Path) -> None:
    log = tmp_path / "out.log"
    procs.script("model.py", SLEEPER)
    procs.start("sh", "-c", f"{sys.executable} -S model.py 2>&1 | tee {log}; true")
    report = look(tmp_path, logs=(log,))
    assert "model.py" in str(one(report, "process.alive").text)


def test_what_may_not_be_read_is_told_and_the_rest_is_read(
    procs: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = procs.python("train.py", SLEEPER)

    def refuse(*_: object) -> None:
        raise psutil.AccessDenied(pid)

    monkeypatch.setattr(psutil.Process, "io_counters", refuse)
    monkeypatch.setattr(psutil.Process, "open_files", refuse)
    monkeypatch.setattr(psutil.Process, "environ", refuse)
    report = look(tmp_path, pid)
    assert report.status == "partial"
    assert "open files" in report.message
    assert "I/O counters" in report.message
    assert one(report, "process.alive").value is True
    assert none(report, "process.read_bytes")


def test_many_workers_are_summed_and_few_listed(procs: Processes, tmp_path: Path) -> None:
    pid = procs.python(
        "train.py",
        "import os, pathlib, time\n"
        "for _ in range(40):\n"
        "    if os.fork() == 0: time.sleep(300); os._exit(0)\n"
        "pathlib.Path('ready').touch()\n"
        "time.sleep(300)\n",
    )
    report = look(tmp_path, pid)
    assert one(report, "process.count").value == 41
    assert len(sample_row(report)["pids"]) == 41
    assert len([o for o in report.observations if o.quantity == "process.state"]) == 24
    assert one(report, "process.state", f"pid {pid}").value == "sleeping"
    # What asks for the latest of a quantity is given the sum over the job.
    assert [o.subject for o in report.observations if o.quantity == "process.rss"][-1] == "job"


def test_bytes_written_are_counted(procs: Processes, tmp_path: Path) -> None:
    pid = procs.python(
        "train.py",
        "import os, pathlib, time\n"
        "with open('state.bin', 'wb') as f:\n"
        "    f.write(bytes(1_000_000)); f.flush(); os.fsync(f.fileno())\n"
        "pathlib.Path('ready').touch()\n"
        "time.sleep(300)\n",
    )
    report = look(tmp_path, pid)
    own = psutil.Process(pid).io_counters()
    assert one(report, "process.write_bytes").value == own.write_bytes
    assert one(report, "process.read_bytes").value == own.read_bytes


JUNK = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = ("time", "rss", "pids", "roots", "ranks", "launcher", "boot")


@given(st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JUNK)), max_size=4))
def test_any_earlier_rows_are_borne(rows: list[dict[str, Any]]) -> None:
    past = Past.of(rows)
    assert all(sighting.told for sighting in past.gone({}))


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.integers(3, 80), st.data())
def test_the_slope_bears_an_outlier(
    rate: float, start: float, count: int, data: st.DataObject
) -> None:
    points = [(float(t), start + rate * t) for t in range(count)]
    assert slope(points) == pytest.approx(rate, rel=1e-6, abs=1e-6)
    if count > 8:
        at = data.draw(st.integers(0, count - 1))
        points[at] = (points[at][0], 1e12)
        assert slope(points) == pytest.approx(rate, rel=0.3, abs=1e-3)


def test_a_tree_is_read_parents_first_without_what_is_left_out() -> None:
    table = {
        pid: proctable.Proc(pid, parent, "p", ("p",), 0.0)
        for pid, parent in {1: 0, 2: 1, 3: 1, 4: 2, 5: 4, 6: 5}.items()
    }
    assert [proc.pid for proc in proctable.tree(table, [2, 3, 4], leave_out=[5])] == [2, 3, 4]
    assert [proc.pid for proc in proctable.ancestors(table, 6)] == [5, 4, 2, 1]


def test_the_table_read_by_hand_is_that_of_psutil(procs: Processes, tmp_path: Path) -> None:
    title = "a title of its own: step 7"
    body = (
        "import ctypes, pathlib, time\n"
        "ctypes.CDLL(None).prctl(15, b'odd) name (x', 0, 0, 0)\n"
        "pathlib.Path('ready').touch()\ntime.sleep(300)\n"
    )
    pid = procs.python("odd.py", body, title, "")
    table = proctable.read_table()
    assert table[pid].name == "odd) name (x"
    assert table[pid].argv[-2] == title
    for process in psutil.process_iter():
        known = proctable.read_proc(process)
        if known and (read := table.get(known.pid)) and read.created == known.created:
            assert (read.ppid, read.name) == (known.ppid, known.name)
            assert read.argv == known.argv
    log = tmp_path / "run.log"
    writer = procs.python("w.py", SLEEPER, log=log)
    wanted = {(log.stat().st_dev, log.stat().st_ino)}
    assert proctable.writes_to(writer, wanted)
    assert not proctable.writes_to(pid, wanted)
