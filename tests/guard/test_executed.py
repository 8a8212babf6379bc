"""What passes is run, in a sandbox: nothing shows the log before gate 1 or changes a file."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.attempts import (
    ALLOWED_EARLY_BASH,
    ALLOWED_EARLY_TEXTS,
    ALLOWED_LATE_BASH,
    REFUSED_EARLY_BASH,
    REFUSED_LATE_BASH,
)
from support.ground import MARKER, Project

BASH = shutil.which("bash")
GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(BASH is None or GIT is None, reason="needs bash and git")

SPICE = [
    "'", '"', "\\", "\\\n", "$", "`", "(", ")", "{", "}", ",", "<", ">", ">>", "<<", "<<<", "<(",
    "EOF", "\n", "|", "&", "&&", "||", ";", " ", "\t", "#", "*", "?", "[", "]", "~", "=", "!",
    "..", "/", "./", "-", "--", "-e", "-f", "-r", "-n", "-c", "-o", "0", "1", "2", "0<", "2>&1",
    "\r", "\u00a0", "\x0b", "train.log", "<train.log", "< train.log", "train.py", "config.yaml",
    "link.yaml", "hard.yaml", "folder/notes.yaml", "outputs", "outputs/notes.yaml", "*.log", ".",
    "HEAD:train.log", "--include=", "--include='*.py'", "--exclude=x", "cat", " cat train.log",
    "grep -r x", "sed", "w x", "r train.log", "1e cat train.log", "p", "sort -o x", "uniq a b",
    "find", "-exec cat train.log ;", "-name", "-o", "git show", "git diff", "echo", "tee x",
    "$(cat train.log)", "`cat train.log`", "$'", '$"', "${x}", "xargs cat", "> x", ">x", "&>x",
    "cd outputs", "cd ..", "test -f", "head", "awk", "{print}", '{print > "x"}', "getline",
    "for f in *.log; do", "for f in rm; do", "; done", "until", "while", "do", "then", "!", "if",
    "$f", '"$f"', "LC_ALL=C", "PAGER=cat", "-exec cat {} +", "-exec rm {} ;", "*.py", "configs/*",
    "*s/*.yaml", "{train.py,train.log}", "~/", "ls -R", "-o -type f", "rg --files", "rm", "tee",
]  # fmt: skip
_LEFT_ALONE = """
kill reboot shutdown mount sysctl apt pip conda install crontab hostname date ssh scp curl wget
docker kubectl sudo service systemctl ray aws gsutil fuser renice taskset nvidia tmux screen sleep
tail top vmstat iostat dmesg journal timeout rocm squeue sacct scontrol sinfo wandb proc dev lsof
py-spy gdb strace nohup torchrun bash python /tmp seq yes
"""
"""Words of commands that are left alone: they wait, or reach beyond the sandbox."""


class Sandbox:
    """The project as a git repository, and a `trainwarden` that shows whatever reaches it."""

    def __init__(self, base: Path) -> None:
        self.project = Project(base)
        tools = base / "tools"
        tools.mkdir()
        shown = tools / "trainwarden"
        shown.write_text('#!/bin/sh\necho "$@"\ncat\n', encoding="utf-8")
        shown.chmod(0o755)
        self.environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(base / "home"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C.UTF-8",
        }
        for words in (
            ["init", "-q"],
            ["add", "-A"],
            ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "all"],
        ):
            where = self.project.root
            assert GIT is not None
            subprocess.run([GIT, *words], cwd=where, env=self.environment, check=True)
        (self.project.root / "train.py").write_text("changed = 1\n", encoding="utf-8")
        self.before = self.files()

    def files(self) -> dict[str, bytes]:
        """Every file of the project by its path, git's own apart."""
        return {
            str(path): path.read_bytes()
            for path in sorted(self.project.root.rglob("*"))
            if path.is_file() and ".git/" not in str(path)
        }

    def run(self, command: str) -> str:
        """What a command shows on both outputs."""
        assert BASH is not None
        done = subprocess.run(
            [BASH, "-c", command],
            cwd=self.project.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=5,
            check=False,
        )
        return done.stdout.decode("utf-8", "replace")

    def check(self, stage: str, command: str) -> bool:
        """Judge a command, and run it where it passes; whether it was run."""
        command = self.project.put(command.replace("@", "\n"))
        if any(word in command for word in _LEFT_ALONE.split()):
            return False
        if self.project.refusal(stage, "Bash", {"command": command}) is not None:
            return False
        try:
            shown = self.run(command)
        except subprocess.TimeoutExpired:  # it waits, or looks through the whole machine
            return False
        if stage == "early":
            assert MARKER not in shown, command
            assert "checkpoint-500" not in shown or "checkpoint-500" in command, command
        assert self.files() == self.before, command
        return True


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    return Sandbox(tmp_path_factory.mktemp("sandbox"))


