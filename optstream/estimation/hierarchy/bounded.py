"""The bounded estimate at any size: Newton's method on what the inner nodes pull."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.hierarchy.dual import Dual
from optstream.estimation.hierarchy.families import Families
from optstream.estimation.hierarchy.problem import LeastSquares
from optstream.estimation.lattice.bounded import solve_bounded_lattice
from optstream.estimation.optimality import Optimality
from optstream.stream import AggregationTree, Lattice

Floats = NDArray[np.float64]

ROUGH = 1e-3
"""Of the first gap: how exactly a start is found from the steps alone, without features."""
HOLD = 100.0
"""How much more than measured a node counts in `held_from_above`, for each level above the deepest."""
MOST_HELD = 1e9
"""How much more the root of a deep tree is held: beyond, a sum's rounding would count."""


def solve_bounded(
    problem: LeastSquares,
    tree: AggregationTree,
    lower_bound: float,
    free: Floats,
    families: Families | None = None,
) -> tuple[Floats, Optimality]:
    """Solve the quadratic program of one period, with a bound on the leaves.

        minimise sum_(n,q) weights[n, q] (rows[q] . (S z)_n - targets[n, q])^2 / 2
        subject to z >= lower_bound

    over leaf series z (n_leaves, n_steps), S adding them up over the tree.

    Method: what pulls at a leaf from above is the sum of its ancestors' pulls mu_n = W_n (y_n - x_n), few
    numbers, for inner nodes are few. Given that sum lambda and the pulls nu of its own features, a leaf's
    value at each step is explicit (`Leaves`). So the dual is a smooth concave function of mu and nu without
    constraints, quadratic in pieces, and Newton's method with a line search ends after finitely many steps.
    nu is eliminated leaf by leaf, leaves family by family, and one pass up and down the inner nodes solves
    the rest, without inverses of what may be singular. The gap between primal and dual is
    sum(weights / 2 * (what the pulls claim - what the values are)^2), known at each step without
    cancellation.

    Time of a round: leaves times steps, and inner nodes times steps^3 (inner nodes times steps without
    features). Memory: nodes times steps, and inner nodes times steps^2. Costs no privacy.

    Args:
        problem: one period's least squares, its first n_steps queries being the steps: targets
            (n_nodes, n_queries), weights of any form, above 0 at all steps of the leaves, and at all or none
            of an inner node's.
        tree: the hierarchy.
        lower_bound: of every leaf at every step, in the unit of the targets.
        free: (n_nodes, n_steps), any series that add up, such as `closed_form.project`; the answer is sought
            as a change of them, so that large values cost no digits.
        families: of a tree without margin, where they are at hand.

    Returns:
        The values (n_nodes, n_steps), leaves at least the bound and inner nodes their sums, which also holds
        where the certificate says that the optimum was not reached; and that certificate.

    Source: semismooth Newton on the dual (Qi and Sun 1993, "A nonsmooth version of Newton's method"; Li, Sun
    and Toh 2018 for such a dual with a line search). docs/decisions/0015-bounded-program.md says what else
    was tried.
    """
    if isinstance(tree, Lattice):
        return solve_bounded_lattice(problem, tree, lower_bound, free)
    families = families or Families.of(tree)
    n_steps = problem.rows.shape[1]
    bounds = lower_bound - free[families.leaves]
    change = LeastSquares(problem.rows, problem.targets - free @ problem.rows.T, problem.weights)
    above = None
    if len(problem.rows) > n_steps:
        of_steps = LeastSquares(
            change.rows[:n_steps], change.targets[:, :n_steps], change.weights[:, :n_steps]
        )
        above = Dual(of_steps, families, bounds).maximise(None, ROUGH)[0].above
    dual = Dual(change, families, bounds)
    pulls, optimality = dual.maximise(above)
    moved = dual.leaves.values(pulls)
    values = np.empty_like(free)
    values[families.leaves] = np.where(moved > bounds, free[families.leaves] + moved, lower_bound)
    leaves = np.maximum(values[tree.leaf_indices], lower_bound)
    return tree.add_up(leaves), optimality


def held_from_above(problem: LeastSquares, tree: AggregationTree, free: Floats) -> LeastSquares:
    """Return the program, over the same queries, that keeps parents at their estimates and lets children pay
    for the bound.

    Targets are the estimate without the bound, `free`, (n_nodes, n_steps), and a node counts `HOLD` times as
    much as its children. The plain program is the most likely series of all that respect the bound, and
    biased: of many leaves near the bound those that noise took up stay, and their sum takes the parent along,
    however well that is known. Here a node gives way to its ancestors' estimates, and they hardly to its own,
    so the bound is paid for within the smallest subtree that can. Where the bound is met already, nothing
    changes. Measured in docs/decisions/0015-bounded-program.md.
    """
    heights = tree.heights
    held = min(HOLD, MOST_HELD ** (1.0 / max(heights.max(), 1))) ** heights.astype(np.float64)
    return LeastSquares(problem.rows, free @ problem.rows.T, problem.weights * held[:, None])
