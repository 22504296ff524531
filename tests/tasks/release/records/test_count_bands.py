"""`[privacy] counts`: what it needs, what it changes and what not, and the bands that are published."""

import json
import re
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from optstream import read_published
from optstream.mechanisms import HistoryInformedTree
from optstream.noise import simulated_noise
from tasks.release.mechanism import mechanism_for
from tasks.release.outcomes import budget_of
from tasks.release.run import Status
from tasks.release.statement import published_rows, statement_of
from tasks.schemas import schema_of
from tests.tasks.two_regions import CONFIGURATION

DAY = date(2025, 1, 15)
N_LEAVES = 12
LEAVES = "".join(f'{1000 + leaf} = "FR"\n' for leaf in range(N_LEAVES))
PLAIN = re.sub(r"\[sampling\]\n(?:[a-z].*\n)+", "", CONFIGURATION).replace('84 = "FR"\n11 = "FR"\n', LEAVES)
PLAIN = PLAIN.replace('name = "OptStream"', 'name = "HistoryInformed"\nscale = 0.5').replace(
    'bounds = ["0", "20000"]', 'bounds = ["0", "20000"]\nresolution = "1"\nlower_bound = "0"'
)
COUNTS = PLAIN.replace('resolution = "1"', 'resolution = "1"\ncounts = true')


@pytest.fixture
def configured(load_text):
    """Load this configuration, or another."""
    return lambda text=COUNTS: load_text(text)


def drawn(settings):
    values = np.random.default_rng(1).poisson(0.3, (N_LEAVES, 48)).astype(float)
    first = settings.calendar.first_step(DAY)
    return mechanism_for(settings, DAY).release(values, noise=simulated_noise(1), first_step=first)


def test_the_mechanism_is_told_and_lineage_states_it(configured):
    settings = configured()
    mechanism = mechanism_for(settings, DAY)
    assert isinstance(mechanism, HistoryInformedTree)
    assert mechanism.pattern.counts
    assert mechanism.small_level == 1
    assert settings.describe_mechanism(date.min)["counts"] is True


@pytest.mark.slow
def test_without_the_key_nothing_is_other_than_before(configured):
    plain = configured(PLAIN)
    assert plain.configuration_hash == configured(COUNTS.replace("true", "false")).configuration_hash
    assert plain.configuration_hash != configured().configuration_hash
    assert "counts" not in plain.describe_mechanism(date.min)
    assert not mechanism_for(plain, DAY).pattern.counts
    release = drawn(plain)
    assert release.bands is None
    assert "load_mw_low" not in published_rows(plain, DAY, release, 0, 0).columns
    assert statement_of(plain, DAY, release, 0, 0).bands is None


def test_bands_are_published_whole_beside_the_values(configured):
    settings = configured()
    release = drawn(settings)
    rows = published_rows(settings, DAY, release, 0, 0)
    known = rows.drop_nulls(["load_mw_low", "load_mw_high"])
    assert known.height
    assert (known["load_mw_low"] <= known["load_mw_high"]).all()
    assert (known["load_mw_low"] >= 0).all()
    assert known["load_mw"].is_between(known["load_mw_low"], known["load_mw_high"]).all()
    assert known["load_mw_high"].to_list() == [round(high) for high in known["load_mw_high"].to_list()]
    assert statement_of(settings, DAY, release, 0, 0).bands.known in ("all", "some")
    narrow = replace(
        release, values=np.full_like(release.values, 2.0), bands=(zeros := 0.0 * release.values, zeros)
    )
    rows_of_narrow = published_rows(settings, DAY, narrow, 0, 0)
    assert (rows_of_narrow["load_mw_high"] == rows_of_narrow["load_mw"]).all(), (
        "a band holds what is published"
    )
    nothing = replace(release, bands=None)
    assert published_rows(settings, DAY, nothing, 0, 0)["load_mw_low"].null_count() == rows.height
    assert statement_of(settings, DAY, nothing, 0, 0).bands.known == "none"


DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(3)]


@pytest.fixture
def counts(installation):
    """The small stream as one of counts, its leaves publicly taken to be small."""
    installation.change_mechanism("HistoryInformed", "scale = 5.0")
    installation.configure("alpha =", 'resolution = "1"\ncounts = true\nalpha =')
    installation.simulate(*DAYS)
    return installation


@pytest.mark.slow
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
