"""Exact discrete Gaussian noise, by rejection from discrete Laplace integers."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optstream.errors import NoiseError
from optstream.noise.laplace import leading_bytes
from optstream.noise.source import NoiseSource, check_scale

LEAST_SIGMA, LARGEST_SIGMA = 2.0**-10, 2.0**44
DIGIT_BYTES = 7  # of a uniform real that are compared at once: their integer is below 2^56
UNSURE = 2.0**-30  # more than what `_chance` may err by: nearer ties are decided in fractions
LARGEST_EXPONENT = 64.0  # at which e^-x is far below `UNSURE`
HALVINGS, TERMS = 8, 12


def discrete_gaussian(source: NoiseSource, sigma: float, size: tuple[int, ...]) -> NDArray[np.int64]:
    """Return independent integers with P(k) proportional to exp(-k^2 / (2 sigma^2)), exactly.

    Discrete Laplace integers, each kept with a chance that floats decide where they must agree with the real
    numbers, fractions elsewhere. The variance is at most sigma^2; sigma, in units, must be in [2^-10, 2^44],
    else NoiseError.

    Privacy: Lemma 20a (docs/privacy.md); answers that move by D in L2 together lose D^2 / (2 sigma^2) in rho.
    Source: Canonne, Kamath and Steinke 2020, Algorithm 3 and Theorem 14; the comparison of chances is ours.
    """
    check_scale(sigma)
    if not LEAST_SIGMA <= sigma <= LARGEST_SIGMA:
        raise NoiseError(
            f"sigma of Gaussian noise must be in [2^-10, 2^44], in units of the resolution; got {sigma!r}: "
            "choose another epsilon or resolution"
        )
    drawn = np.zeros(math.prod(size), dtype=np.int64)
    waiting = np.arange(drawn.size)
    while waiting.size:
        tried = source.discrete_laplace(float(math.floor(sigma) + 1), (waiting.size,))
        kept = _kept(source, sigma, np.abs(tried))
        drawn[waiting[kept]] = tried[kept]
        waiting = waiting[~kept]
    return drawn.reshape(size)


def exponent_of(sigma: float, distance: int) -> Fraction:
    """Return the exact x > 0 of `discrete_gaussian` for a discrete Laplace integer at a distance from 0."""
    variance = Fraction(sigma) ** 2
    return (distance - variance / (math.floor(sigma) + 1)) ** 2 / (2 * variance)


def _kept(source: NoiseSource, sigma: float, distances: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each integer whether a uniform real is below its chance."""
    scale = 256.0**DIGIT_BYTES
    digits = source.uniform_below(np.full(distances.size, 256**DIGIT_BYTES))
    away = _chance(sigma, distances) - digits / scale
    kept: NDArray[np.bool_] = away > 0
    for place in np.flatnonzero(np.abs(away) < UNSURE):
        kept[place] = _is_below(source, exponent_of(sigma, int(distances[place])), int(digits[place]))
    return kept


def _chance(sigma: float, distances: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return exp(-x) to within 2^-36, by operations alone that IEEE 754 rounds to the nearest.

    x is at most 64 (beyond it e^-64 stands for 0) and off by at most 2^-43: three roundings of numbers that
    are at most 13 sigma; the square is divided by 2 sigma^2. e^(-x / 256) by 12 terms of
    its series, in which the rest is below 2^-50 and rounding below 2^-48, relative to it; squared 8 times,
    which makes that 2^-39 in all. With x's own error that is less than 2^-36.
    """
    variance = sigma * sigma
    away = distances - variance / (math.floor(sigma) + 1)
    exponent = np.minimum(away * away / (2.0 * variance), LARGEST_EXPONENT)
    small = exponent / 2.0**HALVINGS
    total = np.ones_like(small)
    for term in range(TERMS, 0, -1):
        total = 1.0 - small / term * total
    for _ in range(HALVINGS):
        total = total * total
    return total


def _is_below(source: NoiseSource, exponent: Fraction, digits: int) -> bool:
    """Return whether a uniform real that begins with these 7 bytes is below e^-exponent. The exponent is
    never 0, so that the bytes come to differ: for 0, sigma^2 would be t (t - 1), no square."""
    n_bytes = DIGIT_BYTES
    while True:
        own = int.from_bytes(leading_bytes(exponent, 0, n_bytes)[-DIGIT_BYTES:], "big")
        if digits != own:
            return digits < own
        n_bytes += DIGIT_BYTES
        digits = int(source.uniform_below(np.array([256**DIGIT_BYTES]))[0])
