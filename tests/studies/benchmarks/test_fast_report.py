"""The benchmark of FAST's report: every figure has its rows, and the rows say what the text says of them."""

import numpy as np
import pytest

from studies.benchmarks.fast_report import OURS, YEAR, epsilons, errors, runs
from studies.benchmarks.peers.fast_as_printed import AsPrinted
from studies.papers.data import read_flu, read_unemployment


def test_the_settings_are_those_of_section_6():
    usual = AsPrinted()
    assert (usual.process_variance, usual.noise_variance) == (0.001, 10)
    assert (usual.proportional, usual.integral, usual.derivative) == (0.9, 0.1, 0)
    assert (usual.integration_time, usual.interval_step, usual.set_point) == (20, 5, 0.4)
    assert len({(figure, what) for figure, what, _ in runs()}) == len(runs())


@pytest.mark.parametrize("n_steps", YEAR)
def test_each_row_costs_what_it_promises_by_the_accountant(n_steps):
    costs = epsilons(np.full(n_steps, 300), seed=0)
    assert set(costs) == {*OURS, "Algorithm 3", "fixed, 25%"}
    for name, (of_the_series, of_a_year) in costs.items():
        assert (of_a_year if "a year kept" in name else of_the_series) <= 1
        assert of_a_year <= of_the_series
    assert costs["Algorithm 3"][0] == costs["fixed, 25%"][0] == 1
    for name in ("ours, fixed, a year kept", "Laplace, a year kept"):
        assert costs[name][1] > 0.99  # and so the whole series costs about a year's as often as it has years
        assert costs[name][0] > n_steps // YEAR[n_steps] - 1


@pytest.mark.slow
def test_what_docs_papers_says_of_the_figures(real_data):
    """Five trials of a fixed seed: orders only; the page's numbers are of thirty."""
    series = {"flu": read_flu(real_data)[:209], "unemployment": read_unemployment(real_data)[:478]}
    rows = {(figure, what): released for figure, what, released in runs()}

    def error(name, figure, what):
        return errors(rows[figure, what], series[name], 5, 0).mean()

    for name in series:
        for epsilon in ("0.1", "0.01"):
            line, filtered = (error(name, "6, 8", f"α = {epsilon}, {how}") for how in ("linear", "kalman"))
            assert filtered < line / 2
        for figure, settings in (
            ("9", ("Q = 0.001", "Q = 0.1", "Q = 10")),
            ("10", ("R = 1000", "R = 10", "R = 0.1")),
            ("11", ("fixed, 25%", "fixed, 50%", "fixed, 100%")),
            ("12", ("adaptive, M = 25%", "adaptive, M = 50%", "adaptive, M = 100%")),
        ):
            found = [error(name, figure, setting) for setting in settings]
            assert found == sorted(found)
            assert found[-1] > 1  # worse than publishing zeros
        as_printed, turned = (
            error(name, "11", f"adaptive, sign {sign}, errors signed") for sign in ("printed", "turned")
        )
        assert as_printed < turned
        noisy, filtered = (error(name, "6, 8", f"α = 0.01, {how}") for how in ("noisy", "kalman"))
        assert filtered < noisy / 3
        for epsilon in ("1", "0.1", "0.01"):
            whole, year = (
                error(name, "16, 18", f"α = {epsilon}, {of}") for of in ("Laplace", "Laplace, a year kept")
            )
            assert year < whole / 3
    for name, epsilon, best in (
        ("flu", "1", "Laplace"), ("flu", "0.1", "DFT, k = 10"), ("unemployment", "1", "DFT, k = 10")
    ):  # fmt: skip
        found = {
            of: error(name, "16, 18", f"α = {epsilon}, {of}")
            for of in ("Algorithm 3", "DFT, k = 10", "Laplace")
        }
        assert min(found, key=found.__getitem__) == best
    assert error("flu", "6, 8", "α = 1, linear") < 1 < error("flu", "6, 8", "α = 1, kalman")
