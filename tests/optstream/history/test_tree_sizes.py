"""Sizes of leaves over a tree: empty and busy ones told apart, sums that add up, shares of their parents."""

from datetime import date

import numpy as np
import pytest

from optstream.history.counts import LeafBlocks, estimate_leaves, joined_sizes, node_sizes, sizes_by_mixture
from optstream.history.prior import TemporalPrior
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

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


ABOVE = AggregationTree(("city", "a", "b", "c", "a1", "a2"), (-1, 0, 0, 0, 1, 1))
PARENTS = np.array([4, 4, 5, 2, 2, 2, 3])


@pytest.mark.parametrize("kind", ["every node known", "the middle not measured"])
def test_sizes_and_their_covariance_are_those_of_least_squares_over_the_whole_tree(kind):
    rng = np.random.default_rng(2)
    sizes, size_variances = rng.uniform(5, 9, size=7), rng.uniform(0.1, 2, size=7)
    unsure = rng.uniform(0.05, 3, size=6)
    if kind == "the middle not measured":
        unsure[1:4] = 1e12
    below = np.zeros((6, 7))
    for leaf, node in enumerate(PARENTS):
        while node >= 0:
            below[node, leaf] = 1.0
            node = ABOVE.parents[node]
    means = below @ sizes + rng.normal(size=6)
    precision = np.diag(1 / size_variances) + (below.T / unsure) @ below
    covariance = np.linalg.inv(precision)
    wanted = covariance @ (sizes / size_variances + below.T @ (means / unsure))
    assert wanted.min() > 0  # or the bound at 0 would count
    found, variances, joined = joined_sizes(sizes, size_variances, PARENTS, ABOVE, means, unsure)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_allclose(variances, np.diag(covariance), rtol=1e-6)
    siblings = PARENTS[:, None] == PARENTS
    told = np.diag(variances + joined**2) - np.outer(joined, joined)
    np.testing.assert_allclose(told[siblings], covariance[siblings], rtol=1e-6, atol=1e-9)


def test_a_city_is_not_off_by_the_noise_of_all_its_zones():
    """300 zones of mostly 0 beside their noise, a city known to 0.5: what zones add up to misses it by that.

    The sum of squares of 40 draws exceeds what the variance allows once in 10^6; without the city it must.
    """
    rng, n, known = np.random.default_rng(3), 300, 0.25
    truth = np.where(np.arange(n) < 30, 2.0, 0.02)
    tree, parents, spread = AggregationTree(("city",), (-1,)), np.zeros(n, dtype=np.int64), np.full(n, 0.14)
    squares = {"joined": 0.0, "each by itself": 0.0}
    for _ in range(40):
        city = truth.sum() + rng.normal() * np.sqrt(known)
        observed = truth + rng.normal(size=n) * np.sqrt(spread)
        alone = sizes_by_mixture(observed, spread, np.full(n, city / n))
        found, _, _ = joined_sizes(*alone, parents, tree, np.array([city]), np.array([known]))
        for kind, sizes in (("joined", found), ("each by itself", alone[0])):
            squares[kind] += float((sizes.sum() - truth.sum()) ** 2) / known
    most = 97.7  # of chi-squared with 40 degrees of freedom, once in 10^6
    assert squares["joined"] < most < squares["each by itself"], squares


def test_shares_add_days_of_their_own_only_where_the_noise_lets_them_show():
    rng, days = np.random.default_rng(4), PublicDays.from_date(date(2024, 1, 1), 24)
    hours = np.arange(56 * 24)
    sizes = np.concatenate([np.full(50, 0.02), [10.0]])
    parents = sizes.sum() * (1 + 0.8 * np.sin(2 * np.pi * hours / 24))[None]
    late = 1 + 0.7 * np.cos(2 * np.pi * hours / 24)
    truth = sizes[:, None] * parents / parents.mean() * np.where(np.arange(51)[:, None] == 50, late, 1.0)
    starts = np.arange(0, 55 * 24, 25)
    sums = np.stack([truth[:, at : at + 4].sum(axis=1) for at in starts], axis=1)
    noisy, above = sums + rng.laplace(size=sums.shape) * 8, AggregationTree(("city",), (-1,))
    lengths, parent = np.full(starts.size, 4), np.zeros(51, dtype=np.int64)
    blocks = LeafBlocks(starts, lengths, noisy, 128.0, parent, above, np.array([1.0]))
    asked = range(54 * 24, 55 * 24)
    found = estimate_leaves(blocks, parents, 0, asked, TemporalPrior.broad(24), days)
    here = truth[:, asked.start : asked.stop]
    assert found.means.min() >= 0
    assert np.abs(found.means - here)[:50].mean() < 0.2
    plain = found.sizes[50] * parents[0, asked.start : asked.stop] / parents.mean()
    assert np.abs(found.means - here)[50].mean() < 0.7 * np.abs(plain - here[50]).mean()
    inside = np.abs(found.means - here)[50] <= 2.5 * np.sqrt(found.variances[50])
    assert inside.mean() > 0.8
