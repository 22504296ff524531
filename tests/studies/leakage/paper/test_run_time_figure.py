"""Figure 6: every point is a time of the given clock; and the three ways agree."""

from itertools import count

import numpy as np
import pytest

from studies.leakage.paper import run_time_figure
from studies.leakage.paper.run_time_figure import (
    AMOUNTS,
    LENGTHS,
    PAIRS,
    PROGRAMS,
    Sizes,
    largest_difference,
    run_times,
)
from tests.studies.leakage.paper.points import value_of

SMALL = Sizes(states=(3, 4), n_steps_states=4, amounts_states=3, n_matrices=3, matrices_states=4, runs=2)


def test_all_panels_have_the_times_of_the_clock():
    """A clock that is one second later at each look: work once takes 1, of a thousand calls each 1 / 1000."""
    ticks = count()
    figure = run_times(SMALL, np.random.default_rng(0), lambda: float(next(ticks)))
    assert value_of(figure, PROGRAMS, 3, "(a) one L(0.1), by n") == 1
    assert value_of(figure, "L from pieces", 4, "(a) one L(0.1), by n") == pytest.approx(1e-3)
    assert value_of(figure, "pieces", 4, "(b) precomputation, by n") == 1
    for length in LENGTHS:
        assert value_of(figure, PAIRS, length, "(c) T steps, n = 4, by T") == length
        assert value_of(figure, "pieces and L", length, "(c) T steps, n = 4, by T") == 1
    for a in AMOUNTS:
        assert value_of(figure, PAIRS, a, "(d) one L(α), n = 3, by α") == 1


def test_the_programs_agree_and_another_answer_is_seen(monkeypatch):
    assert largest_difference(SMALL, np.random.default_rng(0)) < 1e-6
    monkeypatch.setattr(run_time_figure, "loss_by_row_pairs", lambda matrix, a: 0.0)
    assert largest_difference(SMALL, np.random.default_rng(0)) > 1e-3
