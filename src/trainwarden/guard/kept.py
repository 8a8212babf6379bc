"""What stays as it is whoever works in the project: the gates, and how the client is set up.

Under authority act, and in other client sessions, any command may run; those that would write
below `monitoring-logs/` are refused as far as their text tells. Seals show the rest.
"""

from __future__ import annotations

import os

from trainwarden.guard import runtime
from trainwarden.guard.commands import simple
from trainwarden.guard.places import inside
from trainwarden.guard.shell import Odd, Word, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trainwarden.guard.places import Ground

_HOME = "monitoring-logs"
_BEFORE = frozenset(
    "sudo doas command nohup exec time env nice ionice timeout stdbuf setsid chrt taskset numactl"
    " busybox unbuffer flock".split()
)
_SHELLS = ("bash", "sh", "zsh", "dash")
_SWEEPING = frozenset("rm mv chmod chown rsync find shred rmdir cp tar unlink".split())
_GOALS = ("-t", "--target-directory")
_COPYING = frozenset("cp rsync scp install".split())
_CHANGING = frozenset("rm mv clean checkout restore reset stash apply".split())
_WRITING = _SWEEPING | frozenset(
    "tee touch mkdir ln dd truncate install sed awk gawk ruby node bash sh zsh eval exec source"
    " xargs git patch ed vim vi nano unzip split make".split()
)
_KNOWN = _SWEEPING | _COPYING | frozenset(("git", *_SHELLS))
_TOLD = "nothing but the runtime writes below monitoring-logs/"


def refusal(command: str, ground: Ground, plugin: str, *, act: bool) -> str | None:
    """Why a command would change what is kept; None where its text does not tell so.

    `act`: of a session that is open here, which must not change the client's settings either.
    """
    judge = ground.unchanged if act else _kept(ground)
    command = _named(command, ground)
    try:
        commands = parse(command)
    except Odd:
        return _by_text(command, ground, act)
    for one in commands:
        for item in one.redirects:
            if item.operator not in ("<", "<<", "<<<", "<&") and not item.is_harmless():
                reason = judge(item.word.text) or _globbed(item.word, ground)
                if reason:
                    return reason
        words = _unwrapped(one.words)
        if words[0].text == "cd":
            told = [word for word in words[1:] if word.text[:1] != "-"]
            if told and _globbed(told[0], ground):
                return f"{_TOLD}: {told[0].text} may lead there"
            ground.cwd = ground.real(told[0].text if told else "~")
            continue
        argv = [word.text for word in words]
        if runtime.is_runtime(argv[0], plugin):
            reason = runtime.refusal(one, ground, early=False, reviewer=False) if act else None
            if reason:
                return reason
            continue
        if simple(argv) is None:
            continue
        before = [word.text.rsplit("=", 1)[-1] for word in one.words[: -len(words)]]
        if any(_HOME in text or (text and ground.is_kept(text)) for text in before):
            return _TOLD
        if argv[0] in _SHELLS and len(argv) > 2 and argv[1][:1] == "-" and "c" in argv[1]:
            reason = refusal(argv[2], ground, plugin, act=act)
        else:
            reason = _touched(words, ground, judge)
        if reason:
            return reason
    return None


def _named(command: str, ground: Ground) -> str:
    """A command with the folders filled in that the client's own variables stand for."""
    project = ground.project
    known = (("PWD", ground.cwd), ("CLAUDE_PROJECT_DIR", project), ("TRAINWARDEN_ROOT", project))
    for name, folder in known:
        command = command.replace("${" + name + "}", folder).replace("$" + name, folder)
    return command


def _unwrapped(words: list[Word]) -> list[Word]:
    """A command without what only starts it: `sudo`, `timeout 5`, assignments."""
    while len(words) > 1 and (words[0].text in _BEFORE or "=" in words[0].text):
        of_options = words[0].text in _BEFORE
        words = words[1:]
        told = (place for place, word in enumerate(words) if word.text in _KNOWN)
        if of_options and words[0].text[:1] in "-0123456789":
            words = words[next(told, 0) :]
            break
    return words


def _kept(ground: Ground) -> Callable[[str], str | None]:
    return lambda path: _TOLD if ground.is_kept(path) else None


def _by_text(command: str, ground: Ground, act: bool) -> str | None:
    """For what cannot be parsed: whether it names what is kept, and anything that could write."""
    text = "".join(sign for sign in command if sign not in "\"'\\")
    if not (_HOME in text or ground.is_kept(".") or (act and "/.claude/" in text)):
        return None
    for harmless in ("2>&1", "2>/dev/null", ">/dev/null", "> /dev/null"):
        text = text.replace(harmless, "")
    words = "".join(sign if sign.isalnum() or sign in "_-." else " " for sign in text).split()
    writes = any(word in _WRITING or word.startswith(("python", "perl")) for word in words)
    return _TOLD if writes or ">" in text else None


