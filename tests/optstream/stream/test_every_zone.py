"""Calendars of all time zones, around every day on which a clock changed or will: whole or refused."""

from datetime import date, datetime, timedelta
from functools import cache, partial
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.stream import Calendar, days_from
from optstream.stream.calendar import FOLLOWS_A_MACHINE
from optstream.stream.public_days import PublicDays

FIRST, LAST = date(1986, 1, 1), date(2031, 12, 31)
ONE = timedelta(days=1)
SKIPPED = {
    ("Pacific/Apia", date(2011, 12, 30)),
    ("Pacific/Fakaofo", date(2011, 12, 30)),
    ("Pacific/Kwajalein", date(1993, 8, 21)),
    ("Pacific/Kiritimati", date(1994, 12, 31)),
    ("Pacific/Kanton", date(1994, 12, 31)),
}


@cache
def kinds_of_change():
    """A zone for each kind of day around changes of a clock: the days, by how the clock stands then."""
    midnights = [datetime(day.year, day.month, day.day) for day in days_from(FIRST, LAST)]
    weekly, found = list(range(0, len(midnights), 7)), {}
    for name in sorted(available_timezones()):
        if name.startswith(FOLLOWS_A_MACHINE):
            continue
        zone = ZoneInfo(name)
        offset = partial(_offset, midnights, zone)
        changed = np.flatnonzero(np.diff([offset(at) for at in weekly]))
        for at in (at for week in changed for at in range(weekly[week], weekly[week] + 7)):
            if offset(at) != offset(at + 1):
                # what a day is depends on its clock alone, not on the zone's name
                month = midnights[at].strftime("%Y-%m")
                found.setdefault((month, offset(at), offset(at + 1)), (name, midnights[at].date()))
    return sorted(set(found.values()))


def _offset(midnights, zone, at):
    return midnights[at].replace(tzinfo=zone).utcoffset().total_seconds()


def test_around_every_change_of_every_zone_a_day_is_whole_or_refused():
    changes, lengths = kinds_of_change(), set()
    assert len(changes) > 1000
    for zone, day in changes:
        for minutes in (30, 60):
            calendar = Calendar(minutes, zone)
            for one in days_from(day - ONE, day + ONE):
                told = calendar.steps_over(one, one)
                try:
                    n_steps, first = calendar.n_steps(one), calendar.first_step(one)
                except ParameterError:
                    continue
                assert told == range(first, first + n_steps), (zone, one)
                skips = calendar.skips(one)
                assert skips == (n_steps == 0) == (calendar.periods_of(one) == ())
                assert skips == (one not in calendar.periods(one - ONE, one + ONE))
                lengths.add(n_steps * minutes)
                if skips:
                    with pytest.raises(ParameterError, match="was no day in"):
                        calendar.check_period(one)
                    assert calendar.after(one - ONE) == one + ONE == calendar.after(one, 1)
                    assert calendar.after(one + ONE, -1) == one - ONE
                    continue
                assert len(calendar.local_times(one)) == len(calendar.utc_times(one)) == n_steps
                assert [calendar.period_from_step(step) for step in told] == [one] * n_steps
                places = PublicDays.from_calendar(calendar).clock(np.arange(first - 2, first + n_steps))
                assert places[2] // calendar.slots == (one - date(2000, 1, 1)).days
    assert 0 in lengths
    assert len(lengths) > 5


@pytest.mark.parametrize(("zone", "day"), sorted(SKIPPED))
def test_a_day_that_a_zone_skipped_is_no_period(zone, day):
    assert Calendar(30, zone).skips(day)
    assert not Calendar(30, zone, "fixed").skips(day)
    assert Calendar(60, zone, period="hour").periods_of(day) == ()


@pytest.mark.parametrize(
    "name",
    [
        *("localtime", "posixrules", "Factory", "posix/Europe/Paris", "right/Europe/Paris"),
        *("/etc/localtime", "../Paris", "", "europe/paris/", 1, None),
    ],
)
def test_a_name_that_each_machine_reads_otherwise_is_no_time_zone(name):
    with pytest.raises(ParameterError, match="IANA"):
        Calendar(30, name)
