"""What patterns stand for before gate 1, held against bash."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from trainwarden.guard.expansion import _fits, expand
from trainwarden.guard.places import Ground
from trainwarden.guard.shell import parse

NAMES = ("a.py", "b.py", "sub/c.py", "sub/d.yaml", "other/c.py", "conf.d/x.yaml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("expansion")
    for name in NAMES:
        (base / name).parent.mkdir(exist_ok=True)
        (base / name).write_text("x = 1\n", encoding="utf-8")
    return base


def expanded(command: str, folder: Path) -> list[str] | str:
    one = parse(command)[0]
    ground = Ground(str(folder), str(folder), "", [])
    return expand(one, ground) or one.argv[1:]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    "words",
    ["*.py", "sub/*", "*/c.py", "*/*.py", "s*b/*.*", "conf*/x*", "{a,b}.py", "{sub,other}/c.py",
     "sub/{c.py,d.yaml}", "{s,o}*/c.py", "~", "~/x", "./*.py", "'*'.py", "{a}", "{}", "{1..3}",
     "{a,{b,c}}", "x~", "a,b"],
)  # fmt: skip
def test_what_passes_is_what_bash_makes_of_it(
    folder: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    found = expanded(f"ls {words}", folder)
    marks = parse(f"ls {words}")[0].words[1].marks
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {words}"],
        cwd=folder,
        stdout=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
        check=True,
    )
    told = done.stdout.decode().splitlines()
    assert found == told or "{" in marks  # the latter is refused as it stands


@pytest.mark.parametrize("words", ["*.rs", "*.yaml*", "nowhere/*", "-*"])
def test_what_fits_nothing_does_not_pass(folder: Path, words: str) -> None:
    found = expanded(f"ls {words}", folder)
    assert isinstance(found, str) or words[:1] == "-"


def test_hidden_names_and_other_letters_count(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    assert expanded("cat *.p*", tmp_path) == ["a.py"]
    (tmp_path / ".b.PID").write_text("")
    assert "code" in str(expanded("cat *.p*", tmp_path))
    (tmp_path / ".b.PID").rename(tmp_path / "-b.py")
    assert "option" in str(expanded("cat *.p*", tmp_path))


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [("abc", "*", True), ("abc", "a*c", True), ("abc", "*b*", True), ("aba", "a*a*a", False),
     ("ab", "ab*b", False), ("a", "a*a", False), ("abab", "ab*ab", True), ("", "*", True)],
)  # fmt: skip
def test_fitting(name: str, pattern: str, fits: bool) -> None:
    assert _fits(name, pattern.split("*")) is fits
