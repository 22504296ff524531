"""Errors that are drawn have the covariance of the dense joint Gaussian process, and their closed form."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag

from optstream.estimation.replicates import keys_of
from optstream.history import filter as filter_module
from optstream.history.blocks import Blocks
from optstream.history.covariates import effect_of
from optstream.history.draws import OWN, SHARED, ErrorDraws, Frequencies, prior_draws
from optstream.history.filter import MORE_OF_DAYS, Fitted, PeriodErrors, event_numbers
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import COMPONENTS, COUNT_COMPONENTS, DAY_OF_THE_WEEK, TemporalPrior
from optstream.stream import AggregationTree
from optstream.stream.covariate import Covariate
from tests.by_night import few
from tests.optstream.history.test_tree_posterior import NOISES, SLOTS, TREES, Dense, blocks_of, by_hand, case
from tests.optstream.monte_carlo import Z, agree

N_DRAWS = 1500
EVERY = (*COMPONENTS, DAY_OF_THE_WEEK)
PRIORS = {one.name: (one,) for one in EVERY} | {"all": EVERY, "counts": COUNT_COMPONENTS}
LEARNED = {
    "medians": (1.0, 1.0),
    "shorter, more own": (0.75, 1.5),
    "longer, less own": (1.5, 0.6),
    "by hour": (1.0, 1.0),
}
"""Factors of lengths, and of strengths of own parts."""
FACTOR, N = 1.4, 1000
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


def prior_of(components, learned):
    prior, (longer, more) = TemporalPrior.broad(SLOTS, components), LEARNED[learned]
    return replace(prior, logs=prior.logs + np.log(np.concatenate(
        [[1.0, more, *(longer for _ in one.lengths)] for one in components]
    )))  # fmt: skip


def some_blocks():
    """Of several steps and of one, of three kinds of day, of two events and outside of them."""
    clock = np.array([-7, 0, 1, 11, 14, 40, 84, 86, 97, 168])
    lengths = np.array([1, 1, 3, 1, 4, 2, 1, 5, 1, 2])
    kinds, events = np.array([0, 0, 1, 1, 2, 0, 2, 0, 1, 1]), np.array([0, 1, 1, 0, 2, 0, 2, 2, 0, 1])
    return Blocks(clock, lengths, kinds, events, 1.0 / (1.0 + np.arange(10) % 3))


@pytest.mark.parametrize(
    ("components", "learned"),
    [
        *((one, "medians") for one in PRIORS),
        *(("all", one) for one in list(LEARNED)[1:3]),
        ("day to day", "by hour"),
    ],
)
def test_draws_of_the_prior_have_its_covariances(components, learned):
    """False alarm below 1e-6 each (`monte_carlo`)."""
    hours = np.exp(np.sin(np.arange(6.0))) if learned == "by hour" else np.ones(0)
    prior, blocks = replace(prior_of(PRIORS[components], learned), hours=hours), some_blocks()
    shared, own = (by_hand(prior, blocks, blocks, which) for which in (0, 1))
    drawn = prior_draws(prior, blocks, N_DRAWS, (SHARED, keys_of("a")), (OWN, keys_of("ab")))
    assert agree(np.concatenate(drawn, axis=1), block_diag(shared, own, own))


def test_a_draw_is_a_function_of_leaf_and_time_alone():
    prior, blocks = prior_of(EVERY, "medians"), some_blocks()
    own, more = prior_draws(prior, blocks, 8, (OWN, keys_of("ab")), (OWN, keys_of("cba")))
    np.testing.assert_allclose(more[:, [2, 1]], own, rtol=1e-12)
    some = prior_draws(prior, blocks.between(3, 7), 5, (OWN, keys_of("ab")))[0]
    np.testing.assert_allclose(some, own[:5, :, 3:7], rtol=1e-9, atol=1e-12)


def test_waves_are_summed_over_blocks_step_by_step():
    """Also those of whole turns a step, of half a turn, and of none."""
    harmonics, rest = np.array([[0, 3, 12, 24, 6, 12]]), np.array([[0.0, 0.2, 0.0, 1e-7, 0.0, 0.01]])
    blocks, one = some_blocks(), COMPONENTS[3]
    found = Frequencies(one, harmonics, rest).at(blocks, SLOTS, one.lengths)[0] * np.sqrt(6.0)
    a_step = (2.0 * np.pi * harmonics[0] + rest[0]) / SLOTS
    for block, (first, n) in enumerate(zip(blocks.clock, blocks.lengths, strict=True)):
        turned = np.outer(a_step, np.arange(first, first + n))
        expected = np.concatenate([np.cos(turned).sum(axis=1), np.sin(turned).sum(axis=1)])
        np.testing.assert_allclose(found[:, block], expected, atol=1e-6)


def test_an_event_keeps_its_draws_when_another_one_is_forgotten():
    prior = prior_of(PRIORS["event"], "medians")
    clock = np.arange(0, 30 * SLOTS, 5)
    drawn = {
        known: prior_draws(
            prior, Blocks.at(clock, events=event_numbers(clock, known, SLOTS)), 8, (OWN, keys_of("a"))
        )[0]
        for known in ((3, 10, 11), (10, 11), (10,))
    }
    both, later = drawn[3, 10, 11], drawn[10, 11]
    of_later = (clock // SLOTS == 10) | (clock // SLOTS == 11)
    assert np.array_equal(both[:, :, of_later], later[:, :, of_later])
    assert np.array_equal(later[:, :, clock // SLOTS == 10], drawn[10,][:, :, clock // SLOTS == 10])
    assert not np.isin(both[:, :, clock // SLOTS == 3], later).any()


def gain_of(dense, steps):
    return np.linalg.solve(dense.measured, dense.across(steps, None).T).T


def of_leaves(seen, n):
    return np.arange(len(seen.tree.nodes) * n).reshape(-1, n)[seen.tree.leaf_indices].ravel()


def two_days():
    """A day and one two days later, whose blocks weigh otherwise, with other noise and a node unknown."""
    tree = AggregationTree.from_parents(TREES["a star"])
    prior, generator = TemporalPrior.broad(SLOTS), np.random.default_rng(4)
    starts = np.arange(60, 204, 7)
    blocks = Blocks.at(starts, generator.integers(1, 5, starts.size), kinds=starts // SLOTS % 3)
    blocks = replace(blocks, weight=1.0 / blocks.lengths, events=np.where(starts // SLOTS == 15, 1, 0))
    sizes, noise = np.array([0.5, 2.0, 1.0]), np.array([0.5, 0.2, 0.1, 0.05])
    first, later = blocks.between(0, 17), blocks.between(3, 21)
    later = replace(later, weight=2.0 * later.weight)
    seen = [Seen(tree, first, np.zeros((4, 17)), noise, sizes)]
    seen.append(Seen(tree, later, np.zeros((4, 18)), 4.0 * np.array([0.5, 0.2, np.inf, 0.1]), sizes))
    steps = [Blocks.at(np.arange(at, at + 18, 3), kinds=np.full(6, at // SLOTS % 3)) for at in (168, 192)]
    return prior, seen, [replace(one, events=np.where(one.clock // SLOTS == 15, 1, 0)) for one in steps]


def across_days(prior, seen, steps):
    """Cov(f1 - H1 y1, f2 - H2 y2) of all leaves and both days, written out."""
    dense = [Dense(prior, one) for one in seen]
    gains = [gain_of(*one) for one in zip(dense, steps, strict=True)]
    found = [[None, None], [None, None]]
    for i in (0, 1):
        for j in (0, 1):
            of, rows = dense[0].covariance, (dense[i].rows, dense[j].rows)
            of_nodes = np.sqrt(seen[i].noise * seen[j].noise)
            of_nodes = np.diag(np.where(np.isfinite(of_nodes), of_nodes, 0.0))
            shared = np.kron(of_nodes, seen[i].blocks.clock[:, None] == seen[j].blocks.clock)
            measured = (of(seen[i].blocks, seen[j].blocks) + shared)[np.ix_(*rows)]
            with_values = of(steps[i], seen[j].blocks)[:, rows[1]]
            of_values = of(seen[i].blocks, steps[j])[rows[0]]
            found[i][j] = (
                of(steps[i], steps[j])
                - with_values @ gains[j].T
                - gains[i] @ of_values
                + gains[i] @ measured @ gains[j].T
            )[np.ix_(*(of_leaves(one, 6) for one in (seen[i], seen[j])))]
    return np.block(found)


def drawn_day(number):
    prior, seen, steps = two_days()
    return sum(ErrorDraws(TreePosterior(prior, seen[number]), N_DRAWS).at(steps[number]))


@pytest.mark.slow
def test_errors_of_two_days_hang_together_as_in_the_dense_process():
    """Of different blocks and noise. False alarm below 1e-6."""
    expected = across_days(*two_days())
    assert np.abs(expected[:18, 18:]).max() > 0.2 * expected.diagonal().min()
    assert agree(np.concatenate([drawn_day(0), drawn_day(1)], axis=1), expected)


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
    monkeypatch.setattr(filter_module, "MORE_NOISE", 1e-4)


def off(drawn, variances):
    """By how many standard errors mean squares of draws are off; 1e-4 of a variance for rounding."""
    squares = drawn**2
    errors = np.sqrt((squares.var(axis=0) + (1e-4 * variances) ** 2 * len(drawn)) / len(drawn))
    return np.abs(squares.mean(axis=0) - variances) / errors


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
    of_means = known.published.covariance_with_mean(errors.steps).mean(axis=1)
    if known.effect is not None:
        of_means += known.effect.variances(errors.steps, over_day)[:, 0]
    of_means = of_means + errors.more if errors.is_day else FACTOR * of_means
    assert off(drawn.mean(axis=2), of_means).max() < Z


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("noise", [0.1, 1.0, 100.0])
def test_more_is_of_what_the_prior_leaves_open_of_the_day(noise):
    errors = errors_of(noise=noise)
    posterior, steps = errors.fitted.posterior, errors.steps
    dense, seen = Dense(posterior.prior, posterior.seen), posterior.seen
    gain = gain_of(dense, steps)
    of_noise = (gain * np.repeat(seen.noise, seen.blocks.clock.size)[dense.rows]) @ gain.T
    n, nodes = steps.clock.size, len(seen.tree.nodes)
    left = (dense.spread(steps) - of_noise).reshape(nodes, n, nodes, n).mean(axis=(1, 3))
    apart = np.eye(nodes)
    apart[:, 0] -= posterior.weights[:, 0] / posterior.weights[0, 0]
    expected = MORE_OF_DAYS * np.diag(apart @ left @ apart.T)
    np.testing.assert_allclose(errors.more, expected, rtol=1e-2, atol=1e-4 * expected.max())


@pytest.mark.parametrize("noise_name", NOISES)
@pytest.mark.parametrize("tree_name", TREES)
def test_steps_and_their_mean_have_the_covariances_of_the_dense_process(tree_name, noise_name):
    prior, seen, steps = case(tree_name, noise_name)
    posterior, nodes = TreePosterior(prior, seen), len(seen.tree.nodes)
    times = np.random.default_rng(5).normal(size=12)
    for at, weights in ((steps, times), (blocks_of(np.random.default_rng(7), 6), times[:6])):
        whole = Dense(prior, seen).spread(at).reshape(nodes, at.clock.size, nodes, at.clock.size)
        exact = np.einsum("isit->ist", whole).mean(axis=2)
        found, least = posterior.covariance_with_mean(at), 1e-8 * np.abs(exact).max()
        np.testing.assert_allclose(found, exact, rtol=1e-7, atol=least)
        with_root = posterior.covariance_with_root(at, weights)
        of_sums = np.einsum("s,isjt,t->ij", weights, whole, weights)
        np.testing.assert_allclose(with_root, of_sums[0], rtol=1e-7, atol=1e-8 * of_sums.max())
    some, every = np.array([0, nodes - 1]), posterior.variances(steps)
    np.testing.assert_allclose(
        posterior.variances(steps, some), every[some], rtol=1e-7, atol=1e-8 * every.max()
    )
