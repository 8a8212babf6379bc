"""Lines that say how long a run will be, or which epoch begins, and nothing measured."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainwarden.metrics.formats.base import Pair, Row
from trainwarden.metrics.names import canonical
from trainwarden.metrics.values import to_float

_TOTALS = re.compile(
    r"(?:total (?:optimization |training |train )?(?:steps|iterations|updates)"
    r"|max[_ ](?:steps|iters?|iterations|updates?)|num_training_steps|training steps)"
    r"(?:\s*(?:[:=]|is)\s*|\s+)\(?(?P<n>\d[\d,]*)\b(?!\.\d)"
    r"|--(?:max[_-](?:steps|iters)|train(?:ing)?[._-](?:steps|iters)|num[_-]train[_-]steps)[= ]"
    r"(?P<flag>\d+)\b|, max: (?P<mmcv>\d+) iters\b"
    r"|starting training\W{1,6}iters: (?P<mlx>\d+)\b",
    re.IGNORECASE,
)
_EPOCHS = re.compile(
    r"(?:^\s*|[-(,]\s?|`)(?:(?:num[_ -](?:train[_ -])?|max[_ -]|total[_ -])?epochs|max_epoch)"
    r"\s*[:=]\s*(?P<n>\d+)\s*(?:[,)`]|$)"
    r"|--(?:num[_-](?:train[_-])?|max[_-])?epochs[= ](?P<flag>\d+)\b"
    r"|, max: (?P<mmcv>\d+) epochs\b",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"[\W_]*(?:(?:start(?:ing)?|begin(?:ning)?|training) )?(?:training )?epoch(?: number)?"
    r"[\s:=\[#(]*(?P<epoch>\d+)(?:\s*(?:/|of)\s*(?P<total>\d+))?[\W_]*",
    re.IGNORECASE,
)


def tells(text: str, start: int) -> bool:
    """Whether a line may say how long the run will be."""
    return bool(_TOTALS.search(text, start) or _EPOCHS.search(text[start:]))


def planned(format_: str, text: str, start: int, pairs: Iterable[Pair]) -> Row | None:
    """How long the run will be, where the line says it and, by its pairs, not where the run is."""
    if found := _TOTALS.search(text, start):
        total = to_float(found["n"] or found["flag"] or found["mmcv"] or found["mlx"])
        if total > 1 and (found["flag"] or found["mlx"] or not _has(pairs, {"step"})):
            return Row(format_, [Pair("total_steps", total)], kind="totals")
    if (stated := _EPOCHS.search(text[start:])) and not _has(pairs, {"step", "epoch"}):
        epochs = float(stated["n"] or stated["flag"] or stated["mmcv"])
        if epochs > 0:
            return Row(format_, [Pair("total_epochs", epochs)], kind="totals")
    return None


def head(format_: str, body: str) -> Row | None:
    """Which epoch begins, where the line says that alone."""
    if len(body) >= 120 or (found := _HEAD.fullmatch(body)) is None:
        return None
    place = [Pair("epoch", float(found["epoch"]))]
    if found["total"]:
        place.append(Pair("total_epochs", float(found["total"])))
    return Row(format_, place, kind="head")


def _has(pairs: Iterable[Pair], names: set[str]) -> bool:
    return any(canonical(pair.name)[0].name in names for pair in pairs)
