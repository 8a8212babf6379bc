"""Plain step lines: `key: value`, `key=value`, `key value`, with any separators between."""

from __future__ import annotations

import re
from typing import ClassVar

from trainwarden.metrics.formats.base import Line, Pair, Phase, Row
from trainwarden.metrics.names import canonical, is_setting
from trainwarden.metrics.values import NUMBER, to_float

_UNIT = (
    r"(?:[kMGT]?(?:tokens?|toks?|samples?|images?|imgs?|steps?|iters?|it|sequences?|seqs?|"
    r"examples?|words?|records?|batch(?:es)?)\s?(?:/\s?(?:s|secs?|seconds?|step|GPU|gpu))+\b"
    r"|(?:s|ms|sec)/(?:it|iter|step|batch|epoch)\b|[KMGT]i?B\b|ms\b|us\b|ns\b|secs?\b|seconds?\b"
    r"|s\b|mins?\b|%|[kKM](?![A-Za-z])|it\b|BPC\b|bits\b|TFLOPS?\b|TFLOP/s\b)"
)
_SCAN = re.compile(
    rf"""
    (?P<opaque>
        \d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}(?:[T _]\d{{1,2}}:\d\d(?::\d\d)?(?:[.,]\d+)?)?Z?
      | \b(?:\d+\s+days?,\s*)?\d+:\d\d(?::\d\d)?(?:\.\d+)?(?!\w)
      | \b0x[0-9a-fA-F]+\b | \b\d+(?:\.\d+){{2,}}
      | (?<=\()[-+]?(?:{NUMBER})z\)
    )
  | (?<![\w.@/\-+\\])
    (?P<wrap>(?:(?:np|numpy|torch|jnp)\.)?(?:float\d*|u?int\d*|bfloat16|tensor|[aA]rray)\(\s*\[?\s*)?
    (?P<num>{NUMBER})
    (?P<of>\s*/\s*(?P<total>\d+(?:,\d{{3}})*(?:\.\d+)?)(?![\w.]*/|\d))?
    (?P<unit>\s?{_UNIT})?
    (?![A-Za-z_\d])
    """,
    re.VERBOSE,
)
_ENDWRAP = re.compile(r"[^()]*(?:\([^()]*\)[^()]*)*\)")
_SEP = re.compile(r"(?P<sep>\s*(?:[:=]|->|\bis\b|\|)\s*|\s+|\.{3,}\s*|)[\[(\"'{]*\s*\Z")
_CUT = re.compile(
    r"[,;|{}\[\]<>\"'\t!?*]|\s--?\s|--+|[:=]|(?<=\s)\((?![^()]*\)$)|\)(?=\s)|\.\s|\s{3,}|^-\s"
)
_FILLER = re.compile(r"\s+(?:at|is|was|of|value|to|after|for|by|so far|current(?:ly)?|now)\Z")
_TRAILER = re.compile(r"\s+(?:on|for|in|at|after|over|of)\s.*\Z")
_NOT_HERE = re.compile(
    r"(?i)\b(?:warm-?up|total|max|num|number|per|every|accumulation|sav\w*|log\w*|delet\w*|micro"
    r"|skipped|last|best|remaining|until|next|decay)\b"
)
_SINCE = re.compile(r"(?i)\b(?:total|elapsed|wall|eval|val|load\w*)\b")
_OF_PHASE = re.compile(r"\((?:train|val|test)\)\Z")
MAX_REFUSED = 2000
LONGEST = 120
"""Characters that a name may have, words before it included."""
_DIGIT = re.compile(r"\d|(?i:nan|inf)")
_NUMERAL = re.compile(r"(?<![A-Za-z_@\d])\d+")
_STATISTIC = re.compile(r"(?i)\b(?:std|stddev|var|variance|min|max|median|nan|number|num|delta)\b")
_WORD = re.compile(r"[A-Za-z]{2,}")
_PHASE_EVAL = re.compile(
    r"(?:^|[\s\[(|_])(?:val|valid|validation|eval|evaluation|evaluating|test|testing|dev)"
    r"(?:$|[\s\])|:.,_])",
    re.IGNORECASE,
)
_PHASE_TRAIN = re.compile(r"(?:^|[\s\[(|_])(?:train|training)(?:$|[\s\])|:.,_])", re.IGNORECASE)
_SUMMARY = re.compile(r"^(?:Summary|END epoch|Average over|Best|Final)\b|\btotal:\s*$")
_BY_UNIT = {
    "%": "",
    "it": "",
}
_STARS = re.compile(r"\s*\*\s+(?:Acc|Prec|Loss)", re.IGNORECASE)
_EVALUATED = re.compile(r"\s*(?:Epoch|Iter)\((?:val|test)\)")
_OF_EVAL = re.compile(r"\s*\[\s*(\d+)\s*/\s*(\d+)")
_PLACED = re.compile(r"\s*\[")
_PHASES = {"train": "train", "training": "train"} | dict.fromkeys(
    ("test", "val", "valid", "validation", "eval", "evaluation"), "eval"
)
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
_AFTER = re.compile(r"\s*(?:bf16|fp16|fp32|fp8)?\s*(MFU|mfu|TFLOPS?)\b")
_INNER = re.compile(
    r"[\])\s:,|_-]*[\[(|:,]?\s*(?:(?:step|iter|iteration|batch|it)\s*[:=]?\s*)?\Z", re.I
)
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
    *("it/s", "hellaswag", "mmlu"),
)
_IN_KEY = re.compile(r"\)\s*[:=]")
_TOTALS = re.compile(
    r"(?:total (?:optimization |training |train )?(?:steps|iterations|updates)"
    r"|max[_ ](?:steps|iters|iterations)|num_training_steps|training steps)"
    r"\s*(?:[:=]|is|\s)\s*\(?(?P<n>\d[\d,]*)\b(?!\.\d)"
    r"|--(?:max[_-](?:steps|iters)|train(?:ing)?[._-](?:steps|iters)|num[_-]train[_-]steps)[= ]"
    r"(?P<flag>\d+)\b",
    re.IGNORECASE,
)


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
        if (spaces := text.count(" ")) > 10 and 6 * len(_NUMERAL.findall(text, start)) < spaces:
            return None  # prose: a metric line has few words to a number
        row = self._parse(text, start)
        if row is not None and row.kind == "metrics":
            # Once there are step lines, a sentence with numbers is what a model wrote.
            if not row.repeatable and "stepped" in memory:
                return None
            if (
                "stepped" not in memory
                and row.repeatable
                and any(_is(pair, "step") for pair in row.pairs)
            ):
                memory["stepped"] = True
        if row is None and not _TOTALS.search(text, start):
            if len(self._refused) >= MAX_REFUSED:
                self._refused.clear()
            self._refused.add(shape)
        return row

    def _parse(self, text: str, start: int) -> Row | None:
        pairs, loose, residual = scan(text, start)
        body = text[start:]
        if found := _TOTALS.search(text, start):
            total = to_float(found["n"] or found["flag"])
            if total > 1 and (found["flag"] or not any(_is(pair, "step") for pair in pairs)):
                return Row(self.name, [Pair("total_steps", total)], kind="totals")
        if not pairs:
            return None
        phase = phase_of(body, residual)
        told = [
            canonical(pair.name)[1] for pair in pairs if canonical(pair.name)[0].role == "result"
        ]
        if phase == "eval" and any(told):
            phase = None  # names that tell their own phase: the line holds several
        elif phase is None and told and told[0] == "eval" and "train" not in told:
            first = next(pair for pair in pairs if canonical(pair.name)[0].role == "result")
            phase = "eval" if " " in first.name.strip() else None  # val Loss: 0.5 Acc: 0.8
        if _EVALUATED.match(body):
            # Where the evaluation stands is not where the training does.
            loose += [p.span for p in pairs if p.span and p.name != "epoch" and _position(p)]
            pairs = [pair for pair in pairs if pair.name == "epoch" or not _position(pair)]
        if not acceptable(pairs, residual, body) and not (pairs and _EVALUATED.match(body)):
            return None
        prose = any(word.lower() in _PROSE for word in residual) or any(
            " " in pair.name and not _PROSE.isdisjoint(pair.name.lower().split()) for pair in pairs
        )
        ranks = [pair for pair in pairs if pair.name.lower() in _RANKS]
        pairs = [pair for pair in pairs if pair.name.lower() not in _RANKS]
        row = Row(self.name, pairs, phase, loose=loose, repeatable=not prose)
        row.rank = int(ranks[0].value) if ranks and ranks[0].value >= 0 else None
        return row


