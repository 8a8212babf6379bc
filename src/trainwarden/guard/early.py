"""Bash before gate 1: the runtime's commands, and a few that read code and config."""

from __future__ import annotations

import os

from trainwarden.guard import runtime
from trainwarden.guard.places import of_type, spread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwarden.guard.places import Ground
    from trainwarden.guard.shell import Simple

_WORDS = frozenset("echo true false pwd whoami uname id nproc which type sleep".split())
_READERS = {
    "cat": ("AbEnstTuv", "", ()),
    "head": ("qv", "nc", ()),
    "tail": ("qv", "nc", ()),
    "wc": ("lwcmL", "", ()),
    "nl": ("", "b", ()),
    "sort": ("nrufhVgb", "kt", ()),
    "uniq": ("cdui", "", ()),
    "cut": ("s", "dfcb", ()),
    "diff": ("uqbwyi", "U", ("--side-by-side", "--brief", "--unified")),
    "tac": ("", "", ()),
    "column": ("t", "s", ()),
}
"""Flags, letters that take a value, long options."""
_FILTERS = {"tr": ("dscC", "", ())}
_GREP = (
    "nihHlLcvwxEFPosrqI",
    "ABCme",
    ("--include", "--exclude", "--exclude-dir", "--color", "--line-number", "--recursive"),
)
_RG = (
    "nilcvwFSUo",
    "ABCmegt",
    (
        "--glob",
        "--type",
        "--no-heading",
        "--line-number",
        "--files-with-matches",
        "--color",
        "--files",
    ),
)
_SIGNS = {"*": "a glob", "~": "a home folder", "{": "a brace"}


def refusal(commands: list[Simple], ground: Ground, plugin: str, reviewer: bool) -> str | None:
    """Why a command line must not run before gate 1; None where it may."""
    for place, one in enumerate(commands):
        reason = _plain(one, ground)
        if reason:
            return reason
        argv = one.argv
        if runtime.is_runtime(argv[0], plugin):
            reason = runtime.refusal(one, ground, early=True, reviewer=reviewer)
        elif argv[0] == "cd":
            reason = _cd(argv, ground, one.joint, commands[place + 1 : place + 2])
        elif argv[0] in _JUDGES:
            reason = _JUDGES[argv[0]](argv, ground, one.joint == "|")
        elif argv[0] in _READERS:
            reason = _reading(argv, ground)
        elif argv[0] in _FILTERS:
            if _sorted_out(argv, *_FILTERS[argv[0]]) is None:
                reason = f"{argv[0]} with these options"
        elif argv[0] not in _WORDS:
            reason = f"`{argv[0]}` is not one of the commands that only read code and config"
        if reason:
            return reason
    return None


def _plain(one: Simple, ground: Ground) -> str | None:
    for word in [*one.words, *(item.word for item in one.redirects)]:
        for mark, what in _SIGNS.items():
            if mark in word.marks:
                return f"{what}: write the names out, or quote it"
    for item in one.redirects:
        if item.is_harmless() or item.word.text == "/dev/null":
            continue
        if item.operator != "<":
            return "nothing is written yet: give input with <<'EOF', or by a pipe"
        reason = ground.unseen(item.word.text)
        if reason:
            return reason
    return None


def _sorted_out(
    argv: list[str], flags: str, valued: str, longs: tuple[str, ...]
) -> tuple[list[tuple[str, str]], list[str]] | None:
    """Options (name and value) and operands; None where an option is not known."""
    given, operands, at = [], [], 1
    while at < len(argv):
        word = argv[at]
        at += 1
        if word == "--":
            operands += argv[at:]
            break
        if word[:1] != "-" or word == "-":
            operands.append(word)
        elif word[:2] == "--":
            name, has, value = word.partition("=")
            if name not in longs:
                return None
            if not has and name in ("--glob", "--type", "--include", "--exclude", "--exclude-dir"):
                value = argv[at] if at < len(argv) else ""
                at += 1
            given.append((name, value))
        elif word[1:].isdigit():
            given.append(("-", word[1:]))
        else:
            for place, letter in enumerate(word[1:], 2):
                if letter in valued:
                    value = word[place:]
                    if not value:
                        value = argv[at] if at < len(argv) else ""
                        at += 1
                    given.append((letter, value))
                    break
                if letter not in flags:
                    return None
                given.append((letter, ""))
    return given, operands


def _unseen(paths: list[str], ground: Ground) -> str | None:
    for path in paths:
        reason = None if path == "-" else ground.unseen(path)
        if reason:
            return reason
    return None


def _reading(argv: list[str], ground: Ground) -> str | None:
    found = _sorted_out(argv, *_READERS[argv[0]])
    if found is None:
        return f"{argv[0]} with these options"
    if argv[0] == "uniq" and len(found[1]) > 1:
        return "uniq writes its second file"
    return _unseen(found[1], ground)


