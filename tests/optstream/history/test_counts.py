"""Counts over a tree: sizes, the variation of counts, small leaves, bands, and draws of their errors."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import block_diag
from scipy.special import ndtri

from optstream.estimation.replicates import normals
from optstream.history import counts
from optstream.history.blocks import BlockHistory, Blocks
from optstream.history.counts import (
    LEAST_GAMMA_SHAPE,
    SHARES,
    LeafBlocks,
    band_edges,
    count_bands,
    count_variation,
    estimate_leaves,
    fit_counts,
    joined_sizes,
    level_factors,
    own_parts,
    shared_fit,
)
from optstream.history.filter import FilterState, step_blocks
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import TemporalPrior
from optstream.stream import AggregationTree
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays
from tests.optstream.monte_carlo import Z, agree

DAYS = PublicDays.from_date(date(2024, 1, 1), 24)
RAGGED = AggregationTree(("all", "a", "b", "c", "d", "e"), (-1, 0, 0, 1, 1, 2))
LEAVES = RAGGED.leaf_indices
TREE = AggregationTree(("city", "a", "b", *(f"z{one}" for one in range(6))), (-1, 0, 0, 1, 1, 1, 2, 2, 2))
RATES = np.array([0.1, 0.1, 9.0, 2.0, 0.5, 0.1])
BELIEF = FilterState(TemporalPrior.broad(24), DAYS)
STEPS, N = range(27 * 24, 28 * 24), 500
ROUGHLY = 0.03
"""Relative, of a variance: what the closed form leaves out, and rounds."""
DEGREES = 20 + np.random.default_rng(1).normal(0, 6, (1, 30))
DEGREES[0, 27] = 80.0
"""Unlike any day before: a large part of the error is the effect's."""
N_LEAVES, N_BLOCKS = 12, 110
STAR = AggregationTree(("all", *map(str, range(N_LEAVES))), (-1, *([0] * N_LEAVES)))


def history_of(rows, starts, length, scale, random):
    """Noisy sums over blocks of `length` steps of series (n_series, n_steps)."""
    starts, n = np.array(starts), len(starts)
    sums = np.stack([rows[:, at : at + length].sum(axis=1) for at in starts], axis=1)
    noisy = np.rint(sums + random.laplace(size=sums.shape) * scale)
    return BlockHistory(starts, np.full(n, length), np.full(n, float(scale)), noisy)


@pytest.mark.parametrize("middle", [1.0, 1e12], ids=["every node known", "the middle not measured"])
def test_sizes_and_their_covariance_are_those_of_least_squares_over_the_whole_tree(middle):
    tree = AggregationTree(("city", "a", "b", "c", "a1", "a2"), (-1, 0, 0, 0, 1, 1))
    parents, rng = np.array([4, 4, 5, 2, 2, 2, 3]), np.random.default_rng(2)
    sizes, size_variances = rng.uniform(5, 9, size=7), rng.uniform(0.1, 2, size=7)
    unsure = rng.uniform(0.05, 3, size=6)
    unsure[1:4] *= middle
    below = np.zeros((6, 7))
    for leaf, node in enumerate(parents):
        while node >= 0:
            below[node, leaf] = 1.0
            node = tree.parents[node]
    means = below @ sizes + rng.normal(size=6)
    covariance = np.linalg.inv(np.diag(1 / size_variances) + (below.T / unsure) @ below)
    expected = covariance @ (sizes / size_variances + below.T @ (means / unsure))
    assert expected.min() > 0  # or the bound at 0 would count
    found, variances, joined = joined_sizes(sizes, size_variances, parents, tree, means, unsure)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(variances, np.diag(covariance), rtol=1e-6)
    siblings = parents[:, None] == parents
    of_siblings = np.diag(variances + joined**2) - np.outer(joined, joined)
    np.testing.assert_allclose(of_siblings[siblings], covariance[siblings], rtol=1e-6, atol=1e-9)


