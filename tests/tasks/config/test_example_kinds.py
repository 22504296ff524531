"""The examples of every kind that `optstream init` writes: each is read without a complaint, and runs."""

from datetime import date
from itertools import product

import pytest

from optstream.mechanisms import MECHANISMS, mechanism_named
from tasks.config.example import Kind, example_of
from tasks.plan.dry_run import dry_run
from tests.by_night import few

DAY = date(2016, 2, 1)
BY_THE_HOUR = [Kind(name, hourly=True) for name in MECHANISMS if mechanism_named(name).serves_hours]
KINDS = [
    Kind(*choice) for choice in product(MECHANISMS, (False, True), (False, True), (2, 3, 4))
] + BY_THE_HOUR
OF_EACH = [
    Kind(name, number % 2 == 0, number % 3 == 0, 2 + number % 3)
    for number, name in enumerate(sorted(MECHANISMS, key=lambda name: name == "HistoryInformed"))
]
"""HistoryInformed, the last, by night: flows/cli/show/test_dry_run.py prices an example of it by day."""


@pytest.fixture
def settings_of(load_text):
    return lambda kind: load_text(example_of(kind))


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_kind_is_usable_and_is_what_was_asked_for(settings_of, name):
    for kind in (kind for kind in KINDS if kind.mechanism == name):
        settings = settings_of(kind)
        assert settings.mechanism.name == name
        assert (settings.privacy.counts, settings.metered) == (kind.counts, kind.metered)
        assert settings.tree_of(date.min).n_levels == kind.levels == len(settings.level_shares)
        assert settings.calendar.period == ("hour" if kind.hourly else "day")
        assert set(settings.node_facts) == set(settings.tree_of(date.min).nodes)
        if kind.counts:
            assert (settings.privacy.resolution, settings.privacy.lower_bound) == (1, 0)
        if kind.metered:  # then it is protected, too, whether somebody has readings at all
            assert max(map(abs, settings.privacy.bounds)) <= settings.privacy.alpha


@pytest.mark.slow
@pytest.mark.parametrize("kind", few(OF_EACH, len(OF_EACH) - 1), ids=lambda kind: kind.mechanism)
def test_a_night_of_each_mechanism_fits_its_budget(settings_of, kind):
    assert dry_run(settings_of(kind), [DAY]).fits
