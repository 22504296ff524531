"""The benchmark of FAST's report: every figure has its rows, and the rows say what the text says of them."""

from datetime import date

import numpy as np
import polars as pl
import pytest

from studies.benchmarks.fast_report import OURS, STEPS, YEAR, epsilons, errors, main, runs
from studies.benchmarks.peers.fast_as_printed import AsPrinted
from studies.papers.data import FLU, UNEMPLOYMENT, read_flu, read_unemployment


@pytest.fixture
def folder(tmp_path):
    weeks = [
        (year, week)
        for year in range(2006, 2011)
        for week in range(1, 54 if year == 2008 else 53)
        if 200640 <= 100 * year + week <= 201039
    ]
    years, numbers = zip(*weeks, strict=True)
    counts = (4500 + 3000 * np.cos(2 * np.pi * np.arange(STEPS["flu"]) / 52)).astype(int)
    pl.DataFrame(
        {"year": years, "week": numbers, "region_type": "National", "age_5_24": counts}
    ).write_parquet(tmp_path / FLU)
    months = pl.date_range(date(1972, 1, 1), date(2011, 10, 1), "1mo", eager=True)
    pl.DataFrame({"month": months, "thousands": 300.0}).write_parquet(tmp_path / UNEMPLOYMENT)
    return tmp_path


@pytest.mark.slow
def test_every_figure_has_its_rows(folder, capsys):
    main(["--data", str(folder), "--trials", "1"])
    printed = capsys.readouterr().out
    for figure in ("6, 8", "9", "10", "11", "12", "13", "14", "15", "16, 18"):
        assert sum(line.startswith(figure + " ") for line in printed.splitlines()) >= 3
    assert "± 0" in printed


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
