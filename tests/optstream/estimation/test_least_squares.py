"""The estimate against the program as the paper writes it, and against its own optimality conditions."""

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.estimation import make_consistent, reconstruct
from optstream.estimation.problem import least_squares
from optstream.stream import AggregationTree, Feature, FeatureSums, Measured
from tests.optstream.estimation.naive_program import naive_program

FRANCE = AggregationTree.from_parents({"FR": None} | {f"region {number}": "FR" for number in range(5)})
RAGGED = AggregationTree.from_parents(
    {"world": None, "a": "world", "b": "world", "b1": "b", "b2": "b", "b11": "b1", "b12": "b1"}
)
CHAIN = [Feature((range(0, 3), range(3, 8)), "parts"), Feature((range(0, 8),), "day")]
CROSSED = [Feature((range(0, 3), range(3, 8)), "left"), Feature((range(0, 5), range(5, 8)), "right")]

# At the solver's default tolerance the oracle itself is only right to a few digits beside the bound.
TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


def noisy(tree, features, seed, level=50.0, separable=True):
    """Measurements of a random series: public, made up here."""
    rng = np.random.default_rng(seed)
    truth = tree.add_up(rng.uniform(0, level, (len(tree.leaves), 8)))
    by_node = rng.uniform(0.5, 4, (len(tree.nodes), 1))
    variances = [by_node, *(by_node * rng.uniform(1, 9) for _ in features)]
    if not separable:
        variances = [rng.uniform(0.5, 4, (len(tree.nodes), 1)) for _ in range(1 + len(features))]
    positions = [0, 3, 4, 7]
    points = truth + rng.normal(0, 10, truth.shape)
    steps = np.array([np.interp(np.arange(8), positions, row[positions]) for row in points])
    sums = [
        truth @ feature.matrix.T + rng.normal(0, 25, (len(tree.nodes), feature.n_parts))
        for feature in features
    ]
    return Measured.from_public(steps, sums, variances, positions)


@pytest.mark.parametrize("weights", ["variance", "paper"])
@pytest.mark.parametrize("tree", [FRANCE, RAGGED], ids=["two levels", "ragged"])
@pytest.mark.parametrize("features", [[], CHAIN, CROSSED], ids=["none", "chain", "crossed"])
@pytest.mark.parametrize("level", [500.0, 5.0], ids=["free", "at the bound"])
@pytest.mark.slow
def test_the_answer_is_that_of_the_program_in_the_paper(weights, tree, features, level):
    for seed in range(2):
        measured = noisy(tree, features, seed, level)
        found = make_consistent(measured, tree, features, weights, bound_rule="joint")
        expected, _ = naive_program(measured, tree, features, weights, **TIGHT)
        assert np.allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
        if level == 5.0:
            assert 0 <= found.min() < 1e-6


def test_a_batch_is_its_periods_one_by_one():
    single = [noisy(FRANCE, CHAIN, seed, level) for seed, level in enumerate([500.0, 5.0, 60.0])]
    same = single[0].point_variances, *single[0].answers.variances
    batch = Measured.from_public(
        np.array([one.interpolation for one in single]),
        [np.array([one.feature_sums[number] for one in single]) for number in range(2)],
        same,
        single[0].positions,
    )
    together = make_consistent(batch, FRANCE, CHAIN, "variance")
    assert together.shape == (3, 6, 8)
    for one, found in zip(single, together, strict=True):
        alone = Measured.from_public(one.interpolation, one.feature_sums, same, one.positions)
        assert np.allclose(found, make_consistent(alone, FRANCE, CHAIN, "variance"), atol=1e-6)


def test_steps_that_the_bound_does_not_touch_are_left_as_they_are():
    """Without features a step is a problem by itself: the closed form's bits stay."""
    measured = noisy(RAGGED, [], 3, level=20.0)
    free = make_consistent(measured, RAGGED, [], lower_bound=None)
    below = (free[RAGGED.leaf_indices] < 0).any(axis=0)
    assert below.any()
    assert not below.all()
    for rule in ("held", "joint"):
        found = make_consistent(measured, RAGGED, [], bound_rule=rule)
        assert np.array_equal(found[:, ~below], free[:, ~below])
        assert found[RAGGED.leaf_indices].min() == 0


def test_what_cannot_be_fitted_is_refused():
    measured = Measured.from_public(np.ones((6, 8)), [])
    with pytest.raises(ParameterError, match="needs the variances"):
        make_consistent(measured, FRANCE, [], "variance")
    with pytest.raises(ParameterError, match='"variance" or "paper"'):
        make_consistent(measured, FRANCE, [], "equal")
    with pytest.raises(ParameterError, match="0 features, but 2"):
        make_consistent(measured, FRANCE, CHAIN, "paper")
    with pytest.raises(ParameterError, match="7 nodes"):
        make_consistent(measured, RAGGED, [], "paper")
    hidden = Measured.from_public(np.ones((6, 8)), [], [np.array([1, 1, 1, np.inf, 1, 1])])
    with pytest.raises(ParameterError, match="every leaf must be measured"):
        make_consistent(hidden, FRANCE, [], "variance")


def test_points_are_joined_by_lines_and_held_at_the_ends():
    steps = np.full((1, 6), np.nan)
    steps[0, [1, 4]] = [10.0, 40.0]
    series = reconstruct(
        Measured(
            n_steps=6,
            first_step=0,
            positions=(1, 4),
            points=steps[:, [1, 4]],
            answers=FeatureSums((), None),
            resolution=1,
            point_variances=None,
            spends=(),
            simulated=False,
        )
    )
    assert np.allclose(series, [[10.0, 10.0, 20.0, 30.0, 40.0, 40.0]], rtol=1e-12)


FOUR_REGIONS = AggregationTree.from_parents({"FR": None} | {f"region {number}": "FR" for number in range(4)})
FEATURES = [Feature((range(0, 3), range(3, 8)), "parts"), Feature((range(0, 8),), "day")]


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["variance", "paper"])
@pytest.mark.parametrize("level", [500.0, 5.0], ids=["free", "at the bound"])
def test_it_is_no_farther_from_the_truth_than_what_was_measured(weights, level):
    """The theorem has twice; a projection on a convex set that holds the truth moves no point away."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = FOUR_REGIONS.add_up(rng.uniform(0, level, (len(FOUR_REGIONS.leaves), 8)))
        variances = [rng.uniform(0.5, 4, (len(truth), 1)) for _ in range(3)]
        sums = [truth @ one.matrix.T + rng.normal(0, 25, (len(truth), one.n_parts)) for one in FEATURES]
        steps = truth + rng.normal(0, 10, truth.shape)
        measured = Measured.from_public(steps, sums, variances, range(8))
        problem = least_squares(measured, FOUR_REGIONS, FEATURES, weights)
        answers, fitted = (
            series @ problem.rows.T
            for series in (truth, make_consistent(measured, FOUR_REGIONS, FEATURES, weights))
        )

        def norm(queries, problem=problem):
            return np.sqrt((problem.weights * queries**2).sum())

        ratios.append(norm(fitted - answers) / norm(problem.targets - answers))
    assert max(ratios) <= 1 + 1e-6
    assert max(ratios) > 0.3  # control: the measurements are not fitted away
