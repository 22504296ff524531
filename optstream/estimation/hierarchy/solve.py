"""One consistent, bounded series for every node, from everything that was measured."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.hierarchy.active_set import solve_by_active_set
from optstream.estimation.hierarchy.closed_form import project
from optstream.estimation.hierarchy.cvxpy_program import solve_program
from optstream.estimation.hierarchy.problem import LeastSquares, least_squares
from optstream.stream import AggregationTree, Feature, Measured


def make_consistent(
    measured: Measured,
    tree: AggregationTree,
    features: Sequence[Feature],
    weights: str = "variance",
    lower_bound: float | None = 0.0,
) -> NDArray[np.float64]:
    """Return the consistent series nearest to the measurements, by weighted least squares.

    Every node is the sum of its children at every step, every feature's part the sum of its finer parts, and
    every leaf at least the bound. The closed form is the answer wherever it respects the bound, for then the
    KKT conditions hold with zero multipliers. For the periods that it takes below, the active set is sought;
    where that does not serve, they go to the solver. Costs no privacy: post-processing. Source: OptStream,
    Algorithm 4.

    Args:
        measured: One period, or a batch of them.
        tree: Of whose nodes.
        features: Whose sums were measured.
        weights: "variance", by the precision of each measurement, or "paper".
        lower_bound: Of each leaf at each step, in the unit of the readings; None for no bound.

    Returns:
        Values in the unit of the readings, (…, n_nodes, n_steps).

    Raises:
        ParameterError: What was measured is not of this tree and these features, or the weights are unknown.
    """
    problem = least_squares(measured, tree, features, weights)
    series = project(problem, tree)
    if lower_bound is None:
        return series
    flat = series.reshape(-1, *series.shape[-2:])
    below = np.flatnonzero(np.any(flat[:, tree.leaf_indices] < lower_bound, axis=(-2, -1)))
    periods = _periods(problem) if below.size else []
    for number in below:
        bounded = solve_by_active_set(periods[number], tree, lower_bound, flat[number])
        if bounded is None:
            bounded = solve_program(periods[number], tree, lower_bound, flat[number])
        flat[number] = bounded
    return flat.reshape(series.shape)


def _periods(problem: LeastSquares) -> list[LeastSquares]:
    targets = problem.targets.reshape(-1, *problem.targets.shape[-2:])
    return [LeastSquares(problem.rows, one, problem.weights) for one in targets]
