"""The benchmark of OptStream's texts: its rows are the figures', and its best points are the best."""

from itertools import combinations

import numpy as np
import pytest

from studies.benchmarks.optstream_report import (
    TABLE_2,
    forecasts,
    in_january,
    january_rows,
    least_error,
    points_without_noise,
    table_2,
)
from studies.evaluation.cells import Point


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


def test_a_row_has_its_error_and_what_the_accountant_says():
    region = days(31)
    exact, _, likeness, costs = in_january(
        ("2", "Laplace", "strict", Point("1000000")), region, trials=2, seed=0
    )
    assert exact.max() < 0.01
    assert likeness == pytest.approx(1)
    assert costs == pytest.approx(1e6)
    errors, high, likeness, costs = in_january(
        ("2", "OptStream ES", "paper", Point("0.1")), region, trials=2, seed=0
    )
    assert 10 < errors.mean() < high
    assert 0.5 < likeness < 1
    assert costs == pytest.approx(2.45)  # the paper's scales: 24.5 times what they say


def test_no_points_are_better_than_the_best():
    found = dict(points_without_noise(days(2), seed=0))
    best = found.pop("the best, equation 4")
    assert 0 < best < min(found.values())


@pytest.mark.slow
def test_forecasts_are_of_the_day_after_and_the_real_one_has_no_distance():
    found = {(name, scales): (error, distance) for name, scales, error, distance in forecasts(days(33), 1, 0)}
    assert found["real data", "none"][1] == 0
    assert found["Laplace", "strict"][1] > 0
    assert found["Laplace", "strict"][0] != found["real data", "none"][0]


def test_table_2_stands_beside_the_means_of_the_series():
    regions = list(TABLE_2)
    load = np.ones((2, len(regions), 48)) * np.arange(1, 13)[None, :, None]
    found = list(table_2(regions, load))
    assert found[0] == (regions[0], 7717.58, 1.0)
    assert found[-1] == ("nation", pytest.approx(54885.81), 78.0)
