"""The convex program, for the periods that the closed form does not settle."""

import warnings
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.hierarchy.problem import LeastSquares
from optstream.stream import AggregationTree

# Tight first; what is too tight for one period's numbers is relaxed, never the bound or the sums.
TOLERANCES = (1e-12, 1e-9, 1e-6)


def solve_program(
    problem: LeastSquares, tree: AggregationTree, lower_bound: float, start: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve, for one period, the quadratic program

        minimise sum_(n,q) weights[n, q] (rows[q] . (S z)_n - targets[n, q])^2
        subject to z >= lower_bound

    over leaf series z (n_leaves, n_steps), and return x = S z, (n_nodes, n_steps). Sums over the tree and
    over time hold by construction, and a parent's bound is its leaves' together. start: the answer without
    the bound, (n_nodes, n_steps). Costs no privacy.

    It always answers, for whether a day appears must not hang on a solver: if none of the tolerances is
    reached, the answer without the bound is raised to it, leaf by leaf; feasible, not optimal.
    """
    import cvxpy  # 0.7 s, and most days do not need it

    # Scaled to numbers around 1: interior-point tolerances are absolute in part.
    size = max(float(np.max(np.abs(problem.targets))), abs(lower_bound), 1e-300)
    root = np.sqrt(problem.weights / np.max(problem.weights))
    sums = tree.add_up(np.eye(len(tree.leaves)))
    leaves = cvxpy.Variable((len(tree.leaves), problem.rows.shape[1]))
    residuals = cvxpy.multiply(root, sums @ leaves @ problem.rows.T - problem.targets / size)
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(residuals)), [leaves >= lower_bound / size])
    solution = start[tree.leaf_indices]
    for tolerance in TOLERANCES:
        limits = {"tol_gap_abs": tolerance, "tol_gap_rel": tolerance, "tol_feas": tolerance}
        with suppress(cvxpy.SolverError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inexact answer is not taken, so nobody need be warned of it
            program.solve(solver=cvxpy.CLARABEL, **limits)
            if program.status == cvxpy.OPTIMAL and leaves.value is not None:
                solution = leaves.value * size
                break
    return tree.add_up(np.maximum(solution, lower_bound))
