"""How the doubts about leaves hang together: the posterior covariance of sums of them over steps."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.gaussian_process.blocks import Blocks
from optstream.estimation.gaussian_process.tree_posterior import TreePosterior
from optstream.stream import AggregationTree

Floats = NDArray[np.float64]


class LeafCovariance:
    """The posterior covariance of leaves at some blocks, asked by weighted sums.

    `TreePosterior.variances` has the variances of nodes, by passes; this is written out. With f the shared
    part and g_i a leaf's own, given f the modes of g are independent of each other, and in each the leaves
    have the covariance of a Gaussian conditioned on noisy sums; f is joined as there. Exact. Time m n_nodes^3
    for m measured blocks, memory m n_nodes^2. Costs no privacy.

    Args:
        posterior: Of the tree.
        asked: Single steps, or blocks of them, whose sums are then meant.
    """

    n_earlier, of_nodes = 0, False

    def __init__(self, posterior: TreePosterior, asked: Blocks) -> None:
        self.posterior = posterior
        self._own_loads = posterior.own_loads()[posterior.seen.tree.leaf_indices]
        self._priors = posterior.prior.covariances(asked, asked)
        shared, own = posterior.prior.covariances(asked, posterior.seen.blocks)
        self._across = shared @ posterior.basis, own @ posterior.basis

    def between(self, leaves: Floats, times: Floats) -> Floats:
        """Return the covariance of sums, (p, q, p, q), in the squared unit of the posterior's residuals.

        Args:
            leaves: (p, n_leaves), weights of leaves.
            times: (q, n_asked), weights of what is asked.
        """
        sizes, (shared, own) = leaves * self.posterior.seen.sizes, (times @ part for part in self._across)
        shared_prior, own_prior = (times @ part @ times.T for part in self._priors)
        weights = sizes.sum(axis=1)
        of_shared = shared_prior - shared @ self.posterior.shared_precision @ shared.T
        moved = own[None] * (leaves @ self._own_loads)[:, None, :]
        found = np.einsum("i,j,st->isjt", weights, weights, of_shared)
        found += np.einsum("ij,st->isjt", sizes @ sizes.T, own_prior)
        explained = np.swapaxes(self._weighed(leaves), 1, 2) @ self._solved(leaves)
        found -= np.einsum("sk,kij,tk->isjt", own, explained, own, optimize=True)
        found += np.einsum("isk,kl,jtl->isjt", moved, self.posterior.kept, moved, optimize=True)
        crossed = np.einsum("i,sk,jtk->isjt", weights, self._joined(shared), moved, optimize=True)
        return np.asarray(found - crossed - crossed.transpose(2, 3, 0, 1))

    def variances(self, leaves: Floats, times: Floats) -> Floats:
        """Return the variances of the same sums alone, (p, q)."""
        sizes, (shared, own) = leaves * self.posterior.seen.sizes, (times @ part for part in self._across)
        shared_prior, own_prior = (np.einsum("qs,st,qt->q", times, part, times) for part in self._priors)
        weights = sizes.sum(axis=1)
        of_shared = shared_prior - ((shared @ self.posterior.shared_precision) * shared).sum(axis=1)
        explained = (self._weighed(leaves) * self._solved(leaves)).sum(axis=1)
        found = np.outer(weights**2, of_shared) + np.outer((sizes**2).sum(axis=1), own_prior)
        found -= (own**2 @ explained).T
        joined = self._joined(shared)
        for place, load in enumerate(leaves @ self._own_loads):
            moved = own * load
            found[place] += ((moved @ self.posterior.kept) * moved).sum(axis=1)
            found[place] -= 2.0 * weights[place] * (joined * moved).sum(axis=1)
        return found

    def _joined(self, shared: Floats) -> Floats:
        return np.asarray(shared - (shared * self.posterior.precision) @ self.posterior.kept)

    def _weighed(self, leaves: Floats) -> Floats:
        """Return how what was measured moves with the sums of own parts, (1, n_known, p)."""
        return np.asarray(self._sums @ (leaves * self.posterior.seen.sizes**2).T)[None]

    def _solved(self, leaves: Floats) -> Floats:
        """Return what the measurements explain of the own parts, f being known, (m, n_known, p), in the
        eigenbasis and over the squared spectrum.
        """
        return np.asarray(self._inverse @ self._weighed(leaves))

    @cached_property
    def _sums(self) -> Floats:
        """Which leaves lie below each node that was measured, (n_known, n_leaves): 1, else 0."""
        seen = self.posterior.seen
        return leaves_of_nodes(seen.tree)[np.isfinite(seen.noise)]

    @cached_property
    def _inverse(self) -> Floats:
        """The precision of what was measured, f being known, for each mode, (m, n_known, n_known)."""
        seen, spectrum = self.posterior.seen, self.posterior.spectrum
        weighed = (self._sums * seen.sizes**2) @ self._sums.T
        total = spectrum[:, None, None] * weighed + np.diag(seen.noise[np.isfinite(seen.noise)])
        return np.asarray(np.linalg.inv(total))


def leaves_of_nodes(tree: AggregationTree) -> Floats:
    """Return which leaves lie below each node, (n_nodes, n_leaves): 1 where one does, else 0."""
    return tree.add_up(np.eye(len(tree.leaves)))
