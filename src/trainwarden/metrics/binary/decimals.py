"""Many decimal numbers at once, from their text to doubles, exactly as `float` reads each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
Ints = NDArray[np.int64]
WIDTH = 24
"""Longest text that is read at once; `-1.2345678901234567e-308` has one more."""
_EXACT = 27
"""Powers of ten up to it are whole numbers that a long double holds exactly."""
_DIGITS = 19
"""So many digits always fit 64 bits."""
_LONG = np.finfo(np.longdouble)
_POWERS = np.cumprod(np.array([1] + [10] * _EXACT, dtype=np.longdouble))
_COLUMNS = np.arange(WIDTH, dtype=np.uint8)[:, None]


def windows(data: bytes, at: Ints, width: int) -> U8:
    """The `width` bytes from each place on, one a row; what lies behind the end is 0."""
    data += bytes(width)
    every = np.ndarray((len(data) - width + 1,), f"V{width}", data, strides=(1,))
    return every[at].view(np.uint8).reshape(len(at), width)


def decimals(data: bytes, at: Ints, length: Ints) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers by place and length of their text, and which of them could be read so.

    A number is digits with at most one point, a sign before and an exponent behind. Others, and
    the few whose rounding needs more digits than a long double has, are left to `float`.
    """
    n = len(at)
    if not n or _LONG.nmant < 63:
        return np.full(n, np.nan), np.zeros(n, dtype=bool)
    # One row for each place in the text, so that the steps below run along the numbers.
    signs = np.ascontiguousarray(windows(data, at, WIDTH).T)
    size = np.minimum(length, WIDTH + 1).astype(np.uint8)
    signs *= size > _COLUMNS
    good = (size > 0) & (size <= WIDTH)
    exponent = np.zeros(n, dtype=np.int64)
    is_e = (signs | 0x20) == 101
    end = size
    if is_e.any():
        some = np.flatnonzero(is_e.any(axis=0))
        end = size.copy()
        end[some] = is_e[:, some].argmax(axis=0)
        exponent[some], fine = _exponents(signs[:, some], end[some], size[some])
        good[some] &= fine
        signs *= end > _COLUMNS
    negative = signs[0] == 45
    if negative.any():
        some = np.flatnonzero(negative)
        signs[:-1, some], signs[-1, some] = signs[1:, some], 0
        end = end - negative
    is_point = signs == 46
    points = np.add.reduce(is_point, axis=0, dtype=np.uint8)
    point_at = np.where(points > 0, is_point.argmax(axis=0), end).astype(np.uint8)
    # The digits without the point, as many as fit; what is no digit is 0.
    digits = np.where(_COLUMNS[:_DIGITS] < point_at, signs[:_DIGITS], signs[1 : _DIGITS + 1])
    digits -= np.uint8(48)
    is_digit = digits < 10
    digits *= is_digit
    count = np.add.reduce(is_digit, axis=0, dtype=np.uint8)
    good &= (points <= 1) & (count > 0) & (count + points == end)
    exponent += point_at
    exponent -= _DIGITS
    good &= np.abs(exponent) <= _EXACT
    power = _POWERS[np.where(good, np.abs(exponent), 0)]
    wide = _joined(digits).astype(np.longdouble)
    up = exponent > 0
    if up.any():
        wide[up] *= power[up]
        power[up] = 1
    wide /= power
    values = wide.astype(np.float64)
    # Rounded twice: right unless the long double lies where the double might turn either way.
    off = np.abs((wide - values).astype(np.float64))
    half = np.spacing(values) / 2
    close = np.abs(off - half) <= half * 2.0**-9
    # Just below a power of two the doubles lie twice as close.
    close |= np.abs(off - half / 2) <= half * 2.0**-9
    good &= ~close | (values == 0)
    np.negative(values, out=values, where=negative)
    return values, good


def _joined(digits: U8) -> NDArray[np.uint64]:
    """The number that `_DIGITS` rows of digits make."""
    pairs = digits[0:16:2] * np.uint8(10) + digits[1:16:2]
    fours = pairs[0::2] * np.uint16(100) + pairs[1::2]
    eights = fours[0::2] * np.uint32(10_000) + fours[1::2]
    first = eights[0] * np.uint64(10**8) + eights[1]
    last = digits[16] * np.uint64(100) + digits[17] * np.uint64(10) + digits[18]
    return np.asarray(first * np.uint64(1000) + last, dtype=np.uint64)


def _exponents(signs: U8, e_at: U8, length: U8) -> tuple[Ints, NDArray[np.bool_]]:
    """What stands behind the `e` of each number, and whether it is a number of few digits."""
    n = len(e_at)
    every = np.arange(n)
    at = e_at.astype(np.int64) + 1
    first = signs[np.minimum(at, WIDTH - 1), every]
    signed = (first == 43) | (first == 45)
    at = at + signed
    size = length.astype(np.int64) - at
    value = np.zeros(n, dtype=np.int64)
    good = (size >= 1) & (size <= 3)
    for step in range(3):
        sign = signs[np.clip(at + step, 0, WIDTH - 1), every].astype(np.int64) - 48
        here = step < size
        good &= ~here | ((sign >= 0) & (sign <= 9))
        value = np.where(here, value * 10 + sign, value)
    return np.where(first == 45, -value, value), good
