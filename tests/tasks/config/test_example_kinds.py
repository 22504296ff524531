"""The examples of every kind that `optstream init` writes: each is read without a complaint, and runs."""

import re
import tomllib
from datetime import date
from typing import NamedTuple

import pytest

from optstream.errors import ParameterError
from optstream.mechanisms import MECHANISMS, mechanism_named
from tasks.config.schema import EVERY_HOUR
from tasks.config.templates import example_of
from tasks.plan.dry_run import dry_run
from tests.by_night import few

DAY = date(2016, 2, 1)


class Kind(NamedTuple):
    """The arguments of `example_of`."""

    mechanism: str
    counts: bool = False
    metered: bool = False
    hourly: bool = False


KINDS = [
    Kind(name, *template, hourly)
    for name in MECHANISMS
    for template in ((False, False), (True, False), (False, True))
    for hourly in (False, True)[: 1 + mechanism_named(name).serves_hours]
]
OF_EACH = [
    Kind(name, number % 3 == 0, number % 3 == 1)
    for number, name in enumerate(sorted(MECHANISMS, key=lambda name: name == "HistoryInformed"))
]
"""HistoryInformed, the last, by night: flows/cli/test_dry_run.py prices an example of it by day."""


@pytest.fixture
def settings_of(load_text):
    return lambda kind: load_text(example_of(*kind))


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_kind_is_usable_and_is_what_was_asked_for(settings_of, name):
    for kind in (kind for kind in KINDS if kind.mechanism == name):
        settings = settings_of(kind)
        assert settings.mechanism.name == name
        assert (settings.privacy.counts, settings.metered) == (kind.counts, kind.metered)
        assert settings.tree_of(date.min).n_levels == 2 == len(settings.level_shares)
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


def test_what_an_example_by_the_hour_leaves_to_be_chosen_is_usable_too(load_text):
    text = example_of("Laplace", hourly=True).replace('cron = "0 3 * * *"', f'cron = "{EVERY_HOUR}"')
    chosen = r"^# (?=not_before|\[watch\]|late_after|max_runtime|\[schedule\]|cron)"
    settings = load_text(re.sub(chosen, "", text, flags=re.MULTILINE))
    assert settings.schedule.cron == EVERY_HOUR
    assert settings.watch is not None


def test_comments_speak_of_the_unit_of_the_readings():
    for kind in KINDS:
        text = example_of(*kind)
        assert ("MW" in text) == (not kind.counts and not kind.metered)
        assert tomllib.loads(text)["published"]["value"] == tomllib.loads(text)["input"]["value"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"mechanism": "laplace"}, '"OptStream" or "Laplace"'),
        ({"counts": True, "metered": True}, "of counts or metered, not of both"),
        ({"hourly": True}, r"by the hour is for mechanism .*\"PeGaSus\".*; got 'OptStream'"),
    ],
)
def test_what_there_is_no_example_of_is_refused(wrong, told):
    with pytest.raises(ParameterError, match=told):
        example_of(**wrong)
