"""The benchmark of a public proxy: beside the general prior, and days that are not there are said."""

from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from optstream.errors import DumpError
from studies.benchmarks import history_proxy
from studies.benchmarks.history_proxy import main
from studies.papers.data import LOAD

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
    pl.concat(frames).write_parquet(tmp_path / LOAD)
    return tmp_path


def test_a_proxy_stands_beside_the_general_prior(folder, capsys, monkeypatch):
    monkeypatch.setattr(history_proxy, "N_DAYS", 9)
    days = ["--proxy", str(FIRST), "2013-03-31", "--begins", "2013-03-20"]
    main(["--data", str(folder), *days, "--epsilon", "0.05", "--trials", "1"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip().startswith("0.05")]
    assert [row[2] for row in rows] == ["general", "proxy"]
    assert rows[0][6:] != rows[1][6:]


def test_days_that_are_not_there_are_refused(folder):
    with pytest.raises(DumpError, match="has no rows on 2013-01-02"):
        main(["--data", str(folder)])
