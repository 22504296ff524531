"""The calendar: days and hours that clock changes shorten and lengthen, the local time of each step."""

import copy
import pickle
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import ParameterError
from optstream.stream import Calendar, Hour, day_of, days_from, period_from
from optstream.stream.calendar import FOLLOWS_A_MACHINE, ORIGIN
from optstream.stream.public_days import REST_DAY, SATURDAY, WORKDAY, PublicDays
from tests.by_night import few

SKIPPED_A_DAY = ("Kwajalein", "Pacific/Apia", "Pacific/Fakaofo", "Pacific/Kiritimati")
FIRST, LAST = date(1986, 1, 1), date(2031, 12, 31)
ONE = timedelta(days=1)
N_PARTS = 32
ZONES = ("Europe/Paris", "America/St_Johns", "Australia/Adelaide", "America/Sao_Paulo", "Asia/Kolkata", "UTC")
"""Half-hour offsets among them, and one whose clock changed at midnight."""
# until 2011 the clock of St John's was moved at one minute past midnight, within an hour
DAYS = st.dates(date(2012, 1, 1), date(2035, 12, 31))


def test_fixed_slots_mark_what_does_not_exist():
    calendar = Calendar(30, "Europe/Paris", "fixed")
    assert calendar.n_steps(date(2016, 3, 27)) == calendar.n_steps(date(2016, 10, 30)) == 48
    stamps = calendar.utc_times(date(2016, 3, 27))
    assert [step for step, stamp in enumerate(stamps) if stamp is None] == [4, 5]
    assert stamps[6] == datetime(2016, 3, 27, 1, tzinfo=UTC)
    assert calendar.utc_times(date(2016, 10, 30))[4] == datetime(2016, 10, 30, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "minutes", "method", "day", "message"),
    [
        ("Europe/Paris", 120, "n_steps", date(2016, 3, 27), "2016-03-27 in Europe/Paris is not a whole"),
        ("Australia/Lord_Howe", 60, "n_steps", date(2024, 4, 7), "2024-04-07 in Australia/Lord_Howe is not"),
        ("Africa/Monrovia", 30, "first_step", date(1970, 1, 1), "1972-01-07 in Africa/Monrovia is not a"),
        # by half an hour, and for years: days since are whole, and begin within a step
        ("Asia/Pyongyang", 60, "first_step", date(2016, 6, 1), "2015-08-14 .* 2016-06-01 begins within"),
        ("UTC", 7 * 11, "n_steps", date(2016, 6, 1), "divide a day"),
    ],
)
def test_a_step_that_a_day_does_not_hold_is_refused(zone, minutes, method, day, message):
    with pytest.raises(ParameterError, match=message):
        getattr(Calendar(minutes, zone), method)(day)


@pytest.mark.parametrize("kind", ["elapsed", "fixed"])
@pytest.mark.parametrize("day", [date(1999, 12, 31), date(2016, 3, 27), date(2016, 6, 1), date(2016, 10, 30)])
def test_the_local_time_of_a_step_is_the_one_that_its_day_gives_it(kind, day):
    calendar = Calendar(30, "Europe/Paris", kind)
    first = calendar.first_step(day)
    times = [calendar.local_time(first + number) for number in range(calendar.n_steps(day))]
    assert tuple(time.replace(tzinfo=None, fold=0) for time in times) == calendar.local_times(day)
    assert [time.tzinfo is None for time in times] == [kind == "fixed"] * len(times)


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
        *("Mars/Olympus", "localtime", "posixrules", "Factory", "posix/Europe/Paris", "right/Europe/Paris"),
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


