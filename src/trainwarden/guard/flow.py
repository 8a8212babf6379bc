"""Loops, conditions and settings for one command: what stands before a command, taken off.

Whether and how often a command runs makes no difference to whether it only reads.
"""

from __future__ import annotations

from trainwarden.guard.shell import Simple

_RESERVED = frozenset("until while if then elif else do !".split())
_ENDS = frozenset(("done", "fi"))
_LOOPS = frozenset(
    "a b c d e f g h i j k l m n o p q r s t u v w x y z file log pod gpu node rank pid job step"
    " line name dir ckpt".split()
)
"""Names for what a loop goes through; PATH, `path` of zsh and the like would be settings."""
_SETTINGS = frozenset("LC_ALL LC_NUMERIC LANG TZ NO_COLOR COLUMNS CUDA_VISIBLE_DEVICES".split())
_EXACTLY = frozenset(("PAGER=cat", "GIT_PAGER=cat", "GIT_OPTIONAL_LOCKS=0"))


def bare(one: Simple) -> Simple:
    """A command without what stands before it, redirections left; itself where nothing does."""
    words = one.words
    while words and words[0].text in _RESERVED and not words[0].marks:
        words = words[1:]
    if words and not words[0].marks and _is_all(words[0].text, [word.text for word in words]):
        words = []
    while len(words) > 1 and not words[0].marks and _is_setting(words[0].text):
        words = words[1:]
    if words is one.words:
        return one
    left = Simple(one.joint)
    left.words = words
    return left


def _is_all(first: str, words: list[str]) -> bool:
    """Whether nothing but the end or the head of a loop is there."""
    if first == "for":
        return len(words) > 3 and words[1] in _LOOPS and words[2] == "in"
    return first in _ENDS and len(words) == 1


def _is_setting(text: str) -> bool:
    return text in _EXACTLY or ("=" in text and text.partition("=")[0] in _SETTINGS)
