"""How the errors of counts hang together: of what is expected, and of how counts vary around it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.counts.share_errors import LeafDoubt, doubt_of_leaves
from optstream.estimation.counts.shares import estimate_leaves, shares_of_parents
from optstream.estimation.counts.tree_counts import SharedFit
from optstream.estimation.counts.variation import Variation, count_variation
from optstream.estimation.error_products import ErrorProducts, outer_squares, products_of_each
from optstream.estimation.gaussian_process.history import BlockHistory
from optstream.estimation.gaussian_process.posterior import DoubtOfLeaves
from optstream.estimation.gaussian_process.training_data import step_blocks
from optstream.stream import AggregationTree

Floats = NDArray[np.float64]
TRUSTED = 0.03
"""Relative: how exactly it is written how far a node is doubted at a step; twice as many products cost four
times as much."""
MOST_TRUSTS = 4
"""Such products at most. What counts are found to be differs from step to step, which no few say to the last
digit: of 161 nodes as many as steps (36) did, and errors took minutes and gigabytes."""


@dataclass(frozen=True, eq=False)
class CountErrors:
    """The covariance of which `published_counts` has the variances (`CovarianceOfSums`), of nodes.

    Levels are trusted differently, so nodes' expectations do not err as the sums of their leaves; what counts
    vary around them adds up. Small leaves err apart, and by their shares of what their parents' expectations
    do.

    Attributes:
        shared: What the blocks say that levels share.
        doubt: Of the leaves of these levels.
        trust: (n_parts, n_nodes), (n_parts, n_asked): how far each node's expectation is doubted at each
            time, as a sum of products.
        sizes: (n_nodes, n_asked), how far what is unknown of a size counts at each time.
        variation: Of the counts of these levels in the period.
        expected: (n_leaves, n_steps), by how much each leaf's count varies, in the period alone.
        below: (n_nodes, n_leaves), which leaves lie below each node, times how much more they vary.
        leaves: Of small leaves, the last nodes; None where there are none.
        shares: (n_small_leaves, n_shared_nodes), of their parents.
    """

    shared: SharedFit
    doubt: DoubtOfLeaves
    trust: tuple[Floats, Floats]
    sizes: Floats
    variation: Variation
    expected: Floats
    below: Floats
    leaves: LeafDoubt | None
    shares: Floats
    n_earlier: ClassVar[int] = 0
    of_nodes: ClassVar[bool] = True

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return what the covariance of weighted sums adds up from, by weights of nodes, (p, n_nodes), and of
        times, (q, n_asked).
        """
        nodes, small = self._split(leaves)
        erring = nodes + small @ self.shares
        of_sizes = np.sqrt(self.shared.size_doubts) * (self.sizes @ times.T)
        counted, period = leaves @ self.below, times[:, -self.expected.shape[1] :].T
        varied = (counted * self.expected.T[:, None]) @ counted.T - self._explained(nodes)
        found = self._expectations(erring, times)
        found = found.plus(*products_of_each(erring, outer_squares(of_sizes)))
        found = found.plus(varied, outer_squares(period))
        return found if self.leaves is None else found.plus(*self.leaves.products(small, times))

    def _split(self, nodes: Floats) -> tuple[Floats, Floats]:
        """Return the weights of nodes of the levels that share their blocks, and of small leaves."""
        n_shared = len(self.shared.tree.nodes)
        return nodes[:, :n_shared], nodes[:, n_shared:]

    def _expectations(self, nodes: Floats, times: Floats) -> ErrorProducts:
        """Return what the errors of expectations add up from, each node and time trusted as it is."""
        of_nodes, of_times = self.trust
        leaves = self._leaves(nodes * of_nodes[:, None])
        weighed = times * of_times[:, None]
        found = self.doubt.products(*(part.reshape(-1, part.shape[2]) for part in (leaves, weighed)))
        return found.folded(len(of_nodes))

    def _explained(self, nodes: Floats) -> Floats:
        """Return by how much less counts vary for what is told of them, (n_steps, p, p)."""
        return self.variation.explained(self._leaves(nodes)).transpose(2, 0, 1)

    def _leaves(self, nodes: Floats) -> Floats:
        """Return weights of nodes as weights of the leaves of these levels."""
        tree = self.shared.tree
        return np.asarray(nodes @ tree.add_up(np.eye(len(tree.leaves))))


def count_errors(
    shared: SharedFit,
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    small: int | None,
    asked: range,
    n_steps: int,
) -> CountErrors | None:
    """Return how the errors of counts hang together; None where leaves were not measured. Costs no privacy.

    asked: running steps, those of the period, n_steps, the last ones of them. Other arguments as
    `fit_counts`.
    """
    days, n_before = shared.days, len(asked) - n_steps
    steps = asked[n_before:]
    blocks = step_blocks(asked, days, shared.events)
    means = shared.of_nodes + shared.found.published_means(blocks)
    now = means[:, n_before:]
    varied = count_variation(shared.tree, now, shared.measured, steps)
    below, leaves, shares = tree.add_up(np.eye(len(tree.leaves))), None, np.zeros((0, len(means)))
    found = (now + varied.moved)[shared.tree.leaf_indices]
    if small is not None:
        known = shared.leaf_blocks(tree, small, histories[small], steps)
        if known is None:
            return None
        prior = shared.found.posterior.prior
        estimate = estimate_leaves(*known, steps, prior, days, 1.0)
        leaves = doubt_of_leaves(estimate, *known, shared.means(asked), asked, prior, days)
        shares = shares_of_parents(estimate, known[0].parents, len(means))
        below[len(means) :] *= np.sqrt(estimate.factor)
        found = estimate.means * shared.raised(now, varied)[known[0].parents]
    left = np.sqrt(1.0 - count_variation(shared.tree, means, shared.measured, asked).told_expected)
    trust = few_products(np.sqrt(shared.factors)[:, None] * left)
    doubt = DoubtOfLeaves(shared.found, blocks)
    return CountErrors(
        shared,
        doubt,
        trust,
        left * shared.shape(means),
        varied,
        np.maximum(found, 0.0),
        below,
        leaves,
        shares,
    )


def few_products(rows: Floats) -> tuple[Floats, Floats]:
    """Return (r, n_rows) and (r, n_columns), of which the products add up to rows above 0, to `TRUSTED` or as
    near as `MOST_TRUSTS` of them come.

    What is near is relative: each row and column is first divided by its geometric mean.
    """
    logs = np.log(rows)
    of_rows, of_columns = np.exp(logs.mean(axis=1)), np.exp(logs.mean(axis=0) - logs.mean())
    scale = np.outer(of_rows, of_columns)
    left, strengths, right = np.linalg.svd(rows / scale, full_matrices=False)
    weighed, rank, most = left * strengths, 1, min(MOST_TRUSTS, strengths.size)
    while rank < most and np.abs(weighed[:, :rank] @ right[:rank] * scale / rows - 1.0).max() > TRUSTED:
        rank += 1
    return weighed[:, :rank].T * of_rows, right[:rank] * of_columns
