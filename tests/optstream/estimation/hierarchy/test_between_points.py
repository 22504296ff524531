"""How far OptStream is off between its points: against the errors of series that are known."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.estimation.reconstruct import interpolation_matrix, with_unmeasured_leaves
from optstream.history.between_points import missed_variances
from optstream.history.blocks import Blocks
from optstream.history.prior import TemporalPrior
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import OptStream
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Feature

W = 48
TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "a": "A", "b": "A", "c": "B"})
PARTS = Feature((range(0, 14), range(14, 24), range(24, 36), range(36, 48)), "parts")
SIZES = np.array([4000.0, 1500.0, 600.0])


def mechanism(epsilon="1", n_samples=10, features=(PARTS,), shares=("1/3", "1/3", "1/3"), **more):
    given = {"sampling": EquallySpaced(n_samples), "features": features, "level_shares": shares} | more
    return OptStream(PrivacyModel(epsilon, W, 1, "0.001"), TREE, lower_bound=None, **given)


def simulated_days(n_days, seed):
    """Days of the prior, at three fifths of its variances, with what the leaves share and their own."""
    draw, at = np.random.default_rng(seed), Blocks.at(np.arange(W))
    shared, own = (
        np.linalg.cholesky(0.6 * one + 1e-10 * np.eye(W))
        for one in TemporalPrior.broad(W).covariances(at, at)
    )
    for _ in range(n_days):
        together, apart = shared @ draw.normal(size=W), draw.normal(size=(3, W)) @ own.T
        yield SIZES[:, None] * (1.0 + together + apart)


def seen_of(one, days, seed=0):
    """Squared errors, their expected values and those of the noise alone, (n_days, n_nodes, n_steps)."""
    found, state = [], None
    for number, day in enumerate(days):
        noise = simulated_noise([seed, number])
        release = one.release(day, noise=noise, first_step=number * W, state=state)
        state = release.state
        missed = release.values - TREE.add_up(day)
        found.append((missed**2, release.standard_errors**2, release.noise_standard_errors**2))
    return map(np.array, zip(*found, strict=True))


@pytest.mark.parametrize("features", [(), (PARTS,)], ids=["points", "points and sums"])
@pytest.mark.parametrize("epsilon", ["0.3", "1000"])
def test_errors_are_as_large_as_is_said(features, epsilon):
    """Over 60 days and all steps, at each level; a day's factor is shared by all its values, so that the mean
    square of 60 days strays by some 10 %: below 0.6 or above 1.6 it is never (7 deviations of its logarithm).
    """
    one = mechanism(epsilon, features=features)
    missed, expected, noise = seen_of(one, simulated_days(60, 1))
    for level in TREE.levels:
        own = slice(level.start, level.stop)
        assert 0.6 < missed[:, own].mean() / expected[:, own].mean() < 1.6
    if epsilon == "1000":
        assert missed.mean() > 10.0 * noise.mean(), "control: noise alone says next to nothing"


def test_what_varies_step_by_step_is_seen_too():
    """Counts without a shape: the prior's smooth parts say nothing of them."""
    draw = np.random.default_rng(3)
    days = draw.poisson(50.0, size=(40, 3, W)).astype(float)
    missed, expected, _ = seen_of(mechanism("50", n_samples=12, features=()), days)
    assert 0.6 < missed.mean() / expected.mean() < 1.6


def test_steps_that_were_measured_are_known_as_their_noise_says():
    """Without sums a measured step misses nothing."""
    release = mechanism(n_samples=6, features=()).release(
        next(simulated_days(1, 5)), noise=simulated_noise(5)
    )
    at = list(release.measured.positions)
    assert np.allclose(release.standard_errors[:, at], release.noise_standard_errors[:, at])
    between = np.setdiff1d(np.arange(W), at)
    assert (release.standard_errors[:, between] > release.noise_standard_errors[:, between]).all()


