"""A level's factor: near 1 where the prior is right, more where it is too sure, the belief in noise."""

import numpy as np
import pytest
from scipy.special import ndtri

from optstream.history.blocks import Blocks
from optstream.history.counts import SHARES, band_edges, level_factors
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import TemporalPrior
from optstream.history.self_check import left_out
from optstream.stream import AggregationTree

N_LEAVES, N_BLOCKS = 12, 110
TREE = AggregationTree(("all", *map(str, range(N_LEAVES))), (-1, *([0] * N_LEAVES)))


def posterior(wilder=1.0, noise=1e-3, seed=0, prior=None, root=True, groups=None):
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
    return TreePosterior(prior, Seen(TREE, blocks, values, variances, np.ones(N_LEAVES), groups))


@pytest.mark.parametrize("seed", range(3))
def test_where_the_prior_is_right_the_factor_is_near_1(seed):
    found = level_factors(posterior(seed=seed))
    assert np.unique(found[1:]).size == 1
    assert 0.7 < found[0] < 1.6
    assert 0.7 < found[1] < 1.4


@pytest.mark.parametrize("seed", range(3))
def test_where_the_prior_is_too_sure_it_rises_with_what_was_missed(seed):
    assert level_factors(posterior(2.0, seed=seed))[1] > 2.5


def test_a_few_wild_blocks_widen_no_others():
    """The control is the mean square, which they take along."""
    plain = posterior()
    values = plain.seen.residuals.copy()
    values[1:, 40] += 3.0
    wild = plain.revalued(values, plain.seen.noise)
    surprise, spread = left_out(wild, 96)
    squares = (surprise[1:, -96:] ** 2).sum() / spread[1:, -96:].sum()
    assert level_factors(wild)[1] < 1.5 < squares


def test_bands_of_normal_and_laplace_noise_hold_what_they_say():
    """Of 10^5 values five standard errors are 0.008: beyond it by chance less than once in 10^6."""
    rng, normal = np.random.default_rng(5), 0.1
    values = np.sqrt(normal) * rng.normal(size=10**5) + np.sqrt((1 - normal) / 2) * rng.laplace(size=10**5)
    held = (np.abs(values) <= band_edges(np.array(normal))[:, None]).mean(axis=1)
    assert np.abs(held - SHARES).max() < 0.008
    # the control: the band of normal values
    assert np.abs((np.abs(values) <= ndtri(0.5 + SHARES[0] / 2)).mean() - SHARES[0]) > 0.05
