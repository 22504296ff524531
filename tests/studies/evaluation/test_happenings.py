"""What is done to a load: on the right days and regions, and nothing else."""

import numpy as np
import pytest

from studies.evaluation.happenings import HAPPENINGS, JOINS, NOTHING, before, changed

LOAD = np.random.default_rng(0).uniform(0.9, 1.1, (4, 3, 48)) * np.array([2000.0, 9000.0, 700.0])[:, None]
LARGEST, SMALLEST = 1, 2


def ratios(what):
    return changed(LOAD, what) / LOAD


def test_nothing_is_done_to_days_that_are_as_they_were():
    for what in (NOTHING, JOINS):
        assert np.array_equal(changed(LOAD, what), LOAD)


def test_the_days_that_were_given_are_left_alone():
    kept = LOAD.copy()
    for what in HAPPENINGS:
        changed(LOAD, what)
    assert np.array_equal(LOAD, kept)


def test_a_holiday_and_a_blackout_are_over_the_next_day():
    for what in ("a holiday nobody announced", "a blackout of a region", "a blackout everywhere"):
        assert np.array_equal(changed(LOAD, what)[1:], LOAD[1:])
    assert ratios("a holiday nobody announced")[0] == pytest.approx(0.8)
    dark = ratios("a blackout of a region")[0]
    assert dark[LARGEST, 20:32] == pytest.approx(0.05)
    assert (dark == 1.0).sum() == dark.size - 12
    assert ratios("a blackout everywhere")[0][:, 20:28] == pytest.approx(0.1)


def test_the_others_stay():
    assert ratios("a heat wave")[1:] == pytest.approx(1.15)
    assert np.all(np.diff(ratios("a heat wave")[0]) > 0)
    more = changed(LOAD, "a new large customer") - LOAD
    assert more[:, SMALLEST] == pytest.approx(1000.0)
    assert np.all(more[:, :SMALLEST] == 0.0)
    step = ratios("a step change")[:, LARGEST].ravel()
    assert np.all(step[:24] == 1.0)
    assert step[24:] == pytest.approx(1.3)


def test_only_a_region_that_joins_was_not_there_before():
    for what in HAPPENINGS:
        lead = before(LOAD, what, LOAD[0])
        assert np.array_equal(lead[:, LARGEST] == 0.0, np.full((4, 48), what == JOINS))
        assert np.array_equal(lead[:, SMALLEST], LOAD[:, SMALLEST])
