"""Commands under authority observe that have a rule each: what of them only reads."""

from __future__ import annotations

from trainwarden.guard.places import inside, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwarden.guard.places import Ground


def _sed(argv: list[str]) -> str | None:
    from trainwarden.guard.programs import sed

    return "sed with a script that may do more than print" if sed(argv) is None else None


def _awk(argv: list[str]) -> str | None:
    from trainwarden.guard.programs import awk

    return None if awk(argv) else "awk with a program that may do more than print"


_FIND = frozenset(
    "-name -iname -path -ipath -wholename -iwholename -type -maxdepth -mindepth -mtime -mmin -ctime"
    " -cmin -atime -amin -newer -newermt -size -printf -print -print0 -ls -not ! -o -or -a -and"
    " -regex -iregex -regextype -empty -user -group -xdev -mount -prune -quit -readable -daystart"
    " -perm -links -inum -samefile -follow -depth -H -L -P ( ) ,".split()
)


def _find(argv: list[str]) -> str | None:
    at = 1
    while at < len(argv):
        word = argv[at]
        at += 1
        if word == "-exec":
            at = _after_exec(argv, at)
            if at < 0:
                return "find -exec with another command than cat, grep, head, tail, wc and the like"
        elif word[:1] == "-" and word not in _FIND and not word[1:2].isdigit():
            return f"find with {word}"
    return None


def _after_exec(argv: list[str], at: int) -> int:
    """The position after what `-exec` runs, where that only reads; -1 elsewhere."""
    from trainwarden.guard.commands import PLAIN

    if at < len(argv) and argv[at] in PLAIN:
        for stop in range(at, len(argv)):
            if argv[stop] == ";" or (argv[stop] == "+" and argv[stop - 1] == "{}"):
                return stop + 1
    return -1


def _uniq(argv: list[str]) -> str | None:
    files = [
        word
        for before, word in zip(argv, argv[1:])  # noqa: B905, RUF007 - not in Python 3.8
        if word[:1] != "-" and not (word.isdigit() and before in ("-f", "-s", "-w"))
    ]
    return f"{argv[0]} writes its second file" if len(files) > 1 or "--" in argv else None


_XXD = ("-a", "-b", "-e", "-i", "-p", "-ps", "-u", "-E", "-C")


def _xxd(argv: list[str]) -> str | None:
    """As xxd itself takes its words: options, one file, and nothing after it."""
    at = 1
    while argv[at:] and argv[at][:1] == "-" and argv[at] != "-":
        word = argv[at]
        valued = word[1:2] in ("c", "g", "l", "o", "s")
        if not (word in _XXD or (valued and (len(word) == 2 or word[2:].isalnum()))):
            return f"xxd {word} may write"
        if valued and word[2:].isalpha():
            return f"xxd {word}: its short form is known"
        at += 2 if valued and len(word) == 2 else 1
    return "xxd writes its second file" if len(argv) > at + 1 else None


def _rocm(argv: list[str]) -> str | None:
    fine = all(word.startswith("--show") or word[:1] != "-" or word == "-a" for word in argv[1:])
    return None if fine else "rocm-smi with more than --show…"


def _top(argv: list[str]) -> str | None:
    return None if any(w[:1] == "-" and "b" in w for w in argv[1:]) else "top without -b"


def _gzip(argv: list[str]) -> str | None:
    letters = "".join(word[1:] for word in argv[1:] if word[:1] == "-")
    fine = "c" in letters and all(letter in "cdkqv" for letter in letters)
    return None if fine else f"{argv[0]} without -c"


def _tar(argv: list[str]) -> str | None:
    letters = argv[1].lstrip("-") if argv[1:] else ""
    lists = "t" in letters and set(letters) <= set("tvzjJf")
    fine = lists and not any(word[:1] == "-" for word in argv[2:])
    return None if fine else "tar with more than -tvf of an archive"


def _fuser(argv: list[str]) -> str | None:
    fine = all(set(word[1:]) <= set("vamu") for word in argv[1:] if word[:1] == "-")
    return None if fine else "fuser with these options"


def _tmux(argv: list[str]) -> str | None:
    known = ("capture-pane", "capturep", "list-sessions", "ls", "list-panes", "list-windows")
    fine = argv[1:2] and argv[1] in (*known, "has-session")
    # `#(…)` in a format runs a command, as what `#{E:…}` makes can; `;` begins another command.
    if fine and not any(_works_out(word) or word[-1:] == ";" for word in argv):
        return None
    return "tmux with more than capture-pane or a list"


def _works_out(word: str) -> bool:
    """Whether a format has more in it than names, as `#S` and `#{session_name}`."""
    named = [part.partition("}")[0] for part in word.split("#{")[1:]]
    plain = all(name.replace("_", "a").isalnum() for name in named)
    return "#(" in word or "##" in word or not plain


