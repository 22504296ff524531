"""Public covariates: an estimate goes by the values that its period was measured with."""

from dataclasses import replace

import numpy as np
import pytest

from optstream.mechanisms import HistoryInformed, HistoryInformedTree
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Measured
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays

SLOTS, N_DAYS, ROUNDS = 12, 40, 5
TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all"})
DEGREES = 10 + np.random.default_rng(0).normal(size=(1, N_DAYS)).cumsum(axis=1)
WARMTH = Covariate("warmth", -20, DEGREES)
# so little noise that a few nights tell of it
PLAIN = HistoryInformed(PrivacyModel(8, SLOTS, 1), 6, 1, 100.0, PublicDays(SLOTS), relearn_days=0)
WITH = replace(PLAIN, covariates=(WARMTH,))
BOTH = {
    "plain": lambda mechanism: mechanism,
    "tree": lambda mechanism: HistoryInformedTree(mechanism, TREE, ["1/3", "2/3"]),
}


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
    values = np.where(np.arange(N_DAYS) - 20 > after, 99.0, DEGREES)
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


LEARNS = replace(WITH, relearn_days=28)


@pytest.mark.parametrize("make", BOTH.values(), ids=BOTH)
def test_what_was_learned_hangs_on_what_was_public_the_day_before(make):
    """A day is judged, and habits are learned, by what its own night knew of it."""
    last = nights(make, LEARNS, 7)[-1]
    others = LEARNS, changed(6, LEARNS), changed(5, LEARNS)
    known = [make(one).prepared(last.state, 7 * SLOTS) for one in others]
    learned = [{key: one[key] for key in ("prior", "learned", "events")} for one in known]
    assert learned[0]["learned"] == 7
    assert learned[0] == learned[1] != learned[2]
    assert known[0]["covariates"] != known[1]["covariates"]
