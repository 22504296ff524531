"""Estimates over awkward calendars are those of the dense joint Gaussian process, to 1e-6."""

from datetime import date

import numpy as np
import pytest

from optstream.history.blocks import BlockHistory
from optstream.history.filter import conditioned, seen_tree, step_blocks
from optstream.history.prior import TemporalPrior
from optstream.stream import AggregationTree, Calendar
from optstream.stream.public_days import PublicDays
from tests.optstream.history.dense import Dense

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
    found = conditioned(prior, known[0]).posterior
    means, variances = Dense(prior, known[0]).at(asked)
    errors = np.sqrt(variances)
    assert (np.abs(found.means(asked) - means) < 1e-6 * errors).all()
    assert np.allclose(np.sqrt(found.variances(asked)), errors, rtol=1e-6)
