"""The errors of many nodes, in groups, are those that matrices of all nodes tell."""

import numpy as np
import pytest

from optstream.estimation.error_terms import TOLERANCE, SumsOfTimes, error_terms
from optstream.estimation.groups import GroupedNodes, leaves_below
from optstream.history import posterior as leaf_covariance
from optstream.history.blocks import Blocks
from optstream.history.filter import Conditioned, DayMeanErrors, Fitted, LeafErrors
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import TemporalPrior
from optstream.stream import AggregationTree
from tests.optstream.history.test_tree_posterior import SLOTS, blocks_of

N_RUNS = 2


def ragged(random, n_nodes):
    """A tree of three levels below the root's, leaves at each of them."""
    parents = {"root": None}
    for number in range(n_nodes - 1):
        above = "root" if number < 6 else f"n{random.integers(max(number // 4, 6))}"
        parents[f"n{number}"] = above
    return AggregationTree.from_parents(parents)


def seen_of(random, tree, n, noise=1.0, measured=1.0):
    """What was seen of n blocks; of some nodes above the leaves nothing."""
    noises = noise * random.uniform(0.2, 1.0, len(tree.nodes))
    is_known = random.random(len(tree.nodes)) < measured
    is_known[tree.leaf_indices] = True
    sizes = random.uniform(0.5, 8.0, len(tree.leaves))
    residuals = random.normal(0, 2, (len(tree.nodes), n))
    return Seen(tree, blocks_of(random, n), residuals, np.where(is_known, noises, np.inf), sizes)


def errors_of(seen, factor=1.4):
    """A day of twelve steps, and two runs of days before it."""
    posterior = TreePosterior(TemporalPrior.broad(SLOTS), seen)
    known = Conditioned(posterior, factor)
    known.__dict__["published"] = posterior
    lengths = np.r_[np.ones(SLOTS, dtype=np.int64), np.full(N_RUNS, SLOTS)]
    clock = np.r_[np.arange(192, 204), 192 - SLOTS * np.arange(1, 1 + N_RUNS)]
    asked = Blocks.at(clock, lengths, kinds=np.full(clock.size, 1))
    return DayMeanErrors(LeafErrors(Fitted(known, False), asked), SLOTS)


@pytest.fixture
def many(monkeypatch):
    """Makes any hierarchy one of many nodes, or none."""
    return lambda yes: monkeypatch.setattr(leaf_covariance, "MOST_CORRELATED", 0 if yes else 10**9)


def sums_of_nodes(random, tree, n):
    """Weights of sums of nodes of all levels, none within another."""
    below, parents = leaves_below(tree).toarray(), np.array(tree.parents)
    found = []
    for _ in range(n):
        weights, left = np.zeros(len(tree.nodes)), random.random(len(tree.leaves)) < 0.6
        for node in random.permutation(parents.size):
            if (left >= below[node]).all() and random.random() < 0.5:
                weights[node], left = random.normal(), left & (below[node] == 0)
        found.append(weights)
    return np.array(found)


@pytest.mark.parametrize("noise", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(4))
def test_sums_have_the_variances_of_matrices_of_all_nodes(many, seed, noise):
    random = np.random.default_rng(seed)
    tree = ragged(random, random.integers(30, 61))
    seen = seen_of(random, tree, 20, noise, measured=0.7)
    leaves, times = random.normal(size=(20, len(tree.leaves))), random.normal(size=(8, SLOTS + N_RUNS))
    times[:4, SLOTS:], of_day = 0.0, np.eye(4, 8)
    many(False)
    exact = errors_of(seen).products(leaves, times)
    assert len(exact.nodes)
    assert not exact.groups
    many(True)
    found = errors_of(seen).products(leaves, times)
    assert found.groups
    assert not found.nodes.size
    np.testing.assert_allclose(found.variances(None, of_day), exact.variances(None, of_day), rtol=1e-5)
    scale = np.abs(exact.variances()).max()
    np.testing.assert_allclose(found.variances(), exact.variances(), rtol=0.0, atol=1e-6 * scale)


@pytest.mark.parametrize("noise", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(4))
def test_terms_in_groups_give_any_sum_to_the_tolerance(many, seed, noise):
    random = np.random.default_rng(seed)
    tree = ragged(random, random.integers(30, 61))
    seen = seen_of(random, tree, 20, noise)
    nodes, steps = sums_of_nodes(random, tree, 60), random.random((60, SLOTS)) < 0.4
    steps[:, 0] = True
    many(False)
    times = np.pad(steps.astype(float), ((0, 0), (0, N_RUNS)))
    dense = errors_of(seen).every
    exact = dense.variances(nodes @ leaves_below(tree).toarray(), times).diagonal()
    day = np.r_[np.ones(SLOTS), np.zeros(N_RUNS)]
    many(True)
    weights = np.eye(SLOTS + N_RUNS)
    terms = error_terms(SumsOfTimes(errors_of(seen), weights, N_RUNS, 1.0), tree, SLOTS)
    assert isinstance(terms.nodes, GroupedNodes)
    found = [terms.variance(*one) for one in zip(nodes, steps.astype(float), strict=True)]
    np.testing.assert_allclose(found, exact, rtol=TOLERANCE)
    for lag in range(N_RUNS):  # Var(a + b) = Var(a) + Var(b) + 2 Cov(a, b)
        run = np.eye(SLOTS + N_RUNS)[SLOTS + lag]
        of_both = dense.variances(nodes @ leaves_below(tree).toarray(), np.stack([day, run, day + run]))
        shared = 0.5 * (of_both[:, 2] - of_both[:, 0] - of_both[:, 1])
        earlier = np.array([terms.of_sum(one) @ terms.earlier[:, lag] for one in nodes])
        np.testing.assert_allclose(earlier, shared, atol=1e-3 * of_both[:, 0].max(), rtol=1e-2)
