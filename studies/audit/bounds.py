"""From counts to a lower bound on epsilon that holds with a stated confidence."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv

Floats = NDArray[np.float64]


def clopper_pearson(hits: ArrayLike, runs: int, error: float) -> tuple[Floats, Floats]:
    """Return lower and upper limits of a probability of which `runs` independent runs showed `hits`.

    Each limit alone is wrong with probability at most `error`: they are the quantiles of
    Beta(hits, runs - hits + 1) at error and of Beta(hits + 1, runs - hits) at 1 - error (the inverse of the
    complement is used, so that an error of 1e-12 is not lost in rounding). Shapes as `hits`.
    """
    counted = np.asarray(hits, dtype=np.float64)
    inner: Any = np.clip(counted, 1e-9, runs - 1e-9)  # only to keep the quantile's arguments legal
    low = np.where(counted <= 0, 0.0, betaincinv(inner, runs - inner + 1, error))
    high = np.where(counted >= runs, 1.0, betainccinv(inner + 1, runs - inner, error))
    high = np.where(counted <= 0, -np.expm1(np.log(error) / runs), high)
    low = np.where(counted >= runs, np.exp(np.log(error) / runs), low)
    return low, high


def epsilon_bound(
    likely: ArrayLike, unlikely: ArrayLike, runs: int, error: float, delta: float = 0.0
) -> Floats:
    """Return a lower bound on epsilon from how often one event was seen on either side, of `runs` each.

    log((p - delta) / q) with p at its lower and q at its upper limit, half the error on each; it may be
    negative, or -inf for an event that was never seen, or no oftener than delta allows. (epsilon, delta)-
    indistinguishability means p <= e^epsilon q + delta, so the bound is above the true epsilon at delta with
    probability at most `error`. Shapes as the counts.
    """
    low, _ = clopper_pearson(likely, runs, error / 2)
    _, high = clopper_pearson(unlikely, runs, error / 2)
    with np.errstate(divide="ignore"):
        bound: Floats = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return bound
