"""Public covariates: an effect as the joint Gaussian has it; an estimate goes by its own night's values."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.history import covariates as covariate_effect
from optstream.history import filter as filter_module
from optstream.history.blocks import Blocks
from optstream.history.covariates import columns_of, effect_of
from optstream.history.filter import explained, fit
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import TemporalPrior
from optstream.mechanisms import HistoryInformed, HistoryInformedTree
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Measured
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays
from tests.optstream.history.test_tree_posterior import Dense

SLOTS, N_DAYS = 12, 20
TREE = AggregationTree.from_parents({"r": None, "a": "r", "b": "r", "c": "a", "d": "a", "e": "b"})
PRIOR = TemporalPrior.broad(SLOTS)
STAR = AggregationTree.from_parents({"r": None, "a": "r", "b": "r", "c": "r"})
SIZES = np.array([1.0, 2.0, 4.0])
VALUES = np.random.default_rng(0).normal(size=(4, N_DAYS)) + np.arange(N_DAYS) % 5
STEPS = Blocks.at(np.arange(SLOTS * N_DAYS))
KNOWN, ROUNDS = 40, 5
PAIR = AggregationTree.from_parents({"all": None, "A": "all", "B": "all"})
DEGREES = 10 + np.random.default_rng(0).normal(size=(1, KNOWN)).cumsum(axis=1)
WARMTH = Covariate("warmth", -20, DEGREES)
# so little noise that a few nights tell of it
PLAIN = HistoryInformed(PrivacyModel(8, SLOTS, 1), 6, 1, 100.0, PublicDays(SLOTS), relearn_days=0)
WITH = replace(PLAIN, covariates=(WARMTH,))
BOTH = {
    "plain": lambda mechanism: mechanism,
    "tree": lambda mechanism: HistoryInformedTree(mechanism, PAIR, ["1/3", "2/3"]),
}


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


def columns(values, blocks=STEPS, level=None):
    return columns_of((Covariate("one", 0, values, level=level),), STAR, SIZES, blocks, SLOTS)[0]


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
    outside = columns(VALUES, Blocks.at(np.array([-1, SLOTS * N_DAYS])))
    assert not outside.any()


def test_a_wild_value_moves_no_more_than_a_bounded_amount():
    values = VALUES.copy()
    values[:, 5] = 1e15
    assert np.abs(columns(values)).max() < 4.0


def load(day):
    moved = 100 - 5 * (DEGREES[0, day + 20] - 10)
    return np.full((2, SLOTS), moved) * [[1.0], [2.0]]


def nights(make, mechanism, n_nights=ROUNDS):
    """Measurements of consecutive days, each through the text that is stored."""
    found, state, made = [], None, make(mechanism)
    for day in range(n_nights):
        values, noise = load(day), simulated_noise(day)
        measured = made.measure(values, noise=noise, first_step=day * SLOTS, state=state)
        found.append(Measured.from_bytes(measured.to_bytes()))
        state = made.recall([spend for one in found for spend in one.spends], measured.state)
    return found


@pytest.fixture(scope="module", params=BOTH)
def make(request):
    return BOTH[request.param]


@pytest.fixture(scope="module")
def stored(make):
    return nights(make, WITH)


def changed(after, mechanism=PLAIN):
    """A covariate whose values after a day are others."""
    values = np.where(np.arange(KNOWN) - 20 > after, 99.0, DEGREES)
    return replace(mechanism, covariates=(replace(WARMTH, values=values),))


def test_an_estimate_is_made_of_the_stored_values_alone(make, stored):
    informed = make(WITH).estimate(stored[-1])
    for other in (PLAIN, changed(-20)):
        found = make(other).estimate(stored[-1])
        assert np.array_equal(found.values, informed.values)
        assert np.array_equal(found.standard_errors, informed.standard_errors)


def test_it_changes_the_estimate_and_not_the_draw(make, stored):
    without = nights(make, PLAIN)
    assert [one.spends for one in stored] == [one.spends for one in without]
    drawn, other = ((one.parts or (one,))[0].answers.values[0] for one in (stored[-1], without[-1]))
    assert np.array_equal(drawn, other)
    assert not np.array_equal(
        make(WITH).estimate(stored[-1]).values, make(PLAIN).estimate(without[-1]).values
    )


def test_a_night_does_not_know_what_came_later(make, stored):
    again = nights(make, changed(after=ROUNDS - 1))
    assert [one.to_bytes() for one in again] == [one.to_bytes() for one in stored]
    other = nights(make, changed(after=ROUNDS - 2))
    assert other[-2].to_bytes() == stored[-2].to_bytes()
    assert other[-1].to_bytes() != stored[-1].to_bytes()


@pytest.mark.parametrize(("lag_days", "known"), [(0, True), (1, True), (2, False)])
def test_what_is_not_public_when_the_night_runs_is_not_used(make, lag_days, known):
    late = replace(PLAIN, covariates=(replace(WARMTH, lag_days=lag_days),))
    (first,) = nights(make, late, 1)
    assert ("covariates" in first.before) == known


def test_what_is_public_late_serves_new_estimates_alone(make):
    """Of a lag of 3 days: the night of the next day but one is the first to know the day's value."""
    stored = nights(make, replace(PLAIN, covariates=(replace(WARMTH, lag_days=3),)), 4)
    plain, made = nights(make, PLAIN, 4), make(PLAIN)
    assert np.array_equal(made.estimate(stored[3]).values, made.estimate(plain[3]).values)
    assert not any("late covariates" in one.state for one in stored)
    assert made.revise(stored[0], stored[1:2]).covariates == ()
    (used,) = made.revise(stored[0], stored[1:3]).covariates
    assert (used.has_value_on(0), used.has_value_on(1)) == (True, False)
    assert np.array_equal(used.values[0, -3:], DEGREES[0, 18:21])


def test_a_new_estimate_uses_what_came_later_and_is_recomputable(make, stored):
    corrected = nights(make, changed(-20), 1) + stored[1:]
    made = make(PLAIN)
    revised = made.revise(corrected[0], corrected[1:])
    assert np.array_equal(revised.values, make(WITH).revise(corrected[0], corrected[1:]).values)
    alone = replace(corrected[-1], before={**corrected[-1].before, "covariates": []})
    assert not np.array_equal(made.revise(corrected[0], [*corrected[1:-1], alone]).values, revised.values)


def test_a_day_has_a_value_where_each_row_that_ever_has_one_does():
    rows = np.array([[1.0, np.nan, 2.0], [3.0, 4.0, 5.0], [np.nan, np.nan, np.nan]])
    assert [day for day in range(5, 12) if Covariate("x", 7, rows).has_value_on(day)] == [7, 9]


def test_what_was_learned_hangs_on_what_was_public_the_day_before(make):
    """A day is judged, and habits are learned, by what its own night knew of it."""
    learns = replace(WITH, relearn_days=28)
    last = nights(make, learns, 7)[-1]
    others = learns, changed(6, learns), changed(5, learns)
    known = [make(one).prepared(last.state, 7 * SLOTS) for one in others]
    learned = [{key: one[key] for key in ("prior", "learned", "events")} for one in known]
    assert learned[0]["learned"] == 7
    assert learned[0] == learned[1] != learned[2]
    assert known[0]["covariates"] != known[1]["covariates"]
