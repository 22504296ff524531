"""Days are not released beside days that have other steps by the time zone data of now."""

from datetime import date, timedelta

import pytest

from optstream.ledger import Key
from tasks.ledger.verify import verify
from tasks.release.run import Status
from tests.tasks.release.conftest import NONE, SUMMER_TIME
from tests.tasks.two_regions import Installation

FIRST = date(2016, 3, 28)
"""The day after the clock changes by the older data; by the newer it does not."""
SECOND, LATER = FIRST + timedelta(days=1), FIRST + timedelta(days=5)


def publish(installation, *days):
    """Have these days published, and say if they all are."""
    installation.simulate(*days)
    outcomes = [one.outcome for one in installation.release(*days).values()]
    return [outcome.status for outcome in outcomes] == [Status.PUBLISHED] * len(days)


@pytest.fixture
def released(installation, zone):
    """A day is released by the older data; then come the newer."""
    zone(SUMMER_TIME)
    assert publish(installation, FIRST)
    zone(NONE)
    return installation


def test_a_day_is_refused_whose_neighbour_has_other_steps_now(released):
    released.simulate(SECOND)
    before = released.files("published", "trusted/measurements")
    refused = released.outcome(SECOND)
    assert refused.status is Status.FAILED
    assert f"has {FIRST} of stream 'two-regions' at steps" in refused.message
    assert "time zone data of Test/" in refused.message
    assert released.ledger.find(Key("two-regions", SECOND.isoformat())) is None
    assert released.files("published", "trusted/measurements") == before


def another_stream(installation, folder):
    """One of the same privacy budget."""
    other = Installation(folder, installation.now)
    text = (installation.folder / "optstream.toml").read_text().replace('"two-regions"', '"other"')
    text = text.replace("sqlite:///trusted/ledger.sqlite", str(installation.settings.ledger_url))
    (other.folder / "optstream.toml").write_text(text)
    return other


def test_days_that_share_no_window_with_it_are_released_and_so_is_a_day_beside_right_ones(released):
    assert publish(released, LATER, LATER + timedelta(days=1))
    assert released.ledger.verify() == []


def test_verify_names_days_that_lie_otherwise_by_the_data_of_now(installation, zone):
    zone(SUMMER_TIME)
    before = FIRST - timedelta(days=2)
    assert publish(installation, before, FIRST, SECOND, LATER + timedelta(days=9))
    zone(NONE)
    (told,) = verify(installation.settings, installation.ledger).problems
    first = installation.settings.calendar.first_step(before)
    own = "of stream 'two-regions' at"
    assert f"has {before} {own} steps {first} to {first + 47} and {FIRST} {own} {first + 94} to" in told


def test_verify_names_days_of_two_streams_that_share_a_window_of_one_budget(
    installation, zone, tmp_path_factory
):
    zone(SUMMER_TIME)
    other = another_stream(installation, tmp_path_factory.mktemp("other"))
    assert publish(installation, FIRST - timedelta(days=2))
    assert publish(other, FIRST)
    zone(NONE)
    for one in (installation, other):
        (told,) = verify(one.settings, one.ledger).problems
        assert f"and {FIRST} of stream 'other' at" in told


def test_verify_does_not_name_days_that_share_no_window(released):
    assert publish(released, LATER)
    assert verify(released.settings, released.ledger).problems == ()