def _grep(argv: list[str], ground: Ground, piped: bool) -> str | None:
    is_rg = argv[0] == "rg"
    found = _sorted_out(argv, *(_RG if is_rg else _GREP))
    if found is None:
        return f"{argv[0]} with these options"
    given, paths = found
    names = [name for name, _ in given]
    if "e" not in names and "--files" not in names:
        paths = paths[1:]
    deep = is_rg or "r" in names or "--recursive" in names
    if not deep or (is_rg and not paths and piped):
        return _unseen(paths, ground)
    globs = []
    limits = [name for name in names if name in ("--include", "--exclude")]
    if limits and limits[0] == "--exclude":
        return "grep --exclude before --include searches all other files"
    for name, value in given:
        if name in ("--include", "--glob", "g") and value[:1] != "!":
            globs += spread(value)
        elif name in ("--type", "t"):
            globs.append(of_type(value))
    for path in paths or ["."]:
        reason = None if path == "-" else ground.unsearched(path, globs)
        if reason:
            return reason
    return None


def _ls(argv: list[str], ground: Ground, piped: bool) -> str | None:  # noqa: ARG001
    found = _sorted_out(argv, "1aAFpdlhtrSR", "", ("--color",))
    if found is None:
        return "ls with these options"
    told = any(name in "lhtrSR" for name, _ in found[0] if name)
    for path in found[1] or ["."]:
        reason = ground.unlisted(path)
        if told and not reason and ground.unsearched(path, []):
            reason = f"{path} holds more than code and config: plain `ls` shows names"
        if reason:
            return reason
    return None


def _sed(argv: list[str], ground: Ground, piped: bool) -> str | None:  # noqa: ARG001
    from trainwarden.guard.programs import sed

    files = sed(argv)
    return "sed with this script" if files is None else _unseen(files, ground)


def _find(argv: list[str], ground: Ground, piped: bool) -> str | None:  # noqa: ARG001
    at = 1
    while at < len(argv) and argv[at][:1] not in ("-", "!", "("):
        at += 1
    paths, negated, printed = argv[1:at] or ["."], False, False
    ways: list[list[str]] = [[]]  # the names of each alternative: one of none shows everything
    while at < len(argv):
        word, value = argv[at], argv[at + 1] if at + 1 < len(argv) else ""
        at += 1
        if printed and word not in ("-o", "-or", ")"):
            return "find with -print before its tests"
        printed = word == "-print" or (printed and word == ")")
        if word in ("-not", "!"):
            if value == "(":
                return "find with a negated group"
            negated = True
            continue
        if word in ("-o", "-or"):
            ways.append([])
        elif word in ("-name", "-iname"):
            ways[-1] += [] if negated else spread(value)
        elif word not in ("-type", "-maxdepth", "-mindepth", "-path", "-print", "-a", "(", ")"):
            return f"find with {word}"
        negated = False
        at += 0 if word in ("-print", "-o", "-or", "-a", "(", ")") else 1
    names = [name for way in ways for name in way] if all(ways) else []
    for path in paths:
        reason = ground.unsearched(path, names, names=True)
        if reason and not names:
            return "find without -name of code or config, as in -name '*.py'"
        if reason:
            return reason
    return None


def _git(argv: list[str], ground: Ground, piped: bool) -> str | None:  # noqa: ARG001
    rest = argv[2:] if argv[1:2] == ["--no-pager"] else argv[1:]
    if rest[:1] == ["-C"] and rest[1:] and ground.real(rest[1]) == ground.project:
        if ground.real(".") != ground.project:
            return "git -C from another folder than the project's own"
        rest = rest[2:]
    command, rest = (rest[0], rest[1:]) if rest else ("", [])
    if command == "status" and not _TRACKED.intersection(rest):
        return "git status names what is not tracked, checkpoints too: add -uno"
    if command in ("status", "branch", "rev-parse", "log", "remote"):
        known = _GIT[command]
        if command == "log" and "--" in rest:
            rest = rest[: rest.index("--")]
        for word in rest:
            name = word if word in _TRACKED else word.partition("=")[0]
            if name not in known and not (command == "log" and word.lstrip("-").isdigit()):
                return f"git {command} with {word}"
        return None
    if command == "show" and len(rest) == 1 and ":" in rest[0]:
        revision, path = rest[0].split(":", 1)
        if not _is_revision(revision):
            return "git show of what is no plain REVISION:FILE"
        if path[:2] != "./" and not os.path.lexists(ground.full(".git")):
            return f"git takes {path} from the top of the repository: write {revision}:./{path}"
        return _pathspec(path, ground)
    if command == "blame" and len(rest) == 1:
        return ground.unseen(rest[0])
    if command == "diff" and "--" in rest:
        at = rest.index("--")
        if rest[at + 1 :] and all(w in _GIT["diff"] or _is_revision(w) for w in rest[:at]):
            reasons = (_pathspec(path, ground) for path in rest[at + 1 :])
            return next(filter(None, reasons), None)
    return (
        "git shows what is committed, logs too: name the file (`git show HEAD:train.py`, "
        "`git diff -- train.py`), or `git log --oneline`, `git status -uno`"
    )


