"""Figures 8 and 9: the budgets as found, and how much noise they ask for."""

from functools import partial

import pytest

from studies.leakage.paper.budget_figures import LENGTHS, STATES, STRENGTHS, budgets, noise, noise_of
from tests.studies.leakage.paper.points import value_of


def test_figure_8_algorithm_8_attains_the_bound_at_each_step_and_algorithm_7_stays_below():
    value = partial(value_of, budgets())
    for step in range(1, 11):
        assert value("Algorithm 7", step, "epsilon of a step") == pytest.approx(0.2039, abs=5e-5)
        assert value("Algorithm 7", step, "total leakage") < 1
        assert value("Algorithm 8", step, "total leakage") == pytest.approx(1, rel=1e-9)
    first, middle, last = (value("Algorithm 8", step, "epsilon of a step") for step in (1, 5, 10))
    assert (first, middle, last) == pytest.approx((0.4998, 0.2039, 0.7041), abs=5e-5)


def test_figure_9_exact_budgets_are_the_less_noisy_the_shorter_the_release():
    figure = noise()
    for n in STATES:
        row = f"{n} states"
        exact = [value_of(figure, "Algorithm 8", length, "(a) s = 0.001, by T", row) for length in LENGTHS]
        constant = value_of(figure, "Algorithm 7", LENGTHS[0], "(a) s = 0.001, by T", row)
        assert exact == sorted(exact)
        assert exact[0] < constant / 30
        assert exact[-1] == pytest.approx(constant, rel=0.05)


def test_figure_9_noise_falls_to_that_of_no_correlation():
    figure = noise()
    constants = [value_of(figure, "Algorithm 7", s, "(b) T = 10, by s", "50 states") for s in STRENGTHS]
    assert constants == sorted(constants, reverse=True)
    assert constants[2] > 7 * 0.5
    assert constants[-1] < 1.2 * 0.5
    assert noise_of(50, 0.001, 10)[0] == pytest.approx(31.35, abs=5e-3)
