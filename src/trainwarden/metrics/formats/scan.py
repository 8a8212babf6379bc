"""Named numbers of a line: `key: value`, `key=value`, `key value`, with any separators between."""

from __future__ import annotations

import re

from trainwarden.metrics.formats.base import PART, Pair
from trainwarden.metrics.names import canonical
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
      | \b[0-9a-fA-F]{{2}}(?::[0-9a-fA-F]{{2}}){{4,}}\b  # a fingerprint
      | (?<=\()[-+]?(?:{NUMBER})z\)
    )
  | (?<![\w.@/\-+\\])
    (?P<wrap>(?:(?:np|numpy|torch|jnp)\.)?(?:float\d*|u?int\d*|bfloat16|tensor|[aA]rray)\(\s*(?:\[\s*)?)?
    (?P<num>{NUMBER})
    (?P<of>\s*/\s*(?P<total>\d+(?:,\d{{3}})*(?:\.\d+)?)(?![\w.]*/|\d))?
    (?P<unit>\s?{_UNIT}(?!\s?[:=]))?
    (?![A-Za-z_\d]|\.\d)
  | (?<![\w.@/\-+\\])(?P<glued>\d+(?:\.\d+)?[A-Za-z]+)(?![\w.])
  | (?<![\w.@/\-+\\])(?P<place>[Ee]poch|[Ss]tep|[Ii]ter|[Ee]p)_?(?P<at>\d{{1,9}})(?=[\s:,|\])])
    """,
    re.VERBOSE,
)
_ENDWRAP = re.compile(r"[^()]{0,200}(?:\([^()]{0,200}\)[^()]{0,200}){0,8}\)")
_OPENING = "[(\"'{"
_SIGN = re.compile(r"[:=|]\Z|->\Z|(?<!\w)is\Z")
_CUT = re.compile(
    r"[,;|{}\[\]<>\"'\t!?*]|\s--?\s|--+|[:=]|(?<=\s)\((?![^()]*\)$)|\)(?=\s)|\.\s|\s{3,}|^-\s"
)
_FILLER = re.compile(
    r"(?<!\s)\s+(?:at|is|was|of|value|to|after|for|by|so far|current(?:ly)?|now)\Z"
)
_BULLET = re.compile(r"(?:[|#>*./ \x80-\xff-]|with\s)*")  # bullets and small pictures too
_TRAILER = re.compile(r"(?<!\s)\s+(?:on|for|in|at|after|over|of)\s.*\Z")
_NOT_HERE = re.compile(
    r"(?i)\b(?:warm-?up|total|max|num|number|per|every|accumulation|sav\w*|log\w*|delet\w*|micro|episode"
    r"|skipped|last|best|remaining|until|next|decay)\b"
)
_SINCE = re.compile(r"(?i)\b(?:total|elapsed|wall|eval|val|load\w*)\b")
_OF_PHASE = re.compile(r"\((?:train|val|test)\)\Z")
LONGEST = 120
"""Characters that a name may have, words before it included."""
_STATISTIC = re.compile(
    r"(?i)\b(?:std|stddev|var|variance|min|max|median|nan|number|num|delta|ema|params?|weights?|mismatch)\b"
)
_WORD = re.compile(r"[A-Za-z]{2,}")
_BY_UNIT = {
    "%": "",
    "it": "",
}
_TURN = re.compile(r"\b(train|validation|test) \[\Z", re.IGNORECASE)
_OF_EVAL = re.compile(r"\]?\s*\[\s*(\d+)\s*/\s*(\d+)")
_COUNTER = re.compile(r"\s*[\[(]\s*")
_NAMED_NEXT = re.compile(r"\] (?:collection=\S+ )?[A-Za-z][\w/.-]*=")  # clu: [500] loss=2.5, lr=0.1
_NUMBERED = re.compile(r"(?i)\b(epoch|step|iter|iteration)\[\s*\Z")
_PLACED = re.compile(r"\]?\s*\[")
# Train: [0/300][50/625], Train: 1/3 ( 33%) [ 50/625
_THEN_INNER = re.compile(r"(?:\]|\s*\(\s*\d+%\))\s*\[\s*\d+\s*/\s*\d+")
_RANGE = re.compile(r"-(\d+)\]")
_INNER = frozenset({"step", "iter", "batch", "train step", "i", "idx"})
"""What a count with its end is called that stands next to the epoch it counts in."""
# loss at step 10: 2.5, Training loss (epoch 3): 2.5
_PLACED_AT = re.compile(
    r"(?P<what>[A-Za-z][\w /.-]{0,60}?) (?:\(|\[|(?:at|after|for|in|of) (?:end of )?)"
    r"(?P<place>(?:global[ _]?)?step|epoch|iter(?:ation)?|update|episode)\s*(?:[#:=]\s*)?\Z",
    re.IGNORECASE,
)
# Train loss 10 2.5 Grad Norm 1.0; Validation loss 10: 2.5
_STEP_THEN = re.compile(rf"(?::\s*|\s+)(?P<num>{NUMBER})(?![\w/:])")
_BEGINNING = re.compile(r"\s*\Z")
_THEN = re.compile(r"\s*(?:[)\]]\s*)?(?:[:=]|is\b|->)\s*\Z")
_PHASES = {"train": "train", "training": "train"} | dict.fromkeys(
    ("test", "val", "valid", "validation", "eval", "evaluation"), "eval"
)
_AFTER = re.compile(r"\s{0,2}(?:(?:bf16|fp16|fp32|fp8)\s{0,2})?(MFU|mfu|TFLOPS?)\b")
_IN_KEY = re.compile(r"\)\s*[:=]")


def scan(
    text: str, start: int, end: int | None = None
) -> tuple[list[Pair], list[tuple[int, int]], list[str]]:
    """All named numbers of a line, the spans of the other digits, and the words left over."""
    pairs: list[Pair] = []
    loose: list[tuple[int, int]] = []
    residual: list[str] = []
    before = position = start
    in_epoch, counted, awaited = False, "", ""
    stop = len(text) if end is None else end
    while match := _SCAN.search(text, position, stop):
        position = match.end()
        if match["glued"] is not None:
            loose.append(match.span())  # 12.5m, 17k3: no number that is known
            residual += _key(text[before : match.start()])[1]
            before = position
            continue
        if match["place"] is not None:
            # Ep12, epoch12, step_12; further on it may be a name: f(iter1, iter2)
            if before > start or _WORD.search(text, start, match.start()):
                continue
            pairs.append(Pair(match["place"], float(match["at"]), "", match.span("at")))
            before, awaited = position, ""
            continue
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
        if gap[-2:] == "@ " or (match["num"][0] == "." and text[position : position + 1] == ":"):
            continue  # Accuracy @ 1 = 0.75, AP .5: 0.9
        if (
            before == start
            and _COUNTER.fullmatch(gap)
            and text[position : position + 1] in {"]", ")"}
            and (match["total"] or _NAMED_NEXT.match(text, position))
        ):
            pairs.append(Pair("step", to_float(match["num"]), "", (begin, after_digits)))
            if match["total"]:
                pairs.append(Pair("total_steps", to_float(match["total"]), "", match.span("total")))
            before = position = position + 1
            continue
        if before == start and match["total"] and _BEGINNING.match(gap) and _started(match, text):
            pairs.append(Pair("step", to_float(match["num"]), "", (begin, after_digits)))
            pairs.append(Pair("total_steps", to_float(match["total"]), "", match.span("total")))
            before = position
            continue
        if match["wrap"]:
            closing = _ENDWRAP.match(text, position)
            position = closing.end() if closing else position
        unit = (match["unit"] or "").strip()
        value = to_float(match["num"])
        name, dropped = _key(gap)
        if awaited and _THEN.match(gap):
            name = awaited
        awaited = ""
        if (told := _PLACED_AT.search(gap)) and value.is_integer():
            meaning = canonical(told["what"].strip())[0]
            if meaning.known and meaning.role == "result":
                awaited, name = told["what"].strip(), told["place"]
        if (
            match["num"].isdigit()
            and match["total"] is None
            and canonical(name)[0].name.endswith("loss")
            and (value_next := _STEP_THEN.match(text, position, stop))
            and "." in value_next["num"]
        ):
            pairs.append(Pair("step", value, "", (begin, after_digits)))
            begin, after_digits = value_next.span("num")
            pairs.append(Pair(name, to_float(value_next["num"]), "", (begin, after_digits)))
            residual += dropped
            before = position = after_digits
            continue
        if (turn := _TURN.search(gap)) and _PLACED.match(text, position):
            name = turn[1]  # TRAIN [0][100/3880]
        if gap[-1:] == "[" and (last := _RANGE.match(text, position)):
            # Batch [20-40]: what was done since the line before
            loose.append((begin, after_digits))
            (begin, after_digits), value, position = last.span(1), float(last[1]), last.end(1)
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
        if in_epoch and total is not None and (not name or name.lower() in _INNER):
            pairs.append(Pair("epoch_step", value, "", (begin, after_digits)))
            pairs.append(Pair("epoch_steps", to_float(total), "", match.span("total")))
            residual += dropped
            in_epoch, before = False, position
            continue
        in_epoch = in_epoch and unit == "%" and not name
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
            name = "step" if total and not _THEN_INNER.match(text, position) else "epoch"
        meant = canonical(name)[0].name
        if name.lower() in {"throughput", "speed"} and "/" in unit:
            name = _unit_name(unit, gap)  # Throughput is 512.1 record / second
        if (meant == "step" and not value.is_integer()) or (meant == "epoch" and value != value):
            # No place, but nan or a duration: | fwd: 10.2 | bwd: 21.1 | step: 5.3
            loose.append((begin, after_digits))
            before = position
            continue
        if meant == "epoch":
            in_epoch = True
        if meant == "epoch" and "." in match["num"]:
            unit = PART
        pairs.append(Pair(name, value, unit, (begin, after_digits)))
        if total is not None:
            if meant == "step":
                pairs.append(Pair("total_steps", to_float(total), "", match.span("total")))
            elif meant == "epoch":
                pairs.append(Pair("total_epochs", to_float(total), "", match.span("total")))
            else:
                loose.append(match.span("total"))
        before = position
    residual += _WORD.findall(text[before:stop])
    return pairs, loose, residual


def _started(match: re.Match[str], text: str) -> bool:
    """Whether a line begins with how far the run is: `50 / 1000 loss 2.5`, `50/1000: loss 2.5`."""
    done, of = to_float(match["num"]), to_float(match["total"])
    return of > 1 and done <= of and text[match.end() : match.end() + 1] in {" ", ":", "\t"}


def _unit_name(unit: str, gap: str) -> str:
    """A value that has only its unit, between bars: `| 3585.97 ms |`, `| 145701 tok/s`."""
    low = unit.lower().replace(" ", "")
    if "/" in low:
        return low
    if low in {"ms", "s", "sec"} and gap.rstrip().endswith("|"):
        return "step_time"
    return ""


def _separated(gap: str) -> tuple[str, str]:
    """What stands before a number, without the sign or space between, and that."""
    rest = gap.rstrip()
    bare = rest.rstrip(_OPENING)
    head = bare.rstrip()
    if sign := _SIGN.search(head, max(0, len(head) - 2)):
        return head[: sign.start()].rstrip(), sign[0]
    if head.endswith("..."):
        return head.rstrip("."), "..."
    spaced = len(head) < len(bare) or (len(bare) == len(rest) < len(gap))
    return head, " " if spaced else ""


def _key(gap: str, explicit_only: bool = False) -> tuple[str, list[str]]:
    """The name at the end of the text before a number, and the words it leaves over."""
    if numbered := _NUMBERED.search(gap):
        return numbered[1], _WORD.findall(gap[: numbered.start()])  # Epoch[1], Iter[100]
    head, sep = _separated(gap)
    explicit = bool(sep.strip())
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
    bare = phrase[_BULLET.match(phrase).end() :]  # type: ignore[union-attr]
    if "  " in bare or "\t" in bare:
        bare = " ".join(bare.split())
    while (shorter := _FILLER.sub("", bare)) != bare:
        bare = shorter
    if bare.startswith("None "):
        bare = bare[5:].strip()
    bare = _OF_PHASE.sub("", bare.rstrip(" ."))
    if not bare or not (bare[0].isalpha() or bare[0] == "_") or bare.endswith(".py"):
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
            if shorter.lower() == "cost" and words[skip - 1].lower() == "time":
                break
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
