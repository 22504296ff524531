"""The unconstrained estimate in closed form: one factor for time, one for the tree."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.weighting import LeastSquares
from optstream.stream import AggregationTree


def project(
    problem: LeastSquares,
    by_node: NDArray[np.float64],
    by_query: NDArray[np.float64],
    tree: AggregationTree,
) -> NDArray[np.float64]:
    """Solve the least squares without bound, weights[n, q] = by_node[n] * by_query[q]:

        minimise sum_(n,q) by_node[n] by_query[q] (rows[q] . (S z)_n - targets[n, q])^2 over leaf series z

    and return x = S z, (…, n_nodes, n_steps). The normal equations are (S' V S) z (T' U T) = S' V Y U T, a
    Kronecker product: each node's series is fitted on its own, then the tree reconciles them. Exact; the
    same two factors serve every period of a batch. Costs no privacy.
    """
    weighted = by_query[:, None] * problem.rows
    time_factor = np.linalg.solve(problem.rows.T @ weighted, weighted.T)
    fitted = problem.targets @ time_factor.T
    return tree.add_up(reconcile(fitted, by_node, tree))


def reconcile(
    fitted: NDArray[np.float64], by_node: NDArray[np.float64], tree: AggregationTree
) -> NDArray[np.float64]:
    """Return the leaves (…, n_leaves, n_columns) that minimise sum_n by_node[n] (S z - fitted)_n^2.

    Two passes over the tree. Upwards, each node's value becomes the precision-weighted mean of its own and
    of its children's sum; downwards, what a node is better known than its children's sum is shared among
    them by variance. by_node: precisions (n_nodes,), 0 for a node that was not measured (never a leaf).
    Source: Hay et al. 2010, "Boosting the accuracy of differentially private histograms through
    consistency", section 4, for unequal variances and any tree.
    """
    values = np.moveaxis(fitted, -2, 0).copy()
    column = (slice(None),) + (None,) * (values.ndim - 1)
    parents = np.array(tree.parents)
    precision = by_node.astype(np.float64).copy()
    below = np.zeros(len(tree.nodes))
    sums = np.zeros_like(values)
    inner = np.ones(len(tree.nodes), dtype=bool)
    inner[tree.leaf_indices] = False

    for level in reversed(tree.levels):
        nodes = np.arange(level.start, level.stop)
        mixed = nodes[inner[nodes]]
        own, through = precision[mixed], 1.0 / below[mixed]
        values[mixed] = (own[column] * values[mixed] + through[column] * sums[mixed]) / (own + through)[
            column
        ]
        precision[mixed] = own + through
        if level.start:
            np.add.at(below, parents[nodes], 1.0 / precision[nodes])
            np.add.at(sums, parents[nodes], values[nodes])
    for level in tree.levels[1:]:
        nodes = np.arange(level.start, level.stop)
        up = parents[nodes]
        share = 1.0 / (precision[nodes] * below[up])
        values[nodes] += share[column] * (values[up] - sums[up])
    return np.moveaxis(values[tree.leaf_indices], 0, -2)
