"""Grounded numbers: each number in a text cites an item that has this value: pure.

A citation is an id in square brackets: `[E12]` an observation, `[C1]` a criterion, `[P2]` a
prediction, `[F1]` a finding, `[H1-2]` a hypothesis. `[rule]` says that the numbers of its sentence
are a rule of thumb. A number is looked for in the items that its own sentence cites: as the value
itself, rounded as written, in another unit or scale, or as the difference, ratio or relative
change of two of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

from trainwarden.records.assessment import Criterion
from trainwarden.records.finding import Finding
from trainwarden.records.hypothesis import Hypothesis
from trainwarden.records.observation import Observation
from trainwarden.records.prediction import Comparison, Prediction

CITATION = re.compile(r"\[((?:[ECPF]\d+|H[\d-]+|rule)(?:\s*[,;]\s*(?:[ECPF]\d+|H[\d-]+|rule))*)\]")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[^\s\d])|(?<=[.!?;]\])\s+|\n+")
_NAMES = re.compile(  # ordinals that name a thing, and moments, are not quantities
    r"(?i)\b(?:gpu|rank|node|pid|process|device|mig|worker|session|gate|revision|line|phase)s?"
    r"\s+#?\d+(?:(?:\s*,\s*|\s*-\s*|\s+and\s+|\s+to\s+)\d+)*"
    r"|\b\d{4}-\d\d-\d\d(?:[T_ ]\d\d:?\d\d(?::?\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b\d\d:\d\d(?::\d\d)?\b"
)
_NUMBER = re.compile(
    r"(?P<about>[~≈])?(?<![\w.])(?P<number>[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"\s?(?P<unit>%|(?:[KMGT]i?B|[kKMGTB]|ms|us|µs|min|h|d|s)(?![\w]))?"
    r"(?![\w]|\.\d)"
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
        for item in observations:
            self._add(item.id, item.value, item.step, item.text)
        for criterion in criteria:
            self._add(criterion.id, criterion.value, criterion.source)
        for prediction in predictions:
            options = prediction.one_of or ()
            self._add(prediction.id, prediction.low, prediction.high, prediction.level, *options)
        for comparison in comparisons:
            self._add(comparison.prediction, comparison.actual, comparison.miss)
        for finding in findings:
            self._add(finding.id, finding.since_step, finding.confidence, finding.summary)
            for cited in finding.observations:
                self.numbers[finding.id] += self.numbers.get(cited, [])
        for hypothesis in hypotheses:
            measures = [m.threshold for m in (hypothesis.success, hypothesis.failure) if m]
            self._add(hypothesis.id, *measures)

    def _add(self, name: str, *values: object) -> None:
        numbers = self.numbers.setdefault(name, [])
        for value in values:
            if isinstance(value, str):
                numbers += [_parse(match["number"]) for match in _NUMBER.finditer(value)]
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                numbers.append(float(value))

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
            f"{label}: [{name}] cites nothing that this session has"
            for name in dict.fromkeys(self.cited(text))
            if name != "rule" and name not in self.numbers
        ]
        for sentence in _SENTENCE.split(text):
            names = self.cited(sentence)
            if "rule" in names:
                continue
            bare = _NAMES.sub(" ", CITATION.sub(" ", sentence))
            values = [self.numbers.get(name, []) for name in names]
            for match in _NUMBER.finditer(bare):
                if not _grounded(match, values):
                    problems.append(_message(label, match[0].strip(), names, self.numbers))
        return problems


def _message(
    label: str, number: str, names: Sequence[str], numbers: Mapping[str, Sequence[float]]
) -> str:
    if not names:
        return (
            f"{label}: the number {number} has no source: cite the observation that has it "
            "in the same sentence, e.g. [E1], or mark a rule of thumb with [rule]"
        )
    have = "; ".join(
        f"{name}: {', '.join(f'{value:.6g}' for value in numbers.get(name, ())[:4]) or 'no number'}"
        for name in names
    )
    return f"{label}: the number {number} is not what its sentence cites ({have})"


def _parse(number: str) -> float:
    return float(number.replace(",", "").replace("−", "-"))


def _grounded(match: re.Match[str], values: Sequence[Sequence[float]]) -> bool:
    number = match["number"].replace(",", "").replace("−", "-")
    written = float(number)
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    half = 0.5 * 10.0 ** (int(exponent or 0) - decimals)
    scales = _SCALES.get(match["unit"] or "", (1.0,))

    def is_written(value: float) -> bool:
        for scale in scales:
            slack = abs(value / scale) * (0.05 if match["about"] else 1e-9)
            if abs(value / scale - written) <= max(half * 1.000001, slack):
                return True
            # "fell by 0.3" is written without the sign of the change.
            if abs(abs(value / scale) - written) <= max(half * 1.000001, slack):
                return True
        return False

    finite = [value for group in values for value in group if math.isfinite(value)]
    if any(is_written(value) for value in finite):
        return True
    # A derived number must come from two cited items, few enough that chance explains nothing.
    main = [group[0] for group in values if group and math.isfinite(group[0])]
    if not 2 <= len(main) <= 4:
        return False
    return any(
        is_written(first - second)
        or (second != 0 and (is_written(first / second) or is_written((first - second) / second)))
        for first, second in permutations(main, 2)
    )
