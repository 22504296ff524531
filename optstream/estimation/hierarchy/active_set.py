"""The bounded estimate where weights separate: which leaves lie at the bound, and the exact answer then."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.hierarchy.problem import LeastSquares
from optstream.stream import AggregationTree

MOST_ROUNDS = 50
LARGEST = 1500
"""Leaves, or values on the bound, for which small systems are still small."""
ROUNDING = 1e-9
"""Of the largest value: how far below the bound is taken for on it."""
LEAST_WORTH = 1e-9
"""A leaf's weight over the largest: below, what sixteen digits say of the small systems is rounding."""


def solve_by_active_set(
    problem: LeastSquares, tree: AggregationTree, lower_bound: float, start: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Solve the quadratic program of `program.solve_program` for one period, or return None.

    start: the answer without the bound, x0 = S z0. With weights v (of nodes) times u (of queries) the
    Hessian over leaf values is (S' V S) ⊗ (T' U T), whose inverse is known from two small ones. If the leaf
    values of a set are held at the bound, multipliers m on that set move the answer to
    z0 + (S' V S)^-1 m (T' U T)^-1, and m solves one small system. The set is guessed, then corrected: values
    below the bound enter it, negative multipliers leave it, until neither happens. That is the KKT
    conditions, met, so the answer is the program's. None: weights that do not separate, a leaf of which next
    to nothing is known, a set that did not settle, or more than `LARGEST` leaves; then the solver decides.
    Costs no privacy.
    Source: the primal-dual active set method (Hintermüller, Ito and Kunisch 2002).
    """
    factors = problem.separated()
    if factors is None or len(tree.leaves) > LARGEST:
        return None
    by_node, by_query = factors
    if by_node[tree.leaf_indices].min() < LEAST_WORTH * by_node.max():
        return None
    sums = tree.add_up(np.eye(len(tree.leaves)))
    over_leaves = np.linalg.inv(sums.T @ (by_node[:, None] * sums))
    over_steps = np.linalg.inv(problem.rows.T @ (by_query[:, None] * problem.rows))
    free = start[tree.leaf_indices]
    slack = ROUNDING * max(float(np.abs(free).max()), abs(lower_bound))
    held = free < lower_bound - slack
    for _ in range(MOST_ROUNDS):
        leaf, step = np.nonzero(held)
        if leaf.size > LARGEST:
            return None
        multipliers = np.zeros_like(free)
        coupling = over_leaves[np.ix_(leaf, leaf)] * over_steps[np.ix_(step, step)]
        multipliers[leaf, step] = np.linalg.solve(coupling, lower_bound - free[leaf, step])
        values = free + over_leaves @ multipliers @ over_steps
        corrected = np.where(held, multipliers > 0, values < lower_bound - slack)
        if np.array_equal(corrected, held):
            return tree.add_up(np.where(held, lower_bound, np.maximum(values, lower_bound)))
        held = corrected
    return None
