"""Laplace noise taken for what it is: a few wild values do not pull the estimate."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from optstream.estimation.gaussian_process.calibration import EXACT_LATEST
from optstream.estimation.gaussian_process.surprises.left_out import left_out
from optstream.estimation.gaussian_process.tree_posterior import TreePosterior

Floats = NDArray[np.float64]

ROUNDS = 3
DAMPING = 0.8
GRID = np.linspace(0.0, 12.0, 1201)
"""Of standard deviations, for expectations."""
AT_ONCE = 512
"""Values whose expectations are in memory together."""


def with_laplace_noise(posterior: TreePosterior, rounds: int = ROUNDS) -> TreePosterior:
    """Return the posterior of pseudo-values that carry what Laplace noise says of each measured one.

    Given all others a value is N(mu, v) plus Laplace noise of the known scale b; p is the density of the two
    together. Its posterior mean is mu + v psi, psi = -(log p)' at the surprise, and its variance v - v^2 I on
    average, I = E[psi^2] (Masreliez 1975). The same follow from Gaussian noise of variance 1/I - v on the
    pseudo-value mu + psi / I: a surprise is taken in full where it is small and cut off where only noise
    could have made it. 1/I - v lies between b^2 and the noise's own 2 b^2, near b^2 where v is far below it:
    the median of Laplace noise is twice as good as its mean. One variance serves all values of a node, so
    that all stays exact and linear in nodes; the values are found by a few rounds. Each round takes one
    posterior. Costs no privacy.
    """
    seen = posterior.seen
    known = np.flatnonzero(np.isfinite(seen.noise))
    scales = np.sqrt(seen.noise[known] / 2.0)[:, None]
    values, noise = seen.residuals.copy(), seen.noise.copy()
    for number in range(rounds):
        surprise, spread = (part[known] for part in left_out(posterior, EXACT_LATEST))
        predicted = values[known] - surprise
        doubt = np.maximum(spread - noise[known, None], 1e-12 * spread).mean(axis=1, keepdims=True)
        fisher = information(doubt, scales)
        slope = score(seen.residuals[known] - predicted, doubt, scales)
        damping = 1.0 if number == 0 else DAMPING
        aimed = np.clip(1.0 / fisher - doubt, scales**2, 2.0 * scales**2)[:, 0]
        values[known] += damping * (predicted + slope / fisher - values[known])
        noise[known] += damping * (aimed - noise[known])
        posterior = posterior.revalued(values, noise)
    return posterior


def score(surprise: Floats, doubt: Floats, scale: Floats) -> Floats:
    """Return -(log p)' of a normal of variance `doubt` plus Laplace noise, at `surprise`; at most 1 /
    scale.
    """
    right, left = _halves(surprise, doubt, scale)
    return np.asarray(np.tanh(0.5 * (right - left)) / scale)


def information(doubt: Floats, scale: Floats) -> Floats:
    """Return E[score^2]: what one value says of its mean, between 1 / (doubt + 2 scale^2) and 1 / scale^2."""
    parts = [slice(first, first + AT_ONCE) for first in range(0, len(doubt), AT_ONCE)]
    return np.concatenate([_information(doubt[part], scale[part]) for part in parts])


def _information(doubt: Floats, scale: Floats) -> Floats:
    spread = np.sqrt(doubt + 2.0 * scale**2)
    at = GRID * spread
    right, left = _halves(at, doubt, scale)
    density = np.exp(np.logaddexp(right, left) + doubt / (2.0 * scale**2))
    squares = (np.tanh(0.5 * (right - left)) / scale) ** 2
    return np.asarray(((squares * density).sum(axis=1) / density.sum(axis=1))[:, None])


def _halves(surprise: Floats, doubt: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Return logarithms of the parts of p in which the noise is above and below 0, but for a common
    factor.
    """
    deviation = np.sqrt(doubt)
    right = -surprise / scale + log_ndtr((surprise - doubt / scale) / deviation)
    left = surprise / scale + log_ndtr(-(surprise + doubt / scale) / deviation)
    return right, left
