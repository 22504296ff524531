"""Period "hour" in a configuration: what goes with it, and what it leaves as it was."""

from datetime import UTC, date, datetime

import pytest

from optstream.stream import Hour
from tests.tasks.two_regions import released_by

HOUR = Hour(date(2016, 6, 1), 13)


@pytest.fixture
def settings_of(load_text):
    """The small stream by the hour, released by PeGaSus, after replacing texts of it."""

    def make(*changes, period="hour"):
        by_the_hour = ("[mechanism]", f'period = "{period}"\n[mechanism]')
        return load_text(released_by("PeGaSus"), by_the_hour, *changes)

    return make


def test_hours_have_their_steps_and_clocks(settings_of):
    settings = settings_of(
        ("[published]", '[watch]\nlate_after = "00:20"\n[published]\nnot_before = "01:00"')
    )
    assert settings.calendar.period == "hour"
    assert settings.period_lengths == (2,)
    assert settings.publish_from(HOUR) == datetime(2016, 6, 1, 13, tzinfo=UTC)  # 14:00 in Paris, and an hour
    assert settings.clock_after(HOUR, settings.watching.late_after) == datetime(
        2016, 6, 1, 12, 20, tzinfo=UTC
    )
    assert settings.local_period(datetime(2016, 6, 1, 11, 59, tzinfo=UTC)) == HOUR
    assert settings.scheduling.cron == "5 * * * *"
    assert settings_of(("[published]", "[schedule]\ncatch_up_days = 3\n[published]")).scheduling.cron == (
        "5 * * * *"
    )
