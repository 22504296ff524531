"""From files to dumps to what the flow's first half makes of them."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from optstream.errors import DumpError, OptStreamError, ParameterError
from optstream.measurement.sums import open_private_period
from tasks.config import load_settings
from tasks.ingest import discover, ingest
from tasks.ingest.validate import validate
from tasks.operate.rte import read_load, rte_configuration, write_loads
from tasks.operate.simulate import FRENCH_REGIONS

FIRST = date(2016, 3, 23)
WEEK = [FIRST + timedelta(days=number) for number in range(7)]  # 27 March has 46 half-hours by the clock
NOW = datetime(2016, 7, 1, tzinfo=UTC)


@pytest.fixture
def load(made, tmp_path):
    """Write lines as a file, and read it."""

    def read(lines, name="year.xls"):
        (tmp_path / name).write_bytes(made.encoded(lines))
        return read_load(tmp_path / name)

    return read


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_week_of_twelve_regions_is_read_by_the_documented_configuration(made, load, tmp_path):
    loads = [load(made.rte_lines(region, FIRST, 7), f"{region}.xls") for region in FRENCH_REGIONS]
    done = write_loads(loads, tmp_path / "dumps")
    assert (done.n_files, done.n_written, done.n_kept, done.n_incomplete, done.n_empty) == (12, 84, 0, 0, 0)
    assert done.regions == tuple(sorted(FRENCH_REGIONS))
    (tmp_path / "optstream.toml").write_text(rte_configuration(tmp_path / "dumps"), encoding="utf-8")
    settings = load_settings(tmp_path / "optstream.toml")
    found = discover(settings, WEEK)
    ingested = ingest(settings, list(found.values()))
    assert [verdict.error for verdict in validate(settings, ingested, now=NOW)] == [None] * 7
    for day in ingested:
        expected = [
            [1000 * made.load_of(leaf, day.day, slot) for slot in range(48)]
            for leaf in settings.tree_of(date.min).leaves
        ]
        assert (open_private_period(day.period) == np.array(expected)).all()  # in kW


def test_another_dump_is_never_overwritten(made, load, tmp_path):
    into = tmp_path / "dumps"
    write_loads([load(made.rte_lines("84", FIRST, 2))], into)
    before = contents(into)
    lines = made.rte_lines("84", FIRST, 2)
    lines[1] = made.row_of(FRENCH_REGIONS["84"].name, FIRST, "00:00", "1")
    with pytest.raises(DumpError, match=r"holds another dump.*another folder, or remove"):
        write_loads([load(lines)], into)
    assert contents(into) == before


def test_two_files_may_repeat_each_other_but_not_disagree(made, load, tmp_path):
    lines = made.rte_lines("84", FIRST, 2)
    same = load(made.rte_lines("84", FIRST + timedelta(days=1), 2), "later.xls")
    assert write_loads([load(lines), same], tmp_path / "dumps").n_written == 3
    lines[99] = made.row_of(FRENCH_REGIONS["84"].name, WEEK[1], "00:30", "4711")
    with pytest.raises(OptStreamError) as caught:
        write_loads([same, load(lines)], tmp_path / "others")
    assert str(caught.value).startswith("year.xls: line 100: another reading of region 84, 2016-03-24 00:30")
    assert "later.xls, line 4;" in str(caught.value)
    assert "4711" not in str(caught.value)
    assert not (tmp_path / "others").exists()
    with pytest.raises(ParameterError, match="at least one"):
        write_loads([], tmp_path / "others")


@pytest.mark.nightly
def test_2016_as_rte_hands_it_out_is_the_series_of_the_open_data_portal(real_data, tmp_path):
    zips = sorted((real_data / "rte_2016_zips").iterdir())
    done = write_loads([read_load(path) for path in zips], tmp_path / "dumps")
    assert (done.n_files, done.n_written, done.n_incomplete, done.n_empty) == (12, 12 * 366, 0, 0)
    imported = pl.concat(
        pl.read_parquet(folder / "date=*" / "*.parquet", hive_partitioning=False).with_columns(
            region_code=pl.lit(folder.name.removeprefix("region="))
        )
        for folder in (tmp_path / "dumps").iterdir()
    ).sort("region_code", "timestamp")
    series = pl.read_parquet(real_data / "rte_regional_load_2013_2016.parquet")
    series = series.filter(pl.col("timestamp_local").dt.year() == 2016).sort("region_code", "timestamp_local")
    assert imported.height == series.height == 12 * 366 * 48
    assert imported["region_code"].equals(series["region_code"])
    assert imported["timestamp"].equals(series["timestamp_local"])
    assert imported["load_mw"].equals(series["load_mw"].cast(pl.Float64))
    assert imported["load_mw"].sum() / (366 * 48) == pytest.approx(54_680.7, abs=0.05)