@st.composite
def spiced(draw: st.DrawFn, bases: list[str]) -> str:
    """A command of a table with one to four pieces put in, taken out or repeated."""
    command = draw(st.sampled_from(bases))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(command)))
        act = draw(st.integers(0, 4))
        if act <= 2:
            gap = draw(st.sampled_from(["", " "]))
            command = command[:at] + gap + draw(st.sampled_from(SPICE)) + gap + command[at:]
        elif act == 3:
            command = command[:at] + command[at + draw(st.integers(1, 3)) :]
        else:
            other = draw(st.sampled_from(bases))
            command = command[:at] + other[draw(st.integers(0, len(other))) :]
    return command


EARLY = [*REFUSED_EARLY_BASH, *ALLOWED_EARLY_BASH, *ALLOWED_EARLY_TEXTS]
LATE = [*REFUSED_LATE_BASH, *ALLOWED_LATE_BASH]
MANY = settings(max_examples=int(os.environ.get("GUARD_EXAMPLES", "200")))


@pytest.mark.parametrize("stage", ["early", "late"])
def test_what_the_tables_allow_does_no_harm(sandbox: Sandbox, stage: str) -> None:
    commands = EARLY if stage == "early" else LATE
    assert sum(sandbox.check(stage, command) for command in commands) >= 40


@pytest.mark.parametrize(
    "base",
    [
        "cat train.log",
        "cat 'train.log'",
        'cat "train.log" train.py',
        "grep -n loss train.log",
        "cat < train.log",
        "cat train.lo*",
        "cat train.py; cat train.log",
        "cat $(echo train.log)",
        "cat train.py # x@cat train.log",
    ],
)
def test_no_quote_more_or_less_shows_the_log(sandbox: Sandbox, base: str) -> None:
    for at in range(len(base) + 1):
        sandbox.check("early", base[:at] + base[at + 1 :])
        for sign in ("'", '"', "\\", "\\\n", "\n", "#", ";", "''", '""'):
            sandbox.check("early", base[:at] + sign + base[at:])
            sandbox.check("early", base[:at] + sign + base[at : at + 3] + sign + base[at + 3 :])


@MANY
@given(command=spiced(EARLY))
def test_nothing_that_passes_early_shows_the_log(sandbox: Sandbox, command: str) -> None:
    sandbox.check("early", command)


@MANY
@given(command=spiced(LATE))
def test_nothing_that_passes_late_changes_a_file(sandbox: Sandbox, command: str) -> None:
    sandbox.check("late", command)


@MANY
@given(parts=st.lists(st.sampled_from(SPICE), min_size=1, max_size=9))
def test_no_mixture_of_signs_gets_by(sandbox: Sandbox, parts: list[str]) -> None:
    for start in ("cat config.yaml", "grep x ", "trainwarden predict "):
        sandbox.check("early", start + " ".join(parts))
        sandbox.check("early", start + "".join(parts))
