"""Bash under authority observe, after gate 1: commands that are known to only read."""

from __future__ import annotations

import os

from trainwarden.guard import flow, runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwarden.guard.places import Ground
    from trainwarden.guard.shell import Simple

PLAIN = frozenset(
    "cat tac head tail wc ls stat df du cut tr nl rev fold fmt pr expand paste join comm cmp"
    " diff md5sum sha1sum sha256sum sha512sum cksum b2sum basename dirname realpath readlink"
    " pwd echo true false sleep uptime free who w id whoami groups uname nproc lscpu lsmem"
    " lsblk lspci lsusb lsmod seq expr od hexdump strings ps pgrep pstree pidof pwdx"
    " vmstat iostat mpstat netstat grep egrep fgrep zcat bzcat xzcat column jq base64 numfmt"
    " bc which type whereis printenv getconf locale tty gpustat numastat ibstat ibstatus"
    " ibv_devinfo squeue sinfo sacct sstat sprio sshare sreport seff bjobs bhist bpeek qstat"
    " last getent nslookup ipcs zgrep".split()
)
"""No option or operand of these writes, runs or changes anything."""
_ANY = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
WITHOUT = {
    "sort": ("o", ("--o", "--co")),
    "shuf": ("o", ("--o",)),
    "iconv": ("o", ("--o",)),
    "tree": ("oR", ("--o",)),
    "file": ("Cm", ("--co", "--ma")),
    "lsof": ("D", ()),
    "pmap": ("nN", ("--create",)),
    "zstdcat": (_ANY, ("--",)),
    "lz4cat": (_ANY, ("--",)),
    "ss": ("KD", ("--k", "--di")),
    "sar": ("o", ("--o",)),
    "pidstat": ("e", ("--e",)),
    "pbsnodes": ("cdmoNOrR", ("--",)),
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
            "--cursor-",
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
    "conda env": "list",
    "aws s3": "ls",
    "gsutil": "ls du",
    "gcloud storage": "ls du",
    "helm": "list status history get",
    "amd-smi": "list static metric monitor process version topology",
    "dcgmi": "dmon discovery topo",
    "py-spy": "dump --version",
    "python": "--version -V",
    "nvcc": "--version",
    "command": "-v",
    "ulimit": "-a",
    "ip": "a addr link",
    "taskset": "-p -cp -pc",
    "chrt": "-p",
    "numactl": "-H --hardware -s --show",
    "ethtool": "-S -i -k -g",
    "crontab": "-l",
    "unzip": "-l",
    "wandb": "--version",
    "ping": "-c",
}
"""What must follow."""
EXACT = {
    "python": 2,
    "nvcc": 2,
    "ulimit": 2,
    "ip": 2,
    "command": 3,
    "taskset": 3,
    "chrt": 3,
    "numactl": 2,
    "ethtool": 3,
    "crontab": 2,
    "unzip": 3,
    "wandb": 2,
    "ping": 4,
    "screen": 2,
}
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
    "xz": "gzip",
    "zstd": "gzip",
    "bzip2": "gzip",
    "iotop": "top",
}
ALONE = frozenset(("env", "mount", "rocm-smi", "gpustat", "export", "hostname", "amd-smi"))
SINGLE = frozenset(
    "sed awk find uniq xxd top gzip gunzip fuser hostname date kill nvidia-smi rocm-smi tmux printf"
    " test [ tar".split()
)
"""They have a rule each."""
CARRIERS = frozenset("curl kubectl docker ssh bash timeout time sudo xargs".split())
"""They reach another machine, or run the command that they are given."""
_LESS = 4
"""How deep commands may stand in commands."""


def refusal(commands: list[Simple], ground: Ground, plugin: str, reviewer: bool) -> str | None:
    """Why a command line does more than read; None where it only reads."""
    for number, one in enumerate(commands):
        bare = flow.bare(one)
        reason = _redirects(one, ground) or words_of(bare)
        if reason:
            return reason
        if not bare.words:
            continue
        argv = bare.argv
        if bare is not one and argv[0] != "git":
            reason = simple(argv)
        elif runtime.is_runtime(argv[0], plugin):
            reason = runtime.refusal(one, ground, early=False, reviewer=reviewer)
        elif argv[0] == "cd":
            reason = _cd(argv, ground, number, commands)
        elif argv[0] == "tee":
            reason = _tee(argv, ground)
        elif argv[0] == "git":
            from trainwarden.guard.singles import git

            reason = git(argv, ground)
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
    if not one.words:
        return None
    name = one.words[0]
    if name.marks.strip("'"):
        return "a command whose name the shell works out"
    if name.text in PLAIN:
        return None
    for word in one.words[1:]:
        if "$" in word.marks:
            return f"a variable for {name.text}: write what it stands for"
        if "{" in word.marks and ("," in word.text or ".." in word.text):
            return "braces: write the names out, or quote them"
        if name.text in _EXACTLY or name.text.endswith("/trainwarden"):
            if word.marks.strip("'{"):
                return f"a word of {name.text} that the shell works out: write it out, or quote it"
        elif "*" in word.marks and word.text[:1] in "*?[-":
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
    if name in SINGLE:
        from trainwarden.guard import singles

        return singles.JUDGES[name](argv)
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
    told = {"pip": "--l", "uv": "-", "amd-smi": "--f", "helm": "--kubec"}.get(name)
    logs = told is not None and any(word.startswith(told) for word in argv)
    too_many = len(argv) > EXACT.get(name, len(argv))
    return f"`{argv[0]}` with these words" if logs or too_many else None


def _cd(argv: list[str], ground: Ground, number: int, commands: list[Simple]) -> str | None:
    piped = len(commands) > 1 and commands[1].joint == "|"
    if number or piped or len(argv) != 2 or argv[1][:1] in ("-", "~"):
        return "cd that is not the first, or without a plain folder"
    if not os.path.isdir(ground.real(argv[1])) or not os.access(ground.real(argv[1]), os.X_OK):
        return f"cd to {argv[1]}, which is no folder that can be entered"
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
