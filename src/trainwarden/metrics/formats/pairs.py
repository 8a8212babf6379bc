"""Plain step lines: `key: value`, `key=value`, `key value`, with any separators between."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats import plans
from trainwarden.metrics.formats.base import Line, Pair, Phase, Row
from trainwarden.metrics.formats.scan import scan
from trainwarden.metrics.formats.sides import scored, sided, spelled
from trainwarden.metrics.names import SCORES, canonical, is_bare, is_setting
from trainwarden.metrics.values import NUMBER, to_float

Scanned = tuple[list[Pair], list[tuple[int, int]], list[str]]
"""What `scan` finds."""
MAX_REFUSED = 2000
_DIGIT = re.compile(r"\d|(?i:nan|inf)")
_NUMERAL = re.compile(r"(?<![A-Za-z_@\d])\d+")
_PHASE_EVAL = re.compile(
    r"(?:^|[\s\[(|_])(?:val|valid|validat(?:e|ing|ion)|eval|evaluat(?:ion|ing)|test|testing|dev)"
    r"(?:$|[\s\])|:.,_])",
    re.IGNORECASE,
)
_PHASE_TRAIN = re.compile(r"(?:^|[\s\[(|_])(?:train|training)(?:$|[\s\])|:.,_])", re.IGNORECASE)
_SUMMARY = re.compile(r"^(?:Summary|END epoch|Averaged? (?:over|stats)|Best|Final)\b|\btotal:\s*$")
_STARS = re.compile(r"\s*\*\s+(?:Acc|Prec|Loss)", re.IGNORECASE)
_RANKS = frozenset({"rank", "local_rank", "global_rank"})
_SENTENCE = """
    the a an what who which was were been that this these those his her he she they it its you your
    my we our i and because if but so would could should can have had do does did not there when
    where how why
"""
_PROSE = frozenset(_SENTENCE.split())
"""Words of sentences: a line with some is prose, unless the log has no other lines."""
_WIDE = """
    cost score scale norm return returns memory mem time seconds batch round tree rounds precision
    recall map em ce mae ep it grad ram throughput remaining
"""
_VAGUE = frozenset(_WIDE.split())
"""Names that say too little for a line that holds nothing else."""
_HINTS = (
    *(
        "loss",
        "step",
        "iter",
        "epoch",
        "lr",
        "acc",
        "norm",
        "rew",
        "ppl",
        "perplex",
        "tok/s",
        "mfu",
    ),
    *("kl", "entropy", "mem", "rss", "cost", "update", "round", "ndcg", "auc", "bleu", "f1", "map"),
    *("rmse", "mae", "prec", "recall", "score", "throughput", "ips", "/sec", "ples/s", "ges/s"),
    *("it/s", "hellaswag", "mmlu", "dice", "iou", "learning rate", "test err", "val err"),
    *("episode", "psnr"),
)
_TALK = re.compile(r"\bimproved from\b|\bdid not improve\b|^[\w.]*(?:Error|Exception): ")
"""Sentences with a measure: of Keras's ModelCheckpoint, of errors."""
_CODE = re.compile(r"\w=\S.*\)[:;]\s*\Z")
"""A call or the head of a function, with its defaults."""
_MEAN = re.compile(rf"\s*\(\s*({NUMBER})\s*\)")
_RATE = re.compile(r"\W*(?P<current>current )?(?:learning[ _]rate|lr)\W", re.IGNORECASE)


class Pairs:
    """Lines such as `iter 10: loss 4.68, time 49ms, mfu 7.5%` and their many relatives."""

    hints: ClassVar[tuple[str, ...]] = _HINTS
    exclusive: ClassVar[bool] = False
    name: ClassVar[str] = "text"

    def __init__(self) -> None:
        self._refused: set[str] = set()

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """The line's pairs, where it is made of them; prose with a number in it is not."""
        text, start = line.text, line.start
        if len(text) - start > 20_000 or not _DIGIT.search(text, start):
            return None
        # Whether a line is made of pairs does not hang on its digits: noise repeats its shapes.
        shape = _NUMERAL.sub(_zeros, text[start:])
        if shape in self._refused:
            return None
        if (
            text.count(" ", start) > 10
            and (words := len(text[start:].split())) > 10
            and 6 * len(_NUMERAL.findall(text, start)) < words
        ):
            # Prose: a metric line has few words to a number.
            return plans.planned(self.name, text, start, []) if "max_" in text else None
        row = self._parse(line, memory)
        if row is not None and row.kind == "metrics" and not _remembered(row, memory):
            return None
        if row is None and not plans.tells(text, start):
            if len(self._refused) >= MAX_REFUSED:
                self._refused.clear()
            self._refused.add(shape)
        return row

    def _parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        text, start = line.text, line.start
        body = text[start:]
        if begun := plans.head(self.name, body):
            return begun
        pairs, loose, residual = scan(text, start)
        if planned := plans.planned(self.name, text, start, pairs):
            return planned
        if not pairs or _TALK.search(body) or _CODE.search(body):
            return None
        return _row(line, (pairs, loose, residual), memory, phase_of(body, residual), False)


