"""The bounded estimate: the solver's answer, its optimality, a gap that is one, and parents that are held."""

import numpy as np
import pytest

from optstream.estimation import bounded as dual
from optstream.estimation.bounded import Dual, Pulls, held_from_above, solve_bounded
from optstream.estimation.least_squares import project
from optstream.estimation.problem import Families, LeastSquares
from optstream.stream import AggregationTree
from tests.optstream.estimation.cvxpy_program import solve_program
from tests.optstream.estimation.programs import (
    counts_problem,
    objective,
    random_case,
    standard_errors,
)

LATE = pytest.mark.nightly


@pytest.mark.parametrize("seed", [*range(15), *(pytest.param(seed, marks=LATE) for seed in range(15, 500))])
def test_it_is_the_solvers_answer(seed):
    """To 1e-6 of each value's own standard error, feasible and no worse."""
    problem, tree, bound = random_case(seed)
    found, optimality = solve_bounded(problem, tree, bound, project(problem, tree))
    solved = solve_program(problem, tree, bound)
    assert optimality.converged
    assert np.max(np.abs(found - solved) / standard_errors(problem, tree)) < 1e-6
    assert objective(problem, found) <= objective(problem, solved) * (1 + 1e-12)
    assert found[tree.leaf_indices].min() >= bound
    assert np.allclose(found, tree.add_up(found[tree.leaf_indices]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_the_gap_bounds_the_distance_from_the_optimum_at_any_pulls(seed):
    """Weak duality, and with it that the distance counts in standard errors; at pulls drawn at random."""
    problem, tree, bound = random_case(seed)
    rng, families = np.random.default_rng(seed), Families.of(tree)
    found = Dual(problem, families, np.full((len(tree.leaves), problem.rows.shape[1]), bound))
    n_steps, n_parts = problem.rows.shape[1], len(problem.rows) - problem.rows.shape[1]
    leaves = families.leaves
    moved = rng.normal(size=(len(families.inner), n_steps))
    weights, targets = problem.weights[leaves, n_steps:], problem.targets[leaves, n_steps:]
    claimed = targets + rng.normal(size=(len(leaves), n_parts))
    start = found._start(None)
    precise = np.einsum("qs,nq,qt->nst", problem.rows, problem.weights[families.inner], problem.rows)
    above = np.einsum("nst,nt->ns", precise, -moved)
    for level in families.levels[1:]:
        above[level] += above[families.up[level]]
    at = found._at(Pulls(above, start.claimed + moved, weights * (targets - claimed), claimed))
    values = np.zeros((len(tree.nodes), n_steps))
    values[leaves] = found.leaves.values(at.pulls)
    values = tree.add_up(values[tree.leaf_indices])
    best, _ = solve_bounded(problem, tree, bound, project(problem, tree))
    assert objective(problem, values) - at.value == pytest.approx(at.gap, rel=1e-8, abs=1e-8)
    assert objective(problem, values) - objective(problem, best) <= at.gap * (1 + 1e-9) + 1e-9
    off = np.abs(values - best) / standard_errors(problem, tree)
    assert off.max() <= np.sqrt(2 * at.gap) * (1 + 1e-9)


@pytest.mark.parametrize("size", [1e3, 1e9])
def test_large_values_beside_small_noise_cost_no_digits(size):
    """A leaf at the bound beside one of 10^9 standard errors; the change is the same as beside 10^3."""
    tree = AggregationTree.from_parents({"all": None, "a": "all", "b": "all"})
    problem = LeastSquares(np.eye(1), np.array([[size], [size + 1.0], [-2.0]]), np.ones((3, 1)))
    found, optimality = solve_bounded(problem, tree, 0.0, project(problem, tree))
    assert optimality.converged
    assert found[:, 0] - [size, size, 0.0] == pytest.approx([0.5, 0.5, 0.0], abs=1e-6)


@pytest.mark.parametrize("depth", [2, 12, 60])
def test_a_deep_tree_converges_with_its_parents_held(depth):
    """Chains of nodes, each with a sibling; leaves at every level."""
    parents = {"0": None}
    for level in range(1, depth):
        parents |= {f"{level}": f"{level - 1}", f"leaf {level}": f"{level - 1}"}
    tree, rng = AggregationTree.from_parents(parents), np.random.default_rng(1)
    targets = tree.add_up(rng.uniform(0, 1, (len(tree.leaves), 2))) + rng.laplace(0, 3, (len(parents), 2))
    problem = LeastSquares(np.eye(2), targets, np.ones(targets.shape))
    free = project(problem, tree)
    assert free[tree.leaf_indices].min() < 0
    found, optimality = solve_bounded(held_from_above(problem, tree, free), tree, 0.0, free)
    assert optimality.converged
    assert found.min() >= 0


def test_what_does_not_converge_says_so(monkeypatch):
    problem, tree = counts_problem(300)
    monkeypatch.setattr(dual, "MOST_ROUNDS", 1)
    found, optimality = solve_bounded(problem, tree, 0.0, project(problem, tree))
    assert not optimality.converged
    assert optimality.distance > 1
    assert found[tree.leaf_indices].min() >= 0.0


def test_a_held_root_keeps_its_estimate_where_the_plain_program_moves_it():
    """1,000 leaves of Poisson(0.5), 48 steps; the plain program is the control: it moves the root up by
    40.
    """
    problem, tree = counts_problem(1000)
    free = project(problem, tree)
    held, optimality = solve_bounded(held_from_above(problem, tree, free), tree, 0.0, free)
    plain, _ = solve_bounded(problem, tree, 0.0, free)
    assert optimality.converged
    assert np.abs(held[0] - free[0]).mean() < 1.0
    assert (plain[0] - free[0]).mean() > 30.0
