"""The public clock: local days, weekends and holidays, whatever the clocks do."""

from datetime import date

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.stream import Calendar
from optstream.stream.calendar import ORIGIN
from optstream.stream.public_days import REST_DAY, SATURDAY, WORKDAY, PublicDays

PARIS = Calendar(30, "Europe/Paris")


@pytest.mark.parametrize(
    ("day", "n_steps", "slots"),
    [
        (date(2016, 3, 26), 48, list(range(48))),
        (date(2016, 3, 27), 46, [*range(4), *range(6, 48)]),
        (date(2016, 10, 30), 50, [*range(6), *range(4, 48)]),
    ],
)
def test_the_clock_is_the_local_one_on_days_of_46_and_50_steps(day, n_steps, slots):
    days = PublicDays.from_calendar(PARIS)
    first = PARIS.first_step(day)
    clock = days.clock(np.arange(first, first + n_steps))
    assert len(set((clock // 48).tolist())) == 1
    assert (clock % 48).tolist() == slots
    assert days.clock(first + n_steps) % 48 == 0


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
