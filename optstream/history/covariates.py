"""What public covariates did to a series, learned from noisy measurements: exact Gaussian conditioning."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from optstream.estimation.replicates import normals
from optstream.history.blocks import Blocks
from optstream.history.covariate_columns import columns_of
from optstream.history.draws import COEFFICIENTS
from optstream.history.tree import TreePosterior
from optstream.stream.covariate import Covariate

Floats = NDArray[np.float64]

STRENGTHS = (0.0, 0.3, 1.0, 3.0)
"""Factors of a covariate's prior effect, of which the likeliest is taken, 0 first, so that a covariate
without information changes nothing."""
ROUNDS = 2
MOST_STEPS = 512
"""Steps whose columns are in memory at once: counts need all weeks of the estimate."""


@dataclass(frozen=True, eq=False)
class CovariateEffect:
    """The posterior of the covariates' coefficients.

    strengths, coefficients: (n_columns,). covariance: (n_columns, n_columns), of the coefficients. without:
    the posterior that knows no covariate. columns: (n_columns, n_nodes, n), of its blocks, strengths
    included.
    """

    covariates: tuple[Covariate, ...]
    steps_per_day: int
    without: TreePosterior
    columns: Floats
    strengths: Floats
    coefficients: Floats
    covariance: Floats

    @property
    def explained(self) -> Floats:
        """What the covariates are expected to have done to the blocks, (n_nodes, n)."""
        return self._expected(self.columns)

    def means(self, steps: Blocks) -> Floats:
        """Return the expected effect on every node at single steps, (n_nodes, n_steps)."""
        firsts = range(0, steps.clock.size, MOST_STEPS)
        parts = (self._at(steps.between(first, first + MOST_STEPS)) for first in firsts)
        return np.concatenate([self._expected(one) for one in parts], axis=1)

    def variances(self, steps: Blocks, times: Floats | None = None) -> Floats:
        """Return what not knowing the coefficients adds to the variance of every node, (n_nodes, n_steps).

        With `times`, (n_sums, n_steps), to that of sums over the steps.
        """
        left = self._left_open(steps) if times is None else self._left_open(steps) @ times.T
        return np.asarray(np.einsum("knt,kl,lnt->nt", left, self.covariance, left, optimize=True))

    def draws(self, steps: Blocks, n: int) -> Floats:
        """Return draws of the same error of the leaves, (n, n_leaves, n_steps)."""
        drawn = normals(COEFFICIENTS, np.arange(n)[:, None], np.arange(len(self.covariance)))
        coefficients = drawn @ np.linalg.cholesky(self.covariance).T
        left = self._left_open(steps)[:, self.without.seen.tree.leaf_indices]
        return np.asarray(np.tensordot(coefficients, left, axes=1))

    def _left_open(self, steps: Blocks) -> Floats:
        """Return every node's derivative by a coefficient, less its prediction by the measurements."""
        pulled, _ = self.without.responses(self.columns, steps)
        return self._at(steps) - pulled

    def _at(self, steps: Blocks) -> Floats:
        seen = self.without.seen
        found = columns_of(self.covariates, seen.tree, seen.sizes, steps, self.steps_per_day)
        return self.strengths[:, None, None] * found.values

    def _expected(self, columns: Floats) -> Floats:
        return np.asarray(np.tensordot(self.coefficients, columns, axes=1))


def effect_of(
    posterior: TreePosterior, covariates: Sequence[Covariate], steps_per_day: int
) -> CovariateEffect | None:
    """Return the effect of the covariates, given the measurements; None where they can have none.

    With y = x + H b + noise, x of the prior of `posterior` and b standard normal: given y, b has covariance
    (1 + H' S^-1 H)^-1 = C and mean C H' S^-1 y, S the covariance without the covariates. A covariate's
    columns are multiplied with the strength that makes y most likely, the others given. Time: that of a
    posterior, and n^2 for each column.
    """
    seen = posterior.seen
    found = columns_of(covariates, seen.tree, seen.sizes, seen.blocks, steps_per_day)
    nowhere = Blocks.at(np.zeros(0, dtype=np.int64))
    if not found.values.any():
        return None
    known = np.isfinite(seen.noise)[:, None]
    _, pulls = posterior.responses(found.values, nowhere)
    rotated = (np.where(known, found.values, 0.0) @ posterior.basis).reshape(len(pulls), -1)
    values = (np.where(known, seen.residuals, 0.0) @ posterior.basis).ravel()
    gram, pulled = rotated @ pulls.reshape(len(pulls), -1).T, pulls.reshape(len(pulls), -1) @ values
    strengths = _strengths(gram, pulled, found.groups)
    if not strengths.any():
        return None
    coefficients, covariance, _ = _conditioned(gram, pulled, strengths)
    return CovariateEffect(
        tuple(covariates),
        steps_per_day,
        posterior,
        strengths[:, None, None] * found.values,
        strengths,
        coefficients,
        covariance,
    )


def _strengths(gram: Floats, pulled: Floats, groups: NDArray[np.int64]) -> Floats:
    """Return the likeliest strength of each column's group, found group by group."""
    chosen = np.ones(int(groups.max()) + 1)
    for _ in range(ROUNDS):
        for group in np.unique(groups):
            gains = []
            for strength in STRENGTHS:
                chosen[group] = strength
                gains.append(_conditioned(gram, pulled, chosen[groups])[2])
            chosen[group] = STRENGTHS[int(np.argmax(gains))]
    return chosen[groups]


def _conditioned(gram: Floats, pulled: Floats, strengths: Floats) -> tuple[Floats, Floats, float]:
    """Return mean and covariance of the coefficients, and by how much they raise the log likelihood."""
    precision = np.eye(pulled.size) + strengths[:, None] * gram * strengths
    factor = cho_factor(precision, lower=True)
    pull = strengths * pulled
    mean = cho_solve(factor, pull)
    gain = 0.5 * float(pull @ mean) - float(np.log(np.diag(factor[0])).sum())
    return mean, cho_solve(factor, np.eye(pulled.size)), gain
