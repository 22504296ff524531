"""One consistent, bounded series for every node, from everything that was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.hierarchy.bounded import held_from_above, solve_bounded
from optstream.estimation.hierarchy.closed_form import project
from optstream.estimation.hierarchy.families import Families
from optstream.estimation.hierarchy.problem import LeastSquares, least_squares
from optstream.estimation.optimality import Optimality, worst
from optstream.stream import AggregationTree, Feature, Lattice, Measured

Floats = NDArray[np.float64]
BoundRule = Literal["held", "joint"]
"""How the bound is met: parents held to their estimates, or all nodes in the plain program."""


@dataclass(frozen=True, eq=False)
class Consistent:
    """Series that add up.

    Attributes:
        values: (…, n_nodes, n_steps), in the unit of the readings.
        optimality: the worst certificate of the periods for which a bounded program was solved; None where
            the closed form, which is exact, respects the bound in all of them.
    """

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
    """Return the series that `consistent` finds, without how near the optimum they are.

    Args:
        measured: As `consistent`.
        tree: As `consistent`.
        features: As `consistent`.
        weights: As `consistent`.
        lower_bound: As `consistent`.
        bound_rule: As `consistent`.

    Returns:
        Values in the unit of the readings, (…, n_nodes, n_steps).

    Raises:
        ParameterError: As `consistent`.
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
    """Fit series to the measurements by weighted least squares, such that they add up and respect a bound.

    Every node is the sum of its children at every step, every feature's part the sum of its finer parts, and
    every leaf at least `lower_bound`. The closed form is the answer wherever it respects the bound, for then
    the optimality conditions hold with zero multipliers; for periods that it takes below, a quadratic program
    is solved. Costs no privacy: post-processing. Source: OptStream, Algorithm 4, for the program.

    Args:
        measured: measurements of one period, or of a batch of periods that share positions and variances.
        tree: the hierarchy, whose nodes' order the measurements have.
        features: partitions of the period, as they were measured.
        weights: "variance" or "paper" (`least_squares`).
        lower_bound: of every leaf at every step, in the unit of the readings; None for no bound.
        bound_rule: "held": what is known of a parent stays, and the bound is paid for among its children
            (`held_from_above`); for raw measurements, of which the plain program's answer is biased. "joint":
            the plain program; for targets that are themselves estimates under the bound. weights="paper" has
            the paper's plain program whatever the rule.

    Returns:
        The series, and how near the optimum they are.

    Raises:
        ParameterError: for another `bound_rule`, or as `least_squares`.
    """
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
