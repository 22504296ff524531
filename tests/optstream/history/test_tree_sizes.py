"""Sizes over a tree: what a parent is known to be is kept, empty and busy leaves are told apart."""

import numpy as np
import pytest

from optstream.history.counts import node_sizes
from optstream.stream import AggregationTree

N_LEAVES = 8
TREE = AggregationTree(("city", *map(str, range(N_LEAVES))), (-1, *([0] * N_LEAVES)))
TRUE = np.array([60.0, 20.0, 8.0, 2.0, 0.02, 0.02, 0.02, 0.02])


def observed(seed, of_city=0.3, of_leaves=1.0):
    variances = np.array([of_city**2, *([of_leaves**2] * N_LEAVES)])
    seen = TREE.add_up(TRUE[:, None])[:, 0] + np.random.default_rng(seed).normal(size=9) * np.sqrt(variances)
    return seen, variances


def test_empty_leaves_are_small_busy_ones_stay_and_the_sum_is_the_citys():
    """Means over 40 draws; the control clips each leaf at 0."""
    sizes, clipped, sums = [], [], []
    for seed in range(40):
        seen, variances = observed(seed)
        found, doubts = node_sizes(TREE, seen, variances, None)
        assert found.min() > 0
        assert doubts.min() > 0
        sizes.append(found)
        clipped.append(np.maximum(seen[1:], 0))
        sums.append(found.sum() - seen[0])
    missed, plain = (np.abs(np.array(one) - TRUE).mean(axis=0) for one in (sizes, clipped))
    assert missed[4:].mean() < 0.8 * plain[4:].mean()
    assert missed[:2].mean() < 1.2 * plain[:2].mean()
    assert np.abs(sums).max() < 0.5
    assert np.mean(clipped, axis=0).sum() - TRUE.sum() > 1


def test_an_unmeasured_root_and_leaves_at_two_depths():
    tree = AggregationTree(("r", "a", "b", "c", "d"), (-1, 0, 0, 2, 2))
    leaves = np.array([10.0, 4.0, 6.0])
    values = tree.add_up(leaves[:, None])[:, 0]
    variances = np.array([np.inf, 1e-4, 1e-4, 1e-4, 1e-4])
    found, _ = node_sizes(tree, np.where(np.isfinite(variances), values, 7.0), variances, None)
    assert found == pytest.approx(leaves, abs=0.1)
