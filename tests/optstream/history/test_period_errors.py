"""The errors of a period: draws of them have their closed form, which is right about means over a day."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.history import filter as filter_module
from optstream.history.covariates import effect_of
from optstream.history.filter import MORE_OF_DAYS, Fitted, PeriodErrors
from optstream.history.posterior import TreePosterior
from optstream.stream.covariate import Covariate
from tests.by_night import few
from tests.optstream.history.dense import Dense
from tests.optstream.history.test_tree_posterior import NOISES, TREES, blocks_of, case
from tests.optstream.monte_carlo import Z

FACTOR, N = 1.4, 1000


def errors_of(tree_name="ragged", *, factor=FACTOR, is_day=True, noise=1.0, nothing_in=(), covariates=()):
    """A day's errors, of normal noise: the dense process knows no other. nothing_in: leaves nearly 0."""
    prior, seen, asked = case(tree_name, "all measured")
    sizes = seen.sizes.copy()
    sizes[list(nothing_in)] = 1e-6
    blocks = replace(seen.blocks, clock=seen.blocks.clock + 30 + np.arange(14))  # no two begin together
    seen = replace(seen, noise=noise * seen.noise, sizes=sizes, blocks=blocks)
    posterior = TreePosterior(prior, seen)
    effect = effect_of(posterior, covariates) if covariates else None
    fitted = Fitted(posterior, factor, np.full(seen.tree.n_levels, factor), effect)
    fitted.__dict__["published"] = posterior
    return PeriodErrors(fitted, replace(asked, clock=asked.clock + 30), is_day)


@pytest.fixture
def exact(monkeypatch):
    """The noise's part by a small difference."""
    monkeypatch.setattr(filter_module, "MORE_NOISE", 1e-4)


def off(drawn, variances):
    """By how many standard errors mean squares of draws are off; 1e-4 of a variance for rounding."""
    squares = drawn**2
    errors = np.sqrt((squares.var(axis=0) + (1e-4 * variances) ** 2 * len(drawn)) / len(drawn))
    return np.abs(squares.mean(axis=0) - variances) / errors


TEMPERATURE = Covariate("temperature", 0, 10 + np.random.default_rng(1).normal(0, 15, (1, 40)))
CASES = {
    "a star": {"tree_name": "a star"},
    "cells that do not exist": {"tree_name": "cells that do not exist"},
    "a single value a day": {"is_day": False},
    "a factor of 9": {"factor": 9.0, "nothing_in": (1,)},
    "covariates": {"covariates": (TEMPERATURE,)},
    "one leaf": {"tree_name": "one leaf"},
    "two dimensions": {"tree_name": "two dimensions"},
    "much noise": {"noise": 100.0},
    "covariates, no day": {"covariates": (TEMPERATURE,), "is_day": False},
}


@pytest.mark.slow
@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("name", few(CASES, 5))
def test_draws_vary_as_the_closed_form_says(name):
    """Of every node at every step, and over the day. False alarm below 1e-6 (`monte_carlo.Z`)."""
    errors = errors_of(**CASES[name])
    known, n = errors.fitted, errors.steps.clock.size
    assert (known.effect is not None) == ("covariates" in name)
    drawn, variances = errors.draws(N), errors.series()[1]
    assert off(drawn, variances).max() < Z
    assert off(drawn * 1.3, variances).max() > Z, "the control: three tenths more"
    over_day = np.full((1, n), 1.0 / n)
    of_means = known.published.variances(errors.steps, times=over_day)[:, 0]
    if known.effect is not None:
        of_means += known.effect.variances(errors.steps, over_day)[:, 0]
    of_means = of_means + errors.more if errors.is_day else FACTOR * of_means
    assert off(drawn.mean(axis=2), of_means).max() < Z


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("noise", [0.1, 1.0, 100.0])
def test_more_is_of_what_the_prior_leaves_open_of_the_day(noise):
    """Not of what the noise did; written out."""
    errors = errors_of(noise=noise)
    posterior, steps = errors.fitted.posterior, errors.steps
    dense, seen = Dense(posterior.prior, posterior.seen), posterior.seen
    gain = np.linalg.solve(dense.measured, dense.across(steps, None).T).T
    of_noise = (gain * np.repeat(seen.noise, seen.blocks.clock.size)[dense.rows]) @ gain.T
    n, nodes = steps.clock.size, len(seen.tree.nodes)
    left = (dense.spread(steps) - of_noise).reshape(nodes, n, nodes, n).mean(axis=(1, 3))
    apart = np.eye(nodes)
    apart[:, 0] -= posterior.weights[:, 0] / posterior.weights[0, 0]
    expected = MORE_OF_DAYS * np.diag(apart @ left @ apart.T)
    np.testing.assert_allclose(errors.more, expected, rtol=1e-2, atol=1e-4 * expected.max())


@pytest.mark.parametrize("noise_name", NOISES)
@pytest.mark.parametrize("tree_name", TREES)
def test_sums_over_steps_have_the_variances_of_the_dense_process(tree_name, noise_name):
    """Of any weights, and with the root; of blocks of steps too."""
    prior, seen, steps = case(tree_name, noise_name)
    posterior, nodes = TreePosterior(prior, seen), len(seen.tree.nodes)
    times = np.random.default_rng(5).normal(size=(4, 12))
    for at, weights in ((steps, times), (blocks_of(np.random.default_rng(7), 6), times[:, :6])):
        whole = Dense(prior, seen).spread(at).reshape(nodes, at.clock.size, nodes, at.clock.size)
        exact = np.einsum("qs,isjt,qt->qij", weights, whole, weights)
        found, least = posterior.variances(at, times=weights), 1e-8 * exact.max()
        np.testing.assert_allclose(found.T, np.einsum("qii->qi", exact), rtol=1e-7, atol=least)
        some = np.array([0, nodes - 1])
        np.testing.assert_allclose(
            posterior.variances(at, some, times=weights), found[some], rtol=1e-7, atol=least
        )
        with_root = posterior.covariance_with_root(at, weights[0])
        np.testing.assert_allclose(with_root, exact[0, :, 0], rtol=1e-7, atol=least)
