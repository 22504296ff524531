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
        (nodes, columns), (of_times, forms) = self._of_leaves(leaves), self._of_times(times, times)
        return ErrorProducts(nodes, of_times, columns, forms)

    def with_first(self, leaves: Floats, times: Floats) -> Floats:
        """Return the covariances of sums over the first of the times with those over each, (q, p, p), as of
        `products`: pairs of leaves in the mean of both orders.
        """
        (nodes, columns), (of_times, forms) = self._of_leaves(leaves), self._of_times(times[:1], times)
        half = 0.5 * (columns @ forms[:, 0].transpose(2, 0, 1) @ columns.T)
        found = np.tensordot(of_times[:, 0], nodes, axes=(0, 0))
        return np.asarray(found + half + half.transpose(0, 2, 1))

    def _of_leaves(self, leaves: Floats) -> tuple[Floats, Floats]:
        """Return `nodes` and `columns` of `ErrorProducts`."""
        spans = self._spans
        sizes, (vectors, told) = leaves * spans.posterior.seen.sizes, spans.explained
        moving = leaves @ vectors
        nodes = np.concatenate([(sizes @ sizes.T)[None], (moving * told.span[:, None, :]) @ moving.T])
        return nodes, np.column_stack([sizes.sum(axis=1), leaves @ spans.loads.weights])

    def _of_times(self, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        """Return `times`, (n_products, q, s), and `forms`, (c, q, c, s), of `ErrorProducts`, for pairs of one
        of q sums of what is asked and one of s.
        """
        posterior, spans = self._spans.posterior, self._spans
        (shared, own), (other, other_own) = (
            [side @ part for part in self._across] for side in (first, second)
        )
        shared_prior, own_prior = (first @ part @ second.T for part in self._priors)
        explained = (spans.explained[1].weights.T[:, None, :] * own) @ other_own.T
        rows, columns = (
            (spans.loads.span[:, None, :] * side).reshape(-1, side.shape[1]) for side in (own, other_own)
        )
        kept, weighed = rows @ posterior.kept, shared * posterior.precision
        n, q, s = 1 + len(spans.loads.span), len(first), len(second)
        forms = np.empty((n * q, n * s))
        forms[:q, :s] = shared_prior - shared @ posterior.shared_precision @ other.T
        forms[:q, s:] = (weighed @ posterior.kept - shared) @ columns.T
        forms[q:, :s] = kept @ (other * posterior.precision).T - rows @ other.T
        forms[q:, s:] = kept @ columns.T
        return np.concatenate([own_prior[None], -explained]), forms.reshape(n, q, n, s)
