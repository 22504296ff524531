"""Bands for counts."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, log_ndtr, nbdtrik, ndtri

Floats = NDArray[np.float64]

SHARE = 0.95
"""What a band is to hold."""
SMALLEST = 1e-6
"""An expected count below it is taken for this."""
FAR_BELOW = 1e4
"""Standard deviations below 0 that are told apart: beyond, digits end."""
LARGE, KNOWN = 30.0, 0.8
"""A count that is as good as normal; the part of its variance below which it was told enough to be so."""
LEAST_DOUBTFUL = 0.2
"""Of a squared expectation to its variance: a gamma of less has its mass at 0, so that the less was known of
a count, the narrower its band would be, down to 0 alone."""


def count_bands(means: Floats, variances: Floats, count_variance: float | Floats) -> tuple[Floats, Floats]:
    """Return the lowest and the highest counts of a band of 95 %, both included; shapes are broadcast.

    What is expected, with mean m and variance v, is taken as gamma distributed, so a count is negative
    binomial, of mean m and variance v + c m, v being at most m^2 / `LEAST_DOUBTFUL` and c the variance of a
    count whose expectation is 1. Where 0 alone has more than `SHARE`, the band is 0 and holds more. Where the
    variance is hardly above m, or below it because the count itself was measured, it is normal if m is above
    `LARGE` or the variance far below it.
    """
    mean = np.maximum(means, SMALLEST)
    doubt = np.minimum(variances, mean**2 / LEAST_DOUBTFUL)
    whole, least = doubt + count_variance * mean, 1e-3 * mean**2 + 1e-12
    size = mean**2 / np.maximum(whole - mean, least)
    tails = 0.5 - SHARE / 2, 0.5 + SHARE / 2
    low, high = (_quantiles(tail, size, size / (size + mean)) for tail in tails)
    is_normal = (whole - mean < least) & ((mean > LARGE) | (whole < KNOWN * mean))
    lowest, highest = (np.maximum(np.rint(mean + ndtri(tail) * np.sqrt(whole)), 0.0) for tail in tails)
    return np.where(is_normal, lowest, low), np.where(is_normal, highest, high)


def above_zero(means: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of what is normally distributed, given that it is not below 0; shapes are
    broadcast.

    An expectation whose estimate is 0 or less is not known to be 0: of a standard deviation of 50 it may well
    be 40. Both are positive, and nearly what was given where 0 is far.
    """
    deviation = np.sqrt(variances)
    at = np.maximum(means / deviation, -FAR_BELOW)
    # the density over the share above 0; far below 0 nearly -at
    rate = np.exp(-0.5 * at**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(at))
    return deviation * (at + rate), variances * np.maximum(1.0 - rate * (rate + at), 1e-12)


def _quantiles(tail: float, size: Floats, success: Floats) -> Floats:
    """Return the least counts k with P(count <= k) >= tail, negative binomial.

    As scipy.stats.nbinom.ppf, whose import takes longer than all others of a command together.
    """
    count = np.ceil(nbdtrik(tail, size, success))
    less = np.maximum(count - 1.0, 0.0)
    count = np.where(betainc(size, less + 1.0, success) >= tail, less, count)
    return np.where(betainc(size, 1.0, success) >= tail, 0.0, count)
