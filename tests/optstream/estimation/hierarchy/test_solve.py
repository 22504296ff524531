"""The estimate against the program as the paper writes it, and against its own optimality conditions."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.estimation import least_squares as solve
from optstream.estimation import make_consistent, reconstruct
from optstream.estimation.least_squares import consistent
from optstream.estimation.problem import least_squares
from optstream.stream import AggregationTree, Feature, FeatureSums, Measured
from tests.optstream.estimation.hierarchy.naive_program import naive_program

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


def test_a_period_without_points_spreads_its_finest_sums():
    measured = Measured(
        n_steps=4,
        first_step=0,
        positions=(),
        points=np.zeros((1, 0)),
        answers=FeatureSums((np.array([[8.0]]),), None),
        resolution=1,
        point_variances=None,
        spends=(),
        simulated=False,
    )
    assert reconstruct(measured).tolist() == [[2.0, 2.0, 2.0, 2.0]]


@pytest.mark.parametrize("noise_over_load", [1e-3, 1.0, 1e6, 1e12])
def test_every_period_is_answered_feasible_and_nearly_optimal(noise_over_load):
    """Also where noise drowns the load and nearly every cell meets its bound."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        noise = rng.laplace(0, noise_over_load, (6, 8))
        truth = FRANCE.add_up(rng.uniform(0, 1, (5, 8)))
        sums = [
            truth @ feature.matrix.T + rng.laplace(0, 9 * noise_over_load, (6, feature.n_parts))
            for feature in CHAIN
        ]
        variances = [noise_over_load**2] + [81 * noise_over_load**2] * 2
        measured = Measured.from_public(truth + noise, sums, variances)
        x = make_consistent(measured, FRANCE, CHAIN, "variance", bound_rule="joint")
        assert x.min() >= 0
        assert np.allclose(x, FRANCE.add_up(x[FRANCE.leaf_indices]), rtol=1e-12)
        problem = least_squares(measured, FRANCE, CHAIN, "variance")

        def misfit(series, problem=problem):
            return (problem.weights * (series @ problem.rows.T - problem.targets) ** 2).sum()

        clipped = np.maximum(make_consistent(measured, FRANCE, CHAIN, "variance", None), 0)[
            FRANCE.leaf_indices
        ]
        assert misfit(x) <= misfit(FRANCE.add_up(clipped)) * (1 + 1e-6)


def test_the_paper_weights_keep_the_papers_plain_program():
    measured = noisy(RAGGED, CHAIN, 1, level=5.0)
    plain = make_consistent(measured, RAGGED, CHAIN, "paper", bound_rule="joint")
    assert np.array_equal(make_consistent(measured, RAGGED, CHAIN, "paper"), plain)
    joint = make_consistent(measured, RAGGED, CHAIN, "variance", bound_rule="joint")
    assert not np.allclose(make_consistent(measured, RAGGED, CHAIN, "variance"), joint, atol=1e-3)


@pytest.mark.parametrize("features", [[], CHAIN], ids=["none", "chain"])
def test_a_held_parent_keeps_what_was_known_of_it(features):
    """Twenty leaves of small counts, each as noisy as the root; the plain program is the control."""
    tree = AggregationTree.from_parents({"all": None} | {f"leaf {number}": "all" for number in range(20)})
    moved = {"held": [], "joint": []}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = tree.add_up(rng.poisson(2.0, (20, 8)).astype(float))
        sums = [truth @ one.matrix.T + rng.laplace(0, 5, (21, one.n_parts)) for one in features]
        variances = [2 * 3**2, *(2 * 5**2 for _ in features)]
        measured = Measured.from_public(truth + rng.laplace(0, 3, truth.shape), sums, variances)
        free = make_consistent(measured, tree, features, lower_bound=None)
        for rule, root in moved.items():
            bounded = make_consistent(measured, tree, features, bound_rule=rule)
            assert bounded.min() >= 0
            root.append((bounded[0] - free[0]).mean())
    assert np.mean(moved["joint"]) > 0.2
    assert np.abs(moved["held"]).mean() < 0.05 * np.mean(moved["joint"])


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


def test_the_certificate_is_that_of_the_worst_period_and_absent_where_nothing_was_solved(monkeypatch):
    touched, free = (noisy(FRANCE, [], 2, level) for level in (5.0, 5000.0))
    assert consistent(free, FRANCE, []).optimality is None
    assert consistent(touched, FRANCE, [], lower_bound=None).optimality is None
    found = consistent(touched, FRANCE, []).optimality
    assert found is not None
    assert found.converged
    assert found.distance < 1e-7
    certificates = iter([replace(found, rounds=9), replace(found, gap=0.5, converged=False)])
    monkeypatch.setattr(
        solve, "solve_bounded", lambda one, tree, bound, free, families: (free, next(certificates))
    )
    series = np.stack([touched.interpolation] * 2)
    batch = Measured.from_public(series, [], [touched.point_variances], touched.positions)
    together = consistent(batch, FRANCE, []).optimality
    assert together == replace(found, gap=0.5, rounds=9, converged=False)
    assert together.distance == 1.0


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


def test_another_rule_is_refused():
    with pytest.raises(ParameterError, match=r"bound_rule must be one of .*got 'soft'"):
        make_consistent(noisy(FRANCE, [], 2), FRANCE, [], bound_rule="soft")
