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


def test_an_inner_node_is_as_sure_as_its_own_and_its_children_s_measurements_together():
    """Of a city that was measured badly its leaves tell more; of one that was measured well they do not."""
    for of_city in (1000.0, 0.01):
        seen, variances = observed(1, of_city=of_city)
        _, unsure = node_sizes(TREE, seen, variances, None)
        below = unsure[1:].sum()
        assert unsure[0] == pytest.approx(1 / (1 / of_city**2 + 1 / below))
        assert (unsure[0] < 0.5 * below) == (of_city < 1)


@pytest.mark.parametrize("seen", [-3.0, 0.0, 5.0])
def test_a_single_node_is_what_it_was_measured_and_above_0(seen):
    found, doubts = node_sizes(AggregationTree(("all",), (-1,)), np.array([seen]), np.array([1.0]), None)
    assert found[0] == (seen if seen > 0 else pytest.approx(0.1))
    assert doubts[0] == 1


@pytest.mark.parametrize("scale", [None, 5.0])
def test_noise_alone_gives_small_sizes_and_never_0(scale):
    seen, variances = np.array([-2.0, *([-1.0] * N_LEAVES)]), np.ones(9)
    found, _ = node_sizes(TREE, seen, variances, scale)
    assert found.min() > 0
    assert found.max() < 3
    assert np.isfinite(found).all()
