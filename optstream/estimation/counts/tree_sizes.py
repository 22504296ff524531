"""How large the nodes of a tree of counts are: from noisy sums at every level, busy and empty nodes apart."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.counts.sizes import Mixture
from optstream.estimation.gaussian_process.history import BlockHistory
from optstream.estimation.gaussian_process.training_data import SCALE_DOUBT
from optstream.estimation.gaussian_process.tree_filter import seen_tree
from optstream.estimation.gaussian_process.tree_posterior import Seen
from optstream.estimation.hierarchy.closed_form import project
from optstream.estimation.hierarchy.problem import LeastSquares
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]

NOT_MEASURED = 1e12
"""Times the variance by all else: that of a node that was not measured, so that no other digit moves."""
SURE = 1e-9
"""Of the noise's variance: the least that a size is doubted by."""
LEAST_SIZE, LEAST_SHARE = 1e-6, 1e-4
"""Of a leaf, in counts, and of all leaves together: a size of 0 would be known to stay 0."""


def seen_counts(
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    days: PublicDays,
    scale: float | None,
    events: Iterable[int] = (),
) -> tuple[Seen, Floats, Floats, Floats] | None:
    """Return what was measured of a tree of counts, as `seen_tree` does, with sizes by `node_sizes`.

    A leaf's prior mean is its size, and the noise of a block holds what counts vary around their expectation:
    a variance that grows with the mean. Nodes that share leaves share that too; here it is taken as
    independent. Costs no privacy: noisy numbers only.

    Returns what was seen, the leaves' sizes, (n_leaves,), the variances of all nodes' sizes, (n_nodes,), and
    the same of each node by itself, without the nodes below it (`NOT_MEASURED` times as much where it was not
    measured); None where nothing was.
    """
    known = seen_tree(histories, tree, days, scale, events)
    if known is None:
        return None
    seen, first = known
    blocks = seen.blocks
    steps = blocks.lengths * blocks.worth
    values = seen.residuals + tree.add_up(first[:, None]) * steps
    information = float(steps @ steps)
    own = seen.noise / information
    sizes, doubts = node_sizes(tree, values @ steps / information, own, scale)
    alone = np.minimum(own, NOT_MEASURED * doubts)
    alone[tree.leaf_indices] = doubts[tree.leaf_indices]
    means = tree.add_up(sizes[:, None])
    noise = seen.noise + float(np.mean(steps * blocks.worth)) * means[:, 0]
    return Seen(tree, blocks, values - means * steps, noise, sizes, seen.groups), sizes, doubts, alone


def node_sizes(
    tree: AggregationTree, observed: Floats, variances: Floats, scale: float | None
) -> tuple[Floats, Floats]:
    """Estimate the leaves' mean values from noisy means of all nodes, and how sure each node's is.

    Each leaf's size relative to the mean of its siblings, as their parent tells it, comes from one `Mixture`
    for its level; then leaves and inner nodes are joined by least squares. Costs no privacy.

    observed: (n_nodes,), noisy mean values, of every leaf; anything where a node was not measured. variances:
    (n_nodes,), of their noise; inf there. scale: the public size of a typical leaf. Returns the leaves'
    sizes, above 0, (n_leaves,), and the variances of all nodes' sizes, (n_nodes,): of a leaf what its
    observation leaves open, of an inner node what its own and its children's do together.
    """
    leaves, parents = tree.leaf_indices, np.array(tree.parents)
    if len(tree.nodes) == 1:
        return np.maximum(observed, np.maximum(0.1 * np.sqrt(variances), LEAST_SIZE)), variances
    measured = np.where(np.isfinite(variances), observed, 0.0)
    precision = 1.0 / variances
    typical = _typical(tree, _joined(tree, measured, precision), precision, scale)[parents[leaves]]
    sizes, doubts = np.zeros(leaves.size), np.zeros(leaves.size)
    depths = tree.depths[leaves]
    for depth in np.unique(depths):
        at = depths == depth
        given = observed[leaves[at]], variances[leaves[at]], typical[at]
        sizes[at], doubts[at] = Mixture.learned(*given).posterior(*given)
    doubts = np.maximum(doubts, SURE * variances[leaves])
    measured[leaves], precision[leaves] = sizes, 1.0 / doubts
    found = _joined(tree, measured, precision)[leaves]
    unsure = variances.copy()
    unsure[leaves] = doubts
    for level in reversed(tree.levels[1:]):
        at = np.arange(level.start, level.stop)
        below = np.bincount(parents[at], unsure[at], len(parents))
        inner = np.flatnonzero(below)
        unsure[inner] = 1.0 / (1.0 / variances[inner] + 1.0 / below[inner])
    return np.maximum(found, LEAST_SHARE * sizes.sum() + LEAST_SIZE), unsure


def _joined(tree: AggregationTree, values: Floats, precision: Floats) -> Floats:
    """Return the least-squares fit that adds up, (n_nodes,)."""
    problem = LeastSquares(np.eye(1), values[:, None], precision[:, None])
    return np.asarray(project(problem, tree)[:, 0])


def _typical(tree: AggregationTree, means: Floats, precision: Floats, scale: float | None) -> Floats:
    """Return the mean of each node's children, (n_nodes,), above 0: what the parent and the scale tell."""
    below = tree.add_up(1.0 / precision[tree.leaf_indices][:, None])[:, 0]
    known, pulled = precision + 1.0 / below, means * (precision + 1.0 / below)
    if scale is not None:
        guess = scale * tree.leaves_below
        known = known + 1.0 / (SCALE_DOUBT * guess) ** 2
        pulled = pulled + guess / (SCALE_DOUBT * guess) ** 2
    children = np.bincount(np.array(tree.parents)[1:], minlength=len(tree.nodes))
    return np.asarray(np.maximum(pulled / known, 0.1 / np.sqrt(known)) / np.maximum(children, 1))
