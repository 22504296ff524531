"""How the doubts about leaves hang together: the posterior covariance of sums of them over steps."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.error_products import ErrorProducts
from optstream.estimation.gaussian_process.blocks import Blocks
from optstream.estimation.gaussian_process.prior import TemporalPrior
from optstream.estimation.gaussian_process.surprises.spanned_rows import EXACT, SpannedRows
from optstream.estimation.gaussian_process.tree_passes import told_in_groups
from optstream.estimation.gaussian_process.tree_posterior import Seen, TreePosterior
from optstream.estimation.many_leaves.groups import InGroups
from optstream.stream import AggregationTree, Lattice

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_CORRELATED = 400
"""Nodes: of more, what is known of their errors is not written as a matrix of them all; of counts of none."""
MOST_GROUPED = 2500
"""Nodes: of more it is not worked out, for the sake of a night's time: at 10,000 it takes over 5 seconds for
each of 15 estimates."""
MOST_STEPS = 50
"""Of a period, beside more than `MOST_CORRELATED` nodes: time grows as their square, and of 1,000 nodes at
288 steps it is 50 seconds for each of these estimates.
"""


def most_nodes(tree: AggregationTree, n_steps: int) -> int:
    """Return of how many nodes, at most, it is worked out how the errors of so many steps hang together."""
    return MOST_CORRELATED if isinstance(tree, Lattice) or n_steps > MOST_STEPS else MOST_GROUPED


@dataclass(frozen=True, eq=False)
class Known:
    """A posterior without what it knows of each node at each block: that is 0.2 GB of 10,000 nodes."""

    prior: TemporalPrior
    seen: Seen
    basis: Floats
    spectrum: Floats
    precision: Floats
    kept: Floats
    shared_precision: Floats


class LeafSpans:
    """What is in all doubts about the leaves, whichever times are asked about: few rows that span many.

    Args:
        posterior: Of the tree.
        exact: Relative: what rows may be off by.
    """

    def __init__(self, posterior: TreePosterior, exact: float = EXACT) -> None:
        self.posterior = Known(*(getattr(posterior, one.name) for one in fields(Known)))
        self.exact = exact
        self.loads = SpannedRows.of(posterior.own_loads()[posterior.seen.tree.leaf_indices], exact)
        """How the own parts of the leaves move with the shared one, (n_leaves, m)."""

    @property
    def are_many(self) -> bool:
        """Whether there are more nodes than a matrix of them is made of; of the cells of a margin it is."""
        tree = self.posterior.seen.tree
        return len(tree.nodes) > MOST_CORRELATED and not isinstance(tree, Lattice)

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
        return vectors / lengths, SpannedRows.of(told, self.exact)

    @cached_property
    def in_groups(self) -> tuple[tuple[Integers, SpannedRows], ...]:
        """The same of a tree of many leaves, as `told_in_groups` has it: each leaf's groups and rows."""
        seen, spectrum = self.posterior.seen, self.posterior.spectrum
        told = told_in_groups(seen.tree, seen.sizes[:, None] ** 2 * spectrum, seen.noise)
        found = ((of, SpannedRows.of(rows / spectrum, self.exact)) for of, rows in told)
        return tuple((of, rows) for of, rows in found if len(rows.span))  # or none of them was measured


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

    def products(self, leaves: "Floats | csr_array", times: Floats) -> ErrorProducts:
        """Return what the covariance of sums adds up from, in the squared unit of the posterior's residuals,
        by weights of leaves, (p, n_leaves), and of what is asked, (q, n_asked).
        """
        if self._spans.are_many:
            parts = [one.of_sums(leaves) for one in self.in_groups(times)]
            return ErrorProducts.of_groups(parts, leaves.shape[0], len(times))
        (nodes, columns), (of_times, forms) = self._of_leaves(leaves), self._of_times(times, times)
        return ErrorProducts(nodes, of_times, columns, forms)

    def in_groups(self, times: Floats) -> list[InGroups]:
        """Return what sums of leaves within groups add, over sums of what is asked, (q, n_asked)."""
        spans, seen, q = self._spans, self._spans.posterior.seen, len(times)
        sizes, own = seen.sizes, times @ self._across[1]
        own_prior = (times @ self._priors[1] @ times.T)[None, :, None]
        every, loaded = np.zeros(sizes.size, dtype=np.int64), np.column_stack([sizes, spans.loads.weights])
        found = [
            InGroups(seen.tree.leaf_indices, sizes[:, None], own_prior),
            InGroups(every, loaded, self._forms(times, times)),
        ]
        for of, rows in spans.in_groups:
            moved = (rows.span[:, None, :] * own).reshape(-1, own.shape[1])
            forms = -(moved @ moved.T).reshape(len(rows.span), q, len(rows.span), q)
            found.append(InGroups(of, rows.weights, forms))
        return found

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
        own, other_own = (side @ self._across[1] for side in (first, second))
        explained = (self._spans.explained[1].weights.T[:, None, :] * own) @ other_own.T
        own_prior = first @ self._priors[1] @ second.T
        return np.concatenate([own_prior[None], -explained]), self._forms(first, second)

    def _forms(self, first: Floats, second: Floats) -> Floats:
        """Return the second of `_of_times`."""
        posterior, spans = self._spans.posterior, self._spans
        (shared, own), (other, other_own) = (
            [side @ part for part in self._across] for side in (first, second)
        )
        rows, columns = (
            (spans.loads.span[:, None, :] * side).reshape(-1, side.shape[1]) for side in (own, other_own)
        )
        kept, weighed = rows @ posterior.kept, shared * posterior.precision
        n, q, s = 1 + len(spans.loads.span), len(first), len(second)
        forms = np.empty((n * q, n * s))
        forms[:q, :s] = first @ self._priors[0] @ second.T - shared @ posterior.shared_precision @ other.T
        forms[:q, s:] = (weighed @ posterior.kept - shared) @ columns.T
        forms[q:, :s] = kept @ (other * posterior.precision).T - rows @ other.T
        forms[q:, s:] = kept @ columns.T
        return forms.reshape(n, q, n, s)
