"""What is done to a load: on the right days and regions, and nothing else."""

import numpy as np
import pytest

from studies.evaluation.happenings import HAPPENINGS, JOINS, before, changed

LOAD = np.random.default_rng(0).uniform(0.9, 1.1, (4, 3, 48)) * np.array([2000.0, 9000.0, 700.0])[:, None]
LARGEST, SMALLEST = 1, 2


def ratios(what):
    return changed(LOAD, what) / LOAD


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
