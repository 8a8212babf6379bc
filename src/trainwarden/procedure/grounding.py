"""Grounded numbers: each number in a text cites an item that has this value: pure.

A citation is an id in square brackets: `[E12]` an observation, `[C1]` a criterion, `[P2]` a
prediction, `[F1]` a finding, `[H1-2]` a hypothesis. A number is looked for in the items that its
own sentence cites: as the value itself, rounded as written, in another unit or scale, or, where the
sentence speaks of a change or a comparison, as the difference, ratio or relative change of two of
them. Numbers in an item's text count only as they stand there. `[rule]` frees the numbers before it
that no other citation follows first, in a sentence that speaks in general.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import permutations

from trainwarden.records.assessment import Criterion
from trainwarden.records.finding import Finding
from trainwarden.records.hostile import visible
from trainwarden.records.hypothesis import Hypothesis
from trainwarden.records.observation import Observation
from trainwarden.records.prediction import Comparison, Prediction

CITATION = re.compile(r"\[((?:[ECPF]\d+|H[\d-]+|rule)(?:\s*[,;]\s*(?:[ECPF]\d+|H[\d-]+|rule))*)\]")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[^\s\d])|(?<=[.!?;]\])\s+|\n+")
MOST_CITED = 8
"""A sentence that cites everything would ground anything."""
_NAMES = re.compile(  # ordinals that name a thing, and moments, are not quantities
    r"(?i)\b(?:gpu|rank|node|pid|process|device|mig|worker|session|gate|revision|line|phase)s?"
    r"\s+#?\d+(?:(?:\s*,\s*|\s*-\s*|\s+and\s+|\s+to\s+)\d+)*"
    r"(?!\w|[.,]\d|\s?(?:%|°|percent|per\s?cent|[kmgt]i?b\b|w\b|watt|second|step|token|time))"
    r"|\b\d{4}-\d\d-\d\d(?:[T_ ]\d\d:?\d\d(?::?\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b\d\d:\d\d(?::\d\d)?\b"
)
# Words with digits are names (fp16, H100, eval_loss_2), but not a metric with its value glued on.
_IDENTIFIERS = re.compile(
    r"(?<!\w)(?!(?i:step|epoch|iter|iteration|loss|lr|reward|acc|accuracy|ppl|norm|kl|mfu|tokens?)s?\d)"
    r"[^\W\d_]\w*(?:(?:\.\d+){2,})?|(?<!\w)(?=[0-9a-f]{6})(?=\d*[a-f]+\d)[0-9a-f]+(?!\w)"
)
_NUMBER = re.compile(
    r"(?P<about>[~≈])?(?<!\d\.)(?<!\d)"
    r"(?P<number>[-+−]?(?:\d{1,3}(?:[,_]\d{3})+(?!\d)|\d+(?:_\d+)*|(?=\.\d))(?:\.\d+)?(?:[eE][-+−]?\d+)?)"
    r"(?!\d|\.\d+\.)"
    r"\s?(?P<unit>%|percent\b|per\s?cent\b|(?:[KMGT]i?B|[kKMGTB]|ms|us|µs|min|h|d|s)(?![\w]))?"
)
_COMPARES = re.compile(
    r"(?i)\b(?:by|times|fold|ratio|differ\w*|lower|higher|more|less|fewer|faster|slower|above|below|"
    r"beyond|between|apart|chang\w*|gap|margin|left|remain\w*|drop\w*|fell|fall\w*|rose|ris\w+|"
    r"grew|grow\w*|gain\w*|lost|los[et]s?|shr\w+nk|share|of|half|double\w*|per|since|within|ahead|"
    r"behind|improv\w*|increas\w*|decreas\w*|declin\w*|reduc\w*|spread|range|advantage|ago|after)\b|[×%]"
)
_GENERAL = re.compile(
    r"(?i)\b(?:usual\w*|typical\w*|common\w*|often|general\w*|normal\w*|rule|rules|should|would|may|"
    r"might|can|could|must|need\w*|expect\w*|more|less|fewer|most|least|above|below|over|under|"
    r"beyond|within|between|some|several|at best|at worst|called|counts? as|any|every|each)\b"
)
_SCALES: dict[str, tuple[float, ...]] = {
    "%": (0.01, 1.0),
    "k": (1e3,),
    "K": (1e3,),
    "M": (1e6,),
    "G": (1e9,),
    "B": (1e9, 1.0),
    "T": (1e12,),
    "KB": (1e3, 2.0**10),
    "MB": (1e6, 2.0**20),
    "GB": (1e9, 2.0**30),
    "TB": (1e12, 2.0**40),
    "KiB": (2.0**10,),
    "MiB": (2.0**20,),
    "GiB": (2.0**30,),
    "TiB": (2.0**40,),
    "us": (1e-6,),
    "µs": (1e-6,),
    "ms": (1e-3,),
    "s": (1.0,),
    "min": (60.0,),
    "h": (3600.0,),
    "d": (86400.0,),
}


class Citable:
    """What a text may cite: ids with the numbers that each of them vouches for."""

    def __init__(
        self,
        observations: Iterable[Observation] = (),
        criteria: Iterable[Criterion] = (),
        predictions: Iterable[Prediction] = (),
        comparisons: Iterable[Comparison] = (),
        findings: Iterable[Finding] = (),
        hypotheses: Iterable[Hypothesis] = (),
    ) -> None:
        self.numbers: dict[str, list[float]] = {}
        self.quoted: dict[str, list[float]] = {}
        """Numbers in an item's words: they vouch for themselves only."""
        for item in observations:
            self._add(item.id, item.value, item.step)
            if isinstance(item.value, str):
                self._quote(item.id, item.text or "")
        for criterion in criteria:
            self._add(criterion.id, criterion.value)
            self._quote(criterion.id, criterion.source)
        for prediction in predictions:
            options = prediction.one_of or ()
            self._add(prediction.id, prediction.low, prediction.high, prediction.level, *options)
        for comparison in comparisons:
            self._add(comparison.prediction, comparison.actual, comparison.miss)
        for finding in findings:
            self._add(finding.id, finding.since_step, finding.confidence)
            self._quote(finding.id, finding.summary)
            for cited in finding.observations:
                self.numbers[finding.id] += self.numbers.get(cited, [])
                self.quoted[finding.id] += self.quoted.get(cited, [])
        for hypothesis in hypotheses:
            measures = [m.threshold for m in (hypothesis.success, hypothesis.failure) if m]
            self._add(hypothesis.id, *measures)

    def _add(self, name: str, *values: object) -> None:
        numbers = self.numbers.setdefault(name, [])
        for value in values:
            if isinstance(value, str):
                self._quote(name, value)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                numbers.append(float(value))

    def _quote(self, name: str, text: str) -> None:
        self.numbers.setdefault(name, [])
        quoted = self.quoted.setdefault(name, [])
        quoted += [_parse(match["number"]) for match in _NUMBER.finditer(_plain(text))]

    def cited(self, text: str) -> list[str]:
        """All ids that a text cites, `rule` included, in order."""
        return [
            name.strip()
            for match in CITATION.finditer(text)
            for name in re.split(r"[,;]", match[1])
        ]

    def complaints(self, label: str, text: str) -> list[str]:
        """What is not grounded in a text: unknown ids, and numbers without a source."""
        problems = [
            f"{label}: [{name}] cites nothing that this session has now (a new `collect` gives new "
            "ids)"
            for name in dict.fromkeys(self.cited(text))
            if name != "rule" and name not in self.numbers
        ]
        bare: list[str] = []
        for sentence in _SENTENCE.split(visible(text)):
            problems += self._ungrounded(label, sentence, bare)
        if bare:
            what = "the number {} has" if len(bare) == 1 else "the numbers {} have"
            problems.append(
                f"{label}: {what.format(', '.join(bare))} no source: cite the observation that has "
                "it in the same sentence, e.g. [E1], or mark a rule of thumb with [rule]"
            )
        return problems

    def _ungrounded(self, label: str, sentence: str, bare: list[str]) -> list[str]:
        """What is wrong with the numbers of a sentence; those that cite nothing go to `bare`."""
        names = [name for name in self.cited(sentence) if name != "rule"]
        problems, known = [], tuple(dict.fromkeys(names))[:MOST_CITED]
        quoted = [number for name in known for number in self.quoted.get(name, ())]
        main = [self.numbers.get(name, []) for name in known]
        compares = bool(_COMPARES.search(sentence))
        for clause, ruled in _clauses(sentence):
            general = ruled and bool(_GENERAL.search(clause))
            for match in _NUMBER.finditer(_plain(clause)):
                number = match[0].strip()
                if ruled and not general:
                    problems.append(
                        f"{label}: {number} is marked [rule], but the sentence does not speak in "
                        "general (usually, should, more than …): what is observed is cited"
                    )
                elif len(set(names)) > MOST_CITED and not general:
                    problems.append(
                        f"{label}: the sentence with the number {number} cites "
                        f"{len(set(names))} items; split it, so that each number stands beside its "
                        f"own (at most {MOST_CITED})"
                    )
                elif general or _grounded(match, main, quoted, compares):
                    continue
                elif any(name not in self.numbers for name in known):
                    continue  # Its citation is what is wrong, and that is told.
                elif known:
                    problems.append(self._unlike(label, number, known))
                else:
                    bare.append(number)
        return problems

    def _unlike(self, label: str, number: str, names: Sequence[str]) -> str:
        """That a number is not what is cited beside it, and what that has."""
        have = []
        for name in names:
            told = ", ".join(f"{value:.6g}" for value in self.numbers[name][:4])
            if words := ", ".join(f"{value:g}" for value in self.quoted.get(name, ())[:4]):
                told = f"{told}; in its words {words} (to three digits or more)".lstrip("; ")
            have.append(f"{name}: {told or 'no number'}")
        return f"{label}: the number {number} is not what its sentence cites ({' | '.join(have)})"


