"""Bash under authority observe, after gate 1: commands that are known to only read."""

from __future__ import annotations

import os

from trainwarden.guard import runtime
from trainwarden.guard.places import inside, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwarden.guard.places import Ground
    from trainwarden.guard.shell import Simple

PLAIN = frozenset(
    "cat tac head tail wc ls stat df du cut tr nl rev fold fmt pr expand paste join comm cmp"
    " diff md5sum sha1sum sha256sum sha512sum cksum b2sum basename dirname realpath readlink"
    " pwd echo true false sleep uptime free who w id whoami groups uname nproc lscpu lsmem"
    " lsblk lspci lsusb lsmod seq expr od hexdump strings ps pgrep pstree pidof pmap pwdx"
    " vmstat iostat mpstat netstat grep egrep fgrep zcat bzcat xzcat column jq base64 numfmt"
    " bc which type whereis printenv getconf locale tty gpustat numastat ibstat ibstatus"
    " ibv_devinfo squeue sinfo sacct sstat sprio sshare bjobs bhist bpeek qstat pbsnodes".split()
)
"""No option or operand of these writes, runs or changes anything."""
WITHOUT = {
    "sort": ("o", ("--o", "--co")),
    "shuf": ("o", ("--o",)),
    "iconv": ("o", ("--o",)),
    "tree": ("oR", ("--o",)),
    "file": ("Cm", ("--co", "--ma")),
    "lsof": ("D", ()),
    "ss": ("KD", ("--k", "--di")),
    "sar": ("o", ("--o",)),
    "pidstat": ("e", ("--e",)),
    "rg": ("", ("--pre", "--hostname-bin")),
    "dmesg": ("cCDEn", ("--cl", "--rea", "--cons")),
    "journalctl": (
        "",
        (
            "--vac",
            "--rot",
            "--fl",
            "--syn",
            "--rel",
            "--sm",
            "--se",
            "--up",
            "--cursor-f",
            "--new",
        ),
    ),
}
"""Letters and long options (by their shortest forms) that do more than read."""
ONLY = {
    "docker": "ps logs inspect stats top images info version events port diff history",
    "docker compose": "ps logs top",
    "docker container": "ls ps",
    "systemctl": "status show cat is-active is-failed is-enabled list-units list-timers list-jobs",
    "scontrol": "show ping version",
    "sacctmgr": "show list",
    "screen": "-ls -list",
    "ray": "status list summary memory logs",
    "ray job": "logs list status",
    "pip": "list freeze check show",
    "uv pip": "list freeze show check",
    "conda": "list info",
    "aws s3": "ls",
    "gsutil": "ls du",
    "helm": "list status history get",
    "amd-smi": "list static metric monitor process version topology",
    "dcgmi": "dmon discovery topo",
    "py-spy": "dump --version",
    "python": "--version -V",
    "nvcc": "--version",
    "command": "-v",
    "ulimit": "-a",
    "ip": "a addr link",
}
"""What must follow."""
EXACT = {"python": 2, "nvcc": 2, "ulimit": 2, "ip": 2, "command": 3}
"""How many words there may be at most."""
ALIKE = {
    "podman": "docker",
    "nerdctl": "docker",
    "python3": "python",
    "pip3": "pip",
    "oc": "kubectl",
    "gawk": "awk",
    "mawk": "awk",
    "sh": "bash",
    "mamba": "conda",
}
ALONE = frozenset(("env", "mount", "rocm-smi", "gpustat", "export", "hostname", "amd-smi"))
CARRIERS = frozenset("curl kubectl docker ssh bash timeout time sudo xargs".split())
"""They reach another machine, or run the command that they are given."""
_LESS = 4
"""How deep commands may stand in commands."""


def refusal(commands: list[Simple], ground: Ground, plugin: str, reviewer: bool) -> str | None:
    """Why a command line does more than read; None where it only reads."""
    for number, one in enumerate(commands):
        reason = _redirects(one, ground) or words_of(one)
        if reason:
            return reason
        argv = one.argv
        if runtime.is_runtime(argv[0], plugin):
            reason = runtime.refusal(one, ground, early=False, reviewer=reviewer)
        elif argv[0] == "cd":
            reason = _cd(argv, ground, number, commands)
        elif argv[0] == "tee":
            reason = _tee(argv, ground)
        elif argv[0] == "git":
            reason = _git(argv, ground)
        else:
            reason = simple(argv)
        if reason:
            return reason
    return None


def _redirects(one: Simple, ground: Ground) -> str | None:
    for item in one.redirects:
        if item.is_harmless() or item.operator == "<":
            continue
        if item.word.marks.strip("'"):
            return "a redirection to a name that the shell works out"
        reason = ground.unwritten(item.word.text, note=True)
        if reason:
            return reason
    return None


def words_of(one: Simple) -> str | None:
    """Why the words of a command are not plain; None where they are."""
    name = one.words[0]
    if name.marks.strip("'"):
        return "a command whose name the shell works out"
    for word in one.words[1:]:
        if "{" in word.marks and ("," in word.text or ".." in word.text):
            return "braces: write the names out, or quote them"
        if name.text in _EXACTLY or name.text.endswith("/trainwarden"):
            if word.marks.strip("'{"):
                return f"a word of {name.text} that the shell works out: write it out, or quote it"
        elif "*" in word.marks and name.text not in PLAIN and word.text[:1] in "*?[-":
            return f"a glob that {name.text} may take for an option: quote it, or name files"
    return None


