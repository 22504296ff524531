"""Terms of nodes times steps against the covariance written out."""

import numpy as np
import pytest

from optstream.estimation.error_terms import (
    ErrorFactor,
    ErrorProducts,
    SumsOfTimes,
    error_terms,
    times_before,
)
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays
from tests.optstream.history.dense import written_out

TREE = AggregationTree.from_parents(
    {
        "all": None,
        "A": "all",
        "B": "all",
        **{f"a{n}": "A" for n in range(4)},
        **{f"b{n}": "B" for n in range(5)},
    }
)
N_STEPS, N_COLUMNS = 8, 5
BELOW = TREE.add_up(np.eye(len(TREE.leaves)))


def factor(seed, n_earlier=0):
    """What leaves share, what a family shares, what is a leaf's own: each smooth over time."""
    random, n_times = np.random.default_rng(seed), N_STEPS + n_earlier
    away = np.abs(np.subtract.outer(np.arange(n_times), np.arange(n_times)))
    parts = []
    for length, of_leaves in ((6.0, np.ones((9, 1))), (3.0, BELOW[1:3].T), (1.0, np.eye(9))):
        smooth = np.linalg.cholesky(np.exp(-away / length) + 1e-9 * np.eye(n_times))
        sizes = random.uniform(1, 3, (of_leaves.shape))
        parts.append(np.einsum("ip,tk->itpk", sizes * of_leaves, smooth).reshape(9, n_times, -1))
    found = WithDaysBefore(np.concatenate(parts, axis=2))
    object.__setattr__(found, "n_before", n_earlier)
    return found


class WithDaysBefore(ErrorFactor):
    """A factor whose last times are days before."""

    @property
    def n_earlier(self):
        return self.n_before


class AsProducts:
    """The same as products: of each pair of leaves, where one is not among the first as matrices."""

    of_nodes, n_earlier = False, 0

    def __init__(self, whole):
        self.whole = whole

    def products(self, leaves, times):
        n = len(self.whole.parts)
        sums = between(self.whole, np.eye(n), times)
        first, second = (pair[np.triu_indices(n)[1] >= N_COLUMNS] for pair in np.triu_indices(n))
        of_nodes = np.where(first == second, 0.5, 1.0)[:, None, None] * leaves.T[first][:, :, None]
        both = (of_nodes * leaves.T[second][:, None, :], 0.5 * sums[first, :, second, :])
        matrices = (one + one.transpose(0, 2, 1) for one in both)
        return ErrorProducts(*matrices, leaves[:, :N_COLUMNS], sums[:N_COLUMNS, :, :N_COLUMNS])


def between(whole, leaves, times):
    """The covariance of a factor's weighted sums, pair by pair."""
    sums = np.einsum("il,ts,lsk->itk", leaves, times, whole.parts)
    return np.tensordot(sums, sums, axes=(2, 2))


def variances(whole, leaves, times):
    return np.einsum("isis->is", between(whole, leaves, times))


def as_products(whole):
    n_times = whole.parts.shape[1]
    return SumsOfTimes(AsProducts(ErrorFactor(whole.parts / 2)), np.eye(n_times), whole.n_earlier, 4.0)


def questions(seed, n):
    random = np.random.default_rng(seed)
    for _ in range(n):
        first, last = np.sort(random.choice(N_STEPS + 1, 2, replace=False))
        leaves = random.random(9) < 0.4
        nodes = np.zeros(len(TREE.nodes))
        if leaves.any():
            nodes[TREE.leaf_indices] = leaves
        else:
            nodes[random.integers(3)] = 1.0
        yield nodes, ((np.arange(N_STEPS) >= first) & (np.arange(N_STEPS) < last)).astype(float)


@pytest.mark.parametrize("known", ["factor", "products"])
def test_any_sum_over_nodes_and_steps_has_the_variance_of_the_covariance(known):
    errors = factor(1)
    terms = error_terms(as_products(errors) if known == "products" else errors, TREE, N_STEPS)
    assert len(terms.nodes) < 9 * N_STEPS / 4
    for nodes, steps in questions(2, 100):
        exact = variances(errors, (nodes @ BELOW)[None], steps[None])[0, 0]
        assert terms.variance(nodes, steps) == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("known", ["factor", "products"])
def test_a_day_hangs_together_with_the_days_before_it(known):
    errors = factor(3, n_earlier=2)
    terms = error_terms(as_products(errors) if known == "products" else errors, TREE, N_STEPS)
    whole = between(errors, np.eye(9), np.eye(N_STEPS + 2))
    for node, leaves in zip(np.eye(len(TREE.nodes)), BELOW, strict=True):
        exact = np.einsum("i,isjt,j->st", leaves, whole, leaves)[:N_STEPS, N_STEPS:].sum(axis=0)
        found = np.einsum("rij,i,j,re->e", terms.nodes, node, node, terms.earlier)
        scale = np.sqrt(terms.variance(node, np.ones(N_STEPS)))
        assert np.allclose(found, exact, rtol=1e-2, atol=1e-3 * scale)


def test_products_say_what_the_covariance_says():
    errors = factor(5)
    products = AsProducts(errors).products(BELOW, np.eye(N_STEPS))
    whole = between(errors, BELOW, np.eye(N_STEPS))
    both = 0.5 * (whole + whole.transpose(0, 3, 2, 1))
    assert np.allclose(written_out(products), both)
    assert np.allclose(products.variances(), variances(errors, BELOW, np.eye(N_STEPS)))
    found = sum(np.multiply.outer(*one) for one in products.principal(np.ones(len(BELOW)), most=10_000))
    assert np.allclose(found.transpose(0, 2, 1, 3), both)
    twice = products.joined(products.columns, products.forms)
    added = ErrorProducts(products.nodes[:0], products.times[:0], products.columns, products.forms)
    assert np.allclose(written_out(twice), both + written_out(added))
    sums = np.random.default_rng(6).normal(size=(3, len(BELOW)))
    assert np.allclose(products.variances(sums), variances(errors, sums @ BELOW, np.eye(N_STEPS)))


def test_days_before_are_whole_days_that_the_estimate_looks_at():
    days = PublicDays(4)
    # step 3 is the last of a day of which no more is looked at
    asked = times_before(days, range(12, 16), 3, is_first=False)
    assert asked.weights.shape == (4 + 2, 4 + 2)
    assert asked.starts.tolist() == [12, 13, 14, 15, 4, 8]
    assert asked.lengths.tolist() == [1, 1, 1, 1, 4, 4]
    assert np.array_equal(asked.weights[:4, :4], np.eye(4))
    assert np.array_equal(asked.weights[4:, 4:], [[0, 1], [1, 0]])  # the nearest first
    whole = times_before(days, range(12, 16), 3, is_first=True)
    assert (whole.starts[4:].tolist(), whole.lengths[4:].tolist()) == ([0, 4, 8], [4, 4, 4])
    assert times_before(days, range(12, 16), 4, is_first=False).weights.shape == (4 + 2, 4 + 2)
    assert times_before(days, range(12, 16), 12, is_first=False).weights.shape == (4, 4)
