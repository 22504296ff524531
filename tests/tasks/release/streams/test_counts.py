"""A stream of counts through the protocol: the ledger's price, bands in the file, manifests by the schema."""

import json
from datetime import date, timedelta

import pytest
from jsonschema import Draft202012Validator

from optstream import read_published
from tasks.release.mechanism import mechanism_for
from tasks.release.outcomes import budget_of
from tasks.release.stages import Status
from tasks.schemas import schema_of

pytestmark = pytest.mark.slow

DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(3)]


@pytest.fixture
def counts(installation):
    """The small stream as one of counts, its leaves publicly taken to be small."""
    installation.change_mechanism("HistoryInformed", "scale = 5.0")
    installation.configure("alpha =", 'resolution = "1"\ncounts = true\nalpha =')
    installation.simulate(*DAYS)
    return installation


def test_days_are_published_with_bands_and_cost_no_more_than_the_grant(counts):
    assert mechanism_for(counts.settings, DAYS[0]).small_level == 1
    works = counts.release(*DAYS)
    assert {work.outcome.status for work in works.values()} == {Status.PUBLISHED}
    assert 0 < budget_of(counts.settings, counts.ledger).spent <= 1
    rows = read_published(counts.settings.published_folder, verify=True)
    assert rows.height == 3 * 3 * 48
    known = rows.drop_nulls(["load_mw_low", "load_mw_high"])
    assert known.height > rows.height / 2
    assert (known["load_mw_low"] <= known["load_mw_high"]).all()
    assert known["load_mw"].is_between(known["load_mw_low"], known["load_mw_high"]).all()
    validator = Draft202012Validator(schema_of("optstream.manifest/1"))
    for data in counts.files("published/manifests").values():
        manifest = json.loads(data)
        validator.validate(manifest)
        assert '"counts": true' in json.dumps(manifest)
        assert "load_mw_low and load_mw_high" in json.dumps(manifest)
