"""What loggers, launchers and schedulers put before a line: ranks, times, levels, modules."""

from __future__ import annotations

import contextlib
import math
import re
from calendar import month_abbr, timegm
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")

_MONTHS = {name: number for number, name in enumerate(month_abbr) if name}
_DATE = (
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}[T _]\d{1,2}[:\-]\d\d[:\-]\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\s[A-Z][a-z]{2}\s+\d{1,2}\s\d\d:\d\d:\d\d(?:\s[A-Z]{3,4})?\s\d{4}"
    r"|\d{1,2}/\d{1,2}/\d{4}\s\d\d:\d\d:\d\d|\d\d/\d\d/\d\d\s\d\d:\d\d:\d\d|\d\d/\d\d\s\d\d:\d\d:\d\d"
)
_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|debug|info|warning|error)"
_PREFIX = re.compile(
    rf"""
    \s*
    (?: \[?(?P<time>{_DATE})\]?(?:\s*[-|:,]\s+|-(?={_LEVEL}:\s)|\s*(?=\[\d+,\d+\]<)|\s+|$)
      | \[(?P<rank>(?:[Rr]ank|RANK|GPU)[:=]?\s?\d+|default\d+)\]:?
      | (?P<process>(?:[Rr]ank|RANK|GPU)[:=]?\s?\d+)(?:\s?[:|]|\]|\s-)(?=\s)  # rank 0: step 10
      | \[\d+,(?P<mpirank>\d+)\]<std(?:out|err)>:(?!\[\[)
      | (?P<srun>\d{{1,4}}):\ (?=\S)
      | \((?:[\w.:-]+\s)*?(?:pid=\d+)(?:,\s*ip=[\d.]+)?\)
      | [IWEF]\d{{4}}\ \d\d:\d\d:\d\d\.\d+\s+\d+\s+[\w./-]+:\d+\]
      | (?P<clock>\d\d:\d\d:\d\d(?:[.,]\d+)?)(?=\s|\])
      | \[\d\d:\d\d:\d\d(?:[.,]\d+)?\]:?
      | {_LEVEL}:[\w.]+:(?=\ {{0,4}}\S)
      | (?:\[\s*)?{_LEVEL}(?:\s*\]|\s*[:|-](?=\s)|(?=\s))
      | \[(?!(?i:train|eval|val|valid|test)\b)[A-Za-z_][\w.]*(?::\d+)?(?::\w+)?\](?:\s*[:-])?
      | \[\d\d/\d\d\ \d\d:\d\d:\d\d(?:\ [\w.]+)?\]:?
      | [a-z]\w*(?:\.\w+)*\s{_LEVEL}:(?=\s)
      | \[[IWEF]\]
      | [IWEF]\ (?=(?:Train|Valid|Test)ing\b|Validation\b)  # DeepSpeech
      | \[{_LEVEL}\|(?:[\w.]+:\d+\]|(?=\d))  # [INFO|trainer.py:12] date >>, [INFO|date] module:3 >>
      | \[NeMo\ [A-Z]\ (?=\d)
      | (?!(?:step|iter|epoch|batch|it|ep)\w*:)[a-z_]\w*:\d+\](?=\s)  # [NeMo I date module:12]
      | [\w.]+:\d+\ (?=>>\s)
      | >>\s
      | [\w.-]+:\d+\t  # OLMo: host:rank, module:line
      | [A-Za-z_][\w.]*:[\w<>]+:\d+\s-\s  # loguru
      | (?:[\w-]+\.)+\w+\s+(?:-|{_LEVEL})\s
      | [A-Za-z_][\w.]*\.py:\d+(?:\s*[:\]|-])?
      | (?:[\w.-]+\]\ )?\([\w./-]+\.py\ \d+\):  # Swin: [date model] (main.py 222): INFO
      | [A-Z]\w*\$?:\d+\ -\s  # log4j: INFO  Optimizer$:408 -
      | [A-Za-z_][\w.]*\ -\ (?={_LEVEL}\ -)
      | (?:mmengine|mmdet|mmseg|mmcls|root|ppcls|paddle|DLL|__main__|torch|transformers)\s+(?:-\s)?
      | \d+\ \|\ \d{{13}}\ \|
      | \d+\.\ds[\t ](?:\|\ )?\d+[\t ](?:\|\ )?  # a notebook's log at Kaggle
      | -\s
    )
    """,
    re.VERBOSE,
)
_FIELDS = re.compile(r"\d+")


