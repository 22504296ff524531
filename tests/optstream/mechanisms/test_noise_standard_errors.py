"""What the noise does to a release: each measured number pushed alone, and by simulation over periods."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import (
    HistoryInformed,
    HistoryInformedTree,
    OptStream,
    PeGaSus,
)
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Feature

MODEL = PrivacyModel("1", 6, 1)
TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all"})
SHARES = ["1/3", "2/3"]
PUSH = 1e6


def unbounded(mechanism):
    return replace(mechanism, lower_bound=None) if hasattr(mechanism, "lower_bound") else mechanism


def pushed(measured):
    """The measurements once for every number that was drawn, with that one moved, and its variance."""
    for place, part in enumerate(measured.parts):
        for moved, variance in pushed(part):
            parts = (*measured.parts[:place], moved, *measured.parts[place + 1 :])
            yield replace(measured, parts=parts), variance
    answers = measured.answers
    if measured.point_variances is None or answers.variances is None:
        return
    arrays = [measured.points, *answers.values]
    variances = [measured.point_variances, *answers.variances]
    for number, (array, variance) in enumerate(zip(arrays, variances, strict=True)):
        spread = np.broadcast_to(variance, array.shape)
        for at in np.argwhere(np.isfinite(spread)):
            moved = [entry.astype(float) for entry in arrays]
            moved[number][tuple(at)] += PUSH
            others = replace(answers, values=tuple(moved[1:]))
            yield replace(measured, points=moved[0], answers=others), spread[tuple(at)]


def one_by_one(mechanism, measured):
    """Variances by brute force: the estimate is linear, so a push of any size shows each weight."""
    rest = mechanism.estimate(measured).values
    moved = ((mechanism.estimate(one).values - rest, variance) for one, variance in pushed(measured))
    return sum((change / PUSH) ** 2 * variance for change, variance in moved)


def test_it_is_the_sum_over_all_that_was_measured(make, wavy):
    """Every mechanism of the project, whatever it chose: exactly, or nan, or None, never something else."""
    mechanism = unbounded(make(MODEL, 6))
    release = mechanism.release(wavy(6), noise=simulated_noise(8))
    found = release.noise_standard_errors
    if found is None:
        assert "HistoryInformed" in repr(mechanism)
        return
    assert found.shape == release.values.shape
    known = np.isfinite(found)
    assert known.any()
    assert "median" in repr(mechanism) or known.all() or "Budget" in repr(mechanism)
    expected = one_by_one(mechanism, release.measured)
    assert np.allclose(found[known] ** 2, expected[known], rtol=1e-6)
    if "median" not in repr(mechanism):
        assert np.allclose(expected[~known], 0)


def test_nothing_is_claimed_where_it_is_not_known():
    values = np.full((2, 6), 50.0)
    history = HistoryInformed(MODEL, n_blocks=2, block_length=1)
    for mechanism in (history, HistoryInformedTree(history, TREE, SHARES)):
        release = mechanism.release(values, noise=simulated_noise(1))
        assert release.noise_standard_errors is None
        assert release.standard_errors is not None
    flat = PeGaSus(MODEL, threshold="100000")
    found = flat.release(values, noise=simulated_noise(1)).noise_standard_errors
    assert np.isfinite(found[:, :2]).all()  # a median of two is their mean
    assert np.isnan(found[:, 2:]).all()


"""Mechanisms that remember, and some that do not: memory holds noise of earlier periods."""


FRANCE = AggregationTree.from_parents({"FR": None} | {f"region {number}": "FR" for number in range(5)})
RAGGED = AggregationTree.from_parents(
    {"world": None, "a": "world", "b": "world", "b1": "b", "b2": "b", "b11": "b1", "b12": "b1"}
)
CHAIN = [Feature((range(0, 3), range(3, 8)), "parts"), Feature((range(0, 8),), "day")]


@pytest.mark.parametrize("weights", ["variance", "paper"])
@pytest.mark.parametrize("features", [[], CHAIN], ids=["no features", "chain"])
@pytest.mark.parametrize(
    ("tree", "shares"),
    [(FRANCE, ["1/2", "1/2"]), (FRANCE, ["0", "1"]), (RAGGED, ["1/8", "1/2", "1/8", "1/4"])],
    ids=["two levels", "derived root", "ragged"],
)
@pytest.mark.parametrize("sampling", [EquallySpaced(4), L1Sampling(4, "1")], ids=["same points", "by level"])
def test_it_is_the_sum_over_all_measurements_of_any_plan(tree, shares, features, weights, sampling):
    model = PrivacyModel("1", window_length=8, alpha="2", resolution="0.1")
    mechanism = OptStream(
        model,
        tree,
        sampling=sampling,
        features=features,
        level_shares=shares,
        weights=weights,
        lower_bound=None,
    )
    release = mechanism.release(np.full((len(tree.leaves), 8), 5.0), noise=simulated_noise(3))
    assert np.all(release.noise_standard_errors > 0)
    assert np.allclose(release.noise_standard_errors**2, one_by_one(mechanism, release.measured), rtol=1e-6)
