"""Series of which one is known to be the sum of the others: estimates brought to agree, by their errors."""

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError

Floats = NDArray[np.float64]


def known_sum_weights(variances: Floats) -> Floats:
    """Return how a disagreement is shared out between the series, (n_series,), which add up to 1: each by its
    part of all variance.

    With one weight a series for all cells, what added up over a tree or over time before adds up after.
    Generalised least squares for independent errors whose ratio is the same in all cells; else its mean.

    variances: (n_series, ...), of the total first, then of its parts. Raises ParameterError where one is not
    known or not above 0, or there are fewer than three series.
    """
    known = np.isfinite(variances) & (variances > 0)
    if len(variances) < 3 or not known.all():
        raise ParameterError("a total and at least two parts need variances, each above 0, in every cell")
    shares = variances / variances.sum(axis=0)
    return np.asarray(shares.reshape(len(shares), -1).mean(axis=1))


def agreeing(values: Floats, weights: Floats) -> Floats:
    """Return the estimates, (n_series, ...), the total first, with that equal to the sum of its parts in
    every cell; linear. Free post-processing: nothing but what was released goes in.
    """
    missing = values[0] - values[1:].sum(axis=0)
    signs = np.concatenate([[-1.0], np.ones(len(values) - 1)])
    by_series = (signs * weights).reshape(-1, *(1,) * missing.ndim)
    return np.asarray(values + by_series * missing)


def variances_of_agreeing(variances: Floats, weights: Floats) -> Floats:
    """Return the variances of `agreeing`, where the series err independently, as by their noise."""
    own = weights.reshape(-1, *(1,) * (variances.ndim - 1))
    others = variances.sum(axis=0) - variances
    return np.asarray((1.0 - own) ** 2 * variances + own**2 * others)
