"""The public series: each reading lands at its day, region and step, and in its dump, as it was delivered."""

from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from studies.papers.data import LOAD, read_load

FIRST, LAST = date(2016, 3, 26), date(2016, 3, 28)  # the second day has two slots that do not exist
STAMPS = [datetime(2016, 3, 26) + timedelta(minutes=30) * slot for slot in range(3 * 48)]
OFFSETS = {"84": 0.1, "11": 1000.0}


def load_rows() -> pl.DataFrame:
    """Two regions, three days of 48 slots, in an order that is not the dumps'; 32-bit."""
    rows = [
        {"timestamp_local": stamp, "region_code": code, "region": "x", "load_mw": slot + offset}
        for slot, stamp in reversed(list(enumerate(STAMPS)))
        for code, offset in OFFSETS.items()
    ]
    return pl.DataFrame(rows, schema_overrides={"load_mw": pl.Float32, "timestamp_local": pl.Datetime("us")})


@pytest.fixture
def load_file(tmp_path: Path) -> Path:
    load_rows().write_parquet(tmp_path / LOAD)
    return tmp_path / LOAD


def test_every_reading_lands_at_its_day_leaf_and_step(load_file: Path) -> None:
    names, values = read_load(load_file, FIRST, LAST)
    assert names == ("11", "84")
    expected = [
        [[round(48 * day + step + offset, 1) for step in range(48)] for offset in (1000.0, 0.1)]
        for day in range(3)
    ]
    assert values.tolist() == expected
