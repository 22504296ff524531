"""The bounded estimate by its active set: the solver's answer, its optimality, and where it steps back."""

import numpy as np
import pytest

from optstream.estimation.hierarchy import active_set
from optstream.estimation.hierarchy.active_set import solve_by_active_set
from optstream.estimation.hierarchy.closed_form import project
from optstream.estimation.hierarchy.cvxpy_program import solve_program
from optstream.estimation.hierarchy.problem import LeastSquares, least_squares
from optstream.stream import AggregationTree, Feature, Measured

TREE = AggregationTree.from_parents(
    {"all": None, "north": "all", "south": "all", "n1": "north", "n2": "north", "s1": "south"}
)
FEATURES = [Feature((range(4), range(4, 8)), "halves"), Feature((range(8),), "whole")]


def problem_of(seed: int, noise: float, weights: str = "variance") -> LeastSquares:
    rng = np.random.default_rng(seed)
    truth = TREE.add_up(rng.uniform(0, 1, (len(TREE.leaves), 8)))
    sums = [
        truth @ one.matrix.T + rng.laplace(0, 3 * noise, (len(TREE.nodes), one.n_parts)) for one in FEATURES
    ]
    steps = truth + rng.laplace(0, noise, truth.shape)
    measured = Measured.from_public(steps, sums, [noise**2, 9 * noise**2, 9 * noise**2])
    return least_squares(measured, TREE, FEATURES, weights)


def misfit(problem: LeastSquares, series: np.ndarray) -> float:
    return float((problem.weights * (series @ problem.rows.T - problem.targets) ** 2).sum())


@pytest.mark.parametrize("weights", ["variance", "paper"])
@pytest.mark.parametrize("noise", [0.3, 1.0, 30.0])
@pytest.mark.parametrize("lower_bound", [0.0, -0.5])
def test_it_is_the_solvers_answer_and_no_worse(weights, noise, lower_bound):
    for seed in range(5):
        problem = problem_of(seed, noise, weights)
        start = project(problem, TREE)
        found = solve_by_active_set(problem, TREE, lower_bound, start)
        solved = solve_program(problem, TREE, lower_bound, start)
        assert found is not None
        assert found == pytest.approx(solved, abs=1e-4 * np.abs(solved).max())
        assert misfit(problem, found) <= misfit(problem, solved) * (1 + 1e-9)


def test_the_optimality_conditions_hold():
    """Feasible, gradient 0 off the bound, pushing into it on the bound."""
    problem = problem_of(1, 1.0)
    series = solve_by_active_set(problem, TREE, 0.0, project(problem, TREE))
    leaves = series[TREE.leaf_indices]
    sums = TREE.add_up(np.eye(len(TREE.leaves)))
    gradient = sums.T @ ((problem.weights * (series @ problem.rows.T - problem.targets)) @ problem.rows)
    size = np.abs(problem.weights * problem.targets).max()
    on_bound = leaves == 0
    assert on_bound.any()
    assert not on_bound.all()
    assert leaves.min() == 0
    assert np.abs(gradient[~on_bound]).max() < 1e-9 * size
    assert gradient[on_bound].min() > -1e-9 * size
    assert np.allclose(series, TREE.add_up(leaves), rtol=1e-12)


@pytest.mark.parametrize("total", [0.1, 0.3, 1.0])
def test_leaves_of_which_nothing_is_known_are_left_to_the_solver(total):
    """Beside a weight of 2^-100 the small system is singular, or only its rounding is not."""
    tree = AggregationTree.from_parents({"all": None, "a": "all", "b": "all", "c": "all"})
    weights = np.array([[total], [2.0**-100], [2.0**-100], [2.0**-100]])
    problem = LeastSquares(np.eye(1), np.array([[-3.0], [0.0], [0.0], [0.0]]), weights)
    start = project(problem, tree)
    assert solve_by_active_set(problem, tree, 0.0, start) is None
    assert solve_program(problem, tree, 0.0, start) == pytest.approx(np.zeros((4, 1)), abs=1e-6)


def test_it_steps_back_where_it_does_not_serve(monkeypatch):
    problem = problem_of(1, 1.0)
    start = project(problem, TREE)
    uneven = problem.weights.copy()
    uneven[-1, 0] *= 7
    tangled = LeastSquares(problem.rows, problem.targets, uneven)
    assert solve_by_active_set(tangled, TREE, 0.0, start) is None
    monkeypatch.setattr(active_set, "LARGEST", 2)
    assert solve_by_active_set(problem, TREE, 0.0, start) is None
    monkeypatch.undo()
    monkeypatch.setattr(active_set, "MOST_ROUNDS", 0)
    assert solve_by_active_set(problem, TREE, 0.0, start) is None
