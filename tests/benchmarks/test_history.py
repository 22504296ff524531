"""The long run of HistoryInformed: its figures are there, and it costs what was asked."""

from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from benchmarks import history, history_proxy
from benchmarks.real_year import FILE

FIRST, LAST = date(2013, 3, 4), date(2013, 4, 25)


@pytest.fixture
def folder(tmp_path):
    """Two regions with a shape of the day, 53 days."""
    n_steps = 48 * ((LAST - FIRST).days + 1)
    stamps = [datetime(2013, 3, 4) + timedelta(minutes=30 * step) for step in range(n_steps)]
    shape = 1 + 0.2 * np.sin((np.arange(n_steps) - 16) * np.pi / 24)
    frames = [
        pl.DataFrame(
            {"timestamp_local": stamps, "region_code": code, "load_mw": np.round(size * shape, 1)},
            schema_overrides={"load_mw": pl.Float32},
        )
        for code, size in (("11", 4000.0), ("84", 6000.0))
    ]
    pl.concat(frames).write_parquet(tmp_path / FILE)
    return tmp_path


def test_it_prints_a_row_for_each_epsilon(folder, capsys):
    dates = ["--from", str(FIRST), "--to", str(LAST)]
    history.main(["--data", str(folder), *dates, "--epsilon", "0.05"])
    (row,) = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("0.05")]
    assert float(row[row.index("x") + 2]) > float(row[row.index("x") + 3])  # the first day is the worst
    assert "0.05" in row[1:]  # the worst window


def test_days_that_are_too_few_or_not_there_are_refused(folder, capsys):
    with pytest.raises(SystemExit):
        history.main(["--data", str(folder), "--from", "2013-03-04", "--to", "2013-03-20"])
    assert "must span at least 44 days" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="has no rows on 2013-01-04"):
        history.main(["--data", str(folder), "--from", "2013-01-04", "--to", "2013-03-20"])


def test_a_proxy_stands_beside_the_general_prior(folder, capsys):
    days = ["--proxy", str(FIRST), "2013-03-31", "--begins", "2013-03-20"]
    history_proxy.main(["--data", str(folder), *days, "--epsilon", "0.05", "--trials", "1"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip().startswith("0.05")]
    assert [row[2] for row in rows] == ["general", "proxy"]
    assert rows[0][6:] != rows[1][6:]
