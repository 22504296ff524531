"""What another stream of the same people published, as a public covariate: read, and released after it."""

import hashlib
import shutil
from datetime import date

import numpy as np
import polars as pl
import pytest

from optstream import read_published
from optstream.stream.calendar import ORIGIN
from tasks.release.run import Status
from tasks.trusted import covariates
from tasks.trusted.covariates import read_covariates
from tests.tasks.products import two_products
from tests.tasks.two_regions import FEW_BLOCKS

pytestmark = pytest.mark.slow

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
SAMPLING = '[sampling]\nmethod = "equally_spaced"\nn_samples = 10\n'
COVARIATE = """[[covariates]]
name = "gas"
path = "../gas/published"
value = "load_mw"
source = "our own release of gas"
"""


@pytest.fixture
def products(tmp_path, monkeypatch):
    """Electricity goes by what gas has published, so gas comes first."""
    monkeypatch.setattr(covariates, "_read_apart", covariates.read_here)
    both = two_products(tmp_path)
    electricity = both["electricity"]
    electricity.configure('name = "OptStream"', f'name = "HistoryInformed"\n{FEW_BLOCKS}')
    electricity.configure(SAMPLING, COVARIATE)
    for one in both.values():
        one.simulate(DAY, NEXT)
    return both


def test_the_published_means_of_each_node_are_the_covariate(products):
    electricity, gas = products["electricity"], products["gas"]
    assert gas.statuses(DAY, NEXT) == {Status.PUBLISHED}
    (found,) = read_covariates(electricity.settings, NEXT).read
    assert found.first_day == (DAY - ORIGIN).days
    rows = read_published(gas.folder / "published")
    tree = electricity.settings.tree_of(DAY)
    means = rows.group_by("node", "date").agg(pl.col("load_mw").mean()).sort("date")
    expected = [means.filter(pl.col("node") == node)["load_mw"].to_list() for node in tree.nodes]
    assert np.allclose(found.values, expected)
    # what is asked about a day knows no later one
    (early,) = read_covariates(electricity.settings, DAY).read
    assert early.values.shape == (3, 1)


def test_a_night_goes_by_what_was_published_before_it(products):
    electricity, gas = products["electricity"], products["gas"]
    gas.release(DAY)
    before = electricity.ledger.worst("people").epsilon
    assert electricity.statuses(DAY) == {Status.PUBLISHED}
    (used,) = electricity.statement(DAY)["mechanism"]["covariates"]
    assert used["name"] == "gas"
    assert len(used["values_sha256"]) == 64
    # it costs nothing: the plan is that of a stream without it
    own = electricity.ledger.worst("people").epsilon - before
    assert own <= electricity.settings.model_of(0).epsilon
    # a day that gas has not published goes without it, and is released
    assert electricity.statuses(NEXT) == {Status.PUBLISHED}
    assert electricity.statement(NEXT)["mechanism"]["covariates"][0]["values_sha256"] == "none"


def test_a_link_into_the_trusted_zone_and_a_changed_file_are_not_read(products):
    gas, electricity = products["gas"], products["electricity"]
    gas.release(DAY)
    hidden = electricity.folder / "trusted/copy"
    shutil.copytree(gas.folder / "published", hidden)
    (file,) = (gas.folder / "published/data").rglob("*.parquet")
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-1] + b"0")
    (why,) = read_covariates(electricity.settings, DAY).unread.values()
    assert "gas/published" in why
    (electricity.folder / "elsewhere").symlink_to(hidden)
    electricity.configure("../gas/published", "elsewhere")
    (why,) = read_covariates(electricity.settings, DAY).unread.values()
    assert "leads into trusted.folder, which is private" in why


@pytest.mark.parametrize("named", ["by the population file", "by a folder above"])
@pytest.mark.parametrize("place", ["dumps/copy.csv", "trusted/copy.csv"])
def test_what_is_private_to_another_stream_is_refused(products, tmp_path, named, place):
    """Its readings would leak by the estimates of this one, and no ledger would see it."""
    gas, electricity = products["gas"], products["electricity"]
    gas.release(DAY)
    rows = pl.DataFrame({"date": [DAY], "load_mw": [1.0]})
    rows.write_csv(gas.folder / place)
    known = hashlib.sha256((gas.folder / place).read_bytes()).hexdigest()
    electricity.configure('name = "gas"', f'name = "gas"\nsha256 = "{known}"')
    if named == "by the population file":
        for zone in ("dumps", "trusted"):
            (gas.folder / zone).rename(tmp_path / zone)
            gas.configure(f'folder = "{zone}"', f'folder = "{tmp_path / zone}"')
        electricity.configure("../gas/published", str(tmp_path / place))
    else:
        (tmp_path / "gas").rename(tmp_path / "water")
        electricity.configure("../gas/published", f"../water/{place}")
    (why,) = read_covariates(electricity.settings, DAY).unread.values()
    assert ".folder, which is private" in why
    rows.write_csv(tmp_path / "public.csv")
    electricity.configure(str(electricity.settings.covariates[0].path), "../public.csv")
    assert read_covariates(electricity.settings, DAY).read
