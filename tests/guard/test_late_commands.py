"""Commands that only read, with their options: what each rule lets pass."""

from __future__ import annotations

import pytest

from trainwarden.guard import carriers, commands, singles
from trainwarden.guard.commands import simple
from trainwarden.guard.programs import awk, sed
from trainwarden.guard.runtime import options


@pytest.mark.parametrize(
    ("script", "fine"),
    [
        ("p", True), ("5p", True), ("1,5p", True), ("$p", True), ("2,$p", True), ("/x/p", True),
        ("/x/,/y/p", True), ("/x/!d", True), ("s/a/b/", True), ("s/a/b/gp", True), ("s|a|b|", True),
        ("s/a\\/b/c/", True), ("1d;s/a/b/;p", True), ("q", True), ("=", True), ("1~2p", True),
        ("w x", False), ("1w x", False), ("s/a/b/w x", False), ("s/a/b/e", False), ("e", False),
        ("1e ls", False), ("r x", False), ("R x", False), ("W x", False), ("s/[/]/x/w y/", False),
        ("s/[]/]/p;s/w x/y/", False), ("{p}", False), ("a\\x", False), ("p;w x", False), ("", True),
        ("s/a", False), ("s", False), ("s/a/b/;e", False), ("sxaxbx", False), ("y/a/b/", False),
        ("p\nw x", False), ("s/a/b\nw x/", False), ("\\%x%p", False), ("/x/w y", False),
    ],
)  # fmt: skip
def test_scripts_of_sed(script: str, fine: bool) -> None:
    assert (sed(["sed", "-n", script, "a", "b"]) == ["a", "b"]) is fine
    assert (sed(["sed", "-e", script, "a", "b"]) == ["a", "b"]) is fine


@pytest.mark.parametrize("option", ["-i", "-ni", "--in-place", "-f", "-s5", "-z", "-i.bak"])
def test_options_of_sed(option: str) -> None:
    assert sed(["sed", option, "p", "a"]) is None
    assert sed(["sed", "p", "a", option]) is None


@pytest.mark.parametrize(
    ("program", "fine"),
    [
        ("{print}", True), ("{print $5}", True), ("$3 > 5", True), ("$3 > 5 {print $1}", True),
        ("/a|b/ {print}", True), ("a || b {print}", True),
        ("{if ($1 > 2) n++} END {print n}", True),
        ('{print > "x"}', False), ('{print >> "x"}', False), ('{print | "sh"}', False),
        ('{printf "%s", $1 > "x"}', False), ('BEGIN{system("x")}', False), ("{getline}", False),
        ('@load "x"', False), ('BEGIN{f="system"; @f("x")}', False), ("{print $1 > 5}", False),
        ("{sys\\\ntem(1)}", False), ('{x="}"; print "a" > "f"}', False),
    ],
)  # fmt: skip
def test_programs_of_awk(program: str, fine: bool) -> None:
    assert awk(["awk", program, "a"]) is fine
    assert awk(["awk", "-F", ",", "-v", "a=1", program]) is fine
    assert not awk(["awk", "-f", program])
    assert not awk(["awk"])


@pytest.mark.parametrize(
    ("line", "fine"),
    [
        ("timeout 5 timeout 5 timeout 5 timeout 5 cat x", True),
        ("timeout 5 timeout 5 timeout 5 timeout 5 timeout 5 timeout 5 cat x", False),
        ("kubectl", False), ("kubectl exec", False), ("kubectl exec x --", False),
        ("docker", False),
        ("docker exec", False), ("docker exec x", False), ("ssh", False), ("ssh -p", False),
        ("timeout", False), ("timeout 5", False), ("xargs", True), ("sudo", False),
        ("sudo -n dmesg", True), ("sudo -u x dmesg", False), ("curl", True), ("uniq a", True),
        ("uniq -f 1 a", True), ("uniq a 5", False), ("uniq -- a b", False), ("date", True),
        ("date -d yesterday +%s", True), ("date 0101", False), ("hostname -I", True),
        ("nvidia-smi -l 5", True), ("nvidia-smi x", False), ("gzip -dc a", True),
        ("gzip -d a", False), ("find", True), ("find -size -10k", True), ("kill", False),
        ("kill -0", False), ("kill -0 -1", False), ("python", False), ("env x", False),
        ("rocm-smi --showuse", True), ("rocm-smi --showuse --setfan 1", False),
        ("uv pip list", True), ("uv pip list --python x", False), ("tree -L 2", True),
        ("tree -R", False),
        ("find . -exec tail -n 3 {} ;", True), ("find . -exec cat {} + -print", True),
        ("find . -exec cat {} ; -delete", False), ("find . -exec cat + -delete ;", True),
        ("find . -exec rm {} ;", False), ("find . -exec cat {}", False), ("find . -exec", False),
        ("tar tzf x", True), ("tar -tvf x", True), ("tar xtf x", False), ("tar", False),
        ("tar -tf x --to-command=sh", False), ("tar tf x -I sh", False),
        ("taskset -p 17", True), ("taskset -p 1 17", False), ("taskset -cp 17", True),
        ("chrt -p 17", True), ("chrt -p 1 17", False), ("crontab -l", True),
        ("crontab -r", False), ("numactl -H", True), ("numactl -s sh", False),
        ("xz -dc x", True), ("xz -d x", False), ("zstd -dcf x", False), ("unzip -l x", True),
        ("unzip -o x", False), ("ping -c 1 h", True), ("pbsnodes -a", True),
        ("pbsnodes -o n", False), ("conda env list", True), ("conda env remove", False),
        ("ssh h -- cat x", True), ("ssh h -- kill 1", False), ("ssh h --", False),
    ],
)  # fmt: skip
def test_rules(line: str, fine: bool) -> None:
    assert (simple(line.split()) is None) is fine


def test_options_are_read_as_the_command_line_reads_them() -> None:
    given = ["--input", "--material", "--json", "--root=/x", "name", "--session"]
    assert options(given) == [
        ("--input", "--material"), ("--json", ""), ("--root", "/x"), ("", "name"),
        ("--session", ""),
    ]  # fmt: skip


def test_each_table_has_its_rules() -> None:
    assert set(singles.JUDGES) == set(commands.SINGLE)
    assert set(carriers.JUDGES) == set(commands.CARRIERS)
    for names in (commands.SINGLE, commands.CARRIERS, commands.WITHOUT, commands.ONLY):
        assert not commands.PLAIN & set(names)
