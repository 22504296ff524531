"""How the doubts about leaves hang together: the posterior covariance of a small tree, entry by entry."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.gaussian_process.blocks import Blocks
from optstream.estimation.gaussian_process.tree_posterior import TreePosterior
from optstream.stream import AggregationTree

Floats = NDArray[np.float64]


def leaf_covariance(posterior: TreePosterior, asked: Blocks, sums: Floats | None = None) -> Floats:
    """Return the posterior covariance of all leaves at these blocks, (n_leaves, n, n_leaves, n).

    `TreePosterior.variances` has its diagonal, by passes; this one is written out. With f the shared part and
    g_i a leaf's own, given f the modes of g are independent of each other, and in each the leaves have the
    covariance of a Gaussian conditioned on noisy sums; f is joined as there. Exact. Time n_leaves^2 n^2 m and
    m n_nodes^3 for m measured blocks, memory m n_leaves^2: for small trees. Costs no privacy.

    Args:
        posterior: Of the tree.
        asked: Single steps, or blocks of them, whose sums are then meant.
        sums: (n_sums, n), weighted sums of these that are asked for instead; then n is their number.

    Returns:
        In the squared unit of the posterior's residuals.
    """
    seen, leaves = posterior.seen, posterior.seen.tree.leaf_indices
    shared, own = posterior.prior.covariances(asked, seen.blocks)
    shared_prior, own_prior = posterior.prior.covariances(asked, asked)
    if sums is not None:
        shared, own = sums @ shared, sums @ own
        shared_prior, own_prior = sums @ shared_prior @ sums.T, sums @ own_prior @ sums.T
    shared, own = shared @ posterior.basis, own @ posterior.basis
    of_shared = shared_prior - shared @ posterior.shared_precision @ shared.T
    joined = shared - (shared * posterior.precision) @ posterior.kept
    moved = own[None] * posterior.own_loads()[leaves][:, None, :]
    sizes = seen.sizes
    found = np.einsum("i,j,st->isjt", sizes, sizes, of_shared)
    found += np.einsum("ij,st->isjt", np.diag(sizes**2), own_prior)
    found -= np.einsum("sk,kij,tk->isjt", own, _explained(posterior), own, optimize=True)
    found += np.einsum("isk,kl,jtl->isjt", moved, posterior.kept, moved, optimize=True)
    crossed = np.einsum("i,sk,jtk->isjt", sizes, joined, moved, optimize=True)
    return np.asarray(found - crossed - crossed.transpose(2, 3, 0, 1))


def _explained(posterior: TreePosterior) -> Floats:
    """Return what the measurements explain of the own parts, f being known, (m, n_leaves, n_leaves), in the
    eigenbasis and over the squared spectrum.
    """
    seen, spectrum = posterior.seen, posterior.spectrum
    known = np.isfinite(seen.noise)
    sums = leaves_of_nodes(seen.tree)[known]
    weighed = sums * seen.sizes**2
    total = spectrum[:, None, None] * (weighed @ sums.T) + np.diag(seen.noise[known])
    return np.asarray(
        weighed.T @ np.linalg.solve(total, np.broadcast_to(weighed, (spectrum.size, *weighed.shape)))
    )


def leaves_of_nodes(tree: AggregationTree) -> Floats:
    """Return which leaves lie below each node, (n_nodes, n_leaves): 1 where one does, else 0."""
    return tree.add_up(np.eye(len(tree.leaves)))
