"""Exact probabilities of a sparse vector's answers, by adding up over its discrete noise.

Nothing is sampled: what is left out of a sum is bounded and counted against the bound, so the epsilon
found is a lower bound for certain.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

REACH = 60
"""Noise beyond this many scales is left out: a mass of e^-60 at most, which is counted."""

ROUNDING = 1e-9
"""More than floating point can be wrong by, relative to a probability."""


def first_above(
    queries: Sequence[int], threshold: int, threshold_scale: float, query_scale: float, shared: bool = False
) -> Floats:
    """Return the probability of each outcome of a sparse vector that stops at its first positive answer.

    Query i comes out above if queries[i] + noise >= threshold + threshold noise, all noise discrete
    Laplace; `shared`: one query noise serves every query. Returns (n_queries + 1): above first at query 0, 1,
    …, and last never. Truncated: each may lack up to e^-60 (`REACH`), and none is too large.
    """
    exact = np.asarray(queries, dtype=np.int64)
    noise, mass = _laplace(threshold_scale)
    if shared:
        # Only the difference of the two noises matters: it must reach threshold - query.
        other, its_mass = _laplace(query_scale)
        mass = np.convolve(its_mass, mass[::-1])
        difference = np.arange(other[0] - noise[-1], other[-1] - noise[0] + 1)
        highest = np.maximum.accumulate(exact)
        reached = np.array([mass[difference >= threshold - query].sum() for query in highest])
        return np.concatenate([np.diff(reached, prepend=0.0), [mass.sum() - reached[-1]]])
    below = _mass_below(query_scale, threshold + noise[:, None] - exact[None, :])
    with np.errstate(divide="ignore"):
        logarithms = np.log(below)
    silent = np.exp(np.concatenate([np.zeros((noise.size, 1)), np.cumsum(logarithms, axis=1)], axis=1))
    outcomes: Floats = np.concatenate([mass @ (silent[:, :-1] * (1 - below)), [mass @ silent[:, -1]]])
    return outcomes


def exact_bound(one: Floats, other: Floats) -> tuple[float, int]:
    """Return the largest |log ratio| of an outcome's probability on two sides, and which outcome shows it.

    one, other: from `first_above`. What truncation and rounding may hide is taken off, so the bound holds for
    certain; where one side makes an outcome impossible it is large and finite. An outcome rarer than what
    was left out shows nothing.
    """
    left_out = 2 * np.exp(-REACH)
    with np.errstate(divide="ignore"):
        bounds = [
            np.log(np.maximum(a * (1 - ROUNDING) - 1e-30, 0.0)) - np.log(b * (1 + ROUNDING) + left_out)
            for a, b in ((one, other), (other, one))
        ]
    largest = np.maximum(*bounds)
    outcome = int(np.argmax(largest))
    return max(0.0, float(largest[outcome])), outcome


def _laplace(scale: float) -> tuple[NDArray[np.int64], Floats]:
    """Return the integers within reach, rising, and their probabilities under discrete Laplace noise."""
    reach = int(np.ceil(REACH * scale))
    values = np.arange(-reach, reach + 1)
    mass: Floats = np.exp(-np.abs(values) / scale) * np.tanh(0.5 / scale)
    return values, mass


def _mass_below(scale: float, limits: NDArray[np.int64]) -> Floats:
    """Return P(noise < limit) for each limit."""
    step = np.exp(-1.0 / scale)
    tail = np.exp(-np.maximum(limits, 1) / scale) / (1 + step)
    mass: Floats = np.where(limits >= 1, 1 - tail, np.exp(-(1 - np.minimum(limits, 0)) / scale) / (1 + step))
    return mass
