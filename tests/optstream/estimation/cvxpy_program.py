"""The bounded program by cvxpy and Clarabel, on small trees: the oracle of `solve_bounded`."""

import warnings

import cvxpy
import numpy as np
from numpy.typing import NDArray

from optstream.estimation.problem import LeastSquares
from optstream.stream import AggregationTree

TOLERANCES = (1e-12, 1e-10, 1e-8)
"""Tight first; what is too tight for one case's numbers is relaxed, never the bound or the sums."""


def solve_program(problem: LeastSquares, tree: AggregationTree, lower_bound: float) -> NDArray[np.float64]:
    """Return every node's series (n_nodes, n_steps); fails where the solver does."""
    # Scaled to numbers around 1: interior-point tolerances are absolute in part.
    scale = float(np.sqrt(np.median(problem.weights[problem.weights > 0])))
    sums = tree.add_up(np.eye(len(tree.leaves)))
    leaves = cvxpy.Variable((len(tree.leaves), problem.rows.shape[1]))
    misfit = cvxpy.multiply(
        np.sqrt(problem.weights) / scale, sums @ leaves @ problem.rows.T - problem.targets
    )
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(misfit)), [leaves >= lower_bound])
    for tolerance in TOLERANCES:
        limits = {"tol_gap_abs": tolerance, "tol_gap_rel": tolerance, "tol_feas": tolerance}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inexact answer is not taken
            try:
                program.solve(solver=cvxpy.CLARABEL, **limits)
            except cvxpy.SolverError:
                continue
        if program.status == cvxpy.OPTIMAL:
            return tree.add_up(np.maximum(leaves.value, lower_bound))
    raise AssertionError(f"the oracle has no answer: {program.status}")
