"""The real data, where it is: French load of February 2016, and a week of real households, metered."""

from datetime import date, timedelta

import polars as pl
import pytest

from optstream import read_published
from tasks.operate.rte import read_load, rte_configuration, write_loads
from tasks.release.stages import Status


def days(first, count):
    return [first + timedelta(days=number) for number in range(count)]


def check_published(folder, root, n_days):
    rows = read_published(folder / "published", verify=True)
    value = rows.columns[6]
    assert rows["date"].n_unique() == n_days
    assert rows[value].min() >= 0
    units = rows.with_columns((pl.col(value) * 1000).round().cast(pl.Int64).alias("units"))
    nation = units.filter(node=root).select("date", "step", "units")
    regions = units.filter(parent=root).group_by("date", "step").agg(pl.col("units").sum().alias("sum"))
    joined = nation.join(regions, on=["date", "step"], validate="1:1")
    assert joined.height == n_days * 48
    assert (joined["units"] == joined["sum"]).all()
    return rows


def configure(installation, configuration):
    (installation.folder / "optstream.toml").write_text(configuration(installation.folder / "real"))


@pytest.mark.nightly
def test_february_2016_is_published_whole_and_a_second_run_changes_nothing(installation, real_data):
    february = days(date(2016, 2, 1), 29)
    write_loads(
        [read_load(file) for file in (real_data / "rte_2016_zips").iterdir()], installation.folder / "real"
    )
    configure(installation, rte_configuration)
    works = installation.release(*february)
    assert {work.outcome.status for work in works.values()} == {Status.PUBLISHED}
    rows = check_published(installation.folder, "FR", 29)
    # 1,392 steps share little noise: a mean that is off by a hundredth is another month, or another unit.
    month = pl.col("timestamp_local").dt.date().is_between(february[0], february[-1])
    series = pl.read_parquet(real_data / "rte_regional_load_2013_2016.parquet")
    true = series.filter(month)["load_mw"].sum() / (29 * 48)
    assert rows.filter(node="FR")["load_mw"].mean() == pytest.approx(true, rel=0.01)
    before = installation.files("published")
    again = installation.release(*february)
    assert {work.outcome.status for work in again.values()} == {Status.UNCHANGED}
    assert installation.files("published") == before
