"""How far a posterior of counts can be trusted at each level: from what its bands would have held."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from optstream.estimation.gaussian_process.calibration import ALIKE, EXACT_LATEST, LARGEST_FACTOR
from optstream.estimation.gaussian_process.surprises.left_out import left_out
from optstream.estimation.gaussian_process.tree_posterior import TreePosterior

Floats = NDArray[np.float64]

SHARES = np.array([0.5, 0.68, 0.8, 0.9, 0.95])
"""Of the bands that are looked at."""
LEAST_FACTOR = 0.4
BELIEVED, BELIEF = 1.1, 10.0
"""The factor that is believed before anything is measured, and how many surprises that is worth."""
GRID_POINTS = 60
NORMAL_PARTS = np.linspace(0.005, 0.995, 34)
"""Of a variance, the rest that of Laplace noise: where the bands of the sum of both are worked out."""
HALVINGS = 40


def level_factors(posterior: TreePosterior) -> Floats:
    """Return for each node the factor of its level's variances under which bands hold what they say,
    (n_nodes,), between `LEAST_FACTOR` and `calibration.LARGEST_FACTOR`; 1 at a level that was not measured.

    A band around what all other blocks predict should hold a measured value as often as it says. The factor
    is the one under which the mean share held over `SHARES` is theirs, each surprise weighed by how much of
    its variance is doubt and not noise, joined with a belief. A measured value misses by Laplace noise and by
    what is normal, doubt and what counts vary: the more of it is Laplace noise, the more lies near 0, which
    normal bands would take for less doubt. By shares and not by mean squares: a few wild days widen no
    others. Where noise hides everything the belief stays. Costs no privacy: noisy numbers only.

    The posterior is of blocks at all levels; its noise holds what counts vary around their expectation.
    """
    seen = posterior.seen
    surprise, spread = left_out(posterior, EXACT_LATEST)
    ordinary = seen.blocks.events == 0
    ordinary[:-EXACT_LATEST] = False
    found, counted = np.ones(len(seen.noise)), _of_counts(posterior)
    for level in seen.tree.levels:
        at = slice(level.start, level.stop)
        noise = seen.noise[at, None]
        if np.isfinite(noise).all() and ordinary.any():
            doubt = np.maximum(spread[at][:, ordinary] - noise, 0.0)
            found[at] = level_factor(np.abs(surprise[at][:, ordinary]), noise, counted[at, None], doubt)
    return found


def _of_counts(posterior: TreePosterior) -> Floats:
    """Return how much of each node's noise is normal: what counts vary; all of it where noise is joint."""
    seen = posterior.seen
    counted = np.mean(seen.blocks.lengths * seen.blocks.worth**2) * posterior.weights[:, 0]
    alone = np.minimum(counted, seen.noise)
    if seen.groups is None:
        return alone
    return np.where((seen.groups.sizes > 1).any(axis=1), seen.noise, alone)


def level_factor(surprise: Floats, noise: Floats, counted: Floats, doubt: Floats) -> float:
    """Return the factor of one level, as `level_factors`.

    surprise: (n_nodes, n), at least 0: how far measured values are from what all others say of them. noise:
    (n_nodes, 1), variances of the noise. counted: (n_nodes, 1), the part of it that is normal, what counts
    vary; the rest is Laplace noise. doubt: (n_nodes, n), by how much a value's variance exceeds the noise.
    """
    logs = np.linspace(np.log(LEAST_FACTOR), np.log(LARGEST_FACTOR), GRID_POINTS)
    worth = doubt / (noise + doubt)
    weight, usual = float(worth.sum()), doubt.mean(axis=1, keepdims=True)
    held = []
    for one in np.exp(logs):
        edges = band_edges((counted + one * usual) / (noise + one * usual))
        inside = surprise <= edges * np.sqrt(noise + one * doubt)
        held.append(float((inside * worth).sum()) / SHARES.size)
    # held shares rise with the factor but for ties, which must not stop the search
    rising = np.array(held) / max(weight, 1e-300) + 1e-9 * np.arange(logs.size)
    shown, count = float(np.interp(SHARES.mean(), rising, logs)), weight / ALIKE
    return float(np.exp((count * shown + BELIEF * np.log(BELIEVED)) / (count + BELIEF)))


def band_edges(normal: Floats) -> Floats:
    """Return the edges of bands of `SHARES` around 0, in standard deviations, (n_shares, ...). normal: which
    part of the variance is normal; the rest is of Laplace noise.
    """
    table = _edges()
    return np.stack([np.interp(normal, NORMAL_PARTS, row) for row in table])


@lru_cache(maxsize=1)
def _edges() -> Floats:
    """Return the same at `NORMAL_PARTS`, (n_shares, n_parts), by halving."""
    low = np.zeros((SHARES.size, NORMAL_PARTS.size))
    high = np.full_like(low, 8.0)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        less = share_within(middle, NORMAL_PARTS) < SHARES[:, None]
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return 0.5 * (low + high)


def share_within(edges: Floats, normal: Floats) -> Floats:
    """Return how often a normal value plus Laplace noise, of variance 1 together, lies within the edges, at
    least 0; shapes are broadcast. normal: which part of the variance is normal, in (0, 1).
    """
    deviation, scale = np.sqrt(normal), np.sqrt((1.0 - normal) / 2.0)
    ratio, at = deviation / scale, edges / deviation
    near = np.exp(0.5 * ratio**2 - edges / scale + log_ndtr(at - ratio))
    far = np.exp(0.5 * ratio**2 + edges / scale + log_ndtr(-at - ratio))
    return np.asarray(1.0 - 2.0 * ndtr(-at) - near + far)
