"""Where numbers may stand in a block of lines, and which lines are alike but for them.

Vectorised over all bytes of a block: nothing is made for a single line or number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import orjson
from numpy.typing import NDArray

from trainwarden.metrics.formats.base import Numbers, Places
from trainwarden.metrics.values import NUMBER

Bytes = NDArray[np.uint8]
Told = NDArray[np.bool_]
_NUMBER = re.compile(NUMBER)
_JSON = re.compile(r"(?!-0\Z)-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_PLUS, _MINUS, _DOT, _ZERO, _COMMA = 43, 45, 46, 48, 44
_WORD = np.array([chr(i).isalnum() or chr(i) in "_.+-)]}%" for i in range(256)])
"""After these a sign is no part of a number."""
_FORM = np.array([_ZERO if _ZERO <= i < 58 else i for i in range(256)], np.uint8)
"""What a byte is but for its digit."""
MAX_FORMS = 12


class Tokens:
    """Runs of bytes that look like numbers: `1`, `-0.5`, `.5`, `3e-4`, and of `12:30` each half.

    `begins` and `ends` are their places in the block, `first` for each line which of them is its
    first one, with their number at the end. `raw` is the block, which ends with a line's end.
    """

    def __init__(self, raw: Bytes, starts: Places) -> None:
        self.raw, self.starts = raw, starts
        digit = (raw - np.uint8(_ZERO)) < 10
        body = digit.copy()
        dot = raw == _DOT
        dot[:-1] &= digit[1:]
        body |= dot
        # An exponent: 3e4, 3e-4. There are few, so they are looked at one by one.
        at = np.flatnonzero(((raw[1:] | 32) == 101) & digit[:-1]) + 1
        signed = at[((raw[at + 1] == _MINUS) | (raw[at + 1] == _PLUS))]
        signed = signed[digit[np.minimum(signed + 2, len(raw) - 1)]]
        body[at[digit[at + 1]]] = True
        body[signed] = body[signed + 1] = True
        # A sign before a number, where nothing stands that it could join.
        sign = (raw == _MINUS) | (raw == _PLUS)
        sign[:-1] &= body[1:]
        at = np.flatnonzero(sign & ~body)
        body[at[~_WORD[raw[at - 1]]]] = True
        change = np.flatnonzero(body[1:] != body[:-1]) + 1
        if body[0]:
            change = np.concatenate(([0], change))
        self.begins, self.ends = change[::2], change[1::2]
        self.first: Places = np.searchsorted(self.begins, starts)
        self._body = body

    def alike(self, fewest: int) -> list[Places]:
        """The lines that are the same but for their numbers, where there are so many of them."""
        shown = self.raw.copy()
        shown[self.begins] = _ZERO
        keep = ~self._body
        keep[self.begins] = True
        lines = shown[keep].tobytes().split(b"\n")
        numbers: defaultdict[bytes, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        which = np.fromiter(map(numbers.__getitem__, lines), np.int64, len(lines))[:-1]
        order = np.argsort(which, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(which[order])) + 1)
        return [group for group in groups if len(group) >= fewest]

    def text(self, begin: int, end: int) -> str:
        """What stands at a place of the block."""
        return self.raw[begin:end].tobytes().decode("latin-1")

    def table(self, begins: Places, width: int) -> Bytes:
        """What stands at several places, a row for each."""
        return np.lib.stride_tricks.sliding_window_view(self.raw, width)[begins]

    def same(self, at: Places) -> Told:
        """Which of some tokens have the same text as the first one."""
        begin, end = self.begins[at], self.ends[at]
        width = int(end[0] - begin[0])
        fine: Told = end - begin == width
        fine[fine] = (self.table(begin[fine], width) == self.raw[begin[0] : end[0]]).all(axis=1)
        return fine

    def fits(self, begins: Places, ends: Places, pattern: str) -> Told:
        """Which places a pattern matches that does not ask which digits stand there.

        Those that differ in nothing but digits are tried once; where there are many forms, those
        of the last are left out.
        """
        fine = np.zeros(len(begins), bool)
        left = np.arange(len(begins))
        for _ in range(MAX_FORMS):
            if not len(left):
                break
            begin, end = int(begins[left[0]]), int(ends[left[0]])
            alike = ends[left] - begins[left] == end - begin
            table = self.table(begins[left[alike]], end - begin)
            alike[alike] = (_FORM[table] == _FORM[self.raw[begin:end]]).all(axis=1)
            if _compiled(pattern).fullmatch(self.text(begin, end)):
                fine[left[alike]] = True
            left = left[~alike]
        return fine

    def numbers(self, columns: Sequence[tuple[Places, int]]) -> list[tuple[Numbers, Told]]:
        """The values of columns of tokens, and which of those are numbers as JSON has them.

        A value may be of several tokens with commas between: a column is the first token of each
        value and how many there are. NaN stands for what is no number.
        """
        wanted, more = np.zeros((2, len(self.begins)), bool)
        for at, pieces in columns:
            for piece in range(pieces):
                wanted[at + piece] = True
                more[at + piece] = piece < pieces - 1
        begin, end, joined = self.begins[wanted], self.ends[wanted], more[wanted]
        if not len(begin):
            return [(np.empty(0), np.empty(0, bool)) for _ in columns]
        proper = np.ones(len(begin), bool)
        heads = np.concatenate(([True], ~joined[:-1]))
        # What JSON has not, though it is easily mended: +1, 007
        begin = begin.copy()
        odd = heads & (self.raw[begin] == _PLUS)
        while odd.any():
            proper[odd] = False
            begin[odd] += 1
            after = (self.raw[begin + 1] - np.uint8(_ZERO)) < 10
            odd = heads & (self.raw[begin] == _ZERO) & after & (end - begin > 1)
        values = self._values(begin, end, joined)
        if values is None:
            if len(columns) > 1:
                return [self.numbers([column])[0] for column in columns]
            return [self._one_by_one(*columns[0])]
        place = np.cumsum(wanted & ~more) - 1
        proper = proper[~joined]
        last = [place[at + pieces - 1] for at, pieces in columns]
        return [(values[index], proper[index]) for index in last]

    def _values(self, begin: Places, end: Places, joined: Told) -> Numbers | None:
        if (
            (self.raw[begin] == _MINUS) & (self.raw[begin + 1] == _ZERO) & (end - begin == 2)
        ).any():
            return None  # JSON has -0 as an integer without a sign
        lengths = np.empty(2 * len(begin) + 1, np.int64)
        stops = end + ~joined
        lengths[0] = begin[0]
        lengths[2:-1:2] = begin[1:] - stops[:-1]
        lengths[1::2] = stops - begin
        lengths[-1] = len(self.raw) - stops[-1]
        inside = np.zeros(len(lengths), bool)
        inside[1::2] = True
        text = self.raw.copy()
        text[end] = _COMMA
        text = text[np.repeat(inside, lengths)]
        try:
            return np.array(orjson.loads(b"[%b]" % text[:-1].tobytes()), np.float64)
        except (ValueError, OverflowError):
            return None

    def _one_by_one(self, at: Places, pieces: int) -> tuple[Numbers, Told]:
        spans = zip(self.begins[at].tolist(), self.ends[at + pieces - 1].tolist(), strict=True)
        texts = [self.text(begin, end) for begin, end in spans]
        fine = [_NUMBER.fullmatch(text) is not None for text in texts]
        values = [
            float(text.replace(",", "")) if ok else np.nan
            for text, ok in zip(texts, fine, strict=True)
        ]
        proper = [_JSON.fullmatch(text) is not None for text in texts]
        return np.array(values), np.array(proper, bool)


_compiled = lru_cache(maxsize=512)(re.compile)