_TRACKED = frozenset(("-uno", "--untracked-files=no"))
_GIT = {
    "status": ("-s", "-sb", "-b", "--short", "--branch", "--porcelain", *_TRACKED),
    "branch": ("--show-current", "-a", "-v", "--list"),
    "rev-parse": ("HEAD", "--show-toplevel", "--short", "--abbrev-ref", "--is-inside-work-tree"),
    "remote": ("-v",),
    "log": ("--oneline", "--decorate", "--graph", "--all", "--format", "--pretty", "-n", "HEAD"),
    "diff": ("--cached", "--staged", "--no-color"),
}


def _is_revision(word: str) -> bool:
    plain = "".join("a" if sign in "~^./-_" else sign for sign in word)
    return word[:1] != "-" and plain.isalnum()


def _pathspec(path: str, ground: Ground) -> str | None:
    """Why git must not be given a path, which it takes for a pattern or a revision in part."""
    if any(sign in path for sign in ":*?[\\"):
        return "a pathspec: name the file"
    return ground.unseen(path)


def _jq(argv: list[str], ground: Ground, piped: bool) -> str | None:  # noqa: ARG001
    found = _sorted_out(argv, "rcSM", "", ())
    if found is None or not found[1]:
        return "jq with these options"
    words = "".join(sign if sign.isalnum() else " " for sign in found[1][0]).split()
    if any(
        word.lower() in ("import", "include", "input", "inputs", "env", "modulemeta")
        for word in words
    ):
        return "jq with a filter that reads more than its files"
    return _unseen(found[1][1:], ground)


def _cd(argv: list[str], ground: Ground, joint: str, after: list[Simple]) -> str | None:
    if joint not in ("", ";") or any(one.joint == "|" for one in after):
        return "cd that may not happen: let it come first"
    if len(argv) != 2 or argv[1][:1] != "/" or ground.real(argv[1]) != ground.project:
        return "cd to the project's own folder only, by its whole path"
    ground.cwd = ground.project
    return None


def _test(argv: list[str], ground: Ground, piped: bool) -> str | None:  # noqa: ARG001
    words = argv[1:-1] if argv[0] == "[" else argv[1:]
    if len(words) == 2 and words[0] in ("-f", "-e", "-d", "-r"):
        return ground.unlisted(words[1]) if words[0] == "-d" else ground.unseen(words[1])
    return f"{argv[0]} other than -f, -e, -r or -d of one file"


def _printf(argv: list[str], ground: Ground, piped: bool) -> str | None:  # noqa: ARG001
    from trainwarden.guard.singles import takes_no_code

    return None if takes_no_code(argv) else "printf with words that a shell may work out"


def _version(argv: list[str], ground: Ground, piped: bool) -> str | None:  # noqa: ARG001
    if argv[1:] in (["--version"], ["-V"]) or argv[1:] in (["list"], ["freeze"]):
        return None if argv[0][:3] == "pip" or argv[1][:1] == "-" else f"`{argv[0]}` runs code"
    if argv[0] in ("pip", "pip3") and argv[1:2] == ["show"]:
        return "pip with these options" if any(word[:1] == "-" for word in argv[2:]) else None
    return f"`{argv[0]}` runs code, and code can read anything"


def _date(argv: list[str], ground: Ground, piped: bool) -> str | None:  # noqa: ARG001
    fine = all(word[:1] == "+" or word in ("-u", "-Is", "--utc") for word in argv[1:])
    return None if fine else "date with these options"


def _command(argv: list[str], ground: Ground, piped: bool) -> str | None:  # noqa: ARG001
    return None if len(argv) == 3 and argv[1] == "-v" else "`command` other than command -v NAME"


_JUDGES = {
    "grep": _grep,
    "egrep": _grep,
    "fgrep": _grep,
    "rg": _grep,
    "ls": _ls,
    "sed": _sed,
    "find": _find,
    "git": _git,
    "jq": _jq,
    "test": _test,
    "printf": _printf,
    "[": _test,
    "python": _version,
    "python3": _version,
    "pip": _version,
    "pip3": _version,
    "date": _date,
    "command": _command,
}
