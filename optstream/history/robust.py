"""Posteriors by the exact distributions of Laplace and joint noise, robust to a few wild values."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from optstream.history.posterior import TreePosterior
from optstream.history.self_check import EXACT_LATEST

Floats = NDArray[np.float64]

ROUNDS = 2
DAMPING = 0.8
GRID = np.linspace(0.0, 12.0, 1201)  # of standard deviations, for expectations
IN_TABLE, TABLE = 16, (1e-14, 1e5)
"""Entries of the table of Laplace noise's information for each unit of log(variance / scale^2); its ends."""


def with_known_noise(posterior: TreePosterior) -> TreePosterior:
    """Return the posterior of pseudo-values that carry each measured value's information, given its noise.

    Given all others a value is N(mu, v) plus Laplace noise of scale b; p is the density of the two together.
    Its posterior mean is mu + v psi, psi = -(log p)', and its variance v - v^2 I on average, I = E[psi^2]
    (Masreliez 1975): those of Gaussian noise of variance 1/I - v, between b^2 and 2 b^2, on the pseudo-value
    mu + psi / I. One variance serves all values of a node; the values are found by a few rounds. Joint noise
    is taken as normal: by its shape no estimate errs less.
    """
    seen = posterior.seen
    prior, rotation = posterior.prior, posterior.rotation
    known = np.flatnonzero(np.isfinite(seen.noise) & ~seen.joint)
    if not known.size:
        return posterior
    values, noise = seen.residuals.copy(), seen.noise.copy()
    scales = np.sqrt(seen.noise[known] / 2.0)[:, None]
    for number in range(ROUNDS):
        surprise, spread = (part[known] for part in posterior.left_out(EXACT_LATEST))
        del posterior  # of 10,000 nodes it takes 0.3 GB, which the next one takes in its place
        predicted = values[known] - surprise
        normal_variance = np.maximum(spread - noise[known, None], 1e-12 * spread).mean(axis=1, keepdims=True)
        del surprise, spread
        slope = score(seen.residuals[known] - predicted, normal_variance, scales)
        fisher = information(normal_variance, scales)
        damping = 1.0 if number == 0 else DAMPING
        aimed = np.clip(1.0 / fisher - normal_variance, scales**2, seen.noise[known, None])[:, 0]
        values[known] += damping * (predicted + slope / fisher - values[known])
        noise[known] += damping * (aimed - noise[known])
        del predicted, slope
        posterior = TreePosterior(prior, replace(seen, residuals=values, noise=noise), rotation)
    return posterior


def score(surprise: Floats, normal_variance: Floats, scale: Floats) -> Floats:
    """Return -(log p)' of a normal of variance `normal_variance` plus Laplace noise; at most 1 / scale."""
    right, left = _halves(surprise, normal_variance, scale)
    return np.asarray(np.tanh(0.5 * (right - left)) / scale)


def information(normal_variance: Floats, scale: Floats) -> Floats:
    """Return E[score^2], between 1 / (normal_variance + 2 scale^2) and 1 / scale^2; by a table, to 1e-7."""
    place = IN_TABLE * np.log(np.clip(normal_variance / scale**2, *TABLE))
    number = np.floor(place).astype(np.int64)
    first = int(number.min()) - 1
    table = np.array([_times_normal(one) for one in range(first, int(number.max()) + 3)])
    t, at = place - number, number - first
    cubic = (
        -t * (t - 1.0) * (t - 2.0) / 6.0 * table[at - 1]
        + (t + 1.0) * (t - 1.0) * (t - 2.0) / 2.0 * table[at]
        - (t + 1.0) * t * (t - 2.0) / 2.0 * table[at + 1]
        + (t + 1.0) * t * (t - 1.0) / 6.0 * table[at + 2]
    )
    return np.asarray(cubic / (normal_variance + 2.0 * scale**2))


@lru_cache(maxsize=2048)
def _times_normal(number: int) -> float:
    """Return the information over that of normal noise, for a table's variance, at scale 1."""
    normal_variance = float(np.exp(number / IN_TABLE))
    return laplace_information(normal_variance, 1.0) * (normal_variance + 2.0)


def laplace_information(normal_variance: float, scale: float) -> float:
    """Return what `information` does of one value, by an integral over the surprise."""
    at = GRID * np.sqrt(normal_variance + 2.0 * scale**2)
    right, left = _halves(at, np.array(normal_variance), np.array(scale))
    density = np.exp(np.logaddexp(right, left) + normal_variance / (2.0 * scale**2))
    squares = (np.tanh(0.5 * (right - left)) / scale) ** 2
    return float((squares * density).sum() / density.sum())


def _halves(surprise: Floats, normal_variance: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Return logarithms of the parts of p with noise above and below 0, but for a common factor."""
    deviation = np.sqrt(normal_variance)
    right = -surprise / scale + scipy.special.log_ndtr((surprise - normal_variance / scale) / deviation)
    left = surprise / scale + scipy.special.log_ndtr(-(surprise + normal_variance / scale) / deviation)
    return right, left