def _test(argv: list[str]) -> str | None:
    return None if takes_no_code(argv) else f"{argv[0]} with words that a shell may work out"


def takes_no_code(argv: list[str]) -> bool:
    """Whether printf or test get nothing that they would evaluate: `a[$(…)]` runs what is in it."""
    return argv[1:2] != ["-v"] and not any(sign in word for word in argv[1:] for sign in "$`")


def _hostname(argv: list[str]) -> str | None:
    return None if argv[1:] in ([], ["-f"], ["-i"], ["-I"], ["-s"]) else "hostname with a name"


def _date(argv: list[str]) -> str | None:
    after = ""
    for word in argv[1:]:
        plain = word[:1] == "+" or word in ("-u", "-R", "-d", "-r", "--utc")
        longer = word.startswith(("-I", "--iso-8601", "--rfc-", "--date=", "--reference="))
        if not plain and not longer and after not in ("-d", "-r"):
            return "date with these words"
        after = word
    return None


def _kill(argv: list[str]) -> str | None:
    if argv[1:2] == ["-0"] and argv[2:] and all(word.isdigit() for word in argv[2:]):
        return None
    return "kill ends or signals processes"


_NVIDIA = (
    "-q --query -L --list-gpus -x --xml-format -h --help --version topo nvlink dmon pmon -i --id"
    " -d --display -l --loop -lms -m -s --status -c --count"
).split()


def _nvidia(argv: list[str]) -> str | None:
    monitor = argv[1:2] in (["dmon"], ["pmon"], ["topo"], ["nvlink"])
    for place, word in enumerate(argv[1:], 1):
        name, has, _ = word.partition("=")
        if name.startswith("--query") or name in (
            "--format",
            "--loop",
            "--loop-ms",
            "--id",
            "--display",
        ):
            continue
        if name in ("-c", "-m", "-s", "-d", "-o") and not has and monitor:
            continue
        if name in ("-c", "-m", "-s") or (word[:1] == "-" and name not in _NVIDIA):
            return f"nvidia-smi {word} may set something"
        if word[:1] != "-" and place == 1 and not monitor:
            return f"nvidia-smi {word}"
    return None


_LOOKING = frozenset(
    "log show diff status blame rev-parse ls-files ls-tree cat-file describe shortlog grep"
    " rev-list diff-tree name-rev merge-base count-objects version whatchanged".split()
)
_LISTING = {
    "branch": ("-a", "-r", "-v", "-vv", "--list", "--show-current"),
    "tag": ("-l", "--list"),
    "remote": ("-v", "show"),
    "stash": ("list", "show"),
    "worktree": ("list",),
    "config": ("--get", "--list", "-l"),
    "reflog": ("show",),
}


def git(argv: list[str], ground: Ground) -> str | None:
    """Why a git command does more than read, or reads where settings are not trusted."""
    rest, where = argv[1:], ground.cwd
    while rest[:1] in (["--no-pager"], ["-C"]):
        if rest[0] == "-C":
            where = ground.real(rest[1] if rest[1:] else "")
        rest = rest[2:] if rest[0] == "-C" else rest[1:]
    where = resolve(where)
    if not any(inside(where, root) for root in ground.roots):
        return "git in another folder than the project, whose settings may run commands"
    command, words = (rest[0], rest[1:]) if rest else ("", [])
    for word in words:
        runs = word.startswith(("--o", "--ext", "--exec", "--up", "--rec", "-O"))
        bundled = command == "grep" and word[:1] == "-" and word[1:2] != "-" and "O" in word
        if bundled or (runs and word[:5] not in ("--one", "--obj")):
            return f"git {command} {word} may do more than read"
    if command in _LOOKING or (not words and command in ("branch", "tag", "remote", "reflog")):
        return None
    known = _LISTING.get(command, ())
    fine = bool(words) and words[0] in known
    if command == "branch":
        fine = fine and set(words) <= set(known)
    if command == "remote":
        fine = fine and (words[0] == "show" or len(words) == 1)
    if fine:
        return None
    return f"`git {command}` is not known to only read"


JUDGES = {
    "sed": _sed,
    "awk": _awk,
    "find": _find,
    "uniq": _uniq,
    "xxd": _xxd,
    "top": _top,
    "gzip": _gzip,
    "gunzip": _gzip,
    "fuser": _fuser,
    "tar": _tar,
    "hostname": _hostname,
    "date": _date,
    "kill": _kill,
    "nvidia-smi": _nvidia,
    "rocm-smi": _rocm,
    "tmux": _tmux,
    "printf": _test,
    "test": _test,
    "[": _test,
}