def _zeros(match: re.Match[str]) -> str:
    return "0" * (match.end() - match.start())


def _position(pair: Pair) -> bool:
    meaning = canonical(pair.name)[0]
    return meaning.known and meaning.role == "position"


def _is(pair: Pair, role: str) -> bool:
    return canonical(pair.name)[0].name == role


def scan(
    text: str, start: int, end: int | None = None
) -> tuple[list[Pair], list[tuple[int, int]], list[str]]:
    """All named numbers of a line, the spans of the other digits, and the words left over."""
    pairs: list[Pair] = []
    loose: list[tuple[int, int]] = []
    residual: list[str] = []
    before = position = start
    in_epoch, counted = False, ""
    stop = len(text) if end is None else end
    while match := _SCAN.search(text, position, stop):
        position = match.end()
        if match["opaque"] is not None:
            loose.append(match.span())
            gap = text[before : match.start()]
            name, dropped = _key(gap, explicit_only=True)
            residual += dropped
            if name and name.lower() not in {"eta", "remaining", "elapsed", "time"}:
                residual += _WORD.findall(name)
            before = position
            continue
        begin, after_digits = match.span("num")
        if _IN_KEY.match(text, position) and re.search(
            r"[^\s(]\($", text[max(0, begin - 2) : begin]
        ):
            continue  # lr(1e-4): the number belongs to the key
        gap = text[before : match.start()]
        if match["wrap"]:
            closing = _ENDWRAP.match(text, position)
            position = closing.end() if closing else position
        unit = (match["unit"] or "").strip()
        value = to_float(match["num"])
        name, dropped = _key(gap)
        total = match["total"]
        if not name and unit in {"", "%"} and (after := _AFTER.match(text, position)):
            name, position = after[1], after.end()
        if not name and counted and gap.strip() == "=":
            name = counted  # HellaSwag: 2515/10042 = 0.2504
            if pairs and pairs[-1].name == counted and (span := pairs.pop().span):
                loose.append(span)
        counted = name if total is not None and canonical(name)[0].role != "position" else ""
        if (
            counted
            and text[before - 1 : before] != "="
            and canonical(name)[0].name.endswith("accuracy")
        ):
            pairs.append(Pair(name, value / (to_float(total) or 1.0)))
            position, before = match.end(), match.end()
            continue
        if not name and unit and unit not in _BY_UNIT:
            name = _unit_name(unit, gap)
        if (
            in_epoch
            and total is not None
            and _INNER.search(gap)
            and (not name or name.lower() in {"step", "iter", "batch", "train step"})
        ):
            pairs.append(Pair("epoch_step", value, "", (begin, after_digits)))
            pairs.append(Pair("epoch_steps", to_float(total), "", match.span("total")))
            in_epoch, before = False, position
            continue
        in_epoch = False
        residual += dropped
        if not name:
            loose.append((begin, after_digits))
            if total is not None:
                loose.append(match.span("total"))
            before = position
            continue
        if (place := _PHASES.get(name.lower())) and (
            total is not None or (_PLACED.match(text, position) and value == int(value))
        ):
            # Test: [ 0/49] is where an evaluation stands; Train: 0 [ 50/1251 is an epoch.
            if place == "eval":
                residual.append(name)
                loose.append((begin, after_digits))
                if total is not None:
                    loose.append(match.span("total"))
                elif of := _OF_EVAL.match(text, position):
                    loose += [of.span(1), of.span(2)]
                    position = of.end()
                before = position
                continue
            name = "step" if total is not None else "epoch"
        meaning = canonical(name)[0].name
        if meaning in {"step", "epoch"} and value != value:
            loose.append((begin, after_digits))
            before = position
            continue
        if meaning == "epoch":
            in_epoch = True
        pairs.append(Pair(name, value, unit, (begin, after_digits)))
        if total is not None:
            if meaning == "step":
                pairs.append(Pair("total_steps", to_float(total), "", match.span("total")))
            elif meaning == "epoch":
                pairs.append(Pair("total_epochs", to_float(total), "", match.span("total")))
            else:
                loose.append(match.span("total"))
        before = position
    residual += _WORD.findall(text[before:stop])
    return pairs, loose, residual