def test_the_dispersion_of_small_leaves_is_learned(monkeypatch):
    """960 counts: bands of 97 % hold less than 0.93 once in 10^9; the control knows no dispersion."""
    random, n, n_days = np.random.default_rng(10), 40, 56
    hours = np.arange(n_days * 24)
    parents = 25.0 * n * (1 + 0.5 * np.sin(2 * np.pi * hours / 24))[None]
    means = random.gamma(4.0, 0.25, (n, 1)) * parents / n
    truth = random.poisson(means * random.gamma(1.0, 1.0, means.shape))
    starts = np.arange(0, (n_days - 1) * 24, 25)
    sums = np.stack([truth[:, at : at + 4].sum(axis=1) for at in starts], axis=1)
    noisy = sums + random.laplace(size=sums.shape) * 7
    of_parent = np.zeros(n, dtype=np.int64), AggregationTree(("city",), (-1,)), np.array([1.0])
    blocks = LeafBlocks(starts, np.full(starts.size, 4), noisy, 98.0, *of_parent)
    asked = range((n_days - 1) * 24, n_days * 24)

    def held():
        found = estimate_leaves(blocks, parents, 0, asked, TemporalPrior.broad(24), DAYS)
        low, high = count_bands(found.means, found.variances, found.factor)
        here = truth[:, asked.start :]
        return ((low <= here) & (here <= high)).mean(), found.dispersion

    here, dispersion = held()
    assert dispersion == 1.0
    assert 0.93 < here < 0.99
    monkeypatch.setattr("optstream.history.counts.DISPERSIONS", (0.0,))
    assert held()[0] < 0.92


def levels_of(tree, truth, scales, starts, length, random):
    return {
        level: history_of(truth[list(tree.levels[level])], starts, length, scale, random)
        for level, scale in scales.items()
    }


@pytest.mark.parametrize("scales", [{0: 9, 1: 12, 2: 6}, {0: 9, 2: 6}, {1: 12}])
def test_it_is_the_posterior_of_independent_leaves_given_noisy_sums(scales):
    """Dense conditioning, block by block; the control leaves one measurement out."""
    random, steps = np.random.default_rng(3), range(24, 36)
    rates = random.uniform(5.0, 400.0, (LEAVES.size, 1)) * random.uniform(0.5, 1.5, (1, 12))
    truth, expected = RAGGED.add_up(random.poisson(rates).astype(float)), RAGGED.add_up(rates)
    known = levels_of(RAGGED, truth, scales, [0, 3, 7], 2, random)
    known = {level: replace(one, starts=one.starts + 24) for level, one in known.items()}
    varied = count_variation(RAGGED, expected, known, steps)
    rows = np.concatenate([list(RAGGED.levels[one]) for one in scales])
    noise = np.concatenate([np.full(len(RAGGED.levels[one]), 2.0 * scales[one] ** 2) for one in scales])
    every = RAGGED.add_up(np.eye(LEAVES.size))
    sums, values = every[rows], np.concatenate([known[one].sums for one in scales])
    for number, start in enumerate((0, 3, 7)):
        whole = expected[:, start : start + 2].sum(axis=1)

        def found(counted, chosen=slice(None), whole=whole, number=number):
            gain = np.diag(counted) @ sums[chosen].T
            inner = sums[chosen] @ gain + np.diag(noise[chosen])
            surprise = (values[:, number] - whole[rows])[chosen]
            return gain @ np.linalg.solve(inner, surprise), gain @ np.linalg.solve(inner, gain.T)

        moved = every @ found(whole[LEAVES])[0]
        np.testing.assert_allclose(varied.moved[:, start : start + 2].sum(axis=1), moved, rtol=1e-9)
        assert not np.allclose(every @ found(whole[LEAVES], slice(1, None))[0], moved, rtol=1e-3)
        counted = whole[LEAVES] + moved[LEAVES]
        explained = np.diag(every @ found(counted)[1] @ every.T) / (every @ counted)
        part = expected[0, start : start + 2] / whole[0]
        here = varied.known[:, start : start + 2]
        np.testing.assert_allclose(here, np.outer(explained, part), rtol=1e-9)
    outside = [2, 5, 6, 9, 10, 11]
    assert not varied.moved[:, outside].any()
    assert not varied.known[:, outside].any()


def history(level, every, length, scale, *, stop=28 * 24, seed=0):
    rates = TREE.add_up(RATES[:, None] * (1 + 0.5 * np.sin(np.arange(30 * 24) * np.pi / 12)))
    random = np.random.default_rng([seed, level])
    return history_of(rates[list(TREE.levels[level])], range(0, stop, every), length, scale, random)


def dense(every=13, length=2, scale=6):
    return {level: history(level, every, length, scale) for level in range(3)}


