"""Published rows: rounded, each node within one of its estimate, with bands for counts."""

import json
import re
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from optstream import read_sum
from optstream.catalogue import read_catalogue
from optstream.catalogue.backends import open_storage
from optstream.estimation.estimate import UNKNOWN
from optstream.noise import simulated_noise
from tasks.pages.published import NO_SUMMARIES, public_facts
from tasks.release.mechanism import mechanism_for
from tasks.release.run import Status
from tasks.release.statement import known_errors, published_rows, statement_of
from tests.tasks.test_schemas import validator
from tests.tasks.two_regions import CONFIGURATION

DAY, FIRST = date(2025, 1, 15), date(2016, 6, 1)
N_LEAVES = 30
LEAVES = "".join(f'{1000 + leaf} = "FR"\n' for leaf in range(N_LEAVES))
SMALL = CONFIGURATION.replace('84 = "FR"\n11 = "FR"\n', LEAVES).replace(
    'bounds = ["0", "20000"]', 'bounds = ["0", "20000"]\nresolution = "1"\nlower_bound = "0"'
)
"""Thirty leaves of small values, in whole numbers."""
ROUNDED = SMALL.replace('epsilon = "1"', 'epsilon = "5"')
PLAIN = re.sub(r"\[sampling\]\n(?:[a-z].*\n)+", "", SMALL)
PLAIN = PLAIN.replace('name = "OptStream"', 'name = "HistoryInformed"\nscale = 0.5')
COUNTS = PLAIN.replace('resolution = "1"', 'resolution = "1"\ncounts = true')


def drawn(settings):
    values = np.random.default_rng(1).poisson(0.3, (N_LEAVES, 48)).astype(float)
    first = settings.calendar.first_step(DAY)
    return mechanism_for(settings, DAY).release(values, noise=simulated_noise(1), first_step=first)


def units_of(settings, release, day=DAY):
    rows, tree = published_rows(settings, day, release, 0, 0), settings.tree_of(day)
    assert rows.equals(rows.sort("step", "node"))
    by_name = rows["load_mw"].to_numpy().reshape(-1, len(tree.nodes)).T / float(settings.privacy.resolution)
    values = by_name[np.argsort(np.argsort(np.array(tree.nodes)))]
    assert np.abs(values - np.rint(values)).max() < 1e-6
    return np.rint(values).astype(int)


def with_rule(rule, text=ROUNDED):
    return text.replace("[trusted]", f'rounding = "{rule}"\n[trusted]')


@pytest.mark.parametrize("rule", ["nearest", "unbiased"])
@pytest.mark.parametrize("resolution", ["1", "0.5"])
def test_every_node_is_within_a_unit_of_its_estimate_and_adds_up(load_text, rule, resolution):
    """The control: leaves to the nearest unit, as it was, take the nation along by more."""
    settings = load_text(with_rule(rule, ROUNDED.replace('resolution = "1"', f'resolution = "{resolution}"')))
    release, tree = drawn(settings), settings.tree_of(date.min)
    units, exact = units_of(settings, release), release.values / float(resolution)
    assert release.optimality is not None
    assert np.abs(units - exact).max() < 1
    assert np.array_equal(units, tree.add_up(units[tree.leaf_indices]))
    assert units.min() >= 0
    one_by_one = tree.add_up(np.rint(exact[tree.leaf_indices]))
    assert np.abs(one_by_one - exact)[0].max() > 1


def test_an_estimate_below_the_bound_is_raised_to_it(load_text):
    """Of an estimate that knows no bound, such as that of points without post-processing."""
    settings = load_text(ROUNDED)
    release, tree = drawn(settings), settings.tree_of(date.min)
    low = replace(release, values=release.values - tree.add_up(np.ones((N_LEAVES, 48))))
    assert low.values[tree.leaf_indices].min() == -1
    assert units_of(settings, low)[tree.leaf_indices].min() == 0


@pytest.mark.parametrize(("rule", "same"), [("unbiased", False), ("nearest", True)])
def test_unbiased_rounding_goes_on_where_the_day_before_ended(load_text, rule, same):
    settings = load_text(with_rule(rule))
    release = drawn(settings)
    days = [units_of(settings, release, DAY + timedelta(days=number)) for number in range(2)]
    assert np.array_equal(*days) is same


