"""The small stream by another mechanism, by the hour, and with a day of hours that is over."""

import shutil
from datetime import UTC, date, datetime, timedelta

import pytest

from optstream.stream import Hour

DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(4)]


def hours(*days):
    return [Hour(day, hour) for day in days for hour in range(24)]


@pytest.fixture
def with_mechanism(installation):
    """The small stream, released by another mechanism: with_mechanism("Sample")."""

    def make(name):
        installation.change_mechanism(name)
        installation.simulate(*DAYS)
        return installation

    return make


@pytest.fixture
def by_the_hour(with_mechanism):
    """The small stream by the hour: by_the_hour("PeGaSus")."""

    def make(name, *days):
        installation = with_mechanism(name)
        shutil.rmtree(installation.settings.input_folder)  # dumps of days
        installation.configure('step = "30min"', 'step = "30min"\nperiod = "hour"')
        installation.simulate(*(days or DAYS[:2]))
        return installation

    return make


@pytest.fixture
def day_of_hours(by_the_hour):
    """A whole day and an hour of the next, released by the hour."""
    installation = by_the_hour("Laplace")
    installation.configure('restatement_share = "0"', 'restatement_share = "1/4"')
    installation.now = datetime(2016, 6, 2, 8, tzinfo=UTC)
    installation.released(*hours(DAYS[0]), Hour(DAYS[1], 0))
    return installation