def test_the_operator_is_what_the_whole_tree_misses():
    """Points and sums of unequal worth: without noise every node misses (T H - 1) x of its own."""
    one = mechanism("1000000", n_samples=5)
    day = next(simulated_days(1, 7))
    release = one.release(day, noise=simulated_noise(7))
    missed = release.values - TREE.add_up(day)
    steps = np.eye(W)
    # each step alone, at one leaf: the columns of T H - 1
    columns = [
        one.release(np.outer([1000.0, 0.0, 0.0], step), noise=simulated_noise(8)).values[3] / 1000.0 - step
        for step in steps
    ]
    expected = TREE.add_up(day) @ np.array(columns)
    assert np.allclose(missed, expected, atol=0.02 * np.abs(missed).max())


@pytest.mark.parametrize("shares", [("0", "1/2", "1/2"), ("0", "0", "1")])
def test_levels_that_were_not_measured_have_errors_from_below(shares):
    missed, expected, _ = seen_of(mechanism("1000", shares=shares), simulated_days(30, 2))
    assert np.isfinite(expected).all()
    assert 0.5 < missed[:, 0].mean() / expected[:, 0].mean() < 2.0


def test_chosen_points_are_judged_where_they_lie():
    """L1 sampling takes other points at each level."""
    one = mechanism("300", sampling=L1Sampling(10, threshold=200), features=(PARTS,))
    missed, expected, _ = seen_of(one, simulated_days(40, 4))
    assert np.isfinite(expected).all()
    assert 0.4 < missed.mean() / expected.mean() < 2.0


def test_of_leaves_without_a_measurement_nothing_is_said():
    one = mechanism(shares=("0", "1/2", "1/2"), features=())
    measured = one.measure(next(simulated_days(1, 6)), noise=simulated_noise(6))
    variances = np.broadcast_to(measured.point_variances, measured.points.shape).copy()
    variances[TREE.leaf_indices[0]] = np.inf
    bare = with_unmeasured_leaves(replace(measured, point_variances=variances), TREE)
    ones = np.ones((len(TREE.nodes), W))
    found = missed_variances(bare, TREE, (), "variance", ones, 0.0 * ones)
    unknown = np.isnan(found).any(axis=1)
    assert [node for node, one in zip(TREE.nodes, unknown, strict=True) if one] == ["all", "A", "a"]


def test_two_points_are_enough_and_a_constant_misses_little():
    flat = [np.full((3, W), 900.0)] * 5
    missed, expected, _ = seen_of(mechanism("1000000", n_samples=2, features=()), flat)
    assert np.isfinite(expected).all()
    assert (missed < expected).all()
    many = seen_of(mechanism("1000000", n_samples=24, features=()), flat)
    assert np.sqrt(list(many)[1]).mean() < 0.02 * 900.0


def test_noise_of_many_leaves_is_not_taken_for_the_size_of_what_lies_above_them():
    """Each of 2,000 leaves is far below its noise, and the root far above its own: by sizes that have the
    noise in them the root would err by twice its value.
    """
    parents = {"all": None} | {f"r{number}": "all" for number in range(10)}
    tree = AggregationTree.from_parents(parents | {f"l{n}": f"r{n % 10}" for n in range(2000)})
    given = {"sampling": EquallySpaced(10), "features": (PARTS,), "level_shares": ("1/3",) * 3}
    one = OptStream(PrivacyModel("0.1", W, 1, "0.001"), tree, lower_bound=None, **given)
    day = np.random.default_rng(1).lognormal(2.0, 1.0, (2000, 1)) * np.ones(W)
    release = one.release(day, noise=simulated_noise(1))
    assert day.sum(axis=0).min() > 30.0 * release.noise_standard_errors[0].max()
    assert release.standard_errors[0].mean() < 0.2 * release.values[0].mean()


def test_no_matrix_is_kept_for_each_point():
    """Of 480 points of 1,440 steps each had 6 MB, held until the process ended."""
    interpolation_matrix.cache_clear()
    mechanism(n_samples=40).release(next(simulated_days(1, 3)), noise=simulated_noise(1))
    assert interpolation_matrix.cache_info().currsize <= 3
