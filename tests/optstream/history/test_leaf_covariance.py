"""The covariance of leaves, of a tree's series and of divided days is that of the dense Gaussian process."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from optstream.estimation.error_terms import times_before
from optstream.history.filter import MORE_OF_DAYS, DayMeanErrors, TreeFit
from optstream.history.learn import step_blocks
from optstream.history.posterior import Conditioned, Fitted, LeafErrors, series_of
from optstream.history.tree import LeafCovariance, LeafSpans, TreePosterior
from optstream.stream.public_days import PublicDays
from tests.optstream.history.dense import Dense, written_out
from tests.optstream.history.test_tree_posterior import NOISES, SLOTS, TREES, blocks_of, case


@pytest.mark.parametrize("asking", ["steps", "blocks of steps"])
@pytest.mark.parametrize("noise_name", NOISES)
@pytest.mark.parametrize("tree_name", TREES)
def test_it_is_the_dense_process(tree_name, noise_name, asking):
    prior, seen, steps = case(tree_name, noise_name)
    asked = steps if asking == "steps" else blocks_of(np.random.default_rng(7), 6)
    n, leaves = asked.clock.size, seen.tree.leaf_indices
    posterior = TreePosterior(prior, seen)
    doubt = LeafCovariance(LeafSpans(posterior), asked)
    found = written_out(doubt.products(np.eye(leaves.size), np.eye(n)))
    whole = Dense(prior, seen).spread(asked).reshape(len(seen.tree.nodes), n, len(seen.tree.nodes), n)
    expected = whole[leaves][:, :, leaves]
    expected = 0.5 * (expected + expected.transpose(0, 3, 2, 1))  # alike in both orders of a pair
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-8 * expected.max())
    diagonal = np.einsum("isis->is", found)
    if asking == "steps":
        assert np.allclose(
            diagonal, posterior.variances(asked)[leaves], rtol=1e-7, atol=1e-8 * expected.max()
        )


FACTOR = 9.0


def fit_of(steps_per_day, nothing_in=()):
    """A fit of which single values err far more than a day's mean. nothing_in: leaves that are always 0."""
    prior, seen, _ = case("ragged", "all measured")
    sizes = seen.sizes.copy()
    sizes[list(nothing_in)] = 1e-6
    posterior = TreePosterior(replace(prior, steps_per_day=steps_per_day), replace(seen, sizes=sizes))
    known = Conditioned(posterior, FACTOR)
    days = PublicDays.from_date(date(2025, 1, 6), steps_per_day)
    return TreeFit(Fitted(known, False), np.zeros(sizes.size), seen.tree, days, set())


def errors_of(fit, steps):
    earliest = steps.start - 2 * fit.days.steps_per_day
    return fit.errors(times_before(fit.days, steps, earliest, False), len(steps))


@pytest.mark.parametrize("nothing_in", [(), (1,)])
def test_rows_are_as_sure_as_the_file_says(nothing_in):
    fit, steps = fit_of(SLOTS, nothing_in), range(192, 192 + SLOTS)
    errors = errors_of(fit, steps)
    own = np.eye(SLOTS, errors.leaf_errors.targets.clock.size)
    rows, found = fit.series(steps, errors)[1], errors.variances(fit.tree.add_up(np.eye(len(fit.means))), own)
    assert np.allclose(rows, found, rtol=1e-6)
    plain = series_of(fit.found, step_blocks(steps, fit.days))[1]
    assert rows.min() > 0.0
    assert (rows < 0.4 * plain).any()  # or nothing was ever that much surer


OF_DAYS = 1.4


def errors_of_days(noise=1.0):
    prior, seen, asked = case("ragged", "all measured")
    posterior = TreePosterior(prior, replace(seen, noise=noise * seen.noise))
    known = Conditioned(posterior, OF_DAYS)
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
    errors = errors_of_days(noise)
    sizes = errors.leaf_errors.fitted.posterior.seen.sizes
    divided = np.eye(sizes.size) - sizes[:, None] / sizes.sum()
    expected = MORE_OF_DAYS * divided @ left_open(errors).mean(axis=(1, 3)) @ divided.T
    found = errors.more(np.eye(sizes.size))
    assert found.shape == (1, sizes.size, sizes.size)
    assert np.allclose(found[0], expected, atol=0.1 * np.abs(expected).max())


def test_days_before_are_told_of_as_the_day_is():
    """The first steps as the period, and the others as runs of a day before."""
    whole = errors_of_days()
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
    plain = whole.leaf_errors.products(single, OF_DAYS**-0.5 * times).variances()[:, 0]
    more = (2.0 * n) ** 2 * found[0].diagonal() + 2.0 * 2.0 * n * 3.0 * found[1].diagonal()
    assert np.allclose(
        DayMeanErrors(whole.leaf_errors, n).variances(single, times)[:, 0], plain + more, rtol=1e-9
    )
