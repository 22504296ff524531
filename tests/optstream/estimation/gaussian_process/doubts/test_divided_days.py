"""How leaves divide a day: more of what the prior leaves open, and none of what the noise did."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.history.blocks import Blocks
from optstream.history.filter import MORE_OF_DAYS, DoubtOfDays
from optstream.history.posterior import Conditioned, DoubtOfLeaves, Fitted
from optstream.history.tree import TreePosterior
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
def test_more_is_of_what_the_prior_leaves_open_of_the_day(noise):
    doubt = doubt_of(noise)
    sizes = doubt.doubt.fitted.posterior.seen.sizes
    divided = np.eye(sizes.size) - sizes[:, None] / sizes.sum()
    expected = MORE_OF_DAYS * divided @ left_open(doubt).mean(axis=(1, 3)) @ divided.T
    found = doubt.more(np.eye(sizes.size))
    assert found.shape == (1, sizes.size, sizes.size)
    assert np.allclose(found[0], expected, atol=0.1 * np.abs(expected).max())


def test_days_before_are_told_of_as_the_day_is():
    """The first steps as the period, and the others as runs of a day before."""
    whole = doubt_of()
    n, sizes = whole.n_steps // 2, whole.doubt.fitted.posterior.seen.sizes
    found = DoubtOfDays(whole.doubt, n).more(np.eye(sizes.size))
    divided = np.eye(sizes.size) - sizes[:, None] / sizes.sum()
    across = left_open(whole)[:, :n].mean(axis=1)[:, :, n:]
    expected = MORE_OF_DAYS * np.einsum("pi,ijt,qj->tpq", divided, across, divided)
    expected = 0.5 * (expected + expected.transpose(0, 2, 1))
    assert np.allclose(found[1:], expected, atol=0.1 * np.abs(expected).max())
    times = np.zeros((1, whole.n_steps))
    times[0, :n], times[0, n] = 2.0, 3.0
    single = np.eye(sizes.size)
    plain = whole.doubt.products(single, FACTOR**-0.5 * times).variances()[:, 0]
    more = (2.0 * n) ** 2 * found[0].diagonal() + 2.0 * 2.0 * n * 3.0 * found[1].diagonal()
    assert np.allclose(DoubtOfDays(whole.doubt, n).variances(single, times)[:, 0], plain + more, rtol=1e-9)


def in_doubt(doubt):
    """How much is in doubt at each step, of mean 1: by the dense process."""
    posterior = doubt.doubt.fitted.posterior
    variances = Dense(posterior.prior, posterior.seen).at(doubt.doubt.asked)[1]
    found = np.sqrt(variances[posterior.seen.tree.leaf_indices]).mean(axis=0)
    return found / found.mean()


def known_well(clock):
    """The day's doubt where these of its steps alone were measured, and very well."""
    prior, seen, asked = case("ragged", "hardly any noise")
    residuals = seen.residuals[:, : len(clock)]
    posterior = TreePosterior(prior, replace(seen, blocks=Blocks.at(clock), residuals=residuals))
    known = Conditioned(posterior, FACTOR)
    known.__dict__["published"] = posterior
    return DoubtOfDays(DoubtOfLeaves(Fitted(known, False), asked), asked.clock.size)


def test_the_covariance_is_symmetric_and_of_no_negative_variance():
    doubt = known_well(np.array([192, 195, 199]))
    single, times = np.eye(len(doubt.doubt.fitted.posterior.seen.sizes)), np.eye(doubt.n_steps)
    found = doubt.products(single, times)
    columns = np.einsum("pa,asbt,qb->psqt", found.columns, found.forms, found.columns)
    every = np.einsum("kpq,kst->psqt", found.nodes, found.times) + columns
    matrix = every.reshape(single.shape[0] * doubt.n_steps, -1)
    assert np.allclose(matrix, matrix.T, rtol=1e-12, atol=1e-12 * matrix.max())
    least = np.linalg.eigvalsh(matrix)[0]
    assert least > -1e-9 * matrix.max()


def test_what_sums_to_nothing_over_the_day_is_as_sure_as_the_factor_says():
    """Weighted by how much of the day's doubt a step has."""
    doubt = doubt_of()
    times, shares = np.random.default_rng(3).normal(size=(3, doubt.n_steps)), in_doubt(doubt)
    times -= (times * shares).mean(axis=1, keepdims=True)
    single = np.eye(len(doubt.doubt.fitted.posterior.seen.sizes))
    assert np.allclose(
        doubt.variances(single, times), doubt.doubt.products(single, times).variances(), rtol=1e-9
    )


def test_sums_of_sums_have_the_variances_of_their_leaves_and_steps():
    """What a file of errors is made from beside what rows are."""
    doubt, rng = doubt_of(), np.random.default_rng(1)
    leaves = rng.normal(size=(3, len(doubt.doubt.fitted.posterior.seen.sizes)))
    times = rng.normal(size=(4, doubt.n_steps))
    whole = doubt.products(leaves, times)
    assert np.allclose(whole.variances(), doubt.variances(leaves, times), rtol=1e-9)
    parts = rng.normal(size=(2, 3)), rng.normal(size=(2, 4))
    assert np.allclose(
        whole.variances(*parts), doubt.variances(parts[0] @ leaves, parts[1] @ times), rtol=1e-9
    )
