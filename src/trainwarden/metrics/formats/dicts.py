"""Python dicts as trainers print them: `{'loss': 2.5, 'learning_rate': '1e-05'}`."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.pairs import phase_of
from trainwarden.metrics.names import canonical, is_setting
from trainwarden.metrics.values import NUMBER, to_float

_ITEM = re.compile(
    rf"""['"](?P<key>[^'"]{{1,120}})['"]\s*:\s*
    (?:['"]?
      (?:(?:np\.|numpy\.|torch\.)?(?:float\d*|u?int\d*|tensor|array)\(\s*\[?\s*)?
      (?P<num>{NUMBER})(?P<unit>\s?(?:%|ms|s|[KMGT]i?B))?(?:/(?P<total>\d+))?
      (?:,\s*(?:device|dtype|grad_fn|requires_grad)=[^)]*)*\]?\)?
    ['"]?(?=\s*[,}}\]\"]|\s*$))""",
    re.VERBOSE,
)
_SUMMARY = frozenset(
    {"train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos"}
)


class PrintedDict:
    """A dict printed on a line of its own, or after a few words that say what it is."""

    hints: ClassVar[tuple[str, ...]] = ("{'",)
    exclusive: ClassVar[bool] = False
    name: ClassVar[str] = "hf-dict"

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:  # noqa: ARG002
        """The numbers of the dict by key; what is no number is passed over."""
        text = line.text
        brace = text.find("{'", line.start)
        if brace < 0 or len(text) - brace > 100_000:
            return None
        lead = text[line.start : brace]
        if len(lead) > 80:
            return None
        closing = text.rfind("}")
        pairs: list[Pair] = []
        loose: list[tuple[int, int]] = []
        for match in _ITEM.finditer(text, brace):
            span = match.span("num")
            key = match["key"]
            if key == "global_step/max_steps" and match["total"]:
                pairs.append(Pair("step", to_float(match["num"]), "", span))
                pairs.append(Pair("total_steps", to_float(match["total"]), "", match.span("total")))
                continue
            unit = (match["unit"] or "").strip()
            pairs.append(Pair(key, to_float(match["num"]), unit, span))
        names = {pair.name for pair in pairs}
        if names & _SUMMARY:
            return Row(self.name, pairs, "summary", loose=loose)
        phase = phase_of(lead, re.findall(r"[A-Za-z]+", lead)) if lead.strip() else None
        if phase == "summary" and "alid" in lead:
            phase = "eval"
        if not (measured(pairs) or (phase == "eval" and pairs)):
            return None
        rest = closing + 1 if closing > 0 and text[closing + 1 :].strip(" \"'") else None
        return Row(
            self.name, pairs, phase, loose=loose, repeatable=rest is None and closing > 0, rest=rest
        )


def measured(pairs: list[Pair]) -> bool:
    """Whether named numbers are measurements: a config has none of them, or many settings."""
    results = settings = positions = 0
    for pair in pairs:
        meaning = canonical(pair.name)[0]
        if meaning.known and meaning.role == "result":
            results += 1
        elif meaning.known and meaning.role == "position":
            positions += meaning.name in {"step", "epoch"}
        elif meaning.known or is_setting(pair.name):
            settings += 1
    if results == 0:
        return positions > 0 and len(pairs) > positions and settings <= len(pairs) // 2
    return settings <= results + positions + len(pairs) // 2
