"""Published rows add up, each node within one of its estimate; the lineage has them all."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

from optstream.catalogue.statement import Consistency
from optstream.estimation.estimate import UNKNOWN, Optimality
from optstream.noise import simulated_noise
from tasks.release.lineage import EVENTS, _estimate_words, told_releases
from tasks.release.mechanism import mechanism_for
from tasks.release.run import Status
from tasks.release.statement import known_errors, published_rows
from tests.optstream.catalogue.conftest import make_statement
from tests.tasks.two_regions import CONFIGURATION

DAY = date(2025, 1, 15)
N_LEAVES = 30
LEAVES = "".join(f'{1000 + leaf} = "FR"\n' for leaf in range(N_LEAVES))
COUNTS = (
    CONFIGURATION.replace('84 = "FR"\n11 = "FR"\n', LEAVES)
    .replace('bounds = ["0", "20000"]', 'bounds = ["0", "20000"]\nresolution = "1"\nlower_bound = "0"')
    .replace('epsilon = "1"', 'epsilon = "5"')
)
"""Thirty leaves of small counts, in whole numbers."""


@pytest.fixture
def configured(load_text):
    """Load this configuration, or another."""
    return lambda text=COUNTS: load_text(text)


def drawn(settings, seed=1):
    values = np.random.default_rng(seed).poisson(0.3, (N_LEAVES, 48)).astype(float)
    return mechanism_for(settings, DAY).release(values, noise=simulated_noise(seed))


def units_of(settings, release, day=DAY):
    rows, tree = published_rows(settings, day, release, 0, 0), settings.tree_of(day)
    assert rows.equals(rows.sort("step", "node"))
    by_name = rows["load_mw"].to_numpy().reshape(-1, len(tree.nodes)).T / float(settings.privacy.resolution)
    values = by_name[np.argsort(np.argsort(np.array(tree.nodes)))]
    assert np.abs(values - np.rint(values)).max() < 1e-6
    return np.rint(values).astype(int)


def with_rule(rule, text=COUNTS):
    return text.replace("[trusted]", f'rounding = "{rule}"\n[trusted]')


@pytest.mark.parametrize("rule", ["nearest", "unbiased"])
@pytest.mark.parametrize("resolution", ["1", "0.5"])
def test_every_node_is_within_a_unit_of_its_estimate_and_adds_up(configured, rule, resolution):
    """The control: leaves to the nearest unit, as it was, take the nation along by more."""
    text = COUNTS.replace('resolution = "1"', f'resolution = "{resolution}"')
    settings = configured(with_rule(rule, text))
    release, tree = drawn(settings), settings.tree_of(date.min)
    units, exact = units_of(settings, release), release.values / float(resolution)
    assert release.optimality is not None
    assert np.abs(units - exact).max() < 1
    assert np.array_equal(units, tree.add_up(units[tree.leaf_indices]))
    assert units.min() >= 0
    one_by_one = tree.add_up(np.rint(exact[tree.leaf_indices]))
    assert np.abs(one_by_one - exact)[0].max() > 1


def test_an_estimate_below_the_bound_is_raised_to_it(configured):
    """Of an estimate that knows no bound, such as that of points without post-processing."""
    settings = configured()
    release = drawn(settings)
    low = replace(release, values=release.values - settings.tree_of(date.min).add_up(np.ones((N_LEAVES, 48))))
    assert low.values[settings.tree_of(date.min).leaf_indices].min() == -1
    assert units_of(settings, low)[settings.tree_of(date.min).leaf_indices].min() == 0


def test_unbiased_rounding_goes_on_where_the_day_before_ended(configured):
    settings = configured(with_rule("unbiased"))
    release = drawn(settings)
    days = [units_of(settings, release, DAY + timedelta(days=number)) for number in range(2)]
    assert not np.array_equal(*days)
    nearest = configured()
    assert np.array_equal(*(units_of(nearest, release, DAY + timedelta(days=number)) for number in range(2)))


def test_what_cannot_be_a_standard_error_is_not_known(configured):
    settings = configured(CONFIGURATION)
    nothing = np.sqrt(UNKNOWN) * float(settings.privacy.resolution)
    given = np.array([[2.5, 0.0, np.nan], [np.inf, nothing, 2 * nothing]])
    assert np.array_equal(np.isfinite(known_errors(settings, given)), [[True, False, False], [False] * 3])
    assert np.isnan(known_errors(settings, None)).all()


@pytest.mark.parametrize("vintage", [0, 1])
@pytest.mark.parametrize("converged", [True, False, None])
def test_it_says_where_the_bounded_program_was_not_solved_to_the_end(vintage, converged):
    found = Optimality(0.02, 0.1, 50, bool(converged))
    certificate = None if converged is None else Consistency.rounded(found)
    words = _estimate_words(make_statement(date(2016, 2, 1), vintage=vintage, consistency=certificate))
    assert words.startswith("revised estimate" if vintage else "first estimate")
    assert ("not solved to the end" in words) == (converged is False)


def test_an_event_that_a_full_disk_tore_takes_the_next_one_not_with_it(installation):
    first, second = date(2016, 6, 1), date(2016, 6, 2)
    installation.released(first)
    events = installation.settings.lineage_folder / EVENTS
    events.write_bytes(events.read_bytes() + events.read_bytes()[:100])
    assert installation.release(second)[second].outcome.status is Status.PUBLISHED
    assert told_releases(installation.settings) == {("2016-06-01", 0), ("2016-06-02", 0)}
    assert installation.problems() == []
