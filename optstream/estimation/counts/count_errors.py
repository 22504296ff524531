"""How the errors of counts hang together: of what is expected, and of how counts vary around it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.counts.share_errors import LeafDoubt, doubt_of_leaves
from optstream.estimation.counts.shares import estimate_leaves
from optstream.estimation.counts.tree_counts import SharedFit
from optstream.estimation.gaussian_process.history import BlockHistory
from optstream.estimation.gaussian_process.posterior import DoubtOfLeaves
from optstream.estimation.gaussian_process.training_data import step_blocks
from optstream.stream import AggregationTree

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CountErrors:
    """The covariance of which `published_counts` has the variances (`CovarianceOfSums`), of nodes.

    Levels are trusted differently, so nodes' expectations do not err as the sums of their leaves; what counts
    vary around them adds up. Small leaves err apart, their parents known.

    Attributes:
        shared: What the blocks say that levels share.
        doubt: Of the leaves of these levels.
        shape: (n_asked,), the root's expected counts over its size.
        expected: (n_leaves, n_asked), by how much each leaf's count varies; 0 at steps of other periods.
        below: (n_nodes, n_leaves), which leaves lie below each node, times how much more they vary.
        leaves: Of small leaves, the last nodes; None where there are none.
    """

    shared: SharedFit
    doubt: DoubtOfLeaves
    shape: Floats
    expected: Floats
    below: Floats
    leaves: LeafDoubt | None
    n_earlier: ClassVar[int] = 0
    of_nodes: ClassVar[bool] = True

    def between(self, leaves: Floats, times: Floats) -> Floats:
        """Return the covariance of weighted sums, (p, q, p, q), by weights of nodes, (p, n_nodes), and of
        times, (q, n_asked).
        """
        of_shared, small = self._split(leaves)
        found = self.doubt.products(self._trusted(of_shared), times).between()
        sizes = (of_shared * self.shared.size_doubts[:, 0]) @ of_shared.T
        shapes, counted = times @ self.shape, leaves @ self.below
        found = found + np.einsum("ij,s,t->isjt", sizes, shapes, shapes)
        found += np.einsum(
            "ik,jk,kn,sn,tn->isjt", counted, counted, self.expected, times, times, optimize=True
        )
        return np.asarray(found if self.leaves is None else found + self.leaves.between(small, times))

    def variances(self, leaves: Floats, times: Floats) -> Floats:
        """Return the variances of the same sums alone, (p, q)."""
        of_shared, small = self._split(leaves)
        found = self.doubt.variances(self._trusted(of_shared), times)
        found = found + np.outer(of_shared**2 @ self.shared.size_doubts[:, 0], (times @ self.shape) ** 2)
        found += (leaves @ self.below) ** 2 @ self.expected @ (times**2).T
        return found if self.leaves is None else found + self.leaves.variances(small, times)

    def _split(self, nodes: Floats) -> tuple[Floats, Floats]:
        """Return the weights of nodes of the levels that share their blocks, and of small leaves."""
        n_shared = len(self.shared.tree.nodes)
        return nodes[:, :n_shared], nodes[:, n_shared:]

    def _trusted(self, nodes: Floats) -> Floats:
        """Return weights of nodes as weights of the leaves below, times how far each level is trusted."""
        tree = self.shared.tree
        return np.asarray((nodes * np.sqrt(self.shared.factors)) @ tree.add_up(np.eye(len(tree.leaves))))


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
    below, expected, leaves = tree.add_up(np.eye(len(tree.leaves))), means[shared.tree.leaf_indices], None
    if small is not None:
        known = shared.leaf_blocks(tree, small, histories[small], steps)
        if known is None:
            return None
        prior = shared.found.posterior.prior
        estimate = estimate_leaves(*known, steps, prior, days, 1.0)
        leaves = doubt_of_leaves(estimate, *known, shared.means(asked), asked, prior, days)
        below[len(means) :] *= np.sqrt(estimate.factor)
        expected = np.hstack([np.zeros((len(estimate.means), n_before)), estimate.means])
    expected = np.where(np.arange(len(asked)) < n_before, 0.0, np.maximum(expected, 0.0))
    doubt = DoubtOfLeaves(shared.found, blocks)
    return CountErrors(shared, doubt, shared.shape(means), expected, below, leaves)
