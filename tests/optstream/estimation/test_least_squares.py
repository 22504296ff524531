"""The estimate against the program as the paper writes it, and against its own optimality conditions."""

import cvxpy
import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.estimation import make_consistent, reconstruct
from optstream.estimation.problem import least_squares
from optstream.stream import AggregationTree, Feature, FeatureSums, Measured

FRANCE = AggregationTree.from_parents({"FR": None} | {f"region {number}": "FR" for number in range(5)})
RAGGED = AggregationTree.from_parents(
    {"world": None, "a": "world", "b": "world", "b1": "b", "b2": "b", "b11": "b1", "b12": "b1"}
)
CHAIN = [Feature((range(0, 3), range(3, 8)), "parts"), Feature((range(0, 8),), "day")]
CROSSED = [Feature((range(0, 3), range(3, 8)), "left"), Feature((range(0, 5), range(5, 8)), "right")]


def noisy(tree, features, seed, level=50.0):
    """Measurements of a random series: public, made up here."""
    rng = np.random.default_rng(seed)
    truth = tree.add_up(rng.uniform(0, level, (len(tree.leaves), 8)))
    by_node = rng.uniform(0.5, 4, (len(tree.nodes), 1))
    variances = [by_node, *(by_node * rng.uniform(1, 9) for _ in features)]
    positions = [0, 3, 4, 7]
    points = truth + rng.normal(0, 10, truth.shape)
    steps = np.array([np.interp(np.arange(8), positions, row[positions]) for row in points])
    sums = [truth @ one.matrix.T + rng.normal(0, 25, (len(truth), one.n_parts)) for one in features]
    return Measured.from_public(steps, sums, variances, positions)


def naive_program(measured, tree, features, weights):
    """Solve the program as the paper writes it: a variable for each node and part, which add up."""
    n_steps, chosen = measured.n_steps, list(measured.positions)
    steps = [cvxpy.Variable(n_steps) for _ in tree.nodes]
    terms, limits = [], []
    for node, series in enumerate(steps):
        share = np.full(n_steps, 1 / n_steps)
        if weights == "variance":
            own = 1 / (measured.point_variances[node] * float(measured.resolution) ** 2)
            share[:] = 0.2 * own
            share[chosen] = own
        misfit = series - measured.interpolation[node]
        terms.append(cvxpy.sum_squares(cvxpy.multiply(np.sqrt(share), misfit)))
        for number, feature in enumerate(features):
            part, own = cvxpy.Variable(feature.n_parts), 1 / feature.n_parts
            if weights == "variance":
                variance = measured.answers.variances[number][node].item()
                own = 1 / (variance * float(measured.resolution) ** 2)
            terms.append(own * cvxpy.sum_squares(part - measured.feature_sums[number][node]))
            limits.append(part == feature.matrix @ series)
        children = [steps[child] for child, parent in enumerate(tree.parents) if parent == node]
        limits.append(series == sum(children) if children else series >= 0)
    # at the solver's default tolerance it is right to a few digits near the bound
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12)
    cvxpy.Problem(cvxpy.Minimize(sum(terms)), limits).solve(solver=cvxpy.CLARABEL, **tight)
    return np.array([variable.value for variable in steps])


@pytest.mark.parametrize("weights", ["variance", "paper"])
@pytest.mark.parametrize("tree", [FRANCE, RAGGED], ids=["two levels", "ragged"])
@pytest.mark.parametrize("features", [[], CHAIN, CROSSED], ids=["none", "chain", "crossed"])
@pytest.mark.parametrize("level", [500.0, 5.0], ids=["free", "at the bound"])
@pytest.mark.slow
def test_the_answer_is_that_of_the_program_in_the_paper(weights, tree, features, level):
    measured = noisy(tree, features, 1, level)
    found = make_consistent(measured, tree, features, weights, bound_rule="joint")
    expected = naive_program(measured, tree, features, weights)
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    if level == 5.0:
        assert 0 <= found.min() < 1e-6


def test_a_batch_is_its_periods_one_by_one():
    single = [noisy(FRANCE, CHAIN, seed, level) for seed, level in enumerate([500.0, 5.0, 60.0])]
    same = (single[0].point_variances, *single[0].answers.variances), single[0].positions
    sums = [np.array(one) for one in zip(*(one.feature_sums for one in single), strict=True)]
    batch = Measured.from_public(np.array([one.interpolation for one in single]), sums, *same)
    together = make_consistent(batch, FRANCE, CHAIN, "variance")
    assert together.shape == (3, 6, 8)
    for one, found in zip(single, together, strict=True):
        alone = Measured.from_public(one.interpolation, one.feature_sums, *same)
        assert np.allclose(found, make_consistent(alone, FRANCE, CHAIN, "variance"), atol=1e-6)


PLAIN = Measured.from_public(np.ones((6, 8)), [])
HIDDEN = Measured.from_public(np.ones((6, 8)), [], [np.array([1, 1, 1, np.inf, 1, 1])])


@pytest.mark.parametrize(
    ("measured", "tree", "features", "weights", "message"),
    [
        (PLAIN, FRANCE, [], "variance", "needs the variances"),
        (PLAIN, FRANCE, [], "equal", '"variance" or "paper"'),
        (PLAIN, FRANCE, CHAIN, "paper", "0 features, but 2"),
        (PLAIN, RAGGED, [], "paper", "7 nodes"),
        (HIDDEN, FRANCE, [], "variance", "every leaf must be measured"),
    ],
)
def test_what_cannot_be_fitted_is_refused(measured, tree, features, weights, message):
    with pytest.raises(ParameterError, match=message):
        make_consistent(measured, tree, features, weights)


def test_points_are_joined_by_lines_and_held_at_the_ends():
    measured = Measured(
        n_steps=6, first_step=0, positions=(1, 4), points=np.array([[10.0, 40.0]]), resolution=1,
        answers=FeatureSums((), None), point_variances=None, spends=(), simulated=False,
    )  # fmt: skip
    assert np.allclose(reconstruct(measured), [[10.0, 10.0, 20.0, 30.0, 40.0, 40.0]], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["variance", "paper"])
@pytest.mark.parametrize("level", [500.0, 5.0], ids=["free", "at the bound"])
def test_it_is_no_farther_from_the_truth_than_what_was_measured(weights, level):
    """The theorem has twice; a projection on a convex set that holds the truth moves no point away."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = FRANCE.add_up(rng.uniform(0, level, (len(FRANCE.leaves), 8)))
        variances = [rng.uniform(0.5, 4, (len(truth), 1)) for _ in range(3)]
        sums = [truth @ one.matrix.T + rng.normal(0, 25, (len(truth), one.n_parts)) for one in CHAIN]
        measured = Measured.from_public(truth + rng.normal(0, 10, truth.shape), sums, variances, range(8))
        problem = least_squares(measured, FRANCE, CHAIN, weights)
        fitted = make_consistent(measured, FRANCE, CHAIN, weights) @ problem.rows.T
        off, before = (one - truth @ problem.rows.T for one in (fitted, problem.targets))
        ratios.append(np.sqrt((problem.weights * off**2).sum() / (problem.weights * before**2).sum()))
    assert max(ratios) <= 1 + 1e-6
    assert max(ratios) > 0.3  # control: the measurements are not fitted away
