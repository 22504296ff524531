"""The public series: each reading lands at its day, region and step, and in its dump, as it was delivered."""

from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from optstream.errors import DumpError
from studies.papers.data import LOAD, LOAD_COLUMNS, read_load, read_rows

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


def with_null(rows: pl.DataFrame) -> pl.DataFrame:
    """Region 84 has no value in the last slot."""
    first = pl.int_range(pl.len()) == 0
    return rows.with_columns(pl.when(first).then(None).otherwise("load_mw").alias("load_mw"))


@pytest.fixture
def load_file(tmp_path: Path) -> Path:
    load_rows().write_parquet(tmp_path / LOAD)
    return tmp_path / LOAD


@pytest.fixture
def meter_file(tmp_path: Path) -> Path:
    rows = [
        {"customer_id": f"1000{customer}", "timestamp_local": stamp, "energy_kwh": 0.099}
        for customer in range(12)
        for stamp in STAMPS[:48]
    ]
    pl.DataFrame(rows, schema_overrides={"energy_kwh": pl.Float32}).write_parquet(tmp_path / "meters.parquet")
    return tmp_path / "meters.parquet"


def test_every_reading_lands_at_its_day_leaf_and_step(load_file: Path) -> None:
    names, values = read_load(load_file, FIRST, LAST)
    assert names == ("11", "84")
    expected = [
        [[round(48 * day + step + offset, 1) for step in range(48)] for offset in (1000.0, 0.1)]
        for day in range(3)
    ]
    assert values.tolist() == expected


@pytest.mark.parametrize("spoiled", [with_null(load_rows()), load_rows()[1:]], ids=["null", "row missing"])
def test_gaps_are_refused(tmp_path: Path, spoiled: pl.DataFrame) -> None:
    spoiled.write_parquet(tmp_path / "load.parquet")
    with pytest.raises(DumpError, match="one value for each region and each of 48 slots"):
        read_load(tmp_path / "load.parquet", FIRST, LAST)


def test_what_cannot_be_read_is_said(load_file: Path, meter_file: Path, tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="lacks the column region_code, load_mw"):
        read_load(meter_file, FIRST, FIRST)
    (tmp_path / "text.parquet").write_text("no Parquet")
    for name in ("text.parquet", "nowhere.parquet"):
        with pytest.raises(DumpError, match="cannot be read; name the folder with --data"):
            read_rows(tmp_path / name, LOAD_COLUMNS, FIRST, FIRST)
