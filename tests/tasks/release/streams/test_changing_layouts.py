"""An archive whose layout changes, simulated and released in one chunk."""

from datetime import date, timedelta

import pytest

from optstream import read_published
from tasks.release.stages import Status

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
def archive(installation):
    """Another folder of dumps, for the installation's own lie in the old layout; archive(schema)."""

    def make(schema="aggregated"):
        installation.configure(BEFORE, CHANGES)
        installation.configure('folder = "dumps"', 'folder = "archive"')
        installation.configure('schema = "aggregated"', f'schema = "{schema}"')
        installation.simulate(*DAYS)
        return installation

    return make


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