@cache
def changed_days(zone: str) -> list[date]:
    calendar = Calendar(30, zone)
    every = (date(2012, 1, 1) + timedelta(days=number) for number in range(2200))
    return [day for day in every if calendar.n_steps(day) != 48]


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("minutes", [20, 60])
@pytest.mark.parametrize("kind", ["elapsed", "fixed"])
def test_the_hours_of_a_day_are_its_steps_in_turn(zone, minutes, kind):
    calendar = Calendar(minutes, zone, kind, "hour")
    around = {day + timedelta(days=near) for day in changed_days(zone) for near in (-1, 0, 1)}
    for day in sorted(around | {date(2016, 2, 14)}):
        hours = calendar.periods_of(day)
        steps = [step for one in hours for step in range(calendar.first_step(one), _end(calendar, one))]
        assert steps == list(range(calendar.first_step(day), _end(calendar, day)))
        assert tuple(time for one in hours for time in calendar.local_times(one)) == calendar.local_times(day)
        assert tuple(time for one in hours for time in calendar.utc_times(one)) == calendar.utc_times(day)
        assert [calendar.step_of_day(one) for one in hours] == [
            number * 60 // minutes for number in range(len(hours))
        ]
        assert {one.date() for hour in hours for one in calendar.local_times(hour)} == {day}
        assert [calendar.period_from_step(calendar.first_step(one)) for one in hours] == list(hours)
        assert [calendar.after(one) for one in hours[:-1]] == list(hours[1:])
        if kind == "elapsed":
            assert [calendar.period_at(calendar.begins_at(one)) for one in hours] == list(hours)
        texts = [one.isoformat() for one in hours]
        assert texts == sorted(set(texts))
        assert [period_from(text) for text in texts] == list(hours)


def _end(calendar: Calendar, period: date) -> int:
    return calendar.first_step(period) + calendar.n_steps(period)


def test_a_zone_that_moves_by_an_hour_has_days_of_23_and_25_hours():
    calendar = Calendar(30, "Europe/Paris", "elapsed", "hour")
    spring, autumn = date(2016, 3, 27), date(2016, 10, 30)
    assert [len(calendar.periods_of(day)) for day in (spring, autumn, date(2016, 6, 1))] == [23, 25, 24]
    assert [one.isoformat()[10:] for one in calendar.periods_of(spring)[:3]] == ["T00", "T01", "T03"]
    assert [one.isoformat()[10:] for one in calendar.periods_of(autumn)[1:5]] == ["T01", "T02", "T02B", "T03"]
    twice = [calendar.utc_times(Hour(autumn, 2, again))[0] for again in (False, True)]
    assert twice == [datetime(2016, 10, 30, hour, tzinfo=UTC) for hour in (0, 1)]
    with pytest.raises(ParameterError, match="2016-03-27 in Europe/Paris has no hour 02"):
        calendar.first_step(Hour(spring, 2))
    with pytest.raises(ParameterError, match="2016-06-01 in Europe/Paris has no hour 02B"):
        calendar.n_steps(Hour(date(2016, 6, 1), 2, True))
    fixed = Calendar(30, "Europe/Paris", "fixed", "hour")
    assert {len(fixed.periods_of(day)) for day in (spring, autumn)} == {24}
    with pytest.raises(ParameterError, match="2016-10-30 of fixed slots has no hour 02B"):
        fixed.first_step(Hour(autumn, 2, True))


@pytest.mark.slow
@given(DAYS, st.sampled_from(ZONES), st.integers(0, 22), st.integers(-60, 60))
@settings(max_examples=300, deadline=None)
def test_what_comes_after_is_what_a_clock_shows_then(day, zone, number, n_hours):
    calendar = Calendar(30, zone, "elapsed", "hour")
    hour = calendar.periods_of(day)[number]
    later = calendar.after(hour, n_hours)
    begins = calendar.begins_at(hour).astimezone(UTC) + timedelta(hours=n_hours)
    assert calendar.begins_at(later).astimezone(UTC) == begins == calendar.utc_times(later)[0]
    assert calendar.ends_at(later).astimezone(UTC) == begins + timedelta(hours=1)
    assert calendar.period_at(begins) == calendar.period_at(begins + timedelta(minutes=59)) == later
    assert calendar.period_from_step(calendar.first_step(later) + 1) == later
    between = calendar.periods(*sorted((hour, later)))
    assert between == [calendar.after(min(hour, later), number) for number in range(abs(n_hours) + 1)]
    assert calendar.after(later, -n_hours) == hour
    assert (hour < later, hour.isoformat() < later.isoformat()) == (n_hours > 0, n_hours > 0)