def sparse(zones=8, city=6, boroughs=12):
    """Zones measured at blocks of their own."""
    return {0: history(0, 13, 2, city), 1: history(1, 13, 2, boroughs), 2: history(2, 25, 4, zones)}


def without(day, known):
    return {level: one.between(0, day * 24) for level, one in known.items()}


def warmed():
    """Counts that are larger on warm days; none of the last."""
    return {
        level: replace(one, sums=np.rint(one.sums * np.exp(0.05 * (DEGREES[0, one.starts // 24] - 20))))
        for level, one in without(27, dense()).items()
    }


def fitted(known, small=2):
    return fit_counts(BELIEF, known, TREE, small, STEPS, 2.0)


def test_blocks_of_another_plans_noise_are_left_out():
    known = sparse()
    last = known[2].between(26 * 24, 28 * 24)
    mixed = history(2, 25, 4, 80, stop=26 * 24, seed=3).joined(last)
    assert np.array_equal(fitted({**known, 2: mixed}).means, fitted({**known, 2: last}).means)


KNOWN = {
    "small leaves": (sparse, 2, ()),
    "single steps": (lambda: dense(5, 1, 2), None, ()),
    "no blocks in the day": (lambda: without(27, dense()), None, ()),
    "small leaves, no blocks in the day": (lambda: without(27, sparse()), 2, ()),
    "noisy small leaves": (lambda: sparse(60), 2, ()),
    "covariates": (warmed, None, (Covariate("warmth", 0, DEGREES),)),
}


def fits_of(kind):
    """The posterior of the levels that share blocks, every node's fit, and the blocks of small leaves."""
    make, small, covariates = KNOWN[kind]
    given = replace(BELIEF, covariates=covariates), make(), TREE, small, STEPS, 2.0
    shared = shared_fit(*given)
    return shared, fit_counts(*given), small and shared.leaf_blocks(TREE, small, given[1][small], STEPS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["small leaves", "single steps", "small leaves, no blocks in the day", "covariates"]
)
def test_single_counts_err_as_their_rows_say(kind):
    """Of every node at every step: its expectation, and the count around it. False alarm below 1e-6."""
    shared, fit, _ = fits_of(kind)
    assert (shared.found.effect is not None) == (kind == "covariates")
    rows = fit.variances + fit.count_variances * np.maximum(fit.means, 0.0)
    squares = fit.draws(N) ** 2
    allowed = Z * np.sqrt(squares.var(axis=0) / N) + ROUGHLY * rows
    assert (np.abs(squares.mean(axis=0) - rows) < allowed).all()
    assert not (np.abs(2 * squares.mean(axis=0) - rows) < 2 * allowed).all(), "the control"


def test_sums_over_a_day_err_as_its_steps_do_together():
    """Expectations as the posterior, sizes alike at all steps, counts alone. False alarm below 1e-6."""
    shared, fit, _ = fits_of("no blocks in the day")
    blocks, found = step_blocks(STEPS, shared.days), shared.found
    of_day = found.published.covariance_with_mean(blocks).mean(axis=1) * len(STEPS) ** 2
    of_expectations = found.factor * shared.factors * of_day
    of_sizes = shared.excess_variances[:, 0] * shared.shape(fit.means).sum() ** 2
    expected = of_expectations + of_sizes + TREE.add_up(np.maximum(fit.means, 0.0)[3:]).sum(axis=1)
    squares = fit.draws(N).sum(axis=2) ** 2
    errors = np.sqrt(squares.var(axis=0) / N)
    assert (np.abs(squares.mean(axis=0) - expected) < Z * errors).all()
    alone = fit.variances.sum(axis=1) + fit.means.sum(axis=1)
    assert (np.abs(squares.mean(axis=0) - alone) > Z * errors).any(), "the control: steps err together"


def own_errors(estimate, parent, of_day, one):
    """The covariance of sums over the day of a family's own errors, written out; `parent` shapes them."""
    leaves, power = one.leaves, (estimate.strength * estimate.sizes[one.leaves]) ** 2
    seen = power * one.spectrum[:, None] + estimate.noise[leaves]
    explained = (parent @ one.across) ** 2 @ (power**2 / seen)
    joined = estimate.joined[leaves]
    sizes = np.diag(estimate.size_variances[leaves] + joined**2) - np.outer(joined, joined)
    own = np.diag(power * (parent @ of_day @ parent) - explained)
    return estimate.factor * (sizes * parent.sum() ** 2 + own)


def test_sums_of_small_leaves_err_as_those_of_independent_series_with_joined_sizes(monkeypatch):
    """Given their parents and without the variation of counts. False alarm below 1e-6."""
    shared, fit, blocks = fits_of("noisy small leaves")
    prior = shared.found.posterior.prior
    estimate = estimate_leaves(*blocks, STEPS, prior, shared.days)
    of_day = own_parts(prior).covariances(*(step_blocks(STEPS, shared.days),) * 2)[1]
    expected = block_diag(
        *(
            own_errors(estimate, estimate.shape[blocks[0].parents[one.leaves[0]]], of_day, one)
            for one in estimate.families
        )
    )

    def without_counts(first, *keys):
        return normals(first, *keys) * (first != counts.LEAF_COUNTS)

    monkeypatch.setattr(counts, "normals", without_counts)
    monkeypatch.setattr(counts.LeafEstimate, "shares", np.zeros((6, 3)))
    drawn = fit.draws(800)[:, 3:].sum(axis=2)
    assert agree(drawn, expected)
    assert not agree(drawn, np.diag(np.diag(expected))), "the control: siblings err together"


def test_large_hours_are_less_sure_where_it_was_not_learned_which_hours_stray():
    learned = replace(BELIEF, prior=replace(BELIEF.prior, hours=np.ones(24)))
    fit, even = (fit_counts(one, dense(), TREE, None, STEPS, 2.0) for one in (BELIEF, learned))
    assert np.allclose(fit.means, even.means)
    more, by_size = fit.variances[0] / even.variances[0], np.argsort(fit.means[0])
    assert more[by_size[-6:]].min() > 1.2
    assert more[by_size[:6]] == pytest.approx(1.0)


def test_leaves_that_were_never_measured_have_no_draws():
    known = sparse()
    assert fitted({**known, 2: known[2].between(0, 0)}).draws is None


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


def posterior(wilder=1.0, seed=0, root=True):
    """Leaves drawn from the prior, `wilder` times as far from their means as it says."""
    rng, prior, noise = np.random.default_rng(seed), TemporalPrior.broad(24), 1e-3
    starts = np.arange(N_BLOCKS) * 13
    blocks = Blocks.at(starts, np.full(N_BLOCKS, 2), weight=np.full(N_BLOCKS, 0.5))
    shared, own = (
        np.linalg.cholesky(part + 1e-9 * np.eye(N_BLOCKS)) for part in prior.covariances(blocks, blocks)
    )
    leaves = rng.normal(size=(1, N_BLOCKS)) @ shared.T + rng.normal(size=(N_LEAVES, N_BLOCKS)) @ own.T
    values = STAR.add_up(wilder * leaves)
    variances = np.full(N_LEAVES + 1, noise)
    if not root:
        variances[0] = np.inf
    values = values + rng.laplace(size=values.shape) * np.sqrt(noise / 2)
    return TreePosterior(prior, Seen(STAR, blocks, values, variances, np.ones(N_LEAVES)))


@pytest.mark.parametrize("seed", range(3))
def test_a_factor_is_near_1_where_the_prior_is_right_and_rises_with_what_a_surer_one_missed(seed):
    found = level_factors(posterior(seed=seed))
    assert np.unique(found[1:]).size == 1
    assert 0.7 < found[0] < 1.6
    assert 0.7 < found[1] < 1.4
    assert level_factors(posterior(2.0, seed=seed))[1] > 2.5
    # a level that was not measured is as far off as the one whose errors it adds up
    found = level_factors(posterior(2.0, seed=seed, root=False))
    assert found[0] == found[1] > 2.5


def test_bands_of_normal_and_laplace_noise_hold_what_they_say():
    """Of 10^5 values five standard errors are 0.008: beyond it by chance less than once in 10^6."""
    rng, normal = np.random.default_rng(5), 0.1
    values = np.sqrt(normal) * rng.normal(size=10**5) + np.sqrt((1 - normal) / 2) * rng.laplace(size=10**5)
    held = (np.abs(values) <= band_edges(np.array(normal))[:, None]).mean(axis=1)
    assert np.abs(held - SHARES).max() < 0.008
    # the control: the band of normal values
    assert np.abs((np.abs(values) <= ndtri(0.5 + SHARES[0] / 2)).mean() - SHARES[0]) > 0.05
