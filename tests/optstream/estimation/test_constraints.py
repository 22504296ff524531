"""Estimates that keep public facts: another solver's answer, unchanged values, and clashes."""

import subprocess
import sys
import warnings
from fractions import Fraction
from itertools import combinations

import cvxpy
import numpy as np
import pytest

from optstream.estimation import constraints
from optstream.estimation.bounded import held_from_above, solve_bounded
from optstream.estimation.constraints import Fact, clash, keep
from optstream.estimation.least_squares import project
from optstream.estimation.problem import LeastSquares
from optstream.estimation.rounding import rounded_units
from optstream.stream import AggregationTree
from tests.by_night import few
from tests.optstream.estimation.programs import (
    objective,
    product,
    random_case,
    random_program,
    standard_errors,
)

FAMILY = AggregationTree.from_parents({"all": None, "a": "all", "b": "all"})


def random_facts(rng, tree, n_steps, bound):
    """Return one to five facts, all of which some values above the bound keep, hardly or with room."""
    leaves = bound + rng.gamma(0.5, 2.0, (len(tree.leaves), 1)).cumsum(axis=1)
    leaves = leaves + np.sort(rng.gamma(0.5, 1.0, (len(tree.leaves), n_steps)), axis=1)
    known, facts = tree.add_up(leaves), []
    for number in range(1, 2 + int(rng.integers(0, 5))):
        kind = str(rng.choice(["at_most", "most_change", "never_falls", "totals"]))
        nodes = rng.choice(len(tree.nodes), min(len(tree.nodes), int(rng.integers(1, 3))), replace=False)
        signs = [1.0, float(rng.choice([-1.0, 0.5]))] if kind in ("at_most", "most_change") else [1.0, 1.0]
        weights = dict(zip(nodes.tolist(), signs, strict=False))
        fact = Fact(f"fact {number}", weights, kind, 0.0)
        beyond = fact.over(n_steps) @ (np.array([*weights.values()]) @ known[[*weights]])
        most = 0.0 if kind == "never_falls" or not beyond.size else float(beyond.max())
        room = 0.0 if kind in ("never_falls", "totals") else float(rng.choice([0.0, 0.3]))
        facts.append(Fact(fact.words, weights, kind, most + room))
    return facts


def by_another(facts, tree, problem, start, bound):
    """Solve one program by OSQP, or by HiGHS: dense, over leaves, in coordinates of unit variance."""
    n_nodes, n_steps = start.shape
    sums = np.kron(tree.add_up(np.eye(len(tree.leaves))), np.eye(n_steps))
    seen = np.kron(np.eye(n_nodes), problem.rows) @ sums
    back = sums @ np.linalg.inv(np.linalg.cholesky((seen.T * problem.weights.ravel()) @ seen)).T
    moved = cvxpy.Variable(back.shape[1])
    rows, most, is_equal = [np.zeros((0, n_nodes * n_steps))], [np.zeros(0)], [np.zeros(0, dtype=bool)]
    if bound is not None:
        leaves = (tree.leaf_indices[:, None] * n_steps + np.arange(n_steps)).ravel()
        rows.append(-np.eye(n_nodes * n_steps)[leaves])
        most.append(np.full(len(leaves), -bound))
        is_equal.append(np.zeros(len(leaves), dtype=bool))
    for fact in facts:
        of_nodes = np.zeros((1, n_nodes))
        of_nodes[0, list(fact.weights)] = list(fact.weights.values())
        rows.append(np.kron(of_nodes, fact.over(n_steps)))
        most.append(np.full(len(rows[-1]), fact.most))
        is_equal.append(np.full(len(rows[-1]), fact.kind == "totals"))
    matrix, equal = np.concatenate(rows), np.concatenate(is_equal)
    limit = np.concatenate(most) - matrix @ start.ravel()
    left, size = matrix @ back, np.maximum(np.abs(matrix @ back).max(axis=1), 1e-9)
    left, limit = left / size[:, None], limit / size
    limits = [left[~equal] @ moved <= limit[~equal], left[equal] @ moved == limit[equal]]
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(moved)), limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it does not solve to the end a third solver does
        program.solve(solver=cvxpy.OSQP, eps_abs=1e-9, eps_rel=1e-9, max_iter=400_000, polishing=True)
    if program.status != cvxpy.OPTIMAL:
        program.solve(solver=cvxpy.HIGHS)
    assert program.status == cvxpy.OPTIMAL
    return start + (back @ moved.value).reshape(start.shape)


