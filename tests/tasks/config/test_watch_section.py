"""The table [watch]: a stream may go without it, its keys are checked, and no release depends on it."""

from datetime import UTC, date, datetime, timedelta

import pytest

from tasks.monitor.facts import last_ended, late_from, max_runtime, raw_expires
from tests.tasks.two_regions import CONFIGURATION


@pytest.fixture
def load(load_text):
    """Load a configuration with this [watch], and this line in [input]."""

    def read(watch="", source=""):
        text = CONFIGURATION + (f"[watch]\n{watch}\n" if watch else "")
        return load_text(text, ("[input]\n", f"[input]\n{source}\n"))

    return read


def test_deadlines_are_of_the_stream_s_own_clock_also_when_it_changes(load):
    settings = load('late_after = "02:30"\nmax_runtime = "90min"', "raw_retention_days = 3")
    assert late_from(settings, date(2016, 6, 1)).astimezone(UTC) == datetime(2016, 6, 2, 0, 30, tzinfo=UTC)
    # the day after is the one that has no half past two
    assert late_from(settings, date(2016, 3, 26)).astimezone(UTC) == datetime(2016, 3, 27, 1, 30, tzinfo=UTC)
    assert max_runtime(settings) == timedelta(minutes=90)
    ends = datetime(2016, 6, 4, 22, tzinfo=UTC)
    assert raw_expires(settings, date(2016, 6, 1)) == ends
    assert last_ended(settings, datetime(2016, 6, 1, 21, 59, tzinfo=UTC)) == date(2016, 5, 31)
    assert last_ended(settings, datetime(2016, 6, 1, 22, 0, tzinfo=UTC)) == date(2016, 6, 1)
