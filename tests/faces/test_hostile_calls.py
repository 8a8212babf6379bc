"""Calls and input that nobody means well: a message and an exit code, whatever comes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.answers import make_job
from support.cli import COMMAND, answer, call


@pytest.fixture
def run(tmp_path: Path) -> Path:
    make_job(tmp_path)
    return tmp_path


def bomb() -> str:
    lines, last = ["a: &a [x, x, x, x, x, x, x, x, x]"], "a"
    for name in "bcdefghi":
        lines.append(f"{name}: &{name} [{', '.join(f'*{last}' for _ in range(9))}]")
        last = name
    return "\n".join(lines)


INPUTS: dict[str, tuple[bytes, str]] = {
    "aliases": (bomb().encode(), "aliases"),
    "an alias of itself": (b"- &a [*a]", "aliases"),
    "no UTF-8": (b"\xff\xfe\x00", "not UTF-8"),
    "endless digits": (b"[{low: " + b"9" * 5000 + b"}]", "neither YAML nor JSON"),
    "a number that no float holds": (
        b'[{"quantity": "step", "one_of": [' + b"9" * 400 + b'], "level": 0.9, "basis": "x"}]',
        "too large",
    ),
    "no date": (b"[{low: 2026-99-99}]", "neither YAML nor JSON"),
    "too large": (b"x" * (2**20 + 1), "larger than"),
    "not a number": (b"[{quantity: loss, low: .nan, high: 1, level: 0.9, basis: x}]", "numbers"),
    "no level": (b"[{quantity: loss, low: 0, high: 1, level: .nan, basis: x}]", "level"),
    "a field that is none": (b"[{quantity: loss, range: 1, basis: x}]", "range: no such field"),
    "a field left out": (b"[{quantity: loss, low: 1, basis: x}]", "level: is missing"),
    "a colon in a text": (b"- quantity: loss\n  basis: so: it is", "on its own lines after `>-`"),
    "nothing of it": (b"[{quantity: loss, one_of: [], level: 0.9, basis: x}]", "one_of"),
}


@pytest.mark.parametrize("case", INPUTS)
def test_hostile_input_is_refused_in_words(run: Path, case: str) -> None:
    data, message = INPUTS[case]
    answer("begin", "--root", run)
    done = subprocess.run(
        [*COMMAND, "predict", "--json", "--root", str(run)],
        input=data,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert message in told["error"]
    assert told["exit"] == 2
    assert message.encode() in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        (">/dev/full", 1, "could not be given"),
        (">&-", None, ""),
        ("<&-", None, ""),
        ("2>&-", None, ""),
        ("| true", None, ""),
    ],
)
@pytest.mark.parametrize("command", ["run", "status", "jobs --json"])
def test_streams_that_are_closed_or_full(
    run: Path, redirection: str, code: int | None, message: str, command: str
) -> None:
    root = "" if command.startswith("jobs") else f"--root '{run}'"
    line = f"'{COMMAND[0]}' -m trainwarden.faces.cli {command} {root} {redirection}"
    done = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, text=True, check=False, timeout=60
    )
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert message in done.stderr
    if code is not None:
        assert done.returncode == code
    if command == "run" and code == 1:
        (row,) = answer("verify", "--all", "--root", run)["sessions"]
        assert row["intact"] is True
        assert row["gates"] >= 9


def test_paths_that_are_hostile(run: Path, tmp_path: Path) -> None:
    odd = tmp_path / "x\n## Next\n`e`|\x1b[31m"
    odd.mkdir()
    make_job(odd)
    done = call("run", "--root", odd, "--log", odd / "train.log", "--config", odd / "config.yaml")
    assert done.returncode in {0, 10, 20, 30}, done.stderr
    assert "\x1b" not in done.stdout
    assert answer("verify", "--all", "--root", odd)["intact"] is True
    raw = os.fsencode(run) + b"/bad\xff.log"
    Path(os.fsdecode(raw)).write_text("step 1 loss 2\n")
    for arguments in ([b"run", b"--log", raw], [b"read", raw], [b"replay", raw]):
        told = subprocess.run(
            [*map(os.fsencode, COMMAND), *arguments, b"--json"],
            capture_output=True,
            cwd=run,
            check=False,
            timeout=60,
        )
        assert told.returncode in {0, 2}, told.stderr
        assert b"Traceback" not in told.stderr
        json.loads(told.stdout)
    for arguments in (
        ["run", "--log", "~nobody_of_this_name/x", "--root", run],
        ["status", "--root", "~nobody_of_this_name"],
        ["run", "--job", "../../etc/passwd", "--root", run],
        ["begin", "--analyst", "a\nb", "--root", run],
        ["begin", "--analyst", "", "--root", run],
    ):
        assert call(*arguments).returncode == 2


def test_without_a_home(run: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in {"HOME", "USER", "LOGNAME"}}
    done = subprocess.run(
        [*COMMAND, "run", "--root", str(run)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode in {0, 10, 20, 30}, done.stderr


def test_a_session_that_was_changed_does_not_go_on(run: Path) -> None:
    begun = answer("begin", "--root", run)
    predictions = (
        "[{quantity: step, low: 0, high: 9000, level: 0.9, basis: config},"
        " {quantity: loss, low: 0, high: 9, level: 0.9, basis: config},"
        " {quantity: host.load1, high: 99, level: 0.9, basis: any machine}]"
    )
    assert call("predict", "--root", run, stdin=predictions).returncode == 0
    folder = Path(begun["folder"])
    path = folder / "session.json"
    whole = path.read_text()
    path.write_text(whole.replace('"high": 9.0', '"high": 90.0'))
    assert path.read_text() != whole
    refused = call("collect", "--root", run)
    assert refused.returncode == 2
    assert "changed after sealing" in refused.stderr
    assert "1-predict.md" in refused.stderr
    assert call("status", "--root", run).returncode == 0
    path.write_text(whole)
    # A copy is not the session.
    copy = folder.with_name("2020-01-01_000000")
    copy.mkdir()
    (copy / "session.json").write_text(whole)
    (copy / "1-predict.md").write_text((folder / "1-predict.md").read_text())
    assert call("collect", "--session", copy.name, "--root", run).returncode == 2
    for broken in ("", "{", "[1]", "\x00", '{"header": 1}'):
        path.write_text(broken)
        for name in ("collect", "show", "finish"):
            more = [folder.name] if name == "show" else []
            assert call(name, *more, "--root", run).returncode == 2
        assert call("verify", folder.name, "--root", run).returncode == 1
        assert call("status", "--root", run).returncode == 0
    path.write_text(whole)
    assert call("run", "--root", run).returncode == 2, "another analyst's session is under way"
    path.write_text("{")
    done = call("run", "--root", run)
    assert done.returncode in {0, 10, 20, 30}, done.stderr
    assert "set aside" in done.stdout


def test_a_reading_cache_that_is_corrupt_is_read_anew(run: Path) -> None:
    told = answer("run", "--root", run, code=None)
    caches = [path for path in (run / "monitoring-logs" / "readings").rglob("*") if path.is_file()]
    assert caches
    for content in (b"", b"{", b"\xff\xfe", b'{"series": 3}', b"[]"):
        for path in caches:
            path.write_bytes(content)
        again = answer("run", "--root", run, code=None)
        assert again["step"] == told["step"]
