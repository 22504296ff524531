"""How the errors of counts hang together: what rows say of single values, and what sums share."""

import numpy as np
import pytest

from optstream.estimation.counts.count_errors import MOST_TRUSTS, count_errors, few_products
from optstream.estimation.counts.tree_counts import fit_counts, shared_fit
from optstream.estimation.error_covariance import SumsOfTimes
from optstream.estimation.error_terms import error_terms
from optstream.estimation.gaussian_process.history import BlockHistory
from tests.optstream.estimation.counts.test_tree_counts import BELIEF, TREE, histories, history
from tests.optstream.estimation.written_out import written_out

STEPS = range(27 * 24, 28 * 24)
ASKED = range(25 * 24, 28 * 24)


def dense():
    """All levels measured at the same blocks."""
    starts = np.arange(0, 28 * 24, 13)
    return {level: history(level, starts, 2, 6) for level in range(3)}


def shared(known, small):
    return shared_fit(BELIEF, known, TREE, small, STEPS, 2.0)


KNOWN = {"small leaves": (histories, 2), "the same blocks": (dense, None)}


@pytest.mark.parametrize("kind", KNOWN)
def test_single_counts_err_as_their_rows_say(kind):
    """Of every node at every step: what is not known of its expectation, and what counts vary around it."""
    known, small = KNOWN[kind][0](), KNOWN[kind][1]
    fit = fit_counts(shared(known, small), known, TREE, small, STEPS, 2.0)
    found = count_errors(shared(known, small), known, TREE, small, ASKED, 24)
    times = np.eye(len(ASKED))[-len(STEPS) :]
    leaves, told = np.maximum(fit.means[TREE.leaf_indices], 0.0), 1.0 - fit.count_variances
    told[fit.n_normal :] = 0.0
    more = np.where(np.arange(len(TREE.nodes)) < fit.n_normal, 1.0, fit.count_variances[-1, 0])[:, None]
    rows = fit.variances + more * TREE.add_up(leaves) - told * fit.means
    np.testing.assert_allclose(found.products(np.eye(len(TREE.nodes)), times).variances(), rows, rtol=0.01)
    outside = (told == 0.0).all(axis=0)
    assert 0 < outside.sum() < len(STEPS)  # elsewhere counts were measured, and rows say so
    assert (told[:, ~outside] > 0.01).any()


@pytest.mark.parametrize("kind", KNOWN)
def test_variances_are_the_covariances_of_sums_with_themselves_and_none_is_below_0(kind):
    known, small = KNOWN[kind][0](), KNOWN[kind][1]
    found = count_errors(shared(known, small), known, TREE, small, ASKED, 24)
    random = np.random.default_rng(1)
    nodes, times = random.normal(size=(4, len(TREE.nodes))), random.normal(size=(3, len(ASKED)))
    products = found.products(nodes, times)
    whole = written_out(products)
    np.testing.assert_allclose(np.einsum("isis->is", whole), products.variances(), rtol=1e-9)
    flat = whole.reshape(12, 12)
    np.testing.assert_allclose(flat, flat.T, atol=1e-9 * np.abs(flat).max())
    assert np.linalg.eigvalsh(flat).min() > -1e-9 * np.abs(flat).max()


@pytest.mark.parametrize("kind", KNOWN)
def test_few_terms_give_it_with_the_day_before(kind):
    known, small = KNOWN[kind][0](), KNOWN[kind][1]
    inner = count_errors(shared(known, small), known, TREE, small, ASKED, 24)
    times = np.zeros((25, len(ASKED)))
    times[:24, -24:] = np.eye(24)
    times[24, 24:48] = 1.0
    covariance = SumsOfTimes(inner, times, 1, 1.0)
    terms = error_terms(covariance, TREE, 24)
    for names, steps in (([0], range(24)), ([3, 4, 8], range(7, 19)), ([5], [20])):
        nodes, chosen = np.zeros(len(TREE.nodes)), np.zeros(25)
        nodes[names], chosen[steps] = 1.0, 1.0
        exact = covariance.products(nodes[None], chosen[None]).variances()[0, 0]
        assert terms.variance(nodes, chosen[:24]) == pytest.approx(exact, rel=0.02)
    day, before = np.r_[np.ones(24), 0.0], np.r_[np.zeros(24), 1.0]
    both = written_out(covariance.products(np.eye(9)[:1], np.stack([day, before])))[0, 0, 0, 1]
    assert terms.nodes[:, 0, 0] @ terms.earlier[:, 0] == pytest.approx(both, rel=0.05)


def test_days_share_what_is_not_known_of_a_size():
    """A leaf's daily sums err alike: by more than if days were independent."""
    found = count_errors(shared(histories(), 2), histories(), TREE, 2, ASKED, 24)
    days = np.kron(np.eye(3), np.ones(24))
    leaf = np.eye(9)[5:6]
    both = written_out(found.products(leaf, days))[0, :, 0, :]
    assert both[2, 1] > 0.1 * both[2, 2]


def test_leaves_that_were_never_measured_have_none():
    known = histories() | {2: BlockHistory.empty(6)}
    assert count_errors(shared(known, 2), known, TREE, 2, ASKED, 24) is None


def test_how_far_nodes_are_trusted_is_a_sum_of_few_products():
    """Of 161 nodes whose counts vary more than expected products to 3 % are 14, of real ones 36."""
    random = np.random.default_rng(3)
    sizes = np.exp(random.normal(0.0, 0.5, 150))
    of_nodes = np.concatenate([[sizes.sum()], sizes.reshape(10, 15).sum(axis=1), sizes])
    shape = np.tile(0.15 + np.sin(np.arange(24) / 24 * np.pi) ** 2, 14)
    counts, noise = 1000.0 * np.outer(of_nodes, shape), 10_000.0
    varied = np.sqrt(counts / (counts + noise) * counts)
    found = counts + 4.0 * random.laplace(size=counts.shape) * varied
    rows = np.sqrt(noise / (noise + np.maximum(found, 1e-9)))
    nodes, times = few_products(rows)
    assert len(nodes) == len(times) <= MOST_TRUSTS
    np.testing.assert_allclose(nodes.T @ times, rows, rtol=0.1)
    assert np.abs(nodes.T @ times / rows - 1.0).mean() < 0.02


def test_one_product_is_enough_of_what_is_one():
    random = np.random.default_rng(4)
    rows = np.outer(random.uniform(1e-6, 1.0, 5), random.uniform(1e-6, 1.0, 9))
    nodes, times = few_products(rows)
    assert len(nodes) == 1
    np.testing.assert_allclose(nodes.T @ times, rows, rtol=1e-9)
