"""Counts over a tree: which blocks are looked at, where none were measured, how errors hang together."""

from datetime import date

import numpy as np
import pytest

from optstream.estimation.error_terms import SumsOfTimes, error_terms
from optstream.estimation.groups import GroupedNodes
from optstream.history.blocks import BlockHistory
from optstream.history.count_errors import count_errors
from optstream.history.counts import LEAST_VARIANCE, fit_counts, shared_fit
from optstream.history.filter import FilterState
from optstream.history.prior import TemporalPrior
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays
from tests.optstream.history.plain_counts import variances

DAYS = PublicDays.from_date(date(2024, 1, 1), 24)
TREE = AggregationTree(
    ("city", "a", "b", *(f"z{number}" for number in range(6))), (-1, 0, 0, 1, 1, 1, 2, 2, 2)
)
RATES = np.array([0.1, 0.1, 9.0, 2.0, 0.5, 0.1])
BELIEF = FilterState(BlockHistory.empty(0), TemporalPrior.broad(24), DAYS)


def history(level, starts, length, scale, seed=0):
    hours = np.arange(30 * 24)
    rates = TREE.add_up(RATES[:, None] * (1 + 0.5 * np.sin(hours * np.pi / 12)))
    rates = rates[TREE.levels[level].start : TREE.levels[level].stop]
    sums = np.stack([rates[:, at : at + length].sum(axis=1) for at in starts], axis=1)
    noise = np.random.default_rng([seed, level]).laplace(size=sums.shape) * scale
    same = np.full(starts.size, length)
    return BlockHistory(starts, same, np.full(starts.size, float(scale)), np.rint(sums + noise))


def histories():
    dense, small = np.arange(0, 28 * 24, 13), np.arange(0, 28 * 24, 25)
    return {0: history(0, dense, 2, 6), 1: history(1, dense, 2, 12), 2: history(2, small, 4, 8)}


def fitted(known, small=2, scale=2.0):
    steps = range(27 * 24, 28 * 24)
    shared = shared_fit(BELIEF, known, TREE, small, steps, scale)
    return fit_counts(shared, known, TREE, small, steps, scale)


def test_busy_leaves_are_busy_and_empty_ones_nearly_0():
    fit = fitted(histories())
    assert fit.means.shape == fit.variances.shape == fit.given.shape == (9, 24)
    leaves = fit.means[3:].mean(axis=1)
    assert leaves[2] > 5
    assert leaves[[0, 1, 5]].max() < 1.5
    assert fit.means[3:].min() >= 0
    assert (fit.variances > 0).all()
    assert (fit.given[:3] >= fit.variances[:3]).all()
    measured = np.isin(np.arange(27 * 24, 28 * 24), np.arange(0, 28 * 24, 13)[:, None] + np.arange(2))
    assert (fit.count_variances[:, ~measured] >= 1).all()
    assert (fit.count_variances[3:] >= 1).all()
    assert (fit.count_variances[:3, measured] < 1).all()


def test_nodes_are_as_sure_as_the_leaves_that_they_are_the_sums_of():
    """City and boroughs with blocks of noise 400, and zones with 2: errors are those of zones, what nodes
    give way by is not.
    """
    hardly, dense = histories(), np.arange(0, 28 * 24, 13)
    hardly |= {0: history(0, dense, 2, 400), 1: history(1, dense, 2, 400)}
    surer, unsure = ({**hardly, 2: history(2, np.arange(0, 28 * 24, 25), 4, noise)} for noise in (2, 400))
    known, unknown = fitted(surer), fitted(unsure)
    assert (known.variances[:3] < 0.3 * unknown.variances[:3]).all()
    assert known.given[:3] == pytest.approx(unknown.given[:3])
    # the control: leaves that are noisier than their parents tell nothing of these
    apart = fitted(histories() | {2: history(2, np.arange(0, 28 * 24, 25), 4, 400)})
    assert apart.variances[:3] + LEAST_VARIANCE == pytest.approx(apart.given[:3])


def test_blocks_of_another_plans_noise_are_left_out():
    known, other = histories(), history(2, np.arange(0, 26 * 24, 25), 4, 80, seed=3)
    mixed = other.joined(known[2].between(26 * 24, 28 * 24))
    alone = fitted({**known, 2: known[2].between(26 * 24, 28 * 24)})
    assert np.array_equal(fitted({**known, 2: mixed}).means, alone.means)


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


