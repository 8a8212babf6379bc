"""What makes words count: sentences of some substance, and texts that truly differ. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

FEWEST_WORDS = 5
_WORD = re.compile(r"[^\W_]+")
_EMPTY = re.compile(
    r"an?|and|as|at|be|by|for|from|in|is|its?|no|not|of|on|or|so|than|that|the|this|to|too|very|"
    r"will|with|would"
)


def substance(label: str, text: str) -> list[str]:
    """A complaint where a text is no sentence."""
    words = _WORD.findall(text)
    if len(words) < FEWEST_WORDS or len({word.lower() for word in words}) < 3:
        return [f"{label}: say it in a sentence of five words or more (this has {len(words)})"]
    return []


def gist(text: str) -> frozenset[str]:
    """The words that carry a text: case, order, punctuation, articles and negation left out."""
    words = {word.casefold() for word in _WORD.findall(text)}
    return frozenset({word for word in words if not _EMPTY.fullmatch(word)} or words)


def alike(texts: Mapping[str, str]) -> list[str]:
    """Pairs of labels whose texts say the same in other order or punctuation."""
    seen: dict[frozenset[str], str] = {}
    pairs = []
    for label, text in texts.items():
        first = seen.setdefault(gist(text), label)
        if first != label:
            pairs.append(f"{first} and {label}")
    return pairs
