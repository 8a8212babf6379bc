"""Commands taken apart as bash takes them apart, or not at all."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.guard.shell import Odd, parse

BASH = shutil.which("bash")


def argvs(text: str) -> list[list[str]]:
    return [one.argv for one in parse(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat a b", [["cat", "a", "b"]]),
        ("cat  'a b'\"c d\"\\ e", [["cat", "a bc d e"]]),
        ("a '' \"\"", [["a", "", ""]]),
        ("a && b || c; d | e\nf", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a |\n b", [["a"], ["b"]]),
        ("a \\\n b", [["a", "b"]]),
        ("a b\\\nc", [["a", "bc"]]),
        ('a "b\\\nc"', [["a", "bc"]]),
        ("a # b | c\nd", [["a"], ["d"]]),
        ("a b#c '#d'", [["a", "b#c", "#d"]]),
        ('a "\\$x \\` \\" \\\\ \\n"', [["a", '$x ` " \\ \\n']]),
        ("grep 'x$' \"y$\"", [["grep", "x$", "y$"]]),
        ("a;", [["a"]]),
        ("\n\n a\n\n", [["a"]]),
        ("", []),
        ("# only words", []),
        ("[ -f x ]", [["[", "-f", "x", "]"]]),
    ],
)
def test_words(text: str, expected: list[list[str]]) -> None:
    assert argvs(text) == expected


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("a *.py", "*"), ("a x?", "*"), ("a [x]y", "*"), ("a ~/x", "~"), ("a b=~/x", "~"),
        ("a x~y", ""), ("a {x,y}", "{"), ("a '*'", "'"), ("a \\*", "'"), ("a $?", "?"),
        ('a "$?"', "?'"), ("a x", ""),
    ],
)  # fmt: skip
def test_what_the_shell_would_still_do_is_marked(text: str, marks: str) -> None:
    (one,) = parse(text)
    assert one.words[1].marks == marks


@pytest.mark.parametrize(
    "text",
    [
        "a $x", "a ${x}", "a $(x)", 'a "$x"', 'a "$(x)"', "a `x`", 'a "`x`"', "a $'x'", 'a $"x"',
        "a $((1))", "a $1", "a $$", "a $@", "a $[1]", "(a)", "{ a; }; (b)", "a & b", "a &",
        "a ;; b",
        "a <(b)", "a >(b)", "a <> b", "a |", "| a", "a && && b", "a >", "a < > b", "> x", "a 'b",
        'a "b', "a \\", "a\0b", "a\rb", "a\u00a0b", "a\x0bb", "a 'x\ry'", "=ls", "a =ls", "a >!x",
        "a &>!x", "a &| b", "a &! b", "a <<EOF\nx", "a <<EOF", "a <<EOF\n$x\nEOF", "a >&| x",
        "a <<EOF\n`x`\nEOF", "a <<EOF\nx\\\nEOF\n", "a <<'E F'\nE F", "a {x}>b",
        "a <<'X' 'b\nc'\nX",
        "a 2>", "f() { a; }", "a |& | b", "a\n| b", ";a", "a; ; b", "a <<$x\n", "a ;& b",
    ],
)  # fmt: skip
def test_what_is_not_plain_is_odd(text: str) -> None:
    with pytest.raises(Odd):
        parse(text)


def test_redirections() -> None:
    (one,) = parse("a 2>&1 >b 2>> c <d &>e >|f 3<g x2>h <<<w")
    found = [(item.fd, item.operator, item.word.text) for item in one.redirects]
    assert found == [
        ("2", ">&", "1"), ("", ">", "b"), ("2", ">>", "c"), ("", "<", "d"), ("&", "&>", "e"),
        ("", ">|", "f"), ("3", "<", "g"), ("", ">", "h"), ("", "<<<", "w"),
    ]  # fmt: skip
    assert one.argv == ["a", "x2"]


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("a 2>&1", True), ("a >/dev/null", True), ("a &>/dev/null", True), ("a 2>&-", True),
        ("a <<<x", True), ("a >&x", False), ("a 2>&1x", False), ("a > /dev/null/x", False),
        ("a </dev/null", False), ("a >//dev/null", False),
    ],
)  # fmt: skip
def test_harmless_redirections(text: str, harmless: bool) -> None:
    (one,) = parse(text)
    assert one.redirects[0].is_harmless() is harmless


def test_here_documents() -> None:
    first, second, third = parse("a <<'X' | b <<-\"Y\"\n$x `y`\nX\n\tz\n\tY\nc")
    assert first.redirects[0].word.text == "$x `y`"
    assert second.redirects[0].word.text == "z"
    assert third.argv == ["c"]
    assert [first.joint, second.joint, third.joint] == ["", "|", ";"]


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        commands = parse(text)
    except Odd:
        return
    assert all(one.words for one in commands)


@pytest.mark.skipif(BASH is None, reason="needs bash")
@given(st.text(alphabet="ab'\"\\$#=!~{}*?[]\n\t ,.-:@%^+/é|;&<>()", max_size=14))
def test_words_are_those_that_bash_makes(text: str) -> None:
    try:
        commands = parse("show " + text)
    except Odd:
        return
    if len(commands) != 1 or commands[0].redirects:
        return
    if any(word.marks.strip("'") for word in commands[0].words):
        return
    assert BASH is not None
    script = 'show() { printf "%s\\0" "$@"; }\nshow ' + text
    shown = subprocess.run([BASH, "-c", script], capture_output=True, check=True, cwd="/")
    words = commands[0].argv[1:] or [""]
    assert shown.stdout.decode().split("\0")[:-1] == words


def test_an_older_python_understands_the_guard() -> None:
    for path in (Path(__file__).parents[2] / "src" / "trainwarden" / "guard").glob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_its_modules_are_few_and_cheap() -> None:
    """What a call imports, beside what the interpreter has anyway."""
    source = Path(__file__).parents[2] / "src"
    code = (
        f"import sys; sys.path.insert(0, {str(source)!r}); before = set(sys.modules)\n"
        "from trainwarden.guard import tools, early, commands, carriers, programs, kept\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    dear = {"re", "json", "shlex", "pathlib", "enum", "typing", "fnmatch", "glob", "subprocess"}
    assert not dear & set(done.stdout.split())
