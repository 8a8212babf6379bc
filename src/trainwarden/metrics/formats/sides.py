"""The two sides of a line: what it says of training, and what of validation or a test."""

from __future__ import annotations

import re

from trainwarden.metrics.formats.base import PHASES, Pair
from trainwarden.metrics.names import canonical, is_bare

Span = tuple[int, int]
_SIDE = re.compile(
    r"(?:^|[|;,\[(\])\d:-])\s*(?P<side>train(?:ing)?|val(?:id(?:ation)?)?|test(?:ing)?|eval(?:uation)?)"
    r"(?: set| data)?\s?(?:\]|\)|:|\||=>|->)",
    re.IGNORECASE,
)


def sided(text: str, start: int, pairs: list[Pair]) -> tuple[list[Pair], list[Span]]:
    """The pairs of a line, each with the side that it belongs to in its name.

    `Train: loss=0.5 acc=0.8 | Val: loss=0.6 acc=0.7`, or `Val loss 0.6 acc 0.7` after the same of
    training. A name that comes up again on one side is a mean or a copy: its digits are returned.
    """
    if len(pairs) < 2:
        return pairs, []
    taken: list[Pair] = []
    dropped: list[Span] = []
    had: set[str] = set()
    side, told, end = "", 0, start
    sides = {match["side"].lower()[:2] for match in _SIDE.finditer(text, start)}
    both = "tr" in sides and len(sides) > 1
    for pair in pairs:
        begin = pair.span[0] if pair.span else end
        found = list(_SIDE.finditer(text, max(start, end - 1), begin)) if sides else []
        end = pair.span[1] if pair.span else end
        meaning, own = canonical(pair.name)
        if found:
            side, told = found[-1]["side"].lower(), 2
        elif own is not None and not is_bare(pair.name):
            side, told = ("val" if own == "eval" else "train"), max(told, 1)
        name = pair.name
        if own is None and meaning.role == "result" and side:
            again = name.lower() in had and PHASES.get(side, "eval") == "eval"
            if (told == 2 and both) or again:
                name = f"{side} {name}"
        if name.lower() in had and meaning.role == "result":
            dropped += [pair.span] if pair.span else []
            continue
        had.add(name.lower())
        taken.append(pair if name is pair.name else pair._replace(name=name))
    return taken, dropped


def scored(pairs: list[Pair]) -> list[Pair]:
    """`Loss: 1.9, Train: 0.81, Val: 0.77`: beside a loss, what is called by its side alone is none.

    Graph learning's examples print accuracies so, or whatever else the data set is scored by.
    """
    bare = [is_bare(pair.name) for pair in pairs]
    if not any(bare) or not any(
        canonical(pair.name)[0].known and canonical(pair.name)[0].name == "loss" for pair in pairs
    ):
        return pairs
    return [
        pair._replace(name=f"{pair.name} score") if alone and pair.unit != "%" else pair
        for pair, alone in zip(pairs, bare, strict=True)
    ]


def spelled(pairs: list[Pair]) -> list[Pair]:
    """`it 300 | l=1.23`: where a line says its place and no other loss, that is what `l` is."""
    if not any(pair.name in {"l", "L"} for pair in pairs):
        return pairs
    meant = [canonical(pair.name)[0] for pair in pairs]
    placed = any(one.known and one.name in {"step", "epoch", "epoch_step"} for one in meant)
    if not placed or any(one.known and one.name == "loss" and one.rank < 5 for one in meant):
        return pairs
    return [pair._replace(name="loss") if pair.name in {"l", "L"} else pair for pair in pairs]
