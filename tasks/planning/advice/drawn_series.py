"""Made-up readings of a stream's leaves, drawn from the prior by which errors are expected."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.gaussian_process.blocks import Blocks
from optstream.estimation.gaussian_process.prior import TemporalPrior

Values = NDArray[np.float64]
JITTER = 1e-8
"""Of a step's relative variance: smooth kernels have matrices that are singular in floats."""


def drawn_series(
    prior: TemporalPrior, scale: float, n_leaves: int, n_steps: int, *, counts: bool, seed: int
) -> Values:
    """Return leaves of the size `scale` that vary as the prior expects, (n_leaves, n_steps).

    A leaf is scale * (1 + f + g): f is shared by all, g its own. Nothing below 0. counts: whole numbers that
    vary around that.
    """
    generator = np.random.default_rng(seed)
    steps = Blocks.at(np.arange(n_steps))
    shared, own = prior.covariances(steps, steps)
    f = _root(shared) @ generator.normal(size=n_steps)
    g = generator.normal(size=(n_leaves, n_steps)) @ _root(own).T
    values = scale * np.maximum(1.0 + f + g, 0.0)
    return generator.poisson(values).astype(np.float64) if counts else values


def _root(covariance: Values) -> Values:
    return np.asarray(np.linalg.cholesky(covariance + JITTER * np.eye(len(covariance))))
