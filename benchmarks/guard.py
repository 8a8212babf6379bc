"""The guard's time per tool call, as a ratio to a bare interpreter start in the same run.

`make bench`, or `python benchmarks/guard.py [--turns N] [--json]`. Each figure is the median of
pairs: a whole process, and right after it `python3 -I -S -c pass`, both with the event on standard
input as the client gives it. Projects with one job and with a thousand; with a thousand sessions of
others open, too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from support.hooks import command  # noqa: E402
from trainwarden.guard import record  # noqa: E402

BARE = [sys.executable, "-I", "-S", "-c", "pass"]
GUARD = command(sys.executable, ROOT)
CLIENT = "0b0f7a52-6a4c-4a0e-9d0a-2f1f4f3d6b11"
LIMIT = 1.6


def project(folder: Path, jobs: int, held_at: int | None, others: int = 0) -> Path:
    """A project with so many jobs watched before, a session of ours at a step, others' besides."""
    (folder / "out").mkdir(parents=True)
    (folder / "config.yaml").write_text("learning_rate: 3.0e-4\n")
    (folder / "train.log").write_text("step 1 | loss 2.3\n")
    logs = folder / "monitoring-logs"
    (logs / "jobs").mkdir(parents=True)
    for n in range(jobs):
        (logs / "jobs" / f"job-{n:04d}.json").write_text('{"meta": {}}\n')
        session = logs / f"2026-01-{1 + n % 28:02d}_{n:06d}"
        session.mkdir()
        (session / "session.json").write_text("{}\n")
    for n in range(others):
        open_session(folder, f"other-{n:04d}", f"2026-02-01_{n:06d}", 3)
    if held_at is not None:
        open_session(folder, CLIENT, "2026-03-01_101500", held_at)
    return folder


def open_session(root: Path, client: str, session: str, step: int) -> None:
    """What the runtime writes for an open session."""
    said = record.Open(
        {
            "session": session,
            "job": "job-0000",
            "client": client,
            "root": str(root),
            "authority": "observe",
            "next": step,
            "revision": 1,
            "command": "trainwarden predict",
            "evidence": [str(root / "train.log"), str(root / "out")],
            "config": [str(root / "config.yaml")],
        }
    )
    path = Path(record.open_path(str(root), client, session))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(said.as_data()))


def event(root: Path, tool: str, asked: Mapping[str, str]) -> bytes:
    """A tool call as the client tells of it."""
    data = {
        "session_id": CLIENT,
        "transcript_path": "/home/user/.claude/projects/a-project/conversation.jsonl",
        "cwd": str(root),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": dict(asked),
        "tool_use_id": "toolu_01A09q90qw90lq917835lq9",
    }
    return json.dumps(data, separators=(",", ":")).encode()


def took(command: Sequence[str], told: bytes, root: Path) -> float:
    """Seconds of one whole process."""
    environment = {"CLAUDE_PROJECT_DIR": str(root), "PATH": os.environ["PATH"]}
    began = time.perf_counter()
    done = subprocess.run(command, input=told, env=environment, capture_output=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode or done.stderr:
        raise SystemExit(f"{command[-1]} failed: {done.stderr.decode()}")
    return seconds


def refused(root: Path, told: bytes) -> bool:
    """Whether the guard refuses a call: what is timed is what it is said to be."""
    environment = {"CLAUDE_PROJECT_DIR": str(root)}
    done = subprocess.run(GUARD, input=told, env=environment, capture_output=True, check=True)
    return b'"deny"' in done.stdout


def cases(folder: Path) -> list[tuple[str, Path, bytes, bool]]:
    """What is measured: its name, the project, the event, whether it is refused."""
    read = {"file_path": "train.log"}
    bash = {"command": "ls && cat config.yaml", "description": "Look at the config"}
    tail = {"command": "tail -n 200 train.log | grep loss"}
    makers: list[tuple[str, Callable[[], tuple[Path, Path]]]] = [
        ("1 job", lambda: _pair(folder / "one", 1, 0)),
        ("1,000 jobs", lambda: _pair(folder / "many", 1000, 0)),
        ("1,000 open for others", lambda: _pair(folder / "open", 1000, 1000)),
    ]
    found = []
    closed = project(folder / "closed", 1000, None)
    found.append(("no session open, Bash", closed, event(closed, "Bash", bash), False))
    for name, make in makers:
        early, late = make()
        read = {"file_path": str(early / "train.log")}
        found += [
            (f"before gate 1, Bash passes, {name}", early, event(early, "Bash", bash), False),
            (f"before gate 1, Read refused, {name}", early, event(early, "Read", read), True),
            (f"after gate 1, Read passes, {name}", late, event(late, "Read", read), False),
            (f"after gate 1, Bash passes, {name}", late, event(late, "Bash", tail), False),
        ]
    others = project(folder / "others", 1000, None, others=1000)
    found.append(("1,000 open for others, none here", others, event(others, "Bash", bash), False))
    return found


def _pair(folder: Path, jobs: int, others: int) -> tuple[Path, Path]:
    return (
        project(folder / "early", jobs, 1, others),
        project(folder / "late", jobs, 4, others),
    )


def benchmark(folder: Path, turns: int) -> list[dict[str, object]]:
    """All figures; each row says whether it is within its limit."""
    rows: list[dict[str, object]] = []
    for what, root, told, expected in cases(folder):
        if refused(root, told) is not expected:
            raise SystemExit(f"{what}: the guard judged otherwise")
        pairs = [(took(GUARD, told, root), took(BARE, told, root)) for _ in range(turns)]
        guard, bare = (statistics.median(one) for one in zip(*pairs, strict=True))
        ratio = statistics.median(ours / theirs for ours, theirs in pairs)
        rows.append(
            {
                "what": f"guard: {what}",
                "milliseconds": 1000 * guard,
                "bare": 1000 * bare,
                "value": ratio,
                "within": ratio <= LIMIT,
            }
        )
    return rows


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trainwarden-bench-") as temporary:
        rows = benchmark(Path(temporary), options.turns)
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(
            f"{row['what']:<58} {row['value']:>10.2f} x      (limit {LIMIT:g}; "
            f"{row['milliseconds']:.1f} ms against {row['bare']:.1f})"
        )
    if any(not row["within"] for row in rows):
        raise SystemExit("a figure is beyond its limit")


if __name__ == "__main__":
    main()
