"""Commands that reach another machine, or run the command that they are given."""

from __future__ import annotations

from trainwarden.guard.commands import PLAIN, only, simple, words_of
from trainwarden.guard.shell import Odd, parse

_CURL = frozenset(
    "-s -S -f -L -sS -fsS -sf -sL -sSL -fsSL -sSf -i -I -k -v -m --max-time -H".split()
)

_HEADERS = ("accept:", "authorization:", "user-agent:")


def _curl(argv: list[str], depth: int) -> str | None:  # noqa: ARG001
    at = 1
    while at < len(argv):
        word = argv[at]
        at += 2 if word in ("-m", "--max-time", "-H") else 1
        if word == "-H" and not "".join(argv[at - 1 : at]).lower().startswith(_HEADERS):
            return "curl with a header that may ask for more than reading"
        if word[:1] == "-":
            if word not in _CURL and word not in ("--silent", "--fail"):
                return f"curl {word} may do more than read"
        elif not word.startswith(("http://", "https://", "localhost", "127.0.0.1", "file://")):
            return "curl of an address without http://"
    return None


_NOT_KUBECTL = ("--kubeconfig", "--as", "--profile", "--cache-dir", "--log-file", "--log-dir")


def _kubectl(argv: list[str], depth: int) -> str | None:
    rest = argv[1:]
    while rest[:1] and rest[0][:1] == "-":
        name, has, _ = rest[0].partition("=")
        if name not in ("-n", "--namespace", "--context", "-A", "--all-namespaces"):
            return f"kubectl {rest[0]} before its command"
        rest = rest[1:] if has or name in ("-A", "--all-namespaces") else rest[2:]
    command, words = (rest[0], rest[1:]) if rest else ("", [])
    if any(word.replace("_", "-").startswith(_NOT_KUBECTL) for word in words[: _dashes(words)]):
        return "kubectl as somebody else, or one that writes files"
    if command == "exec":
        inner = words[_dashes(words) + 1 :]
        return _inner(inner, depth) if inner else "kubectl exec without -- and a command"
    both = f"{command} {words[0] if words else ''}"
    if command in ("get", "describe", "logs", "top", "events", "explain", "version"):
        return None
    if command in ("api-resources", "cluster-info") and "dump" not in words:
        return None
    if both in ("rollout status", "rollout history", "config view", "auth can-i") or both in (
        "config current-context",
        "config get-contexts",
    ):
        return None
    return f"`kubectl {command}` is not known to only read"


def _dashes(words: list[str]) -> int:
    return words.index("--") if "--" in words else len(words)


def _docker(argv: list[str], depth: int) -> str | None:
    if argv[1:2] != ["exec"]:
        return only(argv, "docker")
    rest = argv[2:]
    while rest[:1] and rest[0] in ("-i", "-t", "-it", "-ti"):
        rest = rest[1:]
    if len(rest) < 2 or rest[0][:1] == "-":
        return f"{argv[0]} exec with these options"
    return _inner(rest[1:], depth)


def _ssh(argv: list[str], depth: int) -> str | None:
    at = 1
    while at < len(argv) and argv[at][:1] == "-":
        word, value = argv[at], argv[at + 1] if at + 1 < len(argv) else ""
        if word == "-o" and value.partition("=")[0] not in _SSH:
            return f"ssh -o {value}"
        if word not in ("-o", "-p", "-i", "-l", "-q", "-T", "-t", "-n", "-x"):
            return f"ssh {word}"
        at += 2 if word in ("-o", "-p", "-i", "-l") else 1
    if argv[at + 1 : at + 2] == ["--"]:
        at += 1
    if len(argv) < at + 2:
        return "ssh without a command"
    return _text(" ".join(argv[at + 1 :]), depth)


_SSH = ("ConnectTimeout", "BatchMode", "StrictHostKeyChecking", "LogLevel")


def _bash(argv: list[str], depth: int) -> str | None:
    if len(argv) == 3 and argv[1] in ("-c", "-lc"):
        return _text(argv[2], depth)
    return f"`{argv[0]}` runs a script: type its commands themselves"


def _text(text: str, depth: int) -> str | None:
    """Why a command line given to another shell does more than read."""
    try:
        commands = parse(text, variables=True)
    except Odd as odd:
        return f"{odd} in a command in a command"
    for one in commands:
        if any(not item.is_harmless() and item.operator != "<" for item in one.redirects):
            return "a redirection to a file, in a command in a command"
        reason = words_of(one) or _inner(one.argv, depth)
        if reason:
            return reason
    return None if commands else "no command"


def _inner(argv: list[str], depth: int) -> str | None:
    return simple(argv, depth + 1)


def _timeout(argv: list[str], depth: int) -> str | None:
    rest = argv[1:]
    while rest[:1] and rest[0][:1] == "-":
        rest = rest[2:] if rest[0] in ("-k", "-s") else rest[1:]
    return _inner(rest[1:], depth) if len(rest) > 1 else "timeout without a command"


def _time(argv: list[str], depth: int) -> str | None:
    if argv[0] == "sudo" and argv[1:2] == ["-n"]:
        argv = argv[1:]
    inner = argv[1:]
    if not inner or inner[0][:1] == "-":
        return f"{argv[0]} with these options"
    return _inner(inner, depth)


def _xargs(argv: list[str], depth: int) -> str | None:  # noqa: ARG001
    at = 1
    while at < len(argv) and argv[at][:1] == "-":
        word = argv[at]
        if word in ("-n", "-P", "-I", "-d", "-L"):
            at += 1
        elif word not in ("-0", "-r", "-t") and word[:2] not in ("-n", "-P", "-I", "-L"):
            return f"xargs {word}"
        at += 1
    if at == len(argv) or argv[at] in PLAIN:
        return None
    return "xargs with another command than cat, grep, head, tail, wc and the like"


JUDGES = {
    "curl": _curl,
    "kubectl": _kubectl,
    "docker": _docker,
    "ssh": _ssh,
    "bash": _bash,
    "timeout": _timeout,
    "time": _time,
    "sudo": _time,
    "xargs": _xargs,
}
