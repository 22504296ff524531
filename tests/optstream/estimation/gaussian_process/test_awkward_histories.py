"""Estimates over awkward calendars are those of the dense joint Gaussian process, to 1e-6."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from optstream.history.blocks import BlockHistory
from optstream.history.filter import (
    MOST_FITTED,
    MOVED,
    NEAR_DAYS,
    FilterState,
    around,
    in_sight,
    latest,
    seen_tree,
)
from optstream.history.learn import step_blocks
from optstream.history.posterior import Conditioned, Fitted, Question, conditioned, fit
from optstream.history.prior import TemporalPrior
from optstream.stream import AggregationTree, Calendar
from optstream.stream.public_days import PublicDays
from tests.optstream.estimation.gaussian_process.dense import Dense

CALENDAR = Calendar(60, "Europe/Paris", "elapsed")
RAGGED = AggregationTree.from_parents(
    {"r": None, "a": "r", "b": "r", "c": "a", "d": "a", "e": "b", "f": "r", "g": "c"}
)
DAYS = PublicDays.from_calendar(CALENDAR, [date(2016, 3, 28)])
AWKWARD = {
    "a day of 23 hours": (date(2016, 3, 24), 7, ()),
    "a day of 25 hours": (date(2016, 10, 27), 7, ()),
    "days that are missing": (date(2016, 3, 24), 9, (2, 3, 6)),
}
"""First day, days, and those that were never measured."""


def histories_of(first, n_days, missing, seed=0):
    """Blocks of one to three hours at every level, some of them much noisier, as with joint noise."""
    generator = np.random.default_rng(seed)
    starts, lengths = [], []
    for number in range(n_days):
        day = date.fromordinal(first.toordinal() + number)
        n_steps = len(CALENDAR.utc_times(day))
        if number not in missing:
            places = np.sort(generator.choice(n_steps - 3, 3, replace=False))
            starts += (CALENDAR.first_step(day) + places).tolist()
            lengths += generator.integers(1, 4, 3).tolist()
    scales = np.where(generator.random(len(starts)) < 0.3, 40.0, 10.0)
    leaves = generator.uniform(20, 300, (len(RAGGED.leaves), 1)) * generator.uniform(0.8, 1.2, len(starts))
    sums = RAGGED.add_up(leaves * np.array(lengths))
    return {
        level: BlockHistory(
            np.array(starts),
            np.array(lengths),
            scales * (1 + level),
            np.rint(sums[at.start : at.stop] + generator.laplace(size=(len(at), len(starts))) * scales),
        )
        for level, at in enumerate(RAGGED.levels)
    }


@pytest.mark.parametrize("measured", [(0, 1, 2, 3), (1, 2, 3)], ids=str)
@pytest.mark.parametrize("name", AWKWARD)
def test_an_estimate_is_that_of_the_dense_process(name, measured):
    first, n_days, missing = AWKWARD[name]
    histories = histories_of(first, n_days, missing)
    known = seen_tree({level: histories[level] for level in measured}, RAGGED, DAYS, 100.0)
    assert known is not None
    prior = TemporalPrior.broad(DAYS.steps_per_day)
    last = CALENDAR.first_step(date.fromordinal(first.toordinal() + n_days - 1))
    steps = range(last - 26, last + 20)
    asked = step_blocks(steps, DAYS)
    found = conditioned(Question(prior, known[0], DAYS, (), False)).posterior
    means, variances = Dense(prior, known[0]).at(asked)
    errors = np.sqrt(variances)
    assert (np.abs(found.means(asked) - means) < 1e-6 * errors).all()
    assert np.allclose(np.sqrt(found.variances(asked)), errors, rtol=1e-6)


def test_every_day_of_a_window_is_answered_from_one_posterior():
    histories = histories_of(date(2016, 3, 24), 9, ())
    known = seen_tree(histories, RAGGED, DAYS, 100.0)
    assert known is not None
    question = Question(TemporalPrior.broad(DAYS.steps_per_day), known[0], DAYS, (), True)
    days = sorted(set((known[0].blocks.clock // DAYS.steps_per_day).tolist()))
    answers = [fit(replace(question, today=(day,))) for day in days]
    assert len({id(one.posterior) for one in answers if not one.unlike}) == 1
    assert isinstance(answers[0], Fitted)
    assert isinstance(answers[0].known, Conditioned)


def history_of(n_blocks):
    places = 2 * np.arange(n_blocks)
    return BlockHistory(places, np.ones_like(places), np.ones(n_blocks), np.zeros((1, n_blocks)))


def test_windows_are_few_and_their_steps_lie_inside():
    """At each day but the first and last ones a quarter of it, less half a day, lies on either side."""
    short, long = history_of(MOST_FITTED), history_of(5 * MOST_FITTED)
    assert around(short, range(10, 20)) is short
    newest = around(long, range(2 * long.n_blocks - 24, 2 * long.n_blocks))
    assert newest.starts.tolist() == long.starts[-MOST_FITTED:].tolist()
    windows = set()
    for first in range(0, 2 * long.n_blocks - 24, 24):
        window = around(long, range(first, first + 24))
        assert window.n_blocks == MOST_FITTED
        assert np.ptp(window.starts) == 2 * (MOST_FITTED - 1)
        before = (window.starts < first).sum()
        after = (window.starts >= first + 24).sum()
        margin = (MOST_FITTED - MOVED) // 2 - 12
        assert before >= margin or window.starts[0] == 0
        assert after >= margin or window.starts[-1] == long.starts[-1]
        windows.add(int(window.starts[0]))
    assert len(windows) == 1 + -(-4 * MOST_FITTED // MOVED)


def random_history(generator, steps_per_day):
    """Single steps as blocks, of 80 days that have none, a few or many of them."""
    n_days = 80
    rates = generator.choice([0.0, 0.1, 0.5, 1.0], n_days, p=[0.1, 0.2, 0.3, 0.4])
    starts = np.flatnonzero(generator.random(n_days * steps_per_day) < np.repeat(rates, steps_per_day))
    return BlockHistory(starts, np.ones_like(starts), np.ones(starts.size), np.zeros((1, starts.size)))


def test_what_is_forgotten_is_no_part_of_any_window_of_the_last_days():
    """Brute force over histories with gaps; the latest blocks alone would not do."""
    generator, missed = np.random.default_rng(5), 0
    for steps_per_day in (24, 48, 96) * 10:
        history = random_history(generator, steps_per_day)
        kept, too_few = in_sight(history, steps_per_day), latest(history, MOST_FITTED)
        assert kept.n_blocks < history.n_blocks
        newest = int(history.starts[-1]) // steps_per_day
        for day in range(newest - NEAR_DAYS, newest + 1):
            steps = range(day * steps_per_day, (day + 1) * steps_per_day)
            asked = around(history, steps).starts
            assert np.array_equal(around(kept, steps).starts, asked)
            missed += not np.array_equal(around(too_few, steps).starts, asked)
    assert missed


def test_a_state_asks_only_of_its_window():
    """Blocks far from the steps change nothing."""
    generator = np.random.default_rng(1)
    places = 3 * np.arange(2 * MOST_FITTED)
    sums = np.rint(generator.normal(600, 50, (2, places.size)))
    history = BlockHistory(places, np.full(places.size, 2), np.full(places.size, 3.0), sums)
    other = replace(history, sums=np.where(np.arange(places.size) < MOST_FITTED, 0.0, sums))
    steps = range(int(places[-1]) - 20, int(places[-1]) + 3)
    days, nothing = PublicDays(24), BlockHistory.empty(2)
    means = [
        FilterState(one, TemporalPrior.broad(24), days).fitted(nothing, steps, 10_000, None)[0]
        for one in (history, other)
    ]
    assert np.array_equal(*means)
