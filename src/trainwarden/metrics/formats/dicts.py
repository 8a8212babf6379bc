"""Python dicts as trainers print them: `{'loss': 2.5, 'learning_rate': '1e-05'}`."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import PART, Line, Pair, Row
from trainwarden.metrics.formats.pairs import phase_of
from trainwarden.metrics.names import SCORES, canonical, is_setting
from trainwarden.metrics.values import NUMBER, to_float

_ITEM = re.compile(
    rf"""['"](?P<key>[^'"]{{1,120}})['"]\s*:\s*
    (?:['"]?
      (?:(?:np\.|numpy\.|torch\.)?(?:float\d*|u?int\d*|tensor|array)\(\s*(?:\[\s*)?)?
      (?P<num>{NUMBER})(?P<unit>\s?(?:%|ms|s|[KMGT]i?B))?(?:/(?P<total>\d+))?
      (?:,\s*(?:device|dtype|grad_fn|requires_grad)=[^)]*)*\]?\)?
    ['"]?(?=\s*[,}}\]\"]|\s*$))""",
    re.VERBOSE,
)
_SUMMARY = frozenset(
    {"train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos"}
)


_ORBIT = re.compile(r"\b(?P<what>step): +(?P<n>\d+)(?P<of>) \| [^|]+\| output: \Z")
_PLACE = re.compile(
    r"(?:^|[^A-Za-z])(?P<what>(?:global[ _]?)?step|iter|iteration|update|round|epoch|episode"
    r"|rollout|perf|eval)\s{0,16}(?:[:#=]\s{0,16})?(?P<n>\d+)(?:\s{0,16}/\s{0,16}(?P<of>\d+))?"
    r"[\s\])]{0,16}(?:\[\w{1,40}\])?[\s:|>=-]{0,40}\Z",
    re.IGNORECASE,
)
MAX_HELD = 300


class PrintedDict:
    """A dict printed on a line of its own, or after a few words that say what it is.

    Over several lines too, an item on each, as `pprint` prints it.
    """

    hints: ClassVar[tuple[str, ...]] = ("{'", "': ", "| output:")
    exclusive: ClassVar[bool] = False
    name: ClassVar[str] = "hf-dict"

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The numbers of the dict by key; what is no number is passed over."""
        text, start = line.text, line.start
        held = memory.get("dict")
        if text.rstrip().endswith("| output:"):
            # Orbit, of TensorFlow's models: train | step: 100 | steps/sec: 3.2 | output:
            memory["dict_of"] = "eval" if text[start:].lstrip().startswith("eval ") else "train"
            return None
        if isinstance(held, list):
            if (
                text[:1] == " "
                and text.lstrip(" ")[:1] == "'"
                and text[-1] in {",", "}"}
                and len(held) < MAX_HELD
            ):
                held.append(text)
                if text[-1] == ",":
                    return None
                text, start = "".join(held), 0
            del memory["dict"]
        brace = text.find("{'", start)
        if brace < 0 or len(text) - brace > 100_000:
            return None
        lead = text[start:brace]
        if len(lead) > 80 or lead.count("(") > lead.count(")"):
            return None  # the latter is code: f({'a': 1})
        if text[-1] == "," and "}" not in text:
            memory["dict"] = [text[start:]]
            return None
        closing = text.rfind("}")
        pairs: list[Pair] = []
        loose: list[tuple[int, int]] = []
        for match in _ITEM.finditer(text, brace):
            span = match.span("num")
            key = match["key"]
            if match["total"] and (role := counted(key)):
                pairs.append(Pair(role, to_float(match["num"]), "", span))
                total = to_float(match["total"])
                pairs.append(Pair(f"total_{role}s", total, "", match.span("total")))
                continue
            unit = (match["unit"] or "").strip()
            if key == "epoch" and "." in match["num"]:
                unit = PART
            pairs.append(Pair(key, to_float(match["num"]), unit, span))
        names = {pair.name for pair in pairs}
        if names & _SUMMARY:
            return Row(self.name, pairs, "summary", loose=loose)
        phase = phase_of(lead, re.findall(r"[A-Za-z]+", lead)) if lead.strip() else None
        if memory.get("dict_of") == "eval" and not lead.strip():
            phase = "eval"
        if place := _PLACE.search(lead) or _ORBIT.search(lead):
            pairs = _placed(pairs, place, brace - len(lead))
            if (
                place["what"].lower() == "epoch"
                and {canonical(pair.name)[0].name for pair in pairs if _result(pair)} <= SCORES
            ):
                phase = "eval"  # epoch 2: {'accuracy': 0.81, 'f1': 0.87}
        if phase == "summary" and "alid" in lead:
            phase = "eval"
        if not (measured(pairs) or (phase == "eval" and pairs)):
            return None
        rest = closing + 1 if closing > 0 and text[closing + 1 :].strip(" \"'") else None
        if text is not line.text:
            return Row(self.name, [pair._replace(span=None) for pair in pairs], phase)
        return Row(
            self.name, pairs, phase, loose=loose, repeatable=rest is None and closing > 0, rest=rest
        )


def counted(key: str) -> str | None:
    """What a value such as `10/100` counts: `step` or `epoch`, by its key; else None.

    The key may name both numbers: `global_step/max_steps`.
    """
    for name in (key, key.partition("/")[0]):
        meaning = canonical(name)[0]
        if meaning.known and meaning.name in {"step", "epoch"}:
            return meaning.name
    return None


def _placed(pairs: list[Pair], place: re.Match[str], offset: int) -> list[Pair]:
    """The pairs with the place that the words before them tell, where they tell none."""
    role = "epoch" if place["what"].lower() == "epoch" else "step"
    if any(canonical(pair.name)[0].name == role for pair in pairs):
        return pairs
    spans = [(a + offset, b + offset) for a, b in (place.span("n"), place.span("of"))]
    told = [Pair(role, float(place["n"]), "", spans[0])]
    if place["of"]:
        told.append(Pair(f"total_{role}s", float(place["of"]), "", spans[1]))
    return told + pairs


def _result(pair: Pair) -> bool:
    meaning = canonical(pair.name)[0]
    return meaning.known and meaning.role != "position"


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