def _unit_name(unit: str, gap: str) -> str:
    """A value that has only its unit, between bars: `| 3585.97 ms |`, `| 145701 tok/s`."""
    low = unit.lower().replace(" ", "")
    if "/" in low:
        return low
    if low in {"ms", "s", "sec"} and gap.rstrip().endswith("|"):
        return "step_time"
    return ""


def _key(gap: str, explicit_only: bool = False) -> tuple[str, list[str]]:
    """The name at the end of the text before a number, and the words it leaves over."""
    separated = _SEP.search(gap)
    if separated is None:
        return "", _WORD.findall(gap)
    sep = separated["sep"]
    explicit = bool(sep.strip())
    head = gap[: separated.start()]
    if not head.strip() or (not sep and not explicit_only):
        return "", _WORD.findall(head)
    cut = 0
    for found in _CUT.finditer(head):
        # A bracket right after a name belongs to it: mAP50(B), time(s).
        cut = found.end()
    phrase, left = head[cut:].strip(), _WORD.findall(head[:cut])
    left = [word for word in left if word not in {"None", "INFO"}]
    if len(phrase) > LONGEST:
        begin = phrase.find(" ", len(phrase) - LONGEST)
        if begin < 0:
            return "", left
        left += _WORD.findall(phrase[:begin])
        phrase = phrase[begin:].strip()
    bare = phrase.lstrip("|#>*-./ ")
    if "  " in bare or "\t" in bare:
        bare = " ".join(bare.split())
    while (shorter := _FILLER.sub("", bare)) != bare:
        bare = shorter
    if bare.startswith("None "):
        bare = bare[5:].strip()
    bare = _OF_PHASE.sub("", bare.rstrip(" ."))
    if not bare or not (bare[0].isalpha() or bare[0] == "_"):
        return "", left
    if canonical(bare)[0].known or (bare.lower() in _PHASES and cut):
        return bare, left
    trailed = _TRAILER.sub("", bare)
    if trailed != bare and canonical(trailed)[0].known and explicit:
        return trailed, left
    words = bare.split(" ")
    for skip in range(1, len(words)):
        shorter = " ".join(words[skip:])
        meaning = canonical(shorter)[0]
        if meaning.known and (explicit or skip <= 2):
            dropped = _WORD.findall(" ".join(words[:skip]))
            if _STATISTIC.search(" ".join(words[:skip])):
                break  # "Std of Reward" is not the reward
            if meaning.name == "step_time" and _SINCE.search(" ".join(words[:skip])):
                break  # "total time" is not the step's
            if meaning.role == "position" and _NOT_HERE.search(" ".join(words[:skip])):
                return "", left + dropped
            return shorter, left + dropped
    if not explicit:
        return "", left + _WORD.findall(bare)
    if len(words) > 6:
        return "", left + _WORD.findall(bare)
    return bare, left


