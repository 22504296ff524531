"""One consistent, bounded series for every node, from everything that was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.bounded import held_from_above, solve_bounded
from optstream.estimation.estimate import Optimality, worst
from optstream.estimation.lattice import inverses, known_enough, parts_of, reconcile_lattice, reconcile_series
from optstream.estimation.problem import Families, LeastSquares, least_squares
from optstream.stream import AggregationTree, Feature, Lattice, Measured

# The unconstrained estimate in closed form: one factor for time, one for the tree.


def project(problem: LeastSquares, tree: AggregationTree) -> NDArray[np.float64]:
    """Solve the least squares without bound:

        minimise sum_(n,q) weights[n, q] (rows[q] . (S z)_n - targets[n, q])^2 over leaf series z

    and return x = S z, (…, n_nodes, n_steps). Where the weights are an outer product of a node's and a
    query's, the normal equations (S' V S) z (T' U T) = S' V Y U T are a Kronecker product: each node's series
    is fitted on its own with one factor for all, then the tree reconciles them by scalar precisions;
    otherwise by precision matrices. Exact; the factors serve every period of a batch.
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

    The passes of `reconcile`, a node's whole series at once: upwards each node's own precision matrix T' W_n
    T is joined by the inverse of its children's summed covariance; downwards the difference is shared among
    them by covariance.
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
    of its children's sum; downwards, the difference from the children's sum is shared among them by variance.
    Precisions by_node, (n_nodes,), are 0 for a node that was not measured (never a leaf).
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


Floats = NDArray[np.float64]
BoundRule = Literal["held", "joint"]
"""How the bound is met: parents held to their estimates, or all nodes in the plain program."""


@dataclass(frozen=True, eq=False)
class Consistent:
    """Series that add up, (…, n_nodes, n_steps), and the worst certificate of their programs, or None."""

    values: Floats
    optimality: Optimality | None


def make_consistent(
    measured: Measured,
    tree: AggregationTree,
    features: Sequence[Feature],
    weights: str = "variance",
    lower_bound: float | None = 0.0,
    bound_rule: BoundRule = "held",
) -> Floats:
    """Fit series to the measurements by weighted least squares, such that they add up and respect a bound.

    Every node is the sum of its children at every step, every feature's part the sum of its finer parts, and
    every leaf at least `lower_bound`. The closed form is the answer wherever it respects the bound, for then
    the optimality conditions hold with zero multipliers; for other periods a quadratic program is solved.
    Post-processing: costs no privacy. Source: OptStream, Algorithm 4, for the program.

    Args:
        measured: Measurements of one period, or of a batch of periods that share positions and variances.
        tree: The hierarchy, whose nodes' order the measurements have.
        features: Partitions of the period, as they were measured.
        weights: "variance", measured points and sums by 1/variance; or "paper", by 1/n_steps and 1/n_parts.
        lower_bound: Of every leaf at every step, in the unit of the readings; None for no bound.
        bound_rule: "held": a parent keeps its estimate, and the bound is paid for among its children; for raw
            measurements, of which the plain program's answer is biased. "joint": the plain program; for
            targets that are themselves estimates under the bound. weights="paper" has the paper's plain
            program with either rule.

    Returns:
        Values in the unit of the readings, (…, n_nodes, n_steps).

    Raises:
        ParameterError: Another `bound_rule` or `weights`; "variance" without variances; shapes that do not
            fit the tree and the features; or leaves that the measurements do not determine.
    """
    return consistent(measured, tree, features, weights, lower_bound, bound_rule).values


def consistent(
    measured: Measured,
    tree: AggregationTree,
    features: Sequence[Feature],
    weights: str = "variance",
    lower_bound: float | None = 0.0,
    bound_rule: BoundRule = "held",
) -> Consistent:
    """Return the series of `make_consistent`, and their certificate."""
    if bound_rule not in get_args(BoundRule):
        raise ParameterError(f"bound_rule must be one of {get_args(BoundRule)}; got {bound_rule!r}")
    problem = least_squares(measured, tree, features, weights)
    series = project(problem, tree)
    if lower_bound is None:
        return Consistent(series, None)
    flat = series.reshape(-1, *series.shape[-2:])
    below = np.flatnonzero(np.any(flat[:, tree.leaf_indices] < lower_bound, axis=(-2, -1)))
    families = Families.of(tree) if below.size and not isinstance(tree, Lattice) else None
    targets = problem.targets.reshape(-1, *problem.targets.shape[-2:])
    found = []
    for number in below:
        free = flat[number]
        one = LeastSquares(problem.rows, targets[number], problem.weights)
        if bound_rule == "held" and weights != "paper":
            one = held_from_above(one, tree, free)
        steps = _touched(one, free[tree.leaf_indices] < lower_bound)
        bounded, optimality = solve_bounded(
            _of_steps(one, steps), tree, lower_bound, free[:, steps], families
        )
        flat[number][:, steps] = bounded
        found.append(optimality)
    return Consistent(flat.reshape(series.shape), worst(found))


def _touched(problem: LeastSquares, below: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the steps that the bound can change: without features each is a problem by itself."""
    n_queries, n_steps = problem.rows.shape
    return np.arange(n_steps) if n_queries > n_steps else np.flatnonzero(below.any(axis=0))


def _of_steps(problem: LeastSquares, steps: NDArray[np.int64]) -> LeastSquares:
    if steps.size == problem.rows.shape[1]:
        return problem
    return LeastSquares(np.eye(steps.size), problem.targets[:, steps], problem.weights[:, steps])