def _clauses(sentence: str) -> list[tuple[str, bool]]:
    """Parts of a sentence, each with whether what follows it first is `[rule]` alone."""
    parts, start = [], 0
    for match in re.finditer(rf"(?:{CITATION.pattern}\s*)+", sentence):
        ruled = set(re.findall(r"[A-Za-z][\w-]*", match[0])) == {"rule"}
        parts.append((sentence[start : match.start()], ruled))
        start = match.end()
    last = parts[-1][1] if parts and not re.search(r"\d", sentence[start:]) else False
    return [*parts, (sentence[start:], last)]


def _plain(text: str) -> str:
    """A text without what is no number: names of things, identifiers, moments; digits as 0 to 9."""
    folded = "".join(
        unicodedata.normalize("NFKC", sign) if sign.isnumeric() and not sign.isascii() else sign
        for sign in text
    ).replace("\u2044", "/")
    return _IDENTIFIERS.sub(_blank, _NAMES.sub(_blank, folded))


def _blank(match: re.Match[str]) -> str:
    """Words stay as they are where they hold no digit, since units are words as well."""
    return match[0] if not re.search(r"\d", match[0]) else " "


def _parse(number: str) -> float:
    return float(number.replace(",", "").replace("_", "").replace("−", "-"))


def _grounded(
    match: re.Match[str],
    values: Sequence[Sequence[float]],
    quoted: Sequence[float],
    compares: bool,
) -> bool:
    number = match["number"].replace(",", "").replace("_", "").replace("−", "-")
    written = float(number)
    if not math.isfinite(written):
        return False
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    half = 0.5 * 10.0 ** (int(exponent or 0) - decimals)
    unit = re.sub(r"\s", "", match["unit"] or "").lower().replace("percent", "%")
    scales = _SCALES.get("%" if unit == "%" else match["unit"] or "", (1.0,))

    def is_written(value: float) -> bool:
        for scale in scales:
            scaled = value / scale
            slack = abs(scaled) * (0.05 if match["about"] else 1e-9)
            # A rounding keeps at least one digit of the value: 0.49 is not 0.
            near = max(min(half * 1.000001, abs(scaled) * 0.334), slack)
            if abs(scaled - written) <= near:
                return True
            # "fell by 0.3" is written without the sign of the change.
            if not number.startswith("+") and abs(abs(scaled) - written) <= near:
                return True
        return False

    if any(math.isclose(value, written, rel_tol=1e-9) for value in quoted):
        return True
    if len(mantissa.strip("+-").replace(".", "").lstrip("0")) >= 3 and any(
        abs(value - written) <= half * 1.000001 for value in quoted
    ):
        return True
    finite = [value for group in values for value in group if math.isfinite(value)]
    if any(is_written(value) for value in finite):
        return True
    # A derived number must come from two cited items, few enough that chance explains nothing.
    main = [group[0] for group in values if group and math.isfinite(group[0])]
    if not compares or not 2 <= len(main) <= 4:
        return False
    return any(
        is_written(first - second)
        or (second != 0 and (is_written(first / second) or is_written((first - second) / second)))
        for first, second in permutations(main, 2)
    )
