"""How the doubts about leaves hang together: the posterior covariance of sums of them over steps."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.error_products import ErrorProducts
from optstream.estimation.gaussian_process.blocks import Blocks
from optstream.estimation.gaussian_process.surprises.spanned_rows import SpannedRows
from optstream.estimation.gaussian_process.tree_posterior import TreePosterior

Floats = NDArray[np.float64]


class LeafSpans:
    """What is in all doubts about the leaves, whichever times are asked about: few rows that span many.

    Args:
        posterior: Of the tree.
    """

    def __init__(self, posterior: TreePosterior) -> None:
        self.posterior = posterior

    @cached_property
    def loads(self) -> SpannedRows:
        """How the own parts of the leaves move with the shared one, (n_leaves, m)."""
        return SpannedRows.of(self.posterior.own_loads()[self.posterior.seen.tree.leaf_indices])

    @cached_property
    def explained(self) -> tuple[Floats, SpannedRows]:
        """What the measurements explain of the own parts, the shared one being known.

        Of each mode it is V diag(g) V': V (n_leaves, n_known), the same for all modes, and g, a row for each.
        """
        seen = self.posterior.seen
        known = np.isfinite(seen.noise)
        sums = seen.tree.add_up(np.eye(len(seen.sizes)))[known]
        worth = 1.0 / np.sqrt(seen.noise[known])
        weighed = (sums * seen.sizes**2) @ sums.T
        ratios, basis = np.linalg.eigh(worth[:, None] * weighed * worth)
        vectors = (sums * seen.sizes**2).T @ (worth[:, None] * basis)
        lengths = np.linalg.norm(vectors, axis=0)
        lengths[lengths == 0.0] = 1.0
        # rows are spanned relative to their length: it is to be that of what they explain
        told = lengths**2 / (1.0 + self.posterior.spectrum[:, None] * np.maximum(ratios, 0.0))
        return vectors / lengths, SpannedRows.of(told)


class LeafCovariance:
    """The posterior covariance of leaves at some blocks, asked by weighted sums.

    `TreePosterior.variances` has the variances of nodes, by passes; this is written out. With f the shared
    part and g_i a leaf's own, given f the modes of g are independent of each other, and in each the leaves
    have the covariance of a Gaussian conditioned on noisy sums; f is joined as there. How leaves move with
    modes is a sum of few rows (`SpannedRows`), so that all of it is a sum of few products of leaves and
    times. Exact to 1e-10 of the prior. Time of a posterior n_nodes^3, of what is asked m^2 n_asked. Costs no
    privacy.

    Args:
        spans: Of the posterior.
        asked: Single steps, or blocks of them, whose sums are then meant.
    """

    n_earlier, of_nodes = 0, False

    def __init__(self, spans: LeafSpans, asked: Blocks) -> None:
        self._spans = spans
        posterior = spans.posterior
        self._priors = posterior.prior.covariances(asked, asked)
        shared, own = posterior.prior.covariances(asked, posterior.seen.blocks)
        self._across = shared @ posterior.basis, own @ posterior.basis

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return what the covariance of sums adds up from, in the squared unit of the posterior's residuals,
        by weights of leaves, (p, n_leaves), and of what is asked, (q, n_asked).
        """
        posterior, spans = self._spans.posterior, self._spans
        sizes, (shared, own) = leaves * posterior.seen.sizes, (times @ part for part in self._across)
        shared_prior, own_prior = (times @ part @ times.T for part in self._priors)
        vectors, told = spans.explained
        moving = leaves @ vectors
        explained = (told.weights.T[:, None, :] * own) @ own.T
        of_nodes = np.concatenate([(sizes @ sizes.T)[None], (moving * told.span[:, None, :]) @ moving.T])
        of_times = np.concatenate([own_prior[None], -explained])
        moved = (spans.loads.span[:, None, :] * own).reshape(-1, own.shape[1])
        joined = shared - (shared * posterior.precision) @ posterior.kept
        n, q = 1 + len(spans.loads.span), len(times)
        forms = np.empty((n * q, n * q))
        forms[:q, :q] = shared_prior - shared @ posterior.shared_precision @ shared.T
        forms[:q, q:] = -joined @ moved.T
        forms[q:, :q] = forms[:q, q:].T
        forms[q:, q:] = moved @ posterior.kept @ moved.T
        columns = np.column_stack([sizes.sum(axis=1), leaves @ spans.loads.weights])
        return ErrorProducts(of_nodes, of_times, columns, forms.reshape(n, q, n, q))

    def variances(self, leaves: Floats, times: Floats) -> Floats:
        """Return the variances of the same sums alone, (p, q)."""
        return self.products(leaves, times).variances()
