"""Calendars of all time zones, around every day on which a clock changed or will: whole or refused."""

from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.stream import Calendar, days_from
from optstream.stream.calendar import FOLLOWS_A_MACHINE
from optstream.stream.public_days import PublicDays

FIRST, LAST = date(1986, 1, 1), date(2031, 12, 31)
ONE, HALF_HOUR = timedelta(days=1), timedelta(minutes=30)


@cache
def changes_of_every_zone():
    """Every change of every zone's clock: a zone and the day, one of each that no calendar can tell apart."""
    midnights = [datetime(day.year, day.month, day.day) for day in days_from(FIRST - ONE, LAST + 14 * ONE)]
    weekly, found = range(1, len(midnights) - 14, 7), {}
    for name in sorted(available_timezones()):
        if name.startswith(FOLLOWS_A_MACHINE):
            continue
        zone = ZoneInfo(name)
        offsets = [midnights[at].replace(tzinfo=zone).utcoffset() for at in weekly]
        weeks = [at for at, (one, after) in zip(weekly, pairwise(offsets), strict=False) if one != after]
        for at in (at for week in weeks for at in range(week, week + 7)):
            days = midnights[at - 1 : at + 4]
            stands = [day.replace(tzinfo=zone).utcoffset() for day in days]
            if stands[1] != stands[2]:
                # all that a calendar asks of a zone: the clock at the origin, at midnights and at steps
                asked = (datetime(2000, 1, 1, tzinfo=zone).utcoffset(), *stands)
                began = days[0].replace(tzinfo=UTC) - asked[0]
                steps = ((began + half * HALF_HOUR).astimezone(zone).utcoffset() for half in range(-20, 212))
                found.setdefault((days[1].date(), asked, tuple(steps)), name)
    return [(name, day) for (day, *_), name in found.items()]


def test_around_every_change_of_every_zone_a_day_is_whole_or_refused():
    changes, lengths = changes_of_every_zone(), set()
    assert len(changes) > 3000
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
                assert [calendar.period_from_step(step) for step in (told[0], told[-1])] == [one, one]
                places = PublicDays.from_calendar(calendar).clock(np.array([first]))
                assert places[0] // calendar.slots == (one - date(2000, 1, 1)).days
    assert 0 in lengths
    assert len(lengths) > 5


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
