"""What a prompt brings into the context by itself: files it mentions, lines pasted into it.

What was said before a session opened is kept, as paths and digests of lines only, in the plugin's
own folder: `begin` comes later, and gate 1 has to say what was seen before it.
"""

from __future__ import annotations

import os
import re
import time
from typing import Any

from trainwarden.guard import record
from trainwarden.guard.plainjson import dumps, loads

KEPT = 30 * 86_400
"""Seconds for which the prompts of a client session are remembered."""
LONGEST = 2_000
"""Lines of one prompt that are remembered."""

_MENTION = re.compile(r"""(?:^|(?<=[\s(\[,;:'"]))@(?:"([^"\n]+)"|([^\s"'`,;)\]]+))""")
_READING = re.compile(
    r"""(?ix) (?<![a-z0-9]) (?:loss|ppl|perplexity|grad_?norm|reward|kl|entropy|acc(?:uracy)?|lr
    |learning_?rate|tok(?:en)?s?(?:/s|_per_s\w*)?|throughput|step|iter(?:ation)?|epoch)
    (?:/\w+)* ["']? \s* [:=|]? \s* [-+]? (?:\d|nan\b|inf\b)"""
)
_BREAKS = re.compile(r"[\r\n]+")
_BEFORE = re.compile(r"^\s*(?:>\s*)*(?:\d+(?:\t|→|:(?=\S)))?\s*")
_TWO_DIGITS = re.compile(r"\d\D*\d")


def mentions(prompt: str, folders: list[str]) -> list[str]:
    """The @-mentions of a prompt: absolute paths where a file is there, else as written."""
    found = []
    for quoted, bare in _MENTION.findall(prompt):
        name = quoted or bare.rstrip(".!?")
        name = re.sub(r"#L?\d+(?:-L?\d+)?$", "", name)
        tries = [os.path.join(folder, os.path.expanduser(name)) for folder in folders]
        path = next((os.path.realpath(path) for path in tries if os.path.exists(path)), None)
        if path or "://" in name:  # the latter names what a server holds
            found.append(path or name)
    return list(dict.fromkeys(found))


def readings(prompt: str) -> int:
    """How many lines of a prompt look like a training log's: two alike, or one full of values."""
    counts = [measures(line) for line in lines(prompt)]
    full = [count for count in counts if count >= 2]
    return len(full) if len(full) >= 2 or max(full, default=0) >= 3 else 0


def measures(line: str) -> int:
    """How many named values of a training a line holds."""
    return len(_READING.findall(line))


def lines(text: str) -> list[str]:
    """The lines of a text as they are compared: without numbering, quoting and margins."""
    return [_BEFORE.sub("", line, count=1).rstrip() for line in _BREAKS.split(text)]


def distinctive(line: str) -> bool:
    """Whether a line is long and numeric enough to be met by chance hardly ever."""
    return len(line) >= 15 and _TWO_DIGITS.search(line) is not None


def digest(line: str) -> str:
    """A line's mark in the plugin's folder: the text itself is never kept."""
    import hashlib

    return hashlib.blake2b(line.encode("utf-8", "replace"), digest_size=8).hexdigest()


def remember(prompt: str, client: str, folders: list[str]) -> None:
    """Keep what a prompt brought, where it brought anything. Raises OSError."""
    told = mentions(prompt, folders)
    pasted = [digest(line) for line in lines(prompt)[:LONGEST] if distinctive(line)]
    count = readings(prompt)
    data = os.environ.get("CLAUDE_PLUGIN_DATA")
    if not data or not (told or pasted):
        return
    path = _path(data, client)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        kept = {"at": time.time(), "mentions": told, "lines": pasted, "readings": count}
        file.write(dumps(kept) + "\n")


def recalled(client: str) -> list[dict[str, Any]]:
    """What the prompts of a client session brought so far."""
    data = os.environ.get("CLAUDE_PLUGIN_DATA")
    try:
        with open(_path(data or "", client), encoding="utf-8") as file:
            return [loads(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


def forget_old() -> None:
    """Drop what client sessions of long ago were told. Raises OSError."""
    data = os.environ.get("CLAUDE_PLUGIN_DATA")
    folder = os.path.join(data or "", "prompts")
    if not data or not os.path.isdir(folder):
        return
    for entry in os.scandir(folder):
        if time.time() - entry.stat().st_mtime > KEPT:
            os.unlink(entry.path)


def _path(data: str, client: str) -> str:
    return os.path.join(data, "prompts", f"{record.plain(client)}.jsonl")
