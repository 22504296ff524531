"""Some nodes and days of a published folder: by step, by day, and as SDMX-CSV."""

from datetime import date, timedelta

import polars as pl
import pytest

from optstream.catalogue import read_published
from optstream.catalogue.backends import open_storage
from optstream.catalogue.export import as_sdmx_csv, rows_of
from optstream.catalogue.read import catalogue_reader
from optstream.catalogue.sums import period_sums

DAYS = [date(2016, 2, 1) + timedelta(days=number) for number in range(3)]


@pytest.fixture
def folder(tmp_path, put_all):
    """Three published days."""
    put_all(tmp_path / "published", *DAYS)
    return tmp_path / "published"


def selected(folder, *arguments, **options):
    storage = open_storage(folder)
    return rows_of(storage, catalogue_reader(storage, None)(), *arguments, **options)


def test_a_selection_is_the_published_rows_and_reads_no_other_day(folder):
    (folder / f"data/date={DAYS[0]}").rename(folder / "gone")
    chosen = selected(folder, ["84"], DAYS[1])
    (folder / "gone").rename(folder / f"data/date={DAYS[0]}")
    published = read_published(folder)
    assert chosen.equals(published.filter((pl.col("node") == "84") & (pl.col("date") > DAYS[0])))
    assert selected(folder).equals(published)


def test_sdmx_csv_has_an_observation_for_each_instant_of_a_node(folder):
    """Columns and their order, and one observation a key, as the format's field guide has them."""
    rows = selected(folder, first=DAYS[1])
    by_step = as_sdmx_csv(rows, "load_mw")
    assert by_step.columns[:6] == ["STRUCTURE", "STRUCTURE_ID", "ACTION", "NODE", "TIME_PERIOD", "OBS_VALUE"]
    assert by_step.height == rows["timestamp"].drop_nulls().len()
    assert not by_step.select("NODE", "TIME_PERIOD").is_duplicated().any()
    first = by_step.row(0)
    assert first[:5] == ("dataflow", "OPTSTREAM:LOAD_MW(1.0)", "I", "84", "2016-02-02T00:00:00Z")
    for period, times in (
        ("day", ["2016-02-02", "2016-02-03"]),
        ("week", ["2016-W05"]),
        ("month", ["2016-02"]),
    ):
        sums = as_sdmx_csv(period_sums(rows, "load_mw", period, ()), "load_mw", period)
        assert sums["TIME_PERIOD"].unique().sort().to_list() == times
        assert sums.columns == by_step.columns