def tree_of(n_parents, n_leaves):
    """A city, parents, and leaves of unequal parents."""
    random = np.random.default_rng(n_leaves)
    parents = {"city": None, **{f"p{number}": "city" for number in range(n_parents)}}
    of_leaves = np.r_[np.arange(n_parents), random.integers(n_parents, size=n_leaves - n_parents)]
    return AggregationTree.from_parents(parents | {f"l{n}": f"p{up}" for n, up in enumerate(of_leaves)})


def errors_of(tree, small, asked):
    """Errors of made counts; the deepest level is measured at blocks of its own, or as all others."""
    random, hours = np.random.default_rng(2), np.arange(30 * 24)
    sizes = (0.5 if small else 30.0) * np.exp(random.normal(0.0, 1.0, len(tree.leaves)))
    phases = random.uniform(0, 1, len(tree.leaves))[:, None]
    rates = tree.add_up(sizes[:, None] * (1 + 0.5 * np.sin(hours * np.pi / 12 + phases)))
    known = {}
    for level, at in enumerate(tree.levels):
        length, every = (4, 25) if small == level else (1, 5)
        starts = np.arange(14 * 24, 28 * 24, every)
        sums = np.stack([rates[at.start : at.stop, one : one + length].sum(axis=1) for one in starts], axis=1)
        scale = 3.0 * np.ones(starts.size)
        noise = scale * random.laplace(size=sums.shape)
        known[level] = BlockHistory(starts, np.full(starts.size, length), scale, np.rint(sums + noise))
    fit = shared_fit(BELIEF, known, tree, small, STEPS, 2.0)
    return count_errors(fit, known, tree, small, asked, 24)


def questions(tree, asked):
    """Sums of nodes of which none lies in another, with their weights, and spans of steps and days."""
    random, parents = np.random.default_rng(3), np.array(tree.parents)
    leaves, above = tree.leaf_indices, np.unique(parents[tree.leaf_indices])
    nodes = [np.eye(len(parents))[random.permutation(len(parents))[:20]], np.eye(1, len(parents))]
    for share in (0.05, 0.5, 1.0):
        some = np.zeros((4, len(parents)))
        some[:, leaves] = random.random((4, leaves.size)) < share
        whole = random.random((4, above.size)) < 0.3
        some[:, above] = whole
        some[:, leaves[np.isin(parents[leaves], above)]] *= ~whole[:, np.searchsorted(above, parents[leaves])]
        some[2:] *= random.normal(size=some[2:].shape)
        nodes.append(some)
    first, second, third = np.eye(len(parents))[[leaves[0], leaves[-1], above[0]]]
    nodes.append(np.stack([first - second, third - second]))
    times = np.zeros((10, len(asked)))
    times[np.arange(6), -24 + np.arange(0, 24, 4)] = 1.0
    times[6, -24:], times[7, -20:-8], times[8, -6:], times[9, -9:-7] = 1.0, 1.0, 1.0, 1.0
    every = np.vstack(nodes)
    return every[every.any(axis=1)], times


SIZES = {"30 nodes": (5, 24), "120 nodes": (10, 109)}


@pytest.mark.parametrize("small", [2, None])
@pytest.mark.parametrize("size", SIZES)
def test_sums_err_as_plain_covariances_of_all_leaves_and_steps_say(size, small):
    asked, tree = range(27 * 24 - 12, 28 * 24), tree_of(*SIZES[size])
    found = errors_of(tree, small, asked)
    nodes, times = questions(tree, asked)
    exact = variances(found, nodes, times)
    np.testing.assert_allclose(found.products(nodes, times).variances(), exact, rtol=2e-3)
    before = np.r_[np.ones(12), np.zeros(24)]
    weights = np.vstack([np.eye(36)[12:], before])
    terms = error_terms(SumsOfTimes(found, weights, 1, 1.0), tree, 24)
    assert isinstance(terms.nodes, GroupedNodes)
    told = [[terms.variance(node, span[-24:]) for span in times] for node in nodes]
    np.testing.assert_allclose(told, exact, rtol=0.02, atol=1e-5)
    # Var(a + b) = Var(a) + Var(b) + 2 Cov(a, b)
    day = np.r_[np.zeros(12), np.ones(24)]
    of_both = variances(found, nodes, np.stack([day, before, day + before]))
    together = 0.5 * (of_both[:, 2] - of_both[:, 0] - of_both[:, 1])
    earlier = np.array([terms.of_sum(node) @ terms.earlier[:, 0] for node in nodes])
    assert (np.abs(earlier - together) < 5e-3 * of_both[:, 0]).all()
