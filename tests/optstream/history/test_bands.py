"""Bands hold what they say and respect 0; a level's factor is near 1 where the prior is right."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from optstream.history.blocks import Blocks
from optstream.history.counts import LEAST_GAMMA_SHAPE, SHARES, band_edges, count_bands, level_factors
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import TemporalPrior
from optstream.stream import AggregationTree


def test_ends_of_bands_are_the_quantiles_of_the_negative_binomial():
    rng = np.random.default_rng(6)
    mean, more = 10 ** rng.uniform(-6, 6, 5_000), 10 ** rng.uniform(-9, 9, 5_000)
    more = np.clip(more, 1.01e-3 * mean**2 + 1e-12, mean**2 / LEAST_GAMMA_SHAPE)
    low, high = count_bands(mean, more, 1.0)
    size = mean**2 / more
    exact = [stats.nbinom.ppf(tail, size, size / (size + mean)) for tail in (0.5 - 0.95 / 2, 0.5 + 0.95 / 2)]
    assert np.array_equal(low, exact[0])
    assert np.array_equal(high, exact[1])


@pytest.mark.parametrize(("mean", "doubt", "counted"), [(9e4, 0.0, 1.0), (9e4, 400.0, 0.1), (3.0, 0.0, 0.04)])
def test_a_large_count_and_one_that_was_measured_have_normal_bands(mean, doubt, counted):
    """40,000 counts, false alarm 6e-7; the control is the band of a count of which nothing was measured."""
    random = np.random.default_rng(7)
    deviation = np.sqrt(doubt + counted * mean)
    found = random.normal(mean, deviation, 40_000)
    truth = np.rint(found + random.normal(0.0, deviation, found.size))
    low, high = count_bands(found, np.array(doubt), counted)
    assert (low <= np.rint(found)).all()
    assert (high - low <= 4.0 * deviation + 1.0).all()
    assert (np.rint(found) <= high).all()
    held = ((low <= truth) & (truth <= high)).mean()
    assert held > 0.95 - 5 * np.sqrt(0.05 * 0.95 / found.size)
    if mean > 1000:
        assert held < 0.955
    if counted < 1.0:
        low, high = count_bands(found, np.array(doubt), 1.0)
        assert ((low <= truth) & (truth <= high)).mean() > 0.999


N_LEAVES, N_BLOCKS = 12, 110
TREE = AggregationTree(("all", *map(str, range(N_LEAVES))), (-1, *([0] * N_LEAVES)))


def posterior(wilder=1.0, noise=1e-3, seed=0, prior=None, root=True):
    """Leaves drawn from the prior, `wilder` times as far from their means as it says."""
    rng, prior = np.random.default_rng(seed), prior or TemporalPrior.broad(24)
    starts = np.arange(N_BLOCKS) * 13
    blocks = Blocks.at(starts, np.full(N_BLOCKS, 2), weight=np.full(N_BLOCKS, 0.5))
    shared, own = (
        np.linalg.cholesky(part + 1e-9 * np.eye(N_BLOCKS)) for part in prior.covariances(blocks, blocks)
    )
    leaves = rng.normal(size=(1, N_BLOCKS)) @ shared.T + rng.normal(size=(N_LEAVES, N_BLOCKS)) @ own.T
    values = TREE.add_up(wilder * leaves)
    variances = np.full(N_LEAVES + 1, noise)
    if not root:
        variances[0] = np.inf
    values = values + rng.laplace(size=values.shape) * np.sqrt(noise / 2)
    return TreePosterior(prior, Seen(TREE, blocks, values, variances, np.ones(N_LEAVES)))


@pytest.mark.parametrize("seed", range(3))
def test_a_factor_is_near_1_where_the_prior_is_right_and_rises_with_what_a_surer_one_missed(seed):
    found = level_factors(posterior(seed=seed))
    assert np.unique(found[1:]).size == 1
    assert 0.7 < found[0] < 1.6
    assert 0.7 < found[1] < 1.4
    assert level_factors(posterior(2.0, seed=seed))[1] > 2.5


def test_a_level_that_was_not_measured_is_as_far_off_as_the_one_whose_errors_it_adds_up():
    found = level_factors(posterior(2.0, root=False))
    assert found[0] == found[1] > 2.5


def test_bands_of_normal_and_laplace_noise_hold_what_they_say():
    """Of 10^5 values five standard errors are 0.008: beyond it by chance less than once in 10^6."""
    rng, normal = np.random.default_rng(5), 0.1
    values = np.sqrt(normal) * rng.normal(size=10**5) + np.sqrt((1 - normal) / 2) * rng.laplace(size=10**5)
    held = (np.abs(values) <= band_edges(np.array(normal))[:, None]).mean(axis=1)
    assert np.abs(held - SHARES).max() < 0.008
    # the control: the band of normal values
    assert np.abs((np.abs(values) <= ndtri(0.5 + SHARES[0] / 2)).mean() - SHARES[0]) > 0.05
