"""Sizes that add up: the least-squares fit to leaves and all nodes above, and sums that do not drift away."""

import numpy as np
import pytest

from optstream.history.counts import Mixture, joined_sizes
from optstream.stream import AggregationTree

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
        given = observed, spread, np.full(n, city / n)
        alone = Mixture.learned(*given).posterior(*given)
        found, _, _ = joined_sizes(*alone, parents, tree, np.array([city]), np.array([known]))
        for kind, sizes in (("joined", found), ("each by itself", alone[0])):
            squares[kind] += float((sizes.sum() - truth.sum()) ** 2) / known
    most = 97.7  # of chi-squared with 40 degrees of freedom, once in 10^6
    assert squares["joined"] < most < squares["each by itself"], squares
