"""How leaves divide a day: more of what the prior leaves open, and none of what the noise did."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.history.filter import MORE_OF_DAYS, Conditioned, DayMeanErrors, Fitted, LeafErrors
from optstream.history.posterior import TreePosterior
from tests.optstream.history.dense import Dense
from tests.optstream.history.test_tree_posterior import case

FACTOR = 1.4


def errors_of(noise=1.0):
    prior, seen, asked = case("ragged", "all measured")
    posterior = TreePosterior(prior, replace(seen, noise=noise * seen.noise))
    known = Conditioned(posterior, FACTOR)
    known.__dict__["published"] = posterior  # of normal noise: the dense process knows no other
    return DayMeanErrors(LeafErrors(Fitted(known, False), asked), asked.clock.size)


def left_open(errors):
    """What the prior leaves open of the leaves at the steps, written out: not what the noise did."""
    posterior, asked = errors.leaf_errors.fitted.posterior, errors.leaf_errors.targets
    dense, seen = Dense(posterior.prior, posterior.seen), posterior.seen
    across = dense.covariance(asked, seen.blocks)[:, dense.rows]
    gain = np.linalg.solve(dense.measured, across.T).T
    noise = np.repeat(seen.noise, seen.blocks.clock.size)[dense.rows]
    found = dense.spread(asked) - (gain * noise) @ gain.T
    n, leaves = asked.clock.size, seen.tree.leaf_indices
    return found.reshape(len(seen.tree.nodes), n, len(seen.tree.nodes), n)[leaves][:, :, leaves]


@pytest.mark.parametrize("noise", [0.1, 1.0, 100.0])
def test_more_is_of_what_the_prior_leaves_open_of_the_day(noise):
    errors = errors_of(noise)
    sizes = errors.leaf_errors.fitted.posterior.seen.sizes
    divided = np.eye(sizes.size) - sizes[:, None] / sizes.sum()
    expected = MORE_OF_DAYS * divided @ left_open(errors).mean(axis=(1, 3)) @ divided.T
    found = errors.more(np.eye(sizes.size))
    assert found.shape == (1, sizes.size, sizes.size)
    assert np.allclose(found[0], expected, atol=0.1 * np.abs(expected).max())


def test_days_before_are_told_of_as_the_day_is():
    """The first steps as the period, and the others as runs of a day before."""
    whole = errors_of()
    n, sizes = whole.n_steps // 2, whole.leaf_errors.fitted.posterior.seen.sizes
    found = DayMeanErrors(whole.leaf_errors, n).more(np.eye(sizes.size))
    divided = np.eye(sizes.size) - sizes[:, None] / sizes.sum()
    across = left_open(whole)[:, :n].mean(axis=1)[:, :, n:]
    expected = MORE_OF_DAYS * np.einsum("pi,ijt,qj->tpq", divided, across, divided)
    expected = 0.5 * (expected + expected.transpose(0, 2, 1))
    assert np.allclose(found[1:], expected, atol=0.1 * np.abs(expected).max())
    times = np.zeros((1, whole.n_steps))
    times[0, :n], times[0, n] = 2.0, 3.0
    single = np.eye(sizes.size)
    plain = whole.leaf_errors.products(single, FACTOR**-0.5 * times).variances()[:, 0]
    more = (2.0 * n) ** 2 * found[0].diagonal() + 2.0 * 2.0 * n * 3.0 * found[1].diagonal()
    assert np.allclose(
        DayMeanErrors(whole.leaf_errors, n).variances(single, times)[:, 0], plain + more, rtol=1e-9
    )