def test_what_cannot_be_a_standard_error_is_not_known(load_text):
    settings = load_text(CONFIGURATION)
    nothing = np.sqrt(UNKNOWN) * float(settings.privacy.resolution)
    given = np.array([[2.5, 0.0, np.nan], [np.inf, nothing, 2 * nothing]])
    assert np.array_equal(np.isfinite(known_errors(settings, given)), [[True, False, False], [False] * 3])
    assert np.isnan(known_errors(settings, None)).all()


# Counts.


def in_bands(rows):
    """The rows whose bands are known, once these hold the values."""
    known = rows.drop_nulls(["load_mw_low", "load_mw_high"])
    assert (known["load_mw_low"] <= known["load_mw_high"]).all()
    assert known["load_mw"].is_between(known["load_mw_low"], known["load_mw_high"]).all()
    return known


@pytest.mark.slow
def test_bands_are_published_whole_next_to_the_values_of_counts(load_text):
    plain = load_text(PLAIN)
    release = drawn(plain)
    assert release.bands is None
    assert "load_mw_low" not in published_rows(plain, DAY, release, 0, 0).columns
    assert statement_of(plain, DAY, release, 0, 0).bands is None
    settings = load_text(COUNTS)
    release = drawn(settings)
    rows = published_rows(settings, DAY, release, 0, 0)
    known = in_bands(rows)
    assert known.height
    assert (known["load_mw_low"] >= 0).all()
    assert known["load_mw_high"].to_list() == [round(high) for high in known["load_mw_high"].to_list()]
    assert statement_of(settings, DAY, release, 0, 0).bands.known in ("all", "some")
    assert rows["load_mw_estimate"].to_list() == pytest.approx(
        release.estimate[np.argsort(settings.tree_of(DAY).nodes)].T.ravel().tolist(), rel=1e-5
    )
    zeros = 0.0 * release.values
    narrow = published_rows(settings, DAY, replace(release, values=zeros + 2.0, bands=(zeros, zeros)), 0, 0)
    assert (narrow["load_mw_high"] == narrow["load_mw"]).all(), "a band holds the published value"
    nodes = settings.tree_of(DAY).nodes
    for width, named in ((9.0, (nodes[2],)), (0.0, ())):
        edges = zeros, np.where(np.arange(len(nodes))[:, None] == 2, width, zeros)
        stated = statement_of(settings, DAY, replace(release, bands=edges), 0, 0)
        assert stated.bands.wide == named, "nodes whose band is wider than their value"
    nothing = replace(release, bands=None)
    assert published_rows(settings, DAY, nothing, 0, 0)["load_mw_low"].null_count() == rows.height
    assert statement_of(settings, DAY, nothing, 0, 0).bands.known == "none"


@pytest.mark.slow
def test_days_without_their_leaves_are_published_sound(installation):
    days = [FIRST + timedelta(days=number) for number in range(2)]
    installation.configure("[published]\n", "[published]\nlevels = [0]\n")
    installation.simulate(*days)
    assert installation.statuses(*days) == {Status.PUBLISHED}
    assert set(installation.rows()["level"]) == {0}
    assert read_sum(installation.folder / "published", ["FR"], *days).noise_standard_error > 0
    installation.write_pages()
    assert installation.problems() == []


@pytest.mark.slow
def test_days_are_published_with_bands_and_cost_no_more_than_the_grant(installation):
    days = [FIRST + timedelta(days=number) for number in range(3)]
    installation.change_mechanism("HistoryInformed", "scale = 5.0")
    installation.configure("alpha =", 'resolution = "1"\ncounts = true\nalpha =')
    installation.simulate(*days)
    assert mechanism_for(installation.settings, FIRST).small_level == 1
    assert installation.statuses(*days) == {Status.PUBLISHED}
    assert 0 < installation.spent <= 1
    rows = installation.rows()
    assert rows.height == 3 * 3 * 48
    assert in_bands(rows).height > rows.height / 2
    place = open_storage(installation.folder / "published")
    summaries = public_facts(place, read_catalogue(place), NO_SUMMARIES)[1]
    means = rows.group_by("date", "node").agg(pl.col("load_mw_estimate").mean())["load_mw_estimate"]
    assert sorted(summaries["mean"]) == pytest.approx(sorted(means)), "daily means are unbiased"
    for data in installation.files("published/manifests").values():
        assert not list(validator("optstream.manifest/1").iter_errors(json.loads(data)))
        text = json.dumps(json.loads(data))
        assert '"counts": true' in text
        assert "load_mw_low and load_mw_high" in text
