"""The noise's way through the estimate: against each measurement pushed through it alone."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.estimation import make_consistent
from optstream.estimation.variances import (
    noise_variances,
)
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import OptStream
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Feature

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
    values = [measured.points, *measured.answers.values]
    known = [measured.point_variances, *measured.answers.variances]
    for number, (array, spread) in enumerate(zip(values, known, strict=True)):
        spread = np.broadcast_to(spread, array.shape)
        for place in np.argwhere(np.isfinite(spread)):
            pushed = [np.zeros(entry.shape) for entry in values]
            pushed[number][tuple(place)] = 1.0
            answers = replace(measured.answers, values=tuple(pushed[1:]))
            alone = replace(measured, points=pushed[0], answers=answers)
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
@pytest.mark.parametrize("sampling", [None, L1Sampling(4, "1")], ids=["same points", "points by level"])
def test_it_is_the_sum_over_all_measurements(tree, shares, features, weights, sampling):
    measured = measured_with(tree, shares, features, sampling)
    found = noise_variances(measured, tree, features, weights)
    expected = one_by_one(measured, tree, features, weights)
    assert found.shape == (len(tree.nodes), 8)
    assert np.all(found > 0)
    assert np.allclose(found, expected, rtol=1e-9)
