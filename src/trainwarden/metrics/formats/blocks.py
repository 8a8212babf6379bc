"""Records of one `name: number` a line under a head line: RLlib, Composer, OLMo, RSL-RL."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Phase, Row
from trainwarden.metrics.names import canonical
from trainwarden.metrics.values import NUMBER, to_float

_HEAD = re.compile(
    r"Result for \S+:\s*\Z"
    # Composer; by the unit of its duration, tokens and samples among them
    r"|(?:\[epoch=(?P<epoch>\d+)\])?\[(?P<unit>batch|iteration|epoch|sample|token|second)="
    r"(?P<n>\d+)(?:/(?P<total>\d+))?\]:?\s*\Z"
    r"|\[Eval batch=(?P<eval>\d+)/\d+\] Eval on .{1,80} data:?\s*\Z"
    # OLMo
    r"|\[step=(?P<step>\d+)/(?:(?P<steps>\d+)|\?+)(?:,[\w ]+=[^\],]+)*\]\s*\Z"
    # RSL-RL
    r"|\s*Learning iteration (?P<it>\d+)/(?P<of>\d+)\s*\Z"
)
_ITEM = re.compile(
    rf"[ \t]+(?:(?:Train|Eval) (?=[\w.-]+/))?(?P<name>[A-Za-z_][\w/.@() -]{{0,120}}?)(?:: |=)"
    rf"(?P<num>{NUMBER})\s*\Z"
)
_EVALUATED = re.compile(rf" {{4}}(?P<name>eval/[\w/.@() -]{{1,120}})=(?P<num>{NUMBER})\s*\Z")
_ENDS = frozenset("0123456789: ]")
_OTHER = re.compile(r"[ \t]+\S")
_STEPS = {"batch": ("step", "total_steps"), "iteration": ("step", "total_steps"),
          "epoch": ("epoch", "total_epochs")}  # fmt: skip


class Block:
    """Indented items under a head line, one record a block."""

    name: ClassVar[str] = "block"
    hints: ClassVar[tuple[str, ...]] = ()
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The head, or one item of the block."""
        text, start = line.text, line.start
        kind = memory.get("block")
        if kind is None and text[-1:] not in _ENDS:
            return None
        if head := _HEAD.match(text, start):
            pairs = _place(head)
            now = "rounds" if head["it"] else "eval" if head["eval"] else "block"
            now = "placed" if head["unit"] and pairs else now
            if kind != now:
                memory["block"] = now
            if head["step"] and "olmo" not in memory:
                memory["olmo"] = True
            if not pairs:
                return Row(self.name, [], kind="end")
            return Row(self.name, pairs, kind="partial", label="head")
        if "olmo" in memory and (found := _EVALUATED.match(text)):
            return Row(self.name, [Pair(found["name"], to_float(found["num"]))], "eval")
        if kind is None:
            return None
        if kind == "rounds" and "Total timesteps:" in text:
            return Row(self.name, [], kind="end")  # the steps are those of the head line
        phase: Phase | None = "eval" if kind == "eval" else None
        if item := _ITEM.match(text, start):
            pairs = [Pair(item["name"], to_float(item["num"]))]
            if kind == "placed" and canonical(item["name"])[0].role == "position":
                pairs = []  # Train time/batch: it lags behind the head line
            return Row(self.name, pairs, phase, kind="partial")
        if not _OTHER.match(text, start) and not text.startswith("-----"):
            del memory["block"]
            return Row(self.name, [], kind="end")
        return Row(self.name, [], phase, kind="partial")


def _place(head: re.Match[str]) -> list[Pair]:
    """Where a head line says that the run is."""
    for at, of in (("step", "steps"), ("it", "of")):
        if head[at]:
            pairs = [Pair("step", float(head[at]))]
            return [*pairs, Pair("total_steps", float(head[of]))] if head[of] else pairs
    if head["unit"] is None:
        return []
    n, total = float(head["n"]), head["total"]
    if head["epoch"]:
        # The place in the epoch, where the duration is told in epochs.
        pairs = [Pair("epoch", float(head["epoch"])), Pair("epoch_step", n)]
        return [*pairs, Pair("epoch_steps", float(total))] if total else pairs
    names = _STEPS.get(head["unit"])
    if names is None:
        return []
    return [Pair(names[0], n), Pair(names[1], float(total))] if total else [Pair(names[0], n)]
