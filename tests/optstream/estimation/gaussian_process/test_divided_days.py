"""How leaves divide a day: more of what the prior leaves open, and none of what the noise did."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.estimation.gaussian_process.divided_days import MORE_OF_DAYS, DoubtOfDays
from optstream.estimation.gaussian_process.posterior import Conditioned, DoubtOfLeaves, Fitted
from optstream.estimation.gaussian_process.tree_posterior import TreePosterior
from tests.optstream.estimation.gaussian_process.dense import Dense
from tests.optstream.estimation.gaussian_process.test_tree_posterior import case

FACTOR = 1.4


def doubt_of(noise=1.0):
    prior, seen, asked = case("ragged", "all measured")
    posterior = TreePosterior(prior, replace(seen, noise=noise * seen.noise))
    known = Conditioned(posterior, FACTOR)
    known.__dict__["published"] = posterior  # of normal noise: the dense process knows no other
    return DoubtOfDays(DoubtOfLeaves(Fitted(known, False), asked), asked.clock.size)


def left_open(doubt):
    """What the prior leaves open of the leaves at the steps, written out: not what the noise did."""
    posterior, asked = doubt.doubt.fitted.posterior, doubt.doubt.asked
    dense, seen = Dense(posterior.prior, posterior.seen), posterior.seen
    across = dense.covariance(asked, seen.blocks)[:, dense.rows]
    gain = np.linalg.solve(dense.measured, across.T).T
    noise = np.repeat(seen.noise, seen.blocks.clock.size)[dense.rows]
    found = dense.spread(asked) - (gain * noise) @ gain.T
    n, leaves = asked.clock.size, seen.tree.leaf_indices
    return found.reshape(len(seen.tree.nodes), n, len(seen.tree.nodes), n)[leaves][:, :, leaves]


@pytest.mark.parametrize("noise", [0.1, 1.0, 100.0])
def test_it_is_of_the_days_mean_and_of_what_the_prior_leaves_open(noise):
    doubt = doubt_of(noise)
    sizes, n = doubt.doubt.fitted.posterior.seen.sizes, doubt.n_steps
    divided = np.eye(sizes.size) - sizes[:, None] / sizes.sum()
    times = np.random.default_rng(1).normal(size=(3, n))
    of_day = np.repeat(times.mean(axis=1, keepdims=True), n, axis=1)
    whole = left_open(doubt)
    expected = np.einsum("pi,sa,iajb,qj,tb->psqt", divided, of_day, whole, divided, of_day, optimize=True)
    found = doubt.more(np.eye(sizes.size), times).between()
    expected = MORE_OF_DAYS * 0.5 * (expected + expected.transpose(0, 3, 2, 1))
    assert np.allclose(found, expected, rtol=0.1, atol=0.1 * np.abs(expected).max())


def test_a_days_mean_of_all_leaves_is_as_sure_as_the_posterior_says():
    doubt = doubt_of()
    even, single = np.ones((1, doubt.n_steps)), np.eye(doubt.n_steps)
    every = np.ones((1, len(doubt.doubt.fitted.posterior.seen.sizes)))
    assert np.allclose(FACTOR * doubt.variances(every, even), doubt.doubt.variances(every, even), rtol=1e-9)
    ratios = doubt.variances(every, single) / doubt.doubt.variances(every, single)
    assert (ratios > 1.0 / FACTOR).all()


def test_a_leafs_day_is_less_sure_by_what_the_prior_leaves_open():
    doubt = doubt_of()
    even, single = np.ones((1, doubt.n_steps)), np.eye(len(doubt.doubt.fitted.posterior.seen.sizes))
    more = doubt.variances(single, even) - doubt.doubt.variances(single, even) / FACTOR
    assert np.allclose(more, doubt.more(single, even).variances(), rtol=1e-9)
    assert (more > 0.0).all()


def test_what_sums_to_nothing_over_the_day_is_as_sure_as_the_factor_says():
    doubt = doubt_of()
    times = np.random.default_rng(3).normal(size=(3, doubt.n_steps))
    times -= times.mean(axis=1, keepdims=True)
    single = np.eye(len(doubt.doubt.fitted.posterior.seen.sizes))
    assert np.allclose(doubt.variances(single, times), doubt.doubt.variances(single, times), rtol=1e-9)
