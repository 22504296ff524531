"""The unconstrained estimate in closed form: one factor for time, one for the tree."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.hierarchy.problem import LeastSquares
from optstream.estimation.lattice.free import reconcile_lattice, reconcile_series
from optstream.estimation.lattice.system import inverses, known_enough, parts_of
from optstream.stream import AggregationTree, Lattice


def project(problem: LeastSquares, tree: AggregationTree) -> NDArray[np.float64]:
    """Solve the least squares without bound:

        minimise sum_(n,q) weights[n, q] (rows[q] . (S z)_n - targets[n, q])^2 over leaf series z

    and return x = S z, (…, n_nodes, n_steps). Where the weights are an outer product of a node's and a
    query's, the normal equations (S' V S) z (T' U T) = S' V Y U T are a Kronecker product: each node's series
    is fitted on its own with one factor for all, then the tree reconciles them by scalar precisions;
    otherwise by precision matrices. Exact; the factors serve every period of a batch. Beside a margin:
    the same, by the lattice's system. Costs no privacy.
    """
    factors = problem.separated()
    if factors is None and isinstance(tree, Lattice):
        return tree.add_up(_leaves_of_lattice(problem, tree))
    if factors is None:
        return tree.add_up(reconcile_correlated(problem, tree))
    by_node, by_query = factors
    weighted = by_query[:, None] * problem.rows
    time_factor = np.linalg.solve(problem.rows.T @ weighted, weighted.T)
    fitted = problem.targets @ time_factor.T
    if isinstance(tree, Lattice):
        every_step = np.broadcast_to(by_node[:, None], (len(by_node), fitted.shape[-1]))
        return tree.add_up(reconcile_lattice(fitted, every_step, tree))
    return tree.add_up(reconcile(fitted, by_node, tree))


def _leaves_of_lattice(problem: LeastSquares, lattice: Lattice) -> NDArray[np.float64]:
    """Return the leaves for weights of any form: step by step, or whole series where features join them."""
    if len(problem.rows) == problem.rows.shape[1]:
        return reconcile_lattice(problem.targets, problem.weights, lattice)
    weights = known_enough(problem.weights, parts_of(lattice))
    precision = np.einsum("qs,nq,qt->nst", problem.rows, weights, problem.rows, optimize=True)
    means = np.einsum("nst,...nt->...ns", inverses(precision), (problem.targets * weights) @ problem.rows)
    return reconcile_series(means, precision, lattice)


def reconcile_correlated(problem: LeastSquares, tree: AggregationTree) -> NDArray[np.float64]:
    """Return the leaves (…, n_leaves, n_steps) of the least squares for weights of any form.

    The same two passes as `reconcile`, a node's whole series at once: upwards each node's own precision
    matrix T' W_n T is joined by the inverse of its children's summed covariance; downwards what it is
    better known is shared among them by covariance.
    """
    rows = problem.rows
    own = np.einsum("qs,nq,qt->nst", rows, problem.weights, rows, optimize=True)
    means = np.moveaxis((problem.targets * problem.weights) @ rows, -2, 0)  # precision times mean, first
    covariances = np.zeros_like(own)
    below, sums = np.zeros_like(own), np.zeros_like(means)
    gains = np.zeros_like(own)
    leaves, parents = set(tree.leaf_indices.tolist()), tree.parents
    for level in reversed(tree.levels):
        for node in level:
            precision, weighted = own[node], means[node]
            if node not in leaves:
                through = np.linalg.inv(below[node])
                precision, weighted = precision + through, weighted + sums[node] @ through
                gains[node] = through
            covariances[node] = np.linalg.inv(precision)
            means[node] = weighted @ covariances[node]
            if node:
                below[parents[node]] += covariances[node]
                sums[parents[node]] += means[node]
    for node in range(1, len(tree.nodes)):
        up = parents[node]
        means[node] += (means[up] - sums[up]) @ gains[up] @ covariances[node]
    return np.moveaxis(means[tree.leaf_indices], 0, -2)


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
