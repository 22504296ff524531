"""How each mechanism on a tree meets its lower bound, and that its release says how well."""

import numpy as np
import pytest

from optstream.estimation.least_squares import consistent
from optstream.measurement import EquallySpaced
from optstream.mechanisms import Hierarchical, HistoryInformed, HistoryInformedTree, Laplace, OptStream
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Feature
from optstream.stream.public_days import PublicDays

TREE = AggregationTree.from_parents({"all": None} | {f"leaf {number}": "all" for number in range(12)})
MODEL = PrivacyModel("1", 24, 1, resolution=1)
HALVES = ["1/2", "1/2"]
FEATURES = [Feature((range(24),), "day")]


def released(mechanism, mean):
    counts = np.random.default_rng(1).poisson(mean, (12, 24)).astype(float)
    return mechanism.release(counts, noise=simulated_noise(1))


def optstream(weights="variance"):
    return OptStream(
        MODEL, TREE, sampling=EquallySpaced(8), features=FEATURES, level_shares=HALVES, weights=weights
    )


@pytest.mark.parametrize(("weights", "rule"), [("variance", "held"), ("paper", "joint")])
def test_optstream_holds_parents_but_with_the_papers_weights(weights, rule):
    found = released(optstream(weights), 1.0)
    expected = consistent(found.measured, TREE, FEATURES, weights, 0.0, rule)
    assert np.array_equal(found.values, expected.values)
    assert found.optimality == expected.optimality
    assert found.optimality.converged
    assert found.values[TREE.leaf_indices].min() == 0


def test_any_mechanism_on_a_tree_holds_parents():
    mechanism = Hierarchical(Laplace(MODEL), TREE, HALVES)
    found = released(mechanism, 1.0)
    expected = consistent(mechanism.merged(found.measured), TREE, [], "variance", 0.0, "held")
    assert np.array_equal(found.values, expected.values)
    assert found.optimality == expected.optimality
    assert found.optimality.converged


def test_a_posterior_is_not_held():
    own = HistoryInformed(MODEL, days=PublicDays(24), n_blocks=4, block_length=3)
    bounded, free = (HistoryInformedTree(own, TREE, HALVES, bound) for bound in (0.0, None))
    found, posterior = released(bounded, 0.3), released(free, 0.3)
    assert posterior.values[TREE.leaf_indices].min() < 0
    assert posterior.optimality is None
    merged = found.measured.seen_as(posterior.values, posterior.standard_errors**2)
    joint, held = (consistent(merged, TREE, [], "variance", 0.0, rule) for rule in ("joint", "held"))
    assert np.allclose(found.values, joint.values, rtol=1e-9, atol=1e-9)
    assert not np.allclose(found.values, held.values, rtol=1e-3, atol=1e-3)
    assert found.optimality.converged


@pytest.mark.parametrize("mechanism", [optstream(), Hierarchical(Laplace(MODEL), TREE, HALVES)])
def test_where_no_leaf_lies_below_the_bound_nothing_is_solved(mechanism):
    assert released(mechanism, 5000.0).optimality is None
