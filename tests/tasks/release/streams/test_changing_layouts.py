"""An archive whose layout changes, simulated and released in one chunk."""

import json
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from optstream import read_published
from optstream.measurement.linear import open_private_period
from tasks.release.day import Status
from tests.tasks.two_regions import READING

DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(4)]
CHANGES = f"""value = "load_mw"
[[input.changes]]
valid_from = {DAYS[2]}
timestamp = "when"
value = "kilowatts"
customer = "meter"
factor = "0.001"
marker = "DONE"
[published]"""
BEFORE = 'value = "load_mw"\n[published]'


@pytest.fixture
def archive(house, monkeypatch):
    """Another folder of dumps, for the house's own lie in the old layout; archive(schema)."""

    def make(schema="aggregated"):
        house.configure(BEFORE, CHANGES)
        house.configure('folder = "dumps"', 'folder = "archive"')
        house.configure('schema = "aggregated"', f'schema = "{schema}"')
        house.simulate(*DAYS)
        return house

    return make


def dump(house, day, region="84"):
    return pl.read_parquet(house.settings.input_folder / f"region={region}/date={day}/part-0.parquet")


@pytest.mark.parametrize("schema", ["aggregated", "metered"])
def test_the_simulation_writes_each_days_layout(archive, schema):
    house = archive(schema)
    before, after = dump(house, DAYS[1]), dump(house, DAYS[2])
    people = [["customer_id"], ["meter"]] if schema == "metered" else [[], []]
    assert sorted(before.columns) == sorted([*people[0], "timestamp", "load_mw"])
    assert sorted(after.columns) == sorted([*people[1], "when", "kilowatts"])
    assert 500 < after["kilowatts"].mean() / before["load_mw"].mean() < 2000
    for day, marker in ((DAYS[1], "_SUCCESS"), (DAYS[2], "DONE")):
        names = sorted(path.name for path in (house.folder / f"archive/region=84/date={day}").iterdir())
        assert names == sorted([marker, "part-0.parquet"])
    house.simulate(*DAYS)  # again, the same


@pytest.mark.parametrize("schema", ["aggregated", "metered"])
def test_a_chunk_across_the_change_is_released(archive, schema):
    house = archive(schema)
    works = house.release(*DAYS)
    assert [works[day].outcome.status for day in DAYS] == [Status.PUBLISHED] * 4
    assert [house.verdict(day)["alarms"] for day in DAYS] == [[]] * 4
    rows = read_published(house.folder / "published", verify=True)
    assert rows.height == 4 * 3 * 48
    again = house.release(*DAYS)
    assert [again[day].outcome.status for day in DAYS] == [Status.UNCHANGED] * 4


def test_what_is_measured_does_not_depend_on_the_layout(house, archive):
    house.simulate(*DAYS)
    plain = house.release(*DAYS, steps=READING)
    changed = archive().release(*DAYS, steps=READING)
    for day in DAYS:
        periods = [open_private_period(works[day].period) for works in (plain, changed)]
        assert np.array_equal(*periods)
        assert periods[0].min() > 0


def test_lineage_names_the_raw_column_of_each_day(archive):
    house = archive()
    house.released(*DAYS)
    events = [
        json.loads(line) for line in (house.folder / "trusted/lineage/events.jsonl").read_text().splitlines()
    ]
    raw = {}
    for event in events:
        (output,) = event["outputs"]
        sources = output["facets"]["columnLineage"]["fields"]["load_mw"]["inputFields"]
        (raw[sources[0]["name"].rsplit("date=")[-1]],) = {source["field"] for source in sources}
    assert raw == {
        str(DAYS[0]): "load_mw",
        str(DAYS[1]): "load_mw",
        str(DAYS[2]): "kilowatts",
        str(DAYS[3]): "kilowatts",
    }
