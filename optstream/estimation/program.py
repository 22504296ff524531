"""The convex program, for the periods that the closed form does not settle."""

import numpy as np
from numpy.typing import NDArray

from optstream.errors import OptStreamError
from optstream.estimation.weighting import LeastSquares
from optstream.stream import AggregationTree


def solve_program(
    problem: LeastSquares, tree: AggregationTree, lower_bound: float | None
) -> NDArray[np.float64]:
    """Solve, for one period, the quadratic program

        minimise sum_(n,q) weights[n, q] (rows[q] . (S z)_n - targets[n, q])^2
        subject to z >= lower_bound

    over leaf series z (n_leaves, n_steps), and return x = S z, (n_nodes, n_steps). Sums over the tree and
    over time hold by construction, and a parent's bound is its leaves' together. Weights may differ from
    entry to entry. Costs no privacy. Raises OptStreamError if the solver does not reach its tolerance.
    """
    import cvxpy  # 0.7 s, and most days do not need it

    # Scaled to numbers around 1: interior-point tolerances are absolute in part.
    size = max(float(np.max(np.abs(problem.targets))), 1e-300)
    root = np.sqrt(problem.weights / np.max(problem.weights))
    sums = tree.add_up(np.eye(len(tree.leaves)))
    leaves = cvxpy.Variable((len(tree.leaves), problem.rows.shape[1]))
    residuals = cvxpy.multiply(root, sums @ leaves @ problem.rows.T - problem.targets / size)
    constraints = [] if lower_bound is None else [leaves >= lower_bound / size]
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(residuals)), constraints)
    tolerances = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    program.solve(solver=cvxpy.CLARABEL, **tolerances)
    if leaves.value is None or program.status not in (cvxpy.OPTIMAL, cvxpy.OPTIMAL_INACCURATE):
        raise OptStreamError(f"the consistency program was not solved: the solver says {program.status!r}")
    solution = leaves.value * size
    return tree.add_up(solution if lower_bound is None else np.maximum(solution, lower_bound))
