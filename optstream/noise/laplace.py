"""Exact geometric integers from uniform bytes: each binary digit is drawn by itself, in integers alone."""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optstream.errors import NoiseError
from optstream.privacy.exact import Bounds

RandomBytes = Callable[[int], bytes]  # returns so many independent uniform bytes
Bytes = NDArray[np.uint8]
LOW_REACH = 8  # binary digits are drawn below the first power of two that is at least so many scales
AT_FIRST = 8  # bytes of each chance that are worked out at once; a draw needs more with probability 256^-8


def geometric(scale: float, count: int, random_bytes: RandomBytes) -> NDArray[np.int64]:
    """Return independent integers G >= 0 with P(G = k) proportional to q^k, q = exp(-1 / scale), exactly.

    Lemma 3a (docs/privacy.md): with 2^n the first power of two that is at least `LOW_REACH` scales, the n low
    binary digits and the rest are drawn one by one. A draw of 2^63 or more, of probability below 2^-184,
    raises NoiseError.
    """
    n_digits = n_low_digits(scale)
    rows = np.arange(n_digits + 1).repeat(count)
    *digits, further = _hits(scale, rows, random_bytes).reshape(n_digits + 1, count)
    drawn = np.zeros(count, dtype=np.int64)
    for place, digit in enumerate(digits):
        drawn |= digit.astype(np.int64) << place
    more = np.flatnonzero(further)
    while more.size:
        if int(drawn[more].max()) + 2**n_digits >= 2**63:
            raise NoiseError("a draw of noise left the 64-bit integers")
        drawn[more] += 2**n_digits
        more = more[_hits(scale, np.full(more.size, n_digits), random_bytes)]
    return drawn


def n_low_digits(scale: float) -> int:
    """Return the number of digits drawn apart: the least n >= 0 with 2^n >= `LOW_REACH` * scale."""
    fraction, exponent = math.frexp(LOW_REACH * scale)
    return max(0, exponent - (fraction == 0.5))


@lru_cache(maxsize=256)
def chances(scale: float, n_bytes: int) -> Bytes:
    """Return the first bytes, base 256, rounded down, of each digit's chance and of that of one more 2^n."""
    n_digits = n_low_digits(scale)
    exponents = [Fraction(2**digit) / Fraction(scale) for digit in range(n_digits + 1)]
    rows = [
        leading_bytes(exponent, int(digit < n_digits), n_bytes) for digit, exponent in enumerate(exponents)
    ]
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(n_digits + 1, n_bytes)


@lru_cache(maxsize=256)
def leading_bytes(exponent: Fraction, plus: int, n_bytes: int) -> bytes:
    """Return the first bytes after the point, in base 256, of 1 / (plus + e^exponent), exponent > 0. Each
    operation is rounded outwards, with more digits until bounds from below and above agree (Lemma 3a)."""
    # e > 2, so that the value is below 2^-exponent
    if exponent >= 8 * n_bytes:
        return bytes(n_bytes)
    precision = 3 * n_bytes + 20
    while True:
        down, up = Bounds(ROUND_FLOOR, precision), Bounds(ROUND_CEILING, precision)
        below = down.divide(Decimal(256**n_bytes), up.add(up.exp(exponent), Decimal(plus)))
        above = up.divide(Decimal(256**n_bytes), down.add(down.exp(exponent), Decimal(plus)))
        if int(below) == int(above):
            return int(below).to_bytes(n_bytes, "big")
        precision *= 2


def _hits(scale: float, rows: NDArray[np.int64], random_bytes: RandomBytes) -> NDArray[np.bool_]:
    """Return for each entry whether a uniform real is below the chance that its row has."""
    drawn, digits = _bytes(random_bytes, rows.size), chances(scale, AT_FIRST)[:, 0].take(rows)
    hits, tied = drawn < digits, np.flatnonzero(drawn == digits)
    place, n_bytes = 1, AT_FIRST
    while tied.size:
        if place == n_bytes:
            n_bytes *= 2
        drawn, digits = _bytes(random_bytes, tied.size), chances(scale, n_bytes)[rows[tied], place]
        hits[tied] = drawn < digits
        tied = tied[drawn == digits]
        place += 1
    return hits


def _bytes(random_bytes: RandomBytes, count: int) -> Bytes:
    return np.frombuffer(random_bytes(count), dtype=np.uint8)
