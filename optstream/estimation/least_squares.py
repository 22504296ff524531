"""One consistent, bounded series for every node, from everything that was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.bounded import held_from_above, solve_bounded
from optstream.estimation.estimate import Optimality, worst
from optstream.estimation.problem import LeastSquares, least_squares
from optstream.estimation.system import fit, inverses, known_enough
from optstream.stream import AggregationTree, Feature, Measured

Floats = NDArray[np.float64]


def project(problem: LeastSquares, tree: AggregationTree) -> Floats:
    """Solve the least squares without bound:

        minimise sum_(n,q) weights[n, q] (rows[q] . (S z)_n - targets[n, q])^2 over leaf series z

    and return x = S z, (…, n_nodes, n_steps). Where the weights are an outer product of a node's and a
    query's, the normal equations (S' V S) z (T' U T) = S' V Y U T are a Kronecker product: each node's series
    is fitted on its own with one factor for all, and nodes have scalar precisions. Exact.
    """
    rows, values, factors = problem.rows, problem.targets, problem.separated()
    n_steps = rows.shape[1]
    if factors is not None:
        by_node, to_series = factors
        values = values @ to_series.T
        precision = known_enough(by_node, tree)[..., None, None]
    elif len(rows) == n_steps:
        precision = known_enough(problem.weights, tree)[..., None, None]
    else:
        weights = known_enough(problem.weights, tree)
        precision = np.einsum("qs,nq,qt->nst", rows, weights, rows, optimize=True)[:, None]
        values = np.einsum("nst,...nt->...ns", inverses(precision)[:, 0], (values * weights) @ rows)
    moved = np.moveaxis(values, (-2, -1), (0, 1))
    shape = precision.shape[:3]
    leaves = fit(moved.reshape(*shape, -1), precision, tree)
    return tree.add_up(np.moveaxis(leaves.reshape(-1, *moved.shape[1:]), (0, 1), (-2, -1)))


BoundRule = Literal["held", "joint"]
"""How the bound is met: parents held to their estimates, or all nodes in the plain program."""


@dataclass(frozen=True, eq=False)
class Consistent:
    """Series that add up, (…, n_nodes, n_steps), and the worst certificate of their programs, or None.
    unbounded: the series before their bound, None where they have none."""

    values: Floats
    optimality: Optimality | None
    unbounded: Floats | None = None


def make_consistent(
    measured: Measured,
    tree: AggregationTree,
    features: Sequence[Feature],
    weights: str = "variance",
    lower_bound: float | None = 0.0,
    bound_rule: BoundRule = "held",
) -> Floats:
    """Return values (…, n_nodes, n_steps) by weighted least squares, which add up and respect a bound.

    Every node is the sum of its children at every step, every feature's part the sum of its finer parts, and
    every leaf at least `lower_bound`. The closed form is the answer wherever it respects the bound; for other
    periods a quadratic program is solved. Post-processing: costs no privacy. Source: OptStream, Algorithm 4,
    for the program.

    Args:
        measured: Measurements of one period, or of a batch of periods that share positions and variances.
        tree: The hierarchy, whose nodes' order the measurements have.
        features: Partitions of the period, as they were measured.
        weights: "variance", measured points and sums by 1/variance; or "paper", by 1/n_steps and 1/n_parts.
        lower_bound: Of every leaf at every step, in the unit of the readings; None for no bound.
        bound_rule: "held": a parent keeps its estimate, and the bound is paid for among its children; for raw
            measurements. "joint": the plain program, unbiased only for targets that are themselves estimates
            under the bound. weights="paper" has the plain program with either rule.

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
    flat = series.reshape(-1, *series.shape[-2:]).copy()
    below = np.flatnonzero(np.any(flat[:, tree.leaf_indices] < lower_bound, axis=(-2, -1)))
    targets = problem.targets.reshape(-1, *problem.targets.shape[-2:])
    found = []
    for number in below:
        free = flat[number]
        one = LeastSquares(problem.rows, targets[number], problem.weights)
        if bound_rule == "held" and weights != "paper":
            one = held_from_above(one, tree, free)
        n_queries, n_steps = one.rows.shape
        steps = np.arange(n_steps)
        if n_queries == n_steps:  # without features each step is a problem by itself
            steps = np.flatnonzero((free[tree.leaf_indices] < lower_bound).any(axis=0))
            one = LeastSquares(np.eye(steps.size), one.targets[:, steps], one.weights[:, steps])
        flat[number][:, steps], optimality = solve_bounded(one, tree, lower_bound, free[:, steps])
        found.append(optimality)
    return Consistent(flat.reshape(series.shape), worst(found), series)
