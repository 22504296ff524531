"""How far a posterior can be trusted: from how well each measured value is predicted by all others."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.gaussian_process.surprises.left_out import day_squares, day_surprises, left_out
from optstream.estimation.gaussian_process.tree_posterior import TreePosterior

EXPECTED_FACTOR, FACTOR_DOUBT = 1.2, 0.3
"""Mean and standard deviation of what is believed of the factor before anything is measured. Above 1, for the
prior's parameters were fitted to the same measurements."""
EXACT_LATEST = 96
"""Blocks, the latest ones, that are looked at one by one."""
ALIKE = 3.0
"""Left-out surprises are correlated: so many of them count for one."""
LARGEST_FACTOR = 9.0
LAPLACE_TAIL, SHARED_TAIL, EACH_BLOCK = 95.0, 40.0, 3.0
"""Chi-squared that alarms: for a node what Laplace noise alone exceeds in 1 of 10^6 blocks, (ln 10^6)^2 / 2;
less for what all share, whose noise is a mean; and so much more for each block of the day."""
CUT_OFF, CUT_OFF_TAIL, EACH_CUT_OFF = 4.0, 30.0, 1.5
"""The same where no block counts for more than 4 deviations: three wild blocks of one day are no noise."""
LEAST_GAIN = 10.0
"""By how much calling a day an event must raise the log likelihood."""


def variance_factor(posterior: TreePosterior) -> float:
    """Return by how much the prior's variances fall short of what the measurements show, at least 1.

    A measured value misses what all others predict by the noise, whose variance is known, and by what the
    prior leaves open, v. The factor c is the least-squares fit of surprise^2 - noise to c v, joined with the
    belief about c. Where noise hides everything that belief stays. Costs no privacy.
    """
    seen = posterior.seen
    known = np.isfinite(seen.noise)
    surprise, spread = (part[known] for part in left_out(posterior, EXACT_LATEST))
    noise = seen.noise[known, None]
    ordinary = seen.blocks.events == 0
    ordinary[:-EXACT_LATEST] = False
    doubt = np.maximum(spread - noise, 0.0)[:, ordinary]
    # of a square: Laplace noise has kurtosis 6
    unsure = 5.0 * noise**2 + 4.0 * noise * doubt + 2.0 * doubt**2
    excess = (surprise**2 - noise)[:, ordinary]
    first = float((excess * doubt / unsure).sum()) / ALIKE + EXPECTED_FACTOR * FACTOR_DOUBT**-2
    second = float((doubt**2 / unsure).sum()) / ALIKE + FACTOR_DOUBT**-2
    return float(np.clip(first / second, 1.0, LARGEST_FACTOR))


def is_unlike(posterior: TreePosterior, today: NDArray[np.bool_], factor: float) -> bool:
    """Return whether the blocks of a day are so unlike what all others say that no noise explains them.

    today: (n,) of the blocks. factor: of `variance_factor`. Costs no privacy.
    """
    if not today.any() or today.all():
        return False
    n_blocks = int(today.sum())
    squares = day_squares(posterior, today) / factor
    wild = squares.max() > LAPLACE_TAIL + EACH_BLOCK * n_blocks
    together = squares[-1] > SHARED_TAIL + EACH_BLOCK * n_blocks
    if wild or together:
        return True
    # cut off they are less: only such nodes can alarm
    several = CUT_OFF_TAIL + EACH_CUT_OFF * n_blocks
    near = np.flatnonzero(squares > several)
    surprises = day_surprises(posterior, today, near) / np.sqrt(factor)
    return bool(((np.clip(surprises, -CUT_OFF, CUT_OFF) ** 2).sum(axis=1) > several).any())
