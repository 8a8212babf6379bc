"""Progress bars of tqdm, redrawn with carriage returns."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Row
from trainwarden.metrics.formats.pairs import acceptable
from trainwarden.metrics.formats.scan import scan
from trainwarden.metrics.formats.sides import spelled
from trainwarden.metrics.names import canonical
from trainwarden.metrics.values import to_float

_COUNT = r"\d+(?:\.\d+)?[kMG]?"
_TQDM = re.compile(
    rf"(?<![\d.])(?:(?P<pct>\d{{1,3}})%\|(?P<bar>[^|]*)\|\s*)?"
    rf"(?P<n>{_COUNT})(?:it)?/(?P<total>{_COUNT})(?:it)?\s*"
    r"\[(?P<elapsed>[\d:?]+|\d+ days?, [\d:]+)<(?P<eta>[^,\]]{1,24})"
    r"(?:,\s*(?P<rate>[\d.?]+\s?[kMG]?[A-Za-z]*/[A-Za-z]+)(?P<post>,[^\]]*)?)?(?:\]|(?=wandb:)|(?=\s*\Z))"
)
_SAFE = re.compile(r"[^=:]+[=:]\s*-?\d+\.\d{3,}\s*")
"""A value that is still nearly itself where a bar as wide as the window was cut."""
_UNBOUND = re.compile(
    r"(?:^|\s)(?P<n>\d+)it \[(?P<elapsed>[\d:]+), *"
    r"(?P<rate>[\d.?]+ ?[a-z]+/[a-z]+)(?P<post>,[^\]]*)?\]"
)
_PROGRESS = re.compile(
    rf"Progress on:(?P<desc>[^\n]{{0,40}}?) ?(?P<n>{_COUNT})[a-z]{{1,8}}/(?P<total>{_COUNT})"
    r"[a-z]{1,8} rate:(?:-|(?P<rate>[\d.]+(?:it/s|s/it))|[\d.,]+\w{1,8}/s)"
    r"(?: remaining:\S+)?(?: elapsed:\S+)?"
    r"(?: postfix:(?:-|(?P<post>[^\s,=]+=[^\s,]+(?:,\s*[^\s,=]+=[^\s,]+)*)))?"
)
_EVALUATION = re.compile(
    r"(?i)(?:^|[^a-z])(?:val|valid|validation|eval|evaluat\w*|test\w*)(?![a-z])"
)
_DATA = re.compile(r"[kMG]?i?B/s| examples/s")
"""Rates of downloads, and of what the datasets library does to examples before training."""
_SUFFIX = re.compile(r"[kMG]")
_INK = re.compile(r"\S")
_EPOCH_LABEL = re.compile(r"\b[Ee]poch:?\s*\[?(?P<epoch>\d+)(?:\s*(?:/|of)\s*(?P<total>\d+))?")


class Tqdm:
    """`desc:  50%|█████     | 5/10 [00:01<00:01,  4.2it/s, loss=0.5]`."""

    name: ClassVar[str] = "tqdm"
    hints: ClassVar[tuple[str, ...]] = ("<", "it [", "progress on")
    exclusive: ClassVar[bool] = False

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:  # noqa: ARG002
        """Where the bar stands, its rate, and what it carries; text after it is read by itself."""
        text = line.text
        match = _TQDM.search(text, line.start) or _PROGRESS.search(text, line.start)
        if match is None:
            return self._unbound(line)
        if match["rate"] and _DATA.search(match["rate"]):
            return Row(self.name, [], kind="bar", label="data", rest=_rest(text, match.end()))
        label = text[line.start : match.start()].strip(" :|\t")
        if match.re is _PROGRESS:
            label = match["desc"].strip()
        general = re.sub(r"\d+", "#", label)[:80]
        row = Row(self.name, [], kind="bar", label=general, rest=_rest(text, match.end()))
        if row.rest is not None and _EVALUATION.search(label):
            # Validation: 100%|██| 19/19 [00:08<00:00] loss: 0.28
            values, _loose, words = scan(text, row.rest)
            if values and acceptable(values, words, text[row.rest :].strip()):
                row.more, row.rest = (Row("text", values, "eval"),), None
        pairs = row.pairs
        if found := _EPOCH_LABEL.search(text, line.start, match.start()):
            pairs.append(Pair("epoch", float(found["epoch"]), "", found.span("epoch")))
            if found["total"]:
                pairs.append(Pair("total_epochs", float(found["total"]), "", found.span("total")))
        if label and not label.lower().startswith(("epoch", "train")):
            pairs += [
                pair
                for pair in scan(text, line.start, match.start())[0]
                if canonical(pair.name)[0].role != "position"
            ]
            row.pairs = pairs = spelled(pairs)
        pairs.append(Pair("step", to_float(match["n"]), "", match.span("n")))
        pairs.append(Pair("total_steps", to_float(match["total"]), "", match.span("total")))
        if match["rate"]:
            pairs += _rate(match["rate"], match.start("rate"))
        if match.re is _TQDM:
            row.free.append((*match.span("elapsed"), r"[\d:?]+(?: days?, [\d:]+)?"))
            row.free.append((*match.span("eta"), r"[^,\]\n]{1,24}"))
            if match["pct"] is not None:
                row.loose.append(match.span("pct"))
                row.free.append((*match.span("bar"), r"[^|\n]*"))
            row.repeatable = not _SUFFIX.search(match["n"] + match["total"])
        if match["post"]:
            begin, end = match.start("post") + (match.re is _TQDM), match.end("post")
            if match.re is _TQDM and match.end() == end:
                row.repeatable = False
                last = text.rfind(",", begin, end) + 1 or begin
                if not _SAFE.fullmatch(text, last, end):
                    end = last
            more, loose, words = scan(text, begin, end)
            if _EVALUATION.search(label):
                # Of an evaluation only what its full bar says; it is no measure of training.
                full = match["n"] == match["total"] and acceptable(more, words, match["post"])
                return replace(row, more=(Row("text", more, "eval"),) if full else ())
            pairs += more
            row.loose += loose
        return row

    def _unbound(self, line: Line) -> Row | None:
        match = _UNBOUND.search(line.text, line.start)
        if match is None:
            return None
        label = line.text[line.start : match.start()].strip(" :|\t")
        pairs = [Pair("step", to_float(match["n"])), *_rate(match["rate"], 0)]
        if match["post"]:
            pairs += scan(match["post"], 1)[0]
        rest = _rest(line.text, match.end())
        return Row(self.name, pairs, kind="bar", label=label[:80], rest=rest)


def _rest(text: str, end: int) -> int | None:
    found = _INK.search(text, end)
    return found.start() if found else None


def _rate(text: str, start: int) -> list[Pair]:
    found = re.match(r"(\d+(?:\.\d+)?)\s?([kMG]?)([A-Za-z]+)/([A-Za-z]+)", text)
    if found is None:
        return []
    value = to_float(found[1] + found[2])
    span = (start + found.start(1), start + found.end(1))
    above, below = found[3], found[4]
    if below == "s" and above in {"it", "step", "steps", "batch", "ba"}:
        return [Pair("it/s", value, "", span)] if not found[2] else []
    if above == "s":
        return [Pair("s/it", value, "", span)]
    return []