def phase_of(body: str, residual: list[str]) -> Phase | None:
    """Whether the words around the numbers say that a line is an evaluation's."""
    if _SUMMARY.search(body.lstrip()):
        return "summary"
    words = " ".join(residual)
    if _PHASE_EVAL.search(words) or _EVALUATED.match(body) or _STARS.match(body):
        return "eval"
    if _PHASE_TRAIN.search(words) or re.match(r"\s*(?:Epoch|Iter)\(train\)", body):
        return "train"
    return None


_NEUTRAL = frozenset(
    {"train", "training", "val", "valid", "validation", "eval", "evaluation", "test", "epoch"}
    | {"step", "avg", "average", "mean", "current", "rank", "bpc", "bits", "none", "transformer"}
    | {"batch", "progress", "postfix", "samples", "sec", "images", "iter"}
)


def acceptable(pairs: list[Pair], residual: list[str], body: str) -> bool:
    """Whether a line is made of its pairs: measurements, and neither prose nor config."""
    known = settings = odd = others = 0
    stepped = epoched = False
    for pair in pairs:
        meaning = canonical(pair.name)[0]
        if meaning.role == "position" and meaning.known:
            stepped = stepped or meaning.name in {"step", "epoch_step"}
            epoched = epoched or meaning.name == "epoch"
        elif meaning.known and meaning.role == "result":
            known += 1
        elif meaning.known:
            settings += 1
        else:
            odd += is_setting(pair.name)
            others += 1
    words = [word for word in residual if word.lower() not in _NEUTRAL]
    if stepped:
        if known + settings == 0 and others == 0:
            return not words
        return (known + settings > 0 or len(pairs) > 2) and len(words) <= 5 + len(pairs)
    if odd > known:
        return False
    if epoched:
        return known > 0 and len(words) <= 4 + len(pairs)
    if known >= 2:
        return len(words) <= 2 + known
    if known == 1 and len(pairs) == 1 and pairs[0].name.strip().lower() in _VAGUE:
        return False
    return known == 1 and not words and settings + odd == 0 and not body[:1].isspace()