def case_of(seed):
    rng = np.random.default_rng(10_000 + seed)
    if seed % 3:
        problem, tree, bound = random_case(seed)
    else:
        problem, tree, bound = random_program(seed, features=seed % 2 == 0)
    # weights that OSQP can take: its accuracy falls with their range
    weights = np.where(problem.weights > 0, np.clip(problem.weights, 1e-2, 1e2), 0.0)
    truth = tree.add_up(rng.poisson(0.5, (len(tree.leaves), problem.rows.shape[1])).astype(float))
    noise = rng.laplace(0, 1, weights.shape) / np.sqrt(2 * np.maximum(weights, 1e-2))
    problem = LeastSquares(problem.rows, truth @ problem.rows.T + noise, weights)
    return problem, tree, bound, random_facts(rng, tree, problem.rows.shape[1], bound)


LEVEL = [seed for seed in range(150) if case_of(seed)[1].n_levels <= 5][:100]
"""Where parents are held through more levels, weights lie too far apart for the other solver."""


@pytest.mark.parametrize("rule", ["held", "joint"])
@pytest.mark.parametrize("seed", few(LEVEL, 20))
def test_it_is_the_answer_of_another_solver(seed, rule):
    problem, tree, bound, facts = case_of(seed)
    assert clash(facts, tree, problem.rows.shape[1], bound) == ((), False)
    free = project(problem, tree)
    one = held_from_above(problem, tree, free) if rule == "held" else problem
    bounded = solve_bounded(one, tree, bound, free)[0]
    kept = keep(facts, tree, (problem, rule), free, bounded, bound, 1e-9)
    loose = [Fact("", {0: 1.0}, "at_most", 1e9)]
    assert keep(loose, tree, (problem, rule), free, bounded, bound, 1e-9).values is bounded
    start = free
    if rule == "held":
        start = by_another(facts, tree, problem, free, None)
        problem = held_from_above(problem, tree, start)
    expected = by_another(facts, tree, problem, start, bound)
    assert kept.converged
    assert np.max(np.abs(kept.values - expected) / standard_errors(problem, tree)) < 1e-3
    size = objective(LeastSquares(problem.rows, start @ problem.rows.T, problem.weights), kept.values)
    assert kept.gap < 1e-6 * (1 + size)
    # consistent in any case, and the facts within what rounding counts as nothing
    leaves = kept.values[tree.leaf_indices]
    assert leaves.min() >= bound
    assert np.allclose(kept.values, tree.add_up(leaves), rtol=1e-12, atol=1e-12)
    assert max(fact.missed(kept.values) for fact in facts) < 1e-5


@pytest.mark.parametrize("rule", ["nearest", "unbiased"])
@pytest.mark.parametrize("tree", [FAMILY, product(3, 4), product(4, 3, 2)], ids=["tree", "margin", "zones"])
def test_rounded_to_whole_units_no_node_is_above_its_bound(tree, rule):
    rng, unit = np.random.default_rng(5), Fraction(1)
    truth = tree.add_up(rng.gamma(1.0, 5.0, (len(tree.leaves), 6)))
    problem = LeastSquares(np.eye(6), truth, np.ones(truth.shape))
    free = project(problem, tree)
    most = np.floor(np.quantile(truth, 0.4, axis=1))
    facts = [Fact("", {one: 1.0}, "at_most", float(most[one])) for one in range(len(tree.nodes))]
    assert clash(facts, tree, 6, 0.0) == ((), False)
    kept = keep(facts, tree, (problem, "joint"), free, free, 0.0, float(unit))
    units = rounded_units(kept.values, tree, unit, rule, first_step=7, least=0)
    assert (units <= most[:, None]).all()
    assert units[tree.leaf_indices].min() >= 0


@pytest.mark.parametrize("seed", few(range(60), 20))
def test_what_clashes_is_a_smallest_set_and_anything_else_has_an_answer(seed):
    """Against every subset by itself, each tried with all its steps, changes and rises included."""
    rng = np.random.default_rng(seed)
    _, tree, bound, facts = case_of(seed)
    n_steps = 3
    tight = [
        Fact(one.words, one.weights, one.kind, one.most - float(rng.gamma(0.5, 4.0)))
        if one.kind in ("at_most", "totals") else one
        for one in facts
    ]  # fmt: skip

    def possible(some, least):
        leaves = cvxpy.Variable((len(tree.leaves), n_steps))
        values = tree.add_up(np.eye(len(tree.leaves))) @ leaves
        limits = [] if least is None else [leaves >= least]
        for fact in some:
            row = np.zeros(len(tree.nodes))
            row[list(fact.weights)] = list(fact.weights.values())
            left = fact.over(n_steps) @ (row @ values)
            limits.append(left == fact.most if fact.kind == "totals" else left <= fact.most)
        program = cvxpy.Problem(cvxpy.Minimize(0), limits)
        program.solve(solver=cvxpy.HIGHS)
        return program.status == cvxpy.OPTIMAL

    found, at_bound = clash(tight, tree, n_steps, bound)
    assert bool(found) is not possible(tight, bound)
    if found:
        assert not possible(found, bound if at_bound else None)
        fewer = combinations(found, len(found) - 1)
        assert all(possible(some, bound if at_bound else None) for some in fewer)
        assert not at_bound or possible(found, None)