def measured(
    line: Line,
    scanned: Scanned,
    memory: dict[str, object],
    phase: Phase | None = None,
    sure: bool = False,
) -> Row | None:
    """The row of a line, from what `scan` found on it, for a format that knows how it begins.

    `phase` is what that tells; `sure` says that the line needs no look at what else stands there.
    """
    body = line.text[line.start :]
    row = _row(line, scanned, memory, phase or phase_of(body, scanned[2]), sure)
    return row if row is not None and _remembered(row, memory) else None


def _row(
    line: Line, scanned: Scanned, memory: dict[str, object], phase: Phase | None, sure: bool
) -> Row | None:
    body = line.text[line.start :]
    pairs, loose, residual = scanned
    pairs, again = sided(line.text, line.start, _inner_counts(pairs))
    pairs, loose = spelled(scored(pairs)), loose + again
    phase = _told_by(pairs, phase)
    if not sure and not acceptable(pairs, residual, body):
        alone = len(pairs) == 1 and _is(pairs[0], "learning_rate")
        if not alone or not _rate(body, memory):
            return None
    if phase == "eval":
        pairs, loose = _with_means(line.text, pairs, loose)
    prose = not sure and (
        any(word.lower() in _PROSE for word in residual)
        or any(not _PROSE.isdisjoint(pair.name.lower().split(" ")[:-1]) for pair in pairs)
    )
    ranks = [pair for pair in pairs if pair.name.lower() in _RANKS]
    pairs = [pair for pair in pairs if pair.name.lower() not in _RANKS]
    row = Row(Pairs.name, pairs, phase, loose=loose, repeatable=not prose)
    row.rank = int(ranks[0].value) if ranks and ranks[0].value >= 0 else None
    return row


def _told_by(pairs: list[Pair], phase: Phase | None) -> Phase | None:
    """The phase of a line, of which its words say `phase`, as the names of its results tell it."""
    results = [(pair, *canonical(pair.name)) for pair in pairs]
    results = [one for one in results if one[1].role == "result"]
    told = [own for _pair, _meaning, own in results]
    if phase == "eval" and (any(told) or any(_PHASE_TRAIN.search(p.name) for p in pairs)):
        return None  # names that tell their own phase: the line holds several
    if phase is None and "eval" in told and "train" not in told:
        others = {meaning.name for _pair, meaning, own in results if own is None}
        first = told[0] == "eval" and " " in results[0][0].name.strip()
        # val Loss: 0.5 Acc: 0.8, or epoch 3: perplexity: 20.5 eval_loss: 3.02
        return "eval" if first or (others and others <= SCORES) else None
    return phase


def _remembered(row: Row, memory: dict[str, object]) -> bool:
    """Note what kinds of lines the log has; whether the row is one that it may have."""
    # Once there are step lines, a sentence with numbers is what a model wrote.
    if not row.repeatable and "stepped" in memory:
        return False
    memory.setdefault("measured", True)
    stepped = row.repeatable and any(_is(pair, "step") for pair in row.pairs)
    if stepped and "stepped" not in memory:
        memory["stepped"] = True
    return True


def _rate(body: str, memory: dict[str, object]) -> bool:
    """Whether a learning rate alone on a line is that of training, not of its settings."""
    found = _RATE.match(body)
    return found is not None and (found["current"] is not None or "measured" in memory)


def _inner_counts(pairs: list[Pair]) -> list[Pair]:
    """`STEP: 25/60 -- GLOBAL_STEP: 85`: of two counts of a line, the one with an end is inner."""
    ranks = [canonical(pair.name)[0].rank if _is(pair, "step") else 99 for pair in pairs]
    for index, pair in enumerate(pairs[:-1]):
        if pairs[index + 1].name == "total_steps" and min(ranks) < ranks[index] < 99:
            inner = [pair._replace(name="epoch_step")]
            inner.append(pairs[index + 1]._replace(name="epoch_steps"))
            return pairs[:index] + inner + pairs[index + 2 :]
    return pairs


