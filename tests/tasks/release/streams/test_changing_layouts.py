"""An archive whose layout changes, simulated and released in one chunk."""

import json
from datetime import date, timedelta

import polars as pl
import pytest

from optstream import read_published
from tasks.release.day import Status

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
def archive(installation, monkeypatch):
    """Another folder of dumps, for the installation's own lie in the old layout; archive(schema)."""

    def make(schema="aggregated"):
        installation.configure(BEFORE, CHANGES)
        installation.configure('folder = "dumps"', 'folder = "archive"')
        installation.configure('schema = "aggregated"', f'schema = "{schema}"')
        installation.simulate(*DAYS)
        return installation

    return make


def dump(installation, day, region="84"):
    return pl.read_parquet(installation.settings.input_folder / f"region={region}/date={day}/part-0.parquet")


@pytest.mark.parametrize("schema", ["aggregated", "metered"])
def test_a_chunk_across_the_change_is_released(archive, schema):
    installation = archive(schema)
    works = installation.release(*DAYS)
    assert [works[day].outcome.status for day in DAYS] == [Status.PUBLISHED] * 4
    assert [installation.verdict(day)["alarms"] for day in DAYS] == [[]] * 4
    rows = read_published(installation.folder / "published", verify=True)
    assert rows.height == 4 * 3 * 48
    again = installation.release(*DAYS)
    assert [again[day].outcome.status for day in DAYS] == [Status.UNCHANGED] * 4


def test_lineage_names_the_raw_column_of_each_day(archive):
    installation = archive()
    installation.released(*DAYS)
    events = [
        json.loads(line)
        for line in (installation.folder / "trusted/lineage/events.jsonl").read_text().splitlines()
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