def test_days_stand_for_their_hours():
    calendar = Calendar(60, "UTC", "elapsed", "hour")
    day, next_day = date(2016, 2, 28), date(2016, 2, 29)
    assert calendar.periods(day, next_day) == [*calendar.periods_of(day), *calendar.periods_of(next_day)]
    assert calendar.periods(Hour(day, 22), next_day)[:3] == [Hour(day, 22), Hour(day, 23), Hour(next_day, 0)]
    assert calendar.periods(day, Hour(day, 1)) == [Hour(day, 0), Hour(day, 1)]
    assert calendar.periods(next_day, day) == []


def test_a_clock_that_moves_by_half_an_hour_has_no_hours():
    calendar = Calendar(30, "Australia/Lord_Howe", "elapsed", "hour")
    assert len(calendar.periods_of(date(2016, 2, 14))) == 24
    for day in changed_days("Australia/Lord_Howe"):
        with pytest.raises(ParameterError, match=r'not a whole number of clock hours.*period = "day"'):
            calendar.periods_of(day)
        with pytest.raises(ParameterError, match='period = "day"'):
            calendar.first_step(Hour(day, 0))
    assert len(Calendar(30, "Australia/Lord_Howe", "fixed", "hour").periods_of(date(2016, 4, 3))) == 24


@pytest.mark.parametrize("minutes", [90, 120, 1440, 45, 40])
def test_a_step_that_does_not_divide_an_hour_is_refused_with_a_remedy(minutes):
    if not 1440 % minutes:
        Calendar(minutes, "UTC")
    with pytest.raises(ParameterError, match=r'shorter step, or period "day"|divide a day'):
        Calendar(minutes, "UTC", "elapsed", "hour")
    with pytest.raises(ParameterError, match='"day" or "hour"'):
        Calendar(30, "UTC", "elapsed", "week")


def test_an_hour_is_no_date():
    hour, day, one = Hour(date(2016, 2, 14), 13), date(2016, 2, 14), timedelta(days=1)
    assert (str(hour), f"{hour}", f"{hour:%Y}") == ("2016-02-14T13", "2016-02-14T13", "2016")
    assert day_of(hour) == day_of(day) == day
    assert type(day_of(hour)) is date
    assert len({hour, day, Hour(day, 13)}) == 2
    assert pickle.loads(pickle.dumps(hour)) == copy.deepcopy(hour) == hour  # noqa: S301 - our own bytes
    for wrong in (
        lambda: hour < day,
        lambda: day <= hour,
        lambda: hour + one,
        lambda: one + hour,
        lambda: hour - day,
        lambda: day - hour,
        lambda: hour.replace(day=3),
    ):
        with pytest.raises(TypeError, match="hour"):
            wrong()
    with pytest.raises(ParameterError, match="hour must be an integer in"):
        Hour(day, 24)


@pytest.mark.parametrize(
    "text", ["2016-02-14T24", "2016-02-14T7", "2016-02-30T07", "2016-02-14T07A", "2016-02-14T07:00", "x", ""]
)
def test_what_is_no_period_is_refused(text):
    with pytest.raises(ValueError, match=r"hour must|isoformat|day is out"):
        period_from(text)


def test_a_day_whose_clock_moves_by_part_of_an_hour_is_left_out_between_hours():
    calendar = Calendar(30, "America/Caracas", "elapsed", "hour")
    before, day, after = (date(2007, 12, number) for number in (8, 9, 10))
    assert [calendar.leaves_out(one) for one in (before, day, after)] == [False, True, False]
    assert calendar.periods(before, after) == [*calendar.periods_of(before), *calendar.periods_of(after)]
    last, first = Hour(before, 23), Hour(after, 0)
    assert calendar.after(last) == calendar.after(Hour(day, 5)) == first
    assert calendar.after(first, -1) == calendar.after(Hour(day, 5), -1) == last
    assert calendar.after(Hour(before, 22)) == last
    with pytest.raises(ParameterError, match="not a whole number of clock hours"):
        calendar.check_period(Hour(day, 5))
