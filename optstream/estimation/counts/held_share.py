"""How far a posterior of counts can be trusted at each level: from what its bands would have held."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

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


def level_factors(posterior: TreePosterior) -> Floats:
    """Return for each node the factor of its level's variances under which bands hold what they say.

    A band around what all other blocks predict should hold a measured value as often as it says. The factor
    is the one under which the mean share held over `SHARES` is theirs, each surprise weighed by how much of
    its variance is doubt and not noise, joined with a belief. By shares and not by mean squares: a few wild
    days widen no others. Where noise hides everything the belief stays. Costs no privacy: noisy numbers only.

    Args:
        posterior: Of blocks at all levels; its noise holds what counts vary around their expectation.

    Returns:
        (n_nodes,), between `LEAST_FACTOR` and `calibration.LARGEST_FACTOR`; 1 at a level that was not
        measured.
    """
    seen = posterior.seen
    surprise, spread = left_out(posterior, EXACT_LATEST)
    ordinary = seen.blocks.events == 0
    ordinary[:-EXACT_LATEST] = False
    found = np.ones(len(seen.noise))
    for level in seen.tree.levels:
        at = slice(level.start, level.stop)
        noise = seen.noise[at, None]
        if np.isfinite(noise).all():
            doubt = np.maximum(spread[at][:, ordinary] - noise, 0.0)
            found[at] = _factor(np.abs(surprise[at][:, ordinary]), noise, doubt)
    return found


def _factor(surprise: Floats, noise: Floats, doubt: Floats) -> float:
    logs = np.linspace(np.log(LEAST_FACTOR), np.log(LARGEST_FACTOR), GRID_POINTS)
    worth = doubt / (noise + doubt)
    weight = float(worth.sum())
    edges = ndtri(0.5 + SHARES / 2)[:, None, None]
    held = [
        float(((surprise <= edges * np.sqrt(noise + np.exp(one) * doubt)) * worth).sum()) / SHARES.size
        for one in logs
    ]
    # held shares rise with the factor but for ties, which must not stop the search
    rising = np.array(held) / max(weight, 1e-300) + 1e-9 * np.arange(logs.size)
    shown, count = float(np.interp(SHARES.mean(), rising, logs)), weight / ALIKE
    return float(np.exp((count * shown + BELIEF * np.log(BELIEVED)) / (count + BELIEF)))
