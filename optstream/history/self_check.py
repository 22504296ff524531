"""Measured values compared with their predictions by all others: one by one, and a day at a time."""

import numpy as np
from numpy.typing import NDArray

from optstream.history.posterior import SpannedRows, TreePosterior

Floats = NDArray[np.float64]

AT_ONCE = 2**22  # entries of the matrices of several nodes that are in memory together


def day_surprises(posterior: TreePosterior, chosen: NDArray[np.bool_]) -> Floats:
    """Return C^(-1/2) a of these blocks at each node, then for the leaves' shared part, (n_nodes + 1, n).
    Score tests of a shift of these values alone: a = Sigma^-1 r there and C the same part of Sigma^-1, so the
    squares add up to a chi-squared statistic; 0 for a node that was not measured."""
    basis, count = posterior.basis[chosen], int(chosen.sum())
    alone, loads = SpannedRows.of(posterior.alone), posterior.spanned_loads
    of_alone = alone.weighed(basis).reshape(-1, count * count)
    of_loads = loads.products(basis, posterior.kept).reshape(-1, count * count)
    known, a_part = np.flatnonzero(posterior.known), max(1, AT_ONCE // (count * count))
    found = np.zeros((len(posterior.known) + 1, count))
    for some in (known[first : first + a_part] for first in range(0, len(known), a_part)):
        pairs = SpannedRows(loads.weights[some], loads.span).pairs
        precisions = alone.weights[some] @ of_alone - pairs @ of_loads
        found[some] = _whitened(posterior.pulls[some] @ basis.T, precisions.reshape(-1, count, count))
    shared = basis @ posterior.shared_precision @ basis.T
    found[-1:] = _whitened((basis @ posterior.shared_pull)[None], shared[None])
    return found


def _whitened(pulls: Floats, precisions: Floats) -> Floats:
    spectrum, basis = np.linalg.eigh(precisions)
    spectrum = np.maximum(spectrum, 1e-12 * np.maximum(spectrum[:, -1:], 1e-300))
    turned = np.einsum("nji,nj->ni", basis, pulls) / np.sqrt(spectrum)
    return np.asarray(np.einsum("nij,nj->ni", basis, turned))


# How far a posterior can be trusted: from how well each measured value is predicted by all others.

EXPECTED_FACTOR, FACTOR_DEVIATION = 1.2, 0.3
"""Prior mean and standard deviation of the factor; above 1, for the prior was fitted to the same
measurements."""
EXACT_LATEST = 96  # blocks, the latest ones, that are looked at one by one
ALIKE = 3.0  # left-out surprises are correlated: this many count as one
LARGEST_FACTOR = 9.0
OFF = 4.0  # a level's factor that is an alarm: measurements miss twice as far as predicted
LAPLACE_TAIL, SHARED_TAIL, EACH_BLOCK = 95.0, 40.0, 3.0
"""Chi-squared that alarms: for a node what Laplace noise alone exceeds in 1 of 10^6 blocks, (ln 10^6)^2 / 2;
less for what all share, whose noise is a mean; and so much more for each block of the day."""
CUT_OFF, CUT_OFF_TAIL, EACH_CUT_OFF = 4.0, 30.0, 1.5
"""The same where no block counts for more than 4 deviations: three wild blocks of one day are no noise."""
LEAST_GAIN = 10.0  # by how much calling a day an event must raise the log likelihood


def variance_factors(posterior: TreePosterior) -> tuple[float, Floats]:
    """Return the factors from the prior's variances to those of the measurements: of all nodes, at least 1;
    and of each level, nan where it was not measured. A factor c is the least-squares fit of surprise^2 -
    noise to c v, v the prior's residual variance, joined with its prior."""
    seen = posterior.seen
    known = np.flatnonzero(np.isfinite(seen.noise))
    surprise, spread = (part[known] for part in posterior.left_out(EXACT_LATEST))
    noise = seen.noise[known, None]
    ordinary = seen.blocks.events == 0
    ordinary[:-EXACT_LATEST] = False
    model_variance = np.maximum(spread - noise, 0.0)[:, ordinary]
    found = _score_and_information((surprise**2)[:, ordinary], noise, model_variance)
    every = _joined(found.sum(axis=1), EXPECTED_FACTOR)
    depths, levels = np.array(seen.tree.depths)[known], np.full(seen.tree.n_levels, np.nan)
    for depth in np.unique(depths):
        levels[depth] = _joined(found[:, depths == depth].sum(axis=1), every)
    return max(every, 1.0), levels


def fitted_factor(squares: Floats, noise: Floats | float, model_variance: Floats) -> float:
    """Return the least-squares fit of squared surprises less their noise to c times `model_variance`."""
    found = _score_and_information(squares, noise, model_variance)
    return max(_joined(found.sum(axis=1), EXPECTED_FACTOR), 1.0)


def _score_and_information(squares: Floats, noise: Floats | float, model_variance: Floats) -> Floats:
    """Return each row's part in the fit, (2, n)."""
    # of a square: Laplace noise has kurtosis 6
    square_variance = 5.0 * noise**2 + 4.0 * noise * model_variance + 2.0 * model_variance**2
    score = (squares - noise) * model_variance / square_variance
    return np.stack([score.sum(axis=1), (model_variance**2 / square_variance).sum(axis=1)]) / ALIKE


def _joined(score_and_information: Floats, expected: float) -> float:
    """Return the factor, joined with the expected one."""
    (score, information), known = score_and_information, FACTOR_DEVIATION**-2
    return float(np.clip((score + expected * known) / (information + known), 0.0, LARGEST_FACTOR))


def hour_factors(means: Floats, variances: Floats) -> Floats:
    """Return each step's mean square E[x^2] over the period's, (n_nodes, n_steps): factors of variances that
    grow with a step's size, for streams whose measurements do not show how hours differ."""
    squares = means**2 + variances
    return np.asarray(squares / np.maximum(squares.mean(axis=1, keepdims=True), 1e-300))


def is_unlike(posterior: TreePosterior, today: NDArray[np.bool_], factor: float) -> bool:
    """Return whether a day's blocks miss their predictions by more than noise explains."""
    if not today.any() or today.all():
        return False
    surprises, n_blocks = day_surprises(posterior, today) / np.sqrt(factor), int(today.sum())
    squares = (surprises**2).sum(axis=1)
    cut_off = (np.clip(surprises, -CUT_OFF, CUT_OFF) ** 2).sum(axis=1)
    return bool(
        squares.max() > LAPLACE_TAIL + EACH_BLOCK * n_blocks
        or squares[-1] > SHARED_TAIL + EACH_BLOCK * n_blocks
        or cut_off.max() > CUT_OFF_TAIL + EACH_CUT_OFF * n_blocks
    )
