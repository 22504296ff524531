"""The benchmark of FAST's report: every figure has its rows, and the rows say what the text says of them."""

from datetime import date

import numpy as np
import polars as pl
import pytest

from benchmarks.fast_report import STEPS, main, runs
from optstream.evaluation.fast_report import AsPrinted
from tasks.studies.evaluation.data import FLU, UNEMPLOYMENT


@pytest.fixture
def folder(tmp_path):
    weeks = [(2006 + (39 + week) // 52, (39 + week) % 52 + 1) for week in range(STEPS["flu"])]
    years, numbers = zip(*weeks, strict=True)
    counts = (4500 + 3000 * np.cos(2 * np.pi * np.arange(STEPS["flu"]) / 52)).astype(int)
    pl.DataFrame({"year": years, "week": numbers, "region_type": "National", "age_5_24": counts}).filter(
        pl.col("year") * 100 + pl.col("week") <= 201039
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
