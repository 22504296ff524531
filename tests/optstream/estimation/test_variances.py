"""The noise's way through the estimate: against each measurement pushed through it alone."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.estimation import make_consistent, variances
from optstream.estimation.variances import noise_variances
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import OptStream
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Feature, Measured

FRANCE = AggregationTree.from_parents({"FR": None} | {f"region {number}": "FR" for number in range(5)})
RAGGED = AggregationTree.from_parents(
    {"world": None, "a": "world", "b": "world", "b1": "b", "b2": "b", "b11": "b1", "b12": "b1"}
)
CHAIN = [Feature((range(0, 3), range(3, 8)), "parts"), Feature((range(0, 8),), "day")]


def measured_with(tree, shares, features, sampling=None, resolution="0.1", **keys):
    model = PrivacyModel(epsilon="1", window_length=8, alpha="2", resolution=resolution)
    mechanism = OptStream(
        model,
        tree,
        sampling=sampling or EquallySpaced(4),
        features=features,
        level_shares=shares,
        **keys,
    )
    return mechanism.measure(np.full((len(tree.leaves), 8), 5.0), noise=simulated_noise(3))


def one_by_one(measured, tree, features, weights):
    """Each measurement's unit error through the whole estimate, squared, by its variance."""
    total = np.zeros((len(tree.nodes), 8))
    values = [measured.points, *measured.sums]
    known = [measured.point_variances, *measured.sum_variances]
    for number, (array, spread) in enumerate(zip(values, known, strict=True)):
        spread = np.broadcast_to(spread, array.shape)
        for place in np.argwhere(np.isfinite(spread)):
            pushed = [np.zeros(entry.shape) for entry in values]
            pushed[number][tuple(place)] = 1.0
            alone = replace(measured, points=pushed[0], sums=tuple(pushed[1:]))
            total += make_consistent(alone, tree, features, weights, None) ** 2 * spread[tuple(place)]
    return total


@pytest.mark.parametrize("weights", ["variance", "paper"])
@pytest.mark.parametrize("features", [[], CHAIN], ids=["no features", "chain"])
@pytest.mark.parametrize(
    ("tree", "shares"),
    [
        (FRANCE, ["1/2", "1/2"]),
        (FRANCE, ["0", "1"]),
        (RAGGED, ["1/8", "1/2", "1/8", "1/4"]),
    ],
    ids=["two levels", "derived root", "ragged"],
)
def test_it_is_the_sum_over_all_measurements(tree, shares, features, weights, monkeypatch):
    monkeypatch.setattr(variances, "CHUNK", 3)
    measured = measured_with(tree, shares, features)
    found = noise_variances(measured, tree, features, weights)
    expected = one_by_one(measured, tree, features, weights)
    assert found.shape == (len(tree.nodes), 8)
    assert np.all(found > 0)
    assert np.allclose(found, expected, rtol=1e-9)


def test_measured_values_do_not_matter_and_units_are_those_of_the_readings():
    measured = measured_with(FRANCE, ["1/2", "1/2"], CHAIN)
    found = noise_variances(measured, FRANCE, CHAIN, "variance")
    moved = replace(measured, points=measured.points + 99)
    assert np.array_equal(noise_variances(moved, FRANCE, CHAIN, "variance"), found)
    finer = measured_with(FRANCE, ["1/2", "1/2"], CHAIN, resolution="0.001")
    assert np.allclose(noise_variances(finer, FRANCE, CHAIN, "variance"), found)


def test_one_measured_leaf_keeps_its_own_noise_at_its_points():
    tree = AggregationTree.from_parents({"all": None})
    measured = measured_with(tree, ["1"], [])
    found = noise_variances(measured, tree, [], "variance")
    scale = 2 * 4  # alpha k / epsilon
    assert np.allclose(found[0, list(measured.positions)], 2 * scale**2)


def test_what_cannot_be_told_is_refused():
    points = AggregationTree.from_parents({"all": None, "a": "all", "b": "all"})
    public = Measured.from_public(np.ones((3, 8)), [])
    with pytest.raises(ParameterError, match="needs the variances"):
        noise_variances(public, points, [], "paper")
    mixed = Measured.from_public(np.ones((3, 8)), [], [np.arange(1.0, 25.0).reshape(3, 8)])
    with pytest.raises(ParameterError, match="the same points at every node"):
        noise_variances(mixed, points, [], "variance")


def test_points_that_differ_by_level_are_possible_with_the_papers_weights():
    measured = measured_with(RAGGED, ["1/4"] * 4, CHAIN, L1Sampling(4, "1"))
    found = noise_variances(measured, RAGGED, CHAIN, "paper")
    assert np.allclose(found, one_by_one(measured, RAGGED, CHAIN, "paper"), rtol=1e-9)
