"""The posterior of all series of a tree, from blocks that were measured at the same times: exact and linear
in the number of nodes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh, solve_triangular  # type: ignore[import-untyped]

from optstream.estimation.temporal_prior import NUGGET, Blocks, TemporalPrior
from optstream.estimation.tree_passes import Passed, pass_over_tree
from optstream.stream import AggregationTree

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Seen:
    """What was measured, relative to nothing yet.

    blocks: n of them, the same at every node. residuals: (n_nodes, n), measured minus prior mean; anything
    where a node was not measured. noise: (n_nodes,), variance of each entry of a row; inf where it was not.
    sizes: (n_leaves,), s_i.
    """

    tree: AggregationTree
    blocks: Blocks
    residuals: Floats
    noise: Floats
    sizes: Floats


class TreePosterior:
    """Condition the prior on what was seen.

    With x_i = s_i (f + g_i) at the blocks, f ~ N(0, F), g_i ~ N(0, G) and measurements of leaves and of sums
    of leaves: in the eigenbasis of G the g_i of different modes are independent, and so is the noise, for all
    nodes were measured at the same blocks. Given f each mode is a tree of scalars (`pass_over_tree`); f
    itself takes one n x n solve. Nothing is approximated. Time O(n^3 + nodes n), memory O(n^2 + nodes n).

    Costs no privacy. Raises numpy.linalg.LinAlgError only for a prior that is no covariance.
    """

    def __init__(self, prior: TemporalPrior, seen: Seen) -> None:
        self.prior, self.seen = prior, seen
        self.shared, own = prior.covariances(seen.blocks, seen.blocks)
        own[np.diag_indices_from(own)] += NUGGET * seen.blocks.worth**2 * seen.blocks.lengths
        spectrum, self.basis = eigh(own)
        self.spectrum = np.maximum(spectrum, 1e-14 * max(float(spectrum[-1]), 1e-300))
        self.weights = seen.tree.add_up(seen.sizes[:, None])
        rotated = np.where(np.isfinite(seen.noise)[:, None], seen.residuals, 0.0) @ self.basis
        known = np.isfinite(seen.noise)[:, None]
        loading = np.where(known, np.broadcast_to(self.weights, rotated.shape), 0.0)
        self.passed: Passed = pass_over_tree(
            seen.tree, seen.sizes[:, None] ** 2 * self.spectrum, seen.noise, (rotated, loading)
        )
        self._join_shared()

    def _join_shared(self) -> None:
        """The shared part's posterior: precision P and pull q from the tree, in the eigenbasis."""
        (residual, load), (pull, self.loads) = self.passed.means, self.passed.pulls
        self.precision = (self.weights * self.loads).sum(axis=0)
        first = (self.weights * pull).sum(axis=0)
        n = self.spectrum.size
        root = np.sqrt(np.maximum(self.precision, 1e-300))
        prior = self.basis.T @ self.shared @ self.basis
        factor = cholesky(np.eye(n) + root[:, None] * prior * root[None, :], lower=True)
        inverse = solve_triangular(factor, np.eye(n), lower=True)
        self.kept = (np.eye(n) - inverse.T @ inverse) / root[:, None] / root[None, :]
        self.factor_mean = self.kept @ first
        self.log_likelihood = float(
            self.passed.log_density + 0.5 * first @ self.factor_mean - np.sum(np.log(np.diag(factor)))
        )
        self.pulls = pull - self.loads * self.factor_mean
        """Sigma^-1 times the residuals, in the eigenbasis, (n_nodes, n)."""
        self.own_means = residual - load * self.factor_mean

    @cached_property
    def shared_pull(self) -> Floats:
        """What the shared part's covariance is multiplied with, (n,), in the eigenbasis."""
        return np.asarray((self.weights * self.pulls).sum(axis=0))

    @cached_property
    def shared_precision(self) -> Floats:
        """Of all measurements for the shared part, the parts' uncertainty counted in, (n, n)."""
        p = self.precision
        return np.asarray(np.diag(p) - p[:, None] * self.kept * p[None, :])

    def own_pull(self) -> Floats:
        """What each node's own covariance is multiplied with, (n_nodes, n), in the eigenbasis."""
        return np.asarray(self.own_means / self.spectrum)

    def own_loads(self) -> Floats:
        """How the own parts move with the shared one, (n_nodes, n)."""
        return np.asarray(self.passed.means[1] / self.spectrum)

    def own_precision(self) -> Floats:
        """Given the shared part, (n_nodes, n)."""
        return np.asarray((self.passed.prior - self.passed.variances) / self.spectrum**2)

    def left_out(self) -> tuple[Floats, Floats]:
        """How far each measured value is from what all others say of it, and the variance of that.

        (n_nodes, n) each, noise of the value included; only rows of measured nodes mean anything. It takes
        the inverse of the measurements' covariance: value less prediction is (Sigma^-1 r) / diag Sigma^-1.
        """
        known = np.isfinite(self.seen.noise)
        noise = np.where(known, self.seen.noise, 1.0)[:, None]
        alone = np.maximum(noise - self.passed.variances, 0.0) / noise**2
        diagonal = alone @ (self.basis**2).T
        for node in np.flatnonzero(known):
            moved = self.basis * self.loads[node]
            diagonal[node] -= ((moved @ self.kept) * moved).sum(axis=1)
        diagonal[~known] = 1.0
        return np.asarray((self.pulls @ self.basis.T) / diagonal), 1.0 / diagonal

    def means(self, steps: Blocks) -> Floats:
        """Posterior means of every node at these steps less the prior means, (n_nodes, n_steps)."""
        shared, own = self.prior.covariances(steps, self.seen.blocks)
        together = (shared @ self.basis) @ self.shared_pull
        return np.asarray(self.weights * together + self.own_pull() @ (own @ self.basis).T)

    def variances(self, steps: Blocks) -> Floats:
        """Posterior variances of every node at these steps, (n_nodes, n_steps)."""
        shared, own = (part @ self.basis for part in self.prior.covariances(steps, self.seen.blocks))
        of_shared, of_own = self.prior.variances(steps)
        squares = self.seen.tree.add_up(self.seen.sizes[:, None] ** 2)
        known = np.einsum("tk,kl,tl->t", shared, self.shared_precision, shared, optimize=True)
        shared_precise = shared * self.precision
        shared_kept = shared_precise @ self.kept
        found = self.weights**2 * (of_shared - known) + squares * of_own
        loads, precision = self.own_loads(), self.own_precision()
        for node in range(len(found)):
            moved = own * loads[node]
            cross = ((shared - shared_kept) * moved).sum(axis=1)
            explained = (own**2) @ precision[node] - ((moved @ self.kept) * moved).sum(axis=1)
            found[node] -= 2.0 * self.weights[node] * cross + explained
        return np.asarray(np.maximum(found, 0.0))