def _touched(words: list[Word], ground: Ground, judge: Callable[[str], str | None]) -> str | None:
    name, rest = words[0].text, words[1:]
    if ground.is_kept("."):
        return f"{_TOLD}: leave that folder first"
    if name == "git":
        texts = [word.text for word in rest]
        reason = _by_git(texts, ground)
        if reason or not _CHANGING.intersection(texts) or "clean" in texts:
            return reason
    if name in _COPYING:
        reason = _by_copy(rest, ground)
        if reason:
            return reason
        goals = [before for before in zip(rest, rest[1:]) if before[0].text in _GOALS]  # noqa: B905, RUF007 - not in Python 3.8
        attached = [word for word in rest if word.text.startswith(("-t", "--target"))]
        rest = rest[-1:] + attached + [goal for _, goal in goals]
    for word in rest:
        text = word.text.rsplit("=", 1)[-1]
        if _HOME in word.text:
            return _TOLD
        text = text[2:] if text[:1] == "-" and text[1:2] in ("C", "t", "o", "d") else text
        reason = judge(text) if text and text[:1] != "-" else None
        reason = reason or _globbed(word, ground)
        if not reason and name in _SWEEPING and text[:1] != "-" and name not in _COPYING:
            real = ground.real(text)
            around = any(inside(f"{root}/{_HOME}", real) for root in ground.roots)
            reason = f"{text} holds {_HOME}/: name what is meant" if around else None
        if reason:
            return reason
    return None


def _by_git(texts: list[str], ground: Ground) -> str | None:
    """Why a git command sweeps what is kept away, or works in it."""
    while texts[:1] in (["-C"], ["-c"]):
        if texts[0] == "-C" and texts[1:] and ground.is_kept(texts[1]):
            from trainwarden.guard.singles import git

            return _TOLD if git(["git", *texts], ground) else None
        texts = texts[2:]
    command = next((text for text in texts if text[:1] != "-"), "")
    if command == "clean" and not ("-e" in texts and any(_HOME in text for text in texts)):
        return f"git clean may delete {_HOME}/: add -e {_HOME}"
    if command != "stash" or {"list", "show", "pop", "apply"}.intersection(texts):
        return None
    short = "".join(text for text in texts if text[:1] == "-" and text[1:2] != "-")
    if "u" in short or "a" in short or any(text.startswith(("--inc", "--all")) for text in texts):
        return f"git stash of untracked files takes {_HOME}/ away: stash what is tracked"
    return None


def _by_copy(rest: list[Word], ground: Ground) -> str | None:
    """Why copying into the project's folder would write what is kept, or delete it."""
    texts = [word.text for word in rest if word.text[:1] != "-"]
    goal = ground.real(texts[-1]) if texts else ""
    if not any(inside(f"{root}/{_HOME}", goal) for root in ground.roots):
        return None
    if any(word.text.startswith("--del") for word in rest):
        return f"what is not in the source is deleted, {_HOME}/ too: leave --delete out"
    for text in texts[:-1]:
        whole = f"{ground.full(text)}/{_HOME}"
        if text.rstrip("/").endswith(_HOME) or os.path.isdir(whole):
            return f"{text} brings another {_HOME}/: {_TOLD}"
    return None


def _globbed(word: Word, ground: Ground) -> str | None:
    """Whether what the shell works out may lead to what is kept."""
    if not word.marks.strip("'"):
        return None
    spelled = word.text.split("/")
    base = ground.full("/".join(spelled[:-1]) or ".") if len(spelled) > 1 else ground.cwd
    for place, part in enumerate(spelled):
        if any(sign in part for sign in "*?[{"):
            base = ground.real("/".join(spelled[:place]) or ("/" if place else "."))
            if base in ground.roots and _fits(part):
                return f"{word.text} takes {_HOME}/ in: name what is meant"
            return None
    return None


def _fits(part: str) -> bool:
    """Whether a glob may stand for `monitoring-logs`: by its letters before the first sign."""
    start = part
    for sign in "*?[{":
        start = start.split(sign, 1)[0]
    tail = part
    for sign in "*?]}":
        tail = tail.rsplit(sign, 1)[-1]
    return _HOME.startswith(start) and _HOME.endswith(tail)