def test_what_does_not_converge_says_so_and_still_adds_up(monkeypatch):
    problem, tree, bound, _ = case_of(4)
    free = project(problem, tree)
    fact = Fact("", {0: 1.0}, "totals", float(free[0].sum()) + 50.0)
    monkeypatch.setattr(constraints, "TOLERANCES", (1e-300,))
    kept = keep([fact], tree, (problem, "held"), free, free, bound, 1e-6)
    assert not kept.converged
    assert kept.values[tree.leaf_indices].min() >= bound
    assert np.allclose(kept.values, tree.add_up(kept.values[tree.leaf_indices]))
    monkeypatch.setattr(cvxpy.Problem, "solve", lambda *_, **__: (_ for _ in ()).throw(cvxpy.SolverError))
    bounded = solve_bounded(problem, tree, bound, free)[0]
    kept = keep([fact], tree, (problem, "held"), free, bounded, bound, 1e-6)
    assert (kept.converged, kept.gap) == (False, constraints.NO_ANSWER)
    assert kept.values is bounded


@pytest.mark.parametrize("relative", [1e-3, 8e-7, 1e-8, 1e-10, 1e-12, 0.0, -1e-12])
@pytest.mark.parametrize("level", [300.0, 30_000.0])
@pytest.mark.parametrize("error", [1.0, 100.0, 10_000.0])
def test_facts_that_clash_are_named_and_those_that_floats_make_clash_are_kept(relative, level, error):
    problem = LeastSquares(np.eye(48), np.full((3, 48), level), np.full((3, 48), error**-2))
    free = project(problem, FAMILY)
    total = 50_000.0 * 48 * (1 + relative)
    facts = [Fact("cap", {0: 1.0}, "at_most", 50_000.0), Fact("total", {0: 1.0}, "totals", total)]
    assert len(clash(facts, FAMILY, 48, 0.0)[0]) == (2 if relative > 1e-9 else 0)
    if relative < 1e-9:
        kept = keep(facts, FAMILY, (problem, "held"), free, free, 0.0, 1e-3)
        assert max(fact.missed(kept.values) for fact in facts) < 0.002
        assert np.allclose(kept.values, kept.values[:, :1])


@pytest.mark.parametrize("seed", few(range(30), 10))
def test_facts_of_sizes_far_apart_that_hold_to_fifteen_digits_do_not_clash(seed):
    rng = np.random.default_rng(seed)
    regions = {f"r{one}": "all" for one in range(3)}
    tree = AggregationTree.from_parents(
        {"all": None} | regions | {str(one): f"r{one % 3}" for one in range(int(rng.integers(3, 40)))}
    )
    values = tree.add_up(np.exp(rng.normal(0, 1 + seed % 5, (len(tree.leaves), 1))))[:, 0]
    facts = [Fact("", {n: 1.0}, "totals", float(f"{48 * values[n]:.15g}")) for n in range(len(tree.nodes))]
    facts += [Fact("", {n: 1.0}, "at_most", float(f"{values[n]:.15g}")) for n in range(len(tree.nodes))]
    assert clash(facts, tree, 48, 0.0) == ((), False)
    problem = LeastSquares(np.eye(48), np.ones((len(values), 48)), np.ones((len(values), 48)))
    free = project(problem, tree)
    kept = keep(facts, tree, (problem, "joint"), free, free, 0.0, 1e-6)
    assert max(fact.missed(kept.values) for fact in facts) < 1e-5 * values.max()


def test_days_without_facts_do_not_load_the_solver():
    code = (
        "import sys; from optstream.estimation.constraints import clash; "
        "from optstream.stream import AggregationTree; "
        "tree = AggregationTree.from_parents({'all': None}); "
        "assert clash((), tree, 24, 0.0) == ((), False); assert 'cvxpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
