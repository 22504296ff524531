"""The benchmark of OptStream's texts: its rows are the figures', and its best points are the best."""

from itertools import combinations

import numpy as np
import pytest

from studies.benchmarks.optstream_report import (
    forecasts,
    january_rows,
    least_error,
)


def days(n_days, seed=0):
    """Days of a region, MW: a daily wave and noise, (n_days, 1, 48)."""
    wave = 7000 + 1500 * np.sin(np.linspace(0, 2 * np.pi, 48))
    return np.round(wave + np.random.default_rng(seed).normal(0, 100, (n_days, 1, 48)))


def test_every_figure_of_january_has_its_rows():
    rows = january_rows()
    assert len(set(rows)) == len(rows)
    of = {
        figure: {(name, point.epsilon, point.alpha) for at, name, _, point in rows if at == figure}
        for figure in ("2", "7", "10", "12, caption", "12, text", "6.2, θ")
    }
    assert {epsilon for _, epsilon, _ in of["2"]} == {"1", "0.1", "0.01"}
    assert {epsilon for _, epsilon, _ in of["7"]} == {"0.1", "0.01"}
    assert {(epsilon, alpha) for _, epsilon, alpha in of["10"]} == {("1", "10"), ("1", "50"), ("1", "100")}
    assert {epsilon for _, epsilon, _ in of["12, caption"]} == {"1", "0.1", "0.01"}
    assert {alpha for _, _, alpha in of["12, text"]} == {"10", "50", "100"}
    assert {point.n_samples for at, _, _, point in rows if at == "10" and point.alpha == "100"} == {5}


@pytest.mark.parametrize("n_points", [1, 2, 4])
def test_the_least_error_is_that_of_all_choices_of_points(n_points):
    day = days(1)[0, 0, :9]
    steps = np.arange(9)
    errors = [
        np.abs(np.interp(steps, chosen, day[list(chosen)]) - day).mean()
        for size in range(1, n_points + 1)
        for chosen in combinations(range(9), size)
    ]
    assert least_error(day, n_points) == pytest.approx(min(errors))
    assert min(errors) < 0.9 * max(errors)  # control: points matter


@pytest.mark.slow
def test_forecasts_are_of_the_day_after_and_the_real_one_has_no_distance():
    found = {(name, scales): (error, distance) for name, scales, error, distance in forecasts(days(33), 1, 0)}
    assert found["real data", "none"][1] == 0
    assert found["Laplace", "strict"][1] > 0
    assert found["Laplace", "strict"][0] != found["real data", "none"][0]
