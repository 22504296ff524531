"""The calendar: days that clock changes shorten and lengthen, and the local time of each step."""

from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.stream import Calendar, days_from
from optstream.stream.calendar import FOLLOWS_A_MACHINE, ORIGIN
from optstream.stream.public_days import REST_DAY, SATURDAY, WORKDAY, PublicDays
from tests.by_night import few


def test_fixed_slots_mark_what_does_not_exist():
    calendar = Calendar(30, "Europe/Paris", "fixed")
    assert calendar.n_steps(date(2016, 3, 27)) == calendar.n_steps(date(2016, 10, 30)) == 48
    stamps = calendar.utc_times(date(2016, 3, 27))
    assert [step for step, stamp in enumerate(stamps) if stamp is None] == [4, 5]
    assert stamps[6] == datetime(2016, 3, 27, 1, tzinfo=UTC)
    assert calendar.utc_times(date(2016, 10, 30))[4] == datetime(2016, 10, 30, 0, tzinfo=UTC)


def test_a_step_that_a_day_does_not_hold_is_refused():
    with pytest.raises(ParameterError, match="2016-03-27 in Europe/Paris is not a whole number of steps"):
        Calendar(120, "Europe/Paris").n_steps(date(2016, 3, 27))
    with pytest.raises(ParameterError, match="2024-04-07 in Australia/Lord_Howe is not a whole number"):
        Calendar(60, "Australia/Lord_Howe").n_steps(date(2024, 4, 7))
    with pytest.raises(ParameterError, match="1972-01-07 in Africa/Monrovia is not a whole number"):
        Calendar(30, "Africa/Monrovia").first_step(date(1970, 1, 1))
    # by half an hour, and for years: days since are whole, and begin within a step
    refused = "2015-08-14 in Asia/Pyongyang is not a whole number of steps .* 2016-06-01 begins within a step"
    with pytest.raises(ParameterError, match=refused):
        Calendar(60, "Asia/Pyongyang").first_step(date(2016, 6, 1))
    with pytest.raises(ParameterError, match="divide a day"):
        Calendar(7 * 11, "UTC")
    with pytest.raises(ParameterError, match="IANA"):
        Calendar(30, "Mars/Olympus")


@pytest.mark.parametrize("kind", ["elapsed", "fixed"])
@pytest.mark.parametrize("day", [date(1999, 12, 31), date(2016, 3, 27), date(2016, 6, 1), date(2016, 10, 30)])
def test_the_local_time_of_a_step_is_the_one_that_its_day_gives_it(kind, day):
    calendar = Calendar(30, "Europe/Paris", kind)
    first = calendar.first_step(day)
    times = [calendar.local_time(first + number) for number in range(calendar.n_steps(day))]
    assert tuple(time.replace(tzinfo=None, fold=0) for time in times) == calendar.local_times(day)
    assert [time.tzinfo is None for time in times] == [kind == "fixed"] * len(times)


SKIPPED_A_DAY = ("Kwajalein", "Pacific/Apia", "Pacific/Fakaofo", "Pacific/Kiritimati")
FIRST, LAST = date(1986, 1, 1), date(2031, 12, 31)
ONE = timedelta(days=1)


N_PARTS = 32


def changes_of(part):
    """Every change of each n-th zone: its name and the day."""
    names = [name for name in sorted(available_timezones()) if not name.startswith(FOLLOWS_A_MACHINE)]
    # of zones with other names for the same rules the first
    rules = {(files("tzdata.zoneinfo") / name).read_bytes(): name for name in reversed(names)}
    assert len(rules) > 300
    days, found = days_from(FIRST, LAST), []
    for name in dict.fromkeys([*sorted(rules.values())[part::N_PARTS], *SKIPPED_A_DAY]):
        zone = ZoneInfo(name)
        offsets = [datetime(day.year, day.month, day.day, tzinfo=zone).utcoffset() for day in days]
        found += [
            (name, day) for day, (one, after) in zip(days, pairwise(offsets), strict=False) if one != after
        ]
    return found


@pytest.mark.parametrize("part", few(range(N_PARTS), 1))
def test_around_every_change_of_every_zone_a_day_is_whole_or_refused(part):
    changes, lengths = changes_of(part), set()
    assert len(changes) > 200
    for zone, day in changes:
        for minutes in (30, 60):
            calendar = Calendar(minutes, zone)
            for one in days_from(day - ONE, day + ONE):
                refused = calendar.steps_over(one, one)
                try:
                    n_steps, first = calendar.n_steps(one), calendar.first_step(one)
                except ParameterError:
                    continue
                assert refused == range(first, first + n_steps), (zone, one)
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
                assert [calendar.period_from_step(step) for step in (refused[0], refused[-1])] == [one, one]
                places = PublicDays.from_calendar(calendar).clock(np.array([first]))
                assert places[0] // calendar.slots == (one - date(2000, 1, 1)).days
    assert 0 in lengths
    assert len(lengths) > 3


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


def test_a_calendars_week_and_holidays_are_the_dates_own():
    for kind in ("elapsed", "fixed"):
        calendar = Calendar(30, "Europe/Paris", kind)
        days = PublicDays.from_calendar(calendar, [date(2016, 5, 5)])
        for day, wanted in (
            (date(2016, 5, 4), WORKDAY),
            (date(2016, 5, 5), REST_DAY),
            (date(2016, 5, 7), SATURDAY),
            (date(2016, 5, 8), REST_DAY),
        ):
            assert days.kinds(days.clock([calendar.first_step(day)])).tolist() == [wanted]


@pytest.mark.parametrize("zone", ["Europe/Paris", "America/New_York", "Australia/Lord_Howe"])
def test_the_clock_is_the_local_time_of_every_step_of_a_year(zone):
    calendar = Calendar(30, zone, "elapsed")
    days, first = PublicDays.from_calendar(calendar), calendar.first_step(date(2025, 1, 1))
    steps = first + np.arange(365 * 48)
    local = [calendar.local_time(int(step)) for step in steps]
    wanted = [(one.date() - ORIGIN).days * 48 + 2 * one.hour + one.minute // 30 for one in local]
    assert days.clock(steps).tolist() == wanted
    few = np.random.default_rng(1).choice(365 * 48, 24)
    assert days.clock(steps[few].reshape(4, 6)).tolist() == np.array(wanted)[few].reshape(4, 6).tolist()
    assert days.clock(int(steps[-1])) == wanted[-1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps_per_day": 0}, "steps_per_day must be an integer of at least 1; got 0"),
        ({"steps_per_day": 48, "first_weekday": 7}, r"first_weekday must be in \[0, 6\], Monday 0, or None"),
    ],
)
def test_what_does_not_fit_is_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        PublicDays(**given)
    with pytest.raises(ParameterError, match=r"first_day of PublicDays must be a day such as .*'2024-03-01'"):
        PublicDays.from_date("2024-03-01", steps_per_day=24)