def _with_means(
    text: str, pairs: list[Pair], loose: list[tuple[int, int]]
) -> tuple[list[Pair], list[tuple[int, int]]]:
    """Of an evaluation's `Acc@1: 12.1 (11.5)` the mean so far: in the end it is the result."""
    taken: list[Pair] = []
    for pair in pairs:
        mean = _MEAN.match(text, pair.span[1]) if pair.span else None
        if pair.span and mean and mean.span(1) in loose:
            loose = [pair.span if span == mean.span(1) else span for span in loose]
            pair = pair._replace(value=to_float(mean[1]), span=mean.span(1))
        taken.append(pair)
    return taken, loose


def _zeros(match: re.Match[str]) -> str:
    return "0" * (match.end() - match.start())


def position(pair: Pair) -> bool:
    """Whether a pair says where the line stands."""
    meaning = canonical(pair.name)[0]
    return meaning.known and meaning.role == "position"


def _is(pair: Pair, role: str) -> bool:
    return canonical(pair.name)[0].name == role


def phase_of(body: str, residual: list[str]) -> Phase | None:
    """Whether the words around the numbers say that a line is an evaluation's."""
    if _SUMMARY.search(body.lstrip()):
        return "summary"
    if body.endswith(" Training."):
        return "train"  # ML-Agents, whatever the run and its behavior are called
    words = " ".join(residual)
    if _PHASE_EVAL.search(words) or _STARS.match(body):
        return "eval"
    if _PHASE_TRAIN.search(words):
        return "train"
    return None


_ARGUMENTS = frozenset({"imgsz", "epochs", "patience"})
_NEUTRAL = frozenset(
    {"train", "training", "val", "valid", "validation", "eval", "evaluation", "test", "epoch"}
    | {"step", "avg", "average", "mean", "current", "rank", "bpc", "bits", "none", "transformer"}
    | {"batch", "progress", "postfix", "samples", "sec", "images", "iter"}
    | {"metrics", "results", "pseudo", "global", "foreground"}
)


def acceptable(pairs: list[Pair], residual: list[str], body: str) -> bool:
    """Whether a line is made of its pairs: measurements, and neither prose nor config."""
    known = settings = odd = others = bare = 0
    stepped = epoched = evaluated = False
    if not _ARGUMENTS.isdisjoint(pair.name for pair in pairs):
        return False
    for pair in pairs:
        meaning, own = canonical(pair.name)
        evaluated = evaluated or own == "eval"
        if meaning.role == "position" and meaning.known:
            stepped = stepped or meaning.name in {"step", "epoch_step"}
            epoched = epoched or meaning.name == "epoch"
        elif meaning.known and meaning.role == "result":
            known += 1
        elif meaning.known:
            settings += 1
        else:
            odd += is_setting(pair.name)
            bare += is_bare(pair.name) and not pair.value.is_integer()
            others += 1
    words = [word for word in residual if word.lower() not in _NEUTRAL]
    if stepped:
        if known + settings == 0 and others == 0:
            return not words
        enough = known + settings > 0 or len(pairs) > 2 or (evaluated and not words)
        return enough and len(words) <= 5 + len(pairs)
    if odd > known:
        return False
    if known == 1 and settings == 0 and others <= 1 and 0 < len(words) <= 3 and not epoched:
        # Eval completed in: 7.8s | UNCASED BLEU 9.8
        return _PHASE_EVAL.search(body[:60]) is not None
    if epoched:
        return known + bare > 0 and len(words) <= 4 + len(pairs)
    if known >= 2:
        return len(words) <= 2 + known
    if known == 1 and not odd and any(canonical(pair.name)[0].name == "loss" for pair in pairs):
        # Of a list of names and values that holds a loss, the others may be called anything.
        listed = body.count("=") + body.count(":") >= len(pairs)
        if listed and ((settings == 1 and not words) or (len(pairs) > 2 and len(words) <= 2)):
            return True
    if known == 1 and len(pairs) == 1 and pairs[0].name.strip().lower() in _VAGUE:
        return False
    if known != 1 or words or settings + odd:
        return False
    # Indented, it may be of a config: not where it says of which phase it is, nor a perplexity.
    meaning, own = canonical(pairs[0].name)
    return not body[:1].isspace() or own is not None or meaning.name == "perplexity"
