"""What step 6 owes: a verdict by another, on exactly these gates, with a claim re-read. Pure."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping

from trainwarden.procedure.duties import MACHINE_PREFIXES
from trainwarden.records.base import from_json_number
from trainwarden.records.observation import Observation, Trust
from trainwarden.records.review import Review

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/@+()-]{0,79}")


def is_plain_name(name: str) -> bool:
    """Whether a name cannot pass for another one by letters that only look alike."""
    return bool(_NAME.fullmatch(name))


def same_name(first: str, second: str) -> bool:
    """Whether two names are one but for case, spaces and punctuation."""
    keys = [
        re.sub(r"[\W_]", "", unicodedata.normalize("NFKD", name)).casefold()
        for name in (first, second)
    ]
    return keys[0] == keys[1]


def expand_seals(given: Mapping[str, str], seals: Mapping[str, str]) -> dict[str, str]:
    """Seals named by their first 12 or more digits, as gates show them, written out."""
    whole = {}
    for name, said in given.items():
        digits = said.strip().rstrip("….").lower()
        known = seals.get(name, "")
        short = re.fullmatch(r"[0-9a-f]{12,64}", digits) and known.startswith(digits)
        whole[name] = known if short else said
    return whole


def review_complaints(
    review: Review,
    analyst: str,
    seals: Mapping[str, str],
    load_bearing: Iterable[str],
    observations: Mapping[str, Observation],
) -> list[str]:
    """Step 6: a verdict by another, on exactly these gates, with a load-bearing claim re-read."""
    problems = []
    if not is_plain_name(review.reviewer):
        problems.append("reviewer: a name of plain letters, digits and . _ - / @ (at most 80)")
    if same_name(review.reviewer, analyst):
        problems.append(f"the reviewer cannot be the analyst ({analyst})")
    if dict(review.seals) != dict(seals):
        wrong = [name for name in seals if review.seals.get(name) != seals[name]]
        wrong += [name for name in review.seals if name not in seals]
        problems.append(
            "seals: the verdict must name the latest seals of gates 1 to 5; not so: "
            + ", ".join(wrong)
        )
    bearing = set(load_bearing)
    for item in review.reread:
        seen = observations.get(item.observation)
        if seen is None:
            problems.append(f"reread: {item.observation} is no observation")
        elif item.agrees and not could_agree(seen, item.found):
            problems.append(
                f"reread: {item.observation} was found as {item.found!r}, which is not what it "
                "says: give what you found in the observation's own unit, or agrees: false"
            )
    if not bearing & {item.observation for item in review.reread}:
        problems.append(
            "reread: re-read at least one observation that the verdict rests on: "
            + ", ".join(sorted(bearing, key=lambda name: (len(name), name))[:12])
        )
    if review.verdict == "approve" and any(not item.agrees for item in review.reread):
        problems.append("an observation that was re-read does not agree: that is a rejection")
    if review.verdict == "approve" and any(not check.passed for check in review.checks):
        problems.append("a check failed: that is a rejection")
    if review.verdict == "reject" and not any(text.strip() for text in review.objections):
        problems.append("objections: a rejection says what is wrong and how to mend it")
    return problems


def could_agree(seen: Observation, found: object) -> bool:
    """Whether what was found can be said to agree with what was observed.

    Names and flags must be the same and what a file holds the same to one per cent; a gauge of
    the machine has moved on since, so any number will do.
    """
    value = seen.value
    if isinstance(value, bool) or isinstance(found, bool):
        return found is value
    if isinstance(value, str):
        return isinstance(found, str) and found.strip().casefold() == value.strip().casefold()
    number = _number(found)
    if number is None:
        return False
    if seen.trust > Trust.LOG or seen.quantity.startswith(MACHINE_PREFIXES):
        return True
    if math.isnan(value) or math.isnan(number):
        return math.isnan(value) and math.isnan(number)
    return math.isclose(number, value, rel_tol=0.01, abs_tol=1e-12)


def _number(found: object) -> float | None:
    found = from_json_number(found)
    try:
        return float(found) if isinstance(found, (int, float, str)) else None
    except ValueError:
        return None
