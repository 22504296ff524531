"""What covariates did is what the joint Gaussian of series and coefficients says, to rounding."""

import numpy as np
import pytest

from optstream.history import covariates as covariate_effect
from optstream.history import filter as filter_module
from optstream.history.blocks import Blocks
from optstream.history.covariates import columns_of, effect_of
from optstream.history.filter import explained, fit
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import TemporalPrior
from optstream.stream import AggregationTree
from optstream.stream.covariate import Covariate
from tests.optstream.history.dense import Dense

SLOTS, N_DAYS = 12, 20
TREE = AggregationTree.from_parents({"r": None, "a": "r", "b": "r", "c": "a", "d": "a", "e": "b"})
PRIOR = TemporalPrior.broad(SLOTS)


def seen_of(generator, noise=0.05):
    """Blocks at every node but one, of series that the covariate moves."""
    steps = np.sort(generator.choice(SLOTS * N_DAYS - 4, 40, replace=False))
    blocks = Blocks.at(steps, generator.integers(1, 4, 40), weight=1.0 / (1 + generator.random(40)))
    noises = np.full(len(TREE.nodes), noise)
    noises[1] = np.inf
    sizes = generator.uniform(0.5, 3.0, len(TREE.leaves))
    moved = columns_of((temperature(generator),), TREE, sizes, blocks, SLOTS)[0][:12].sum(axis=0)
    residuals = 3.0 * moved + np.sqrt(noise) * generator.normal(size=moved.shape)
    return Seen(TREE, blocks, residuals, noises, sizes)


def temperature(generator, rows=6):
    return Covariate("temperature", 0, 10 + 5 * generator.normal(size=(rows, N_DAYS)).cumsum(axis=1))


@pytest.mark.parametrize("noise", [1e-4, 0.05, 1e3])
def test_it_is_the_dense_process(noise, monkeypatch):
    """Of normal noise, which nothing is cut off of."""
    monkeypatch.setattr(filter_module, "with_own_noise", lambda posterior: posterior)
    monkeypatch.setattr(covariate_effect, "STRENGTHS", (1.0,))
    generator = np.random.default_rng(1)
    seen, covariate = seen_of(generator, noise), temperature(np.random.default_rng(1))
    asked = Blocks.at(np.arange(SLOTS * (N_DAYS - 1), SLOTS * N_DAYS))
    at_blocks, at_steps = (
        columns_of((covariate,), TREE, seen.sizes, blocks, SLOTS)[0] for blocks in (seen.blocks, asked)
    )
    means, variances = Dense(PRIOR, seen, at_blocks).at(asked, at_steps)
    posterior, effect = explained(PRIOR, seen, (covariate,))
    assert effect is not None
    found = posterior.means(asked) + effect.means(asked)
    spread = posterior.variances(asked) + effect.variances(asked)
    assert np.allclose(found, means, rtol=1e-6, atol=1e-6 * np.abs(means).max())
    assert np.allclose(spread, variances, rtol=1e-6, atol=1e-6 * variances.max())


def test_the_likeliest_strength_is_taken(monkeypatch):
    generator = np.random.default_rng(2)
    seen, covariate = seen_of(generator), temperature(np.random.default_rng(3), rows=1)
    found = {}
    for strength in (0.3, 1.0, 3.0):
        monkeypatch.setattr(covariate_effect, "STRENGTHS", (strength,))
        effect = effect_of(TreePosterior(PRIOR, seen), (covariate,))
        found[strength] = Dense(PRIOR, seen, effect.columns).log_likelihood
    monkeypatch.setattr(covariate_effect, "STRENGTHS", (0.3, 1.0, 3.0))
    monkeypatch.setattr(covariate_effect, "ROUNDS", 4)
    effect = effect_of(TreePosterior(PRIOR, seen), (covariate,))
    assert Dense(PRIOR, seen, effect.columns).log_likelihood >= max(found.values()) - 1e-6


def test_a_covariate_without_information_changes_nothing():
    seen = seen_of(np.random.default_rng(4))
    steps = Blocks.at(np.arange(24))
    plain = fit(PRIOR, seen).series(steps)
    constant = Covariate("constant", 0, np.full((1, N_DAYS), 7.0))
    nowhere = Covariate("nowhere", 0, np.full((1, N_DAYS), np.nan))
    for covariate in (constant, nowhere):
        found = fit(PRIOR, seen, (covariate,)).series(steps)
        assert all(np.array_equal(one, other) for one, other in zip(found, plain, strict=True))


SIX, TWELVE = 6, 12
STAR = AggregationTree.from_parents({"r": None, "a": "r", "b": "r", "c": "r"})
SIZES = np.array([1.0, 2.0, 4.0])
VALUES = np.random.default_rng(0).normal(size=(4, TWELVE)) + np.arange(TWELVE) % 5
STEPS = Blocks.at(np.arange(SIX * TWELVE))


def columns(values, blocks=STEPS, level=None):
    return columns_of((Covariate("one", 0, values, level=level),), STAR, SIZES, blocks, SIX)[0]


def test_a_block_is_worth_times_the_sum_of_its_steps():
    starts, lengths, weight = np.array([0, 4, 30]), np.array([1, 4, 3]), np.array([1.0, 0.25, 2.0])
    single = columns(VALUES)
    found = columns(VALUES, Blocks.at(starts, lengths, weight=weight))
    for place, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        expected = weight[place] * single[:, :, start : start + length].sum(axis=2)
        assert np.allclose(found[:, :, place], expected)


def test_leaves_are_moved_by_their_size_and_nodes_by_the_sum():
    found = columns(np.repeat(VALUES[:1], 4, axis=0))
    common = found[:25]
    assert np.allclose(common[:, 2:], common[:, 1:2] * np.array([2.0, 4.0])[:, None])
    assert np.allclose(found[:, 0], found[:, 1:].sum(axis=1))
    assert np.array_equal(found, columns(VALUES[:1]))
    assert np.array_equal(columns(VALUES), columns(VALUES[1:])), "a row for each node is one for each leaf"


def test_missing_days_lie_between_their_neighbours_and_unknown_ones_move_nothing():
    gaps, between = VALUES.copy(), VALUES.copy()
    gaps[:, 4] = np.nan
    between[:, 4] = (VALUES[:, 3] + VALUES[:, 5]) / 2
    assert np.allclose(columns(gaps), columns(between))
    outside = columns(VALUES, Blocks.at(np.array([-1, SIX * TWELVE])))
    assert not outside.any()


def test_a_wild_value_moves_no_more_than_a_bounded_amount():
    values = VALUES.copy()
    values[:, 5] = 1e15
    assert np.abs(columns(values)).max() < 4.0