class Prefix(NamedTuple):
    """Where the line's own text starts, and what the prefix told."""

    start: int
    time: float | None
    time_span: tuple[int, int] | None
    rank: int | None


def strip(text: str) -> Prefix:
    """Take off what stands before the message, however many loggers and launchers added to it."""
    start, time, span, rank = 0, None, None, None
    for _ in range(10):
        match = _PREFIX.match(text, start)
        if match is None or match.end() == start:
            break
        if match["srun"] is not None and start > 0:
            break
        if (stamp := match["time"]) is not None and time is None:
            time, span = moment(stamp), match.span("time")
        for group in ("rank", "process", "mpirank", "srun"):
            if match[group] is not None and rank is None:
                rank = int(_FIELDS.search(match[group])[0])  # type: ignore[index]
        start = match.end()
    if start and text[start : start + 1] in {" ", "\t"}:
        start += 1
    return Prefix(start, time, span, rank)


def moment(stamp: str) -> float | None:
    """Unix seconds of a printed date and time; without a zone it is taken as UTC."""
    try:
        return _minute(stamp[:16]) + _seconds(stamp[16:])
    except ValueError:
        pass
    try:
        parts = [int(part) for part in _FIELDS.findall(stamp)]
        if stamp[0].isalpha():
            day, hour, minute, second, year = parts[:5]
            return float(timegm((year, _MONTHS[stamp[4:7]], day, hour, minute, second)))
        if len(_FIELDS.match(stamp)[0]) == 4:  # type: ignore[index]
            year, month, day, hour, minute, second = parts[:6]
        elif stamp[2] == "/" and len(stamp.split()[0]) == 8:
            year, month, day, hour, minute, second = parts[:6]
            year += 2000
        else:
            month, day, year, hour, minute, second = parts[:6]
        return float(timegm((year, month, day, hour, minute, second)))
    except (ValueError, KeyError, TypeError, IndexError):
        return None


@lru_cache(maxsize=64)
def _minute(text: str) -> int:
    if len(text) < 16 or text[4] not in "-/." or text[13] not in ":-":
        raise ValueError(text)
    fields = (text[:4], text[5:7], text[8:10], text[11:13], text[14:16])
    year, month, day, hour, minute = (int(part) for part in fields)
    return timegm((year, month, day, hour, minute, 0))


def _seconds(text: str) -> float:
    # ":05,123", ":05.123Z", ":05+00:00"
    if not text or text[0] not in ":-":
        raise ValueError(text)
    body = text[1:].replace(",", ".")
    shift = 0.0
    if body.endswith("Z"):
        body = body[:-1]
    elif len(body) > 5 and (sign := max(body.rfind("+"), body.rfind("-"))) > 0:
        zone = body[sign + 1 :].replace(":", "")
        shift = (int(zone[:2]) * 3600 + int(zone[2:4] or 0) * 60) * (1 if body[sign] == "+" else -1)
        body = body[:sign]
    return float(body) - shift


def moments(stamps: NDArray[np.uint8]) -> NDArray[np.float64]:
    """`moment` of many stamps of one width at once, NaN where it is None; a row of bytes each."""
    count, width = stamps.shape
    if width == 19 or 21 <= width <= 26:
        digits = stamps[:, [17, 18, *range(20, width)]] - np.uint8(48)
        alike = (stamps[:, 16] == stamps[0, 16]).all() and (digits < 10).all()
        if alike and (width == 19 or np.isin(stamps[:, 19], (44, 46)).all()):
            # Within a minute nothing but the seconds differs.
            minutes = np.ascontiguousarray(stamps[:, :16]).view(np.uint64)
            turns = np.flatnonzero((minutes[1:] != minutes[:-1]).any(axis=1)) + 1
            turns = np.concatenate(([0], turns, [count]))
            with contextlib.suppress(ValueError):
                begun = [_minute(_text(stamps[i, :16])) for i in turns[:-1].tolist()]
                _seconds(_text(stamps[0, 16:]))
                powers = 10.0 ** np.arange(digits.shape[1] - 1, -1, -1)
                seconds = digits @ powers / 10.0 ** (digits.shape[1] - 2)
                return np.asarray(np.repeat(np.array(begun, float), np.diff(turns)) + seconds)
    told = [moment(_text(stamp)) for stamp in stamps]
    return np.array([math.nan if time is None else time for time in told])


def _text(stamp: NDArray[np.uint8]) -> str:
    return stamp.tobytes().decode("latin-1")