_EXACTLY = frozenset(
    "uniq xxd tee cd git trainwarden ssh bash sh sudo timeout time kubectl oc docker podman nerdctl"
    " xargs find".split()
)


def simple(argv: list[str], depth: int = 0) -> str | None:
    """Why a simple command does more than read; None where it only reads."""
    name = ALIKE.get(argv[0], argv[0])
    if depth > _LESS:
        return "a command in too many commands"
    if name in PLAIN or (len(argv) == 1 and name in ALONE):
        return None
    if name in WITHOUT:
        return _without(argv, *WITHOUT[name])
    if name in _JUDGES:
        return _JUDGES[name](argv)
    if name in CARRIERS:
        from trainwarden.guard import carriers

        return carriers.JUDGES[name](argv, depth)
    if name in ONLY or f"{name} {argv[1] if argv[1:] else ''}" in ONLY:
        return only(argv, name)
    if name == "trainwarden":
        return "trainwarden is typed by itself, not in another command"
    return f"`{argv[0]}` is not known to only read"


def _without(argv: list[str], letters: str, longs: tuple[str, ...]) -> str | None:
    for word in argv[1:]:
        if word[:2] == "--":
            harmful = word.startswith(longs) if longs else False
        else:
            harmful = word[:1] == "-" and any(letter in word for letter in letters)
        if harmful:
            return f"{argv[0]} {word} may do more than read"
    return None


def only(argv: list[str], name: str) -> str | None:
    """Why a command with subcommands does more than read, by `ONLY`."""
    first, second = [*argv[1:], "", ""][:2]
    longer = ONLY.get(f"{name} {first}")
    known = longer.split() if longer else ONLY.get(name, "").split()
    if (second if longer else first) not in known:
        return f"`{argv[0]} {first}` is not known to only read"
    told = {"pip": "--l", "uv": "-"}.get(name)
    logs = told is not None and any(word.startswith(told) for word in argv)
    too_many = len(argv) > EXACT.get(name, len(argv))
    return f"`{argv[0]}` with these words" if logs or too_many else None


def _cd(argv: list[str], ground: Ground, number: int, commands: list[Simple]) -> str | None:
    piped = len(commands) > 1 and commands[1].joint == "|"
    if number or piped or len(argv) != 2 or argv[1][:1] in ("-", "~"):
        return "cd that is not the first, or without a plain folder"
    if not os.path.isdir(ground.real(argv[1])):
        return f"cd to {argv[1]}, which is no folder"
    ground.cwd = ground.real(argv[1])
    return None


def _tee(argv: list[str], ground: Ground) -> str | None:
    for path in argv[1:]:
        if path[:1] == "-":
            if path != "-a":
                return "tee with these options"
            continue
        reason = ground.unwritten(path, note=True)
        if reason:
            return reason
    return None


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
    for word in argv[1:]:
        if word[:1] == "-" and word not in _FIND and not word[1:2].isdigit():
            return f"find with {word}"
    return None


def _uniq(argv: list[str]) -> str | None:
    valued = ("-f", "-s", "-w") if argv[0] == "uniq" else ("-l", "-s", "-g", "-c")
    files = [
        word
        for before, word in zip(argv, argv[1:])  # noqa: B905, RUF007 - not in Python 3.8
        if word[:1] != "-" and not (word.isdigit() and before in valued)
    ]
    return f"{argv[0]} writes its second file" if len(files) > 1 or "--" in argv else None


def _xxd(argv: list[str]) -> str | None:
    letters = "".join(word for word in argv[1:] if word[:1] == "-")
    return "xxd -r writes" if "r" in letters else _uniq(argv)


def _rocm(argv: list[str]) -> str | None:
    fine = all(word.startswith("--show") or word[:1] != "-" or word == "-a" for word in argv[1:])
    return None if fine else "rocm-smi with more than --show…"


def _top(argv: list[str]) -> str | None:
    return None if any(w[:1] == "-" and "b" in w for w in argv[1:]) else "top without -b"


def _gzip(argv: list[str]) -> str | None:
    letters = "".join(word[1:] for word in argv[1:] if word[:1] == "-")
    fine = "c" in letters and all(letter in "cdkqv" for letter in letters)
    return None if fine else f"{argv[0]} without -c"


def _fuser(argv: list[str]) -> str | None:
    fine = all(set(word[1:]) <= set("vamu") for word in argv[1:] if word[:1] == "-")
    return None if fine else "fuser with these options"


def _tmux(argv: list[str]) -> str | None:
    known = ("capture-pane", "capturep", "list-sessions", "ls", "list-panes", "list-windows")
    fine = argv[1:2] and argv[1] in (*known, "has-session")
    # `#(…)` in a format runs a command, and `;` begins another one.
    if fine and not any("#(" in word or word[-1:] == ";" for word in argv):
        return None
    return "tmux with more than capture-pane or a list"


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
    return "it ends or signals processes"


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


def _git(argv: list[str], ground: Ground) -> str | None:
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


_JUDGES = {
    "sed": _sed,
    "awk": _awk,
    "find": _find,
    "uniq": _uniq,
    "xxd": _xxd,
    "top": _top,
    "gzip": _gzip,
    "gunzip": _gzip,
    "fuser": _fuser,
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
