"""Before gate 1: what `*`, `{a,b}` and `~` stand for, so that each file can be judged by its name.

A shell may be set to take hidden names or other letters' case in: whatever it could take in is
looked up here, and all of it must be harmless. Where nothing fits, shells differ.
"""

from __future__ import annotations

import os

from trainwarden.guard.places import spread
from trainwarden.guard.shell import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwarden.guard.places import Ground
    from trainwarden.guard.shell import Simple

_READING = frozenset("cat head tail wc nl ls grep egrep fgrep rg jq diff test [".split())
"""For these a name more or less, or another order, makes no difference to what is judged."""
_MOST = 500
"""Names that one word may stand for."""


def expand(one: Simple, ground: Ground) -> str | None:
    """Put names in the place of a command's patterns; why that cannot be, where it cannot."""
    if one.words[0].text not in _READING:
        return None
    words: list[Word] = []
    for word in one.words:
        for alternative in _alternatives(word):
            found = _names(alternative, ground)
            if isinstance(found, str):
                return found
            words += found
    one.words = words
    return None


def _alternatives(word: Word) -> list[Word]:
    text, marks = word.text, word.marks
    plain = "{" in marks and "'" not in marks and text.count("{") == text.count("}") == 1
    inner = text[text.find("{") : text.find("}")] if plain else ""
    if "," not in inner or ".." in inner:
        return [word]
    rest = marks.replace("{", "")
    return [Word(part, rest) for part in spread(text) if part]


def _names(word: Word, ground: Ground) -> list[Word] | str:
    text, marks = word.text, word.marks
    if marks == "'" or not marks or not set(marks) <= {"*", "~"}:
        return [word]
    home = os.environ.get("HOME", "")
    if "~" in marks:
        if not (text == "~" or text.startswith("~/")) or home[:1] != "/" or _signs(home):
            return [word]
        text = home + text[1:]
    if "*" not in marks:
        return [Word(text, "")]
    if text[:1] == "-" or "?" in text or "[" in text or "**" in text:
        return [word]
    dotted = (part for part in text.split("/") if part[:1] == "." and "*" in part)
    if any(_fits("..", part.split("*")) for part in dotted):
        return [word]  # a shell may take the folder itself and the one above in
    found = _found(text, ground)
    for name in found:
        reason = ground.unlisted(name) if os.path.isdir(ground.full(name)) else ground.unseen(name)
        if reason or name[:1] == "-":
            return reason or f"{name} would be taken for an option"
    return [Word(name, "") for name in found] or f"{text} fits no file: write the names out"


def _signs(text: str) -> bool:
    return any(sign in text for sign in "*?[")


def _found(text: str, ground: Ground) -> list[str]:
    """The paths that a pattern may stand for, hidden ones and any letters' case among them."""
    found = ["/"] if text[:1] == "/" else [""]
    for part in text.split("/"):
        if not part:
            continue
        if "*" not in part:
            found = [os.path.join(base, part) for base in found]
            continue
        fitting = []
        for base in found:
            for name in _listed(ground.full(base or ".")):
                if _fits(name.casefold(), part.casefold().split("*")):
                    fitting.append(os.path.join(base, name))
        found = fitting
        if len(found) > _MOST:
            return []
    return sorted(name for name in found if os.path.lexists(ground.full(name)))


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _fits(name: str, pieces: list[str]) -> bool:
    """Whether a name is these pieces with anything between them."""
    first, last = pieces[0], pieces[-1]
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    at, stop = len(first), len(name) - len(last)
    for piece in pieces[1:-1]:
        at = name.find(piece, at, stop)
        if at < 0:
            return False
        at += len(piece)
    return True
