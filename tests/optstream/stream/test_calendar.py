"""The calendar: days that clock changes shorten and lengthen, and the local time of each step."""

from datetime import UTC, date, datetime, time

import pytest

from optstream.errors import ParameterError
from optstream.stream import Calendar


def test_clock_changes_shorten_and_lengthen_the_elapsed_day():
    calendar = Calendar(30, "Europe/Paris")
    assert [calendar.n_steps(date(2016, month, day)) for month, day in ((3, 27), (10, 30), (6, 1))] == [
        46,
        50,
        48,
    ]
    spring = calendar.local_times(date(2016, 3, 27))
    assert time(2) not in {stamp.time() for stamp in spring}
    assert calendar.first_step(date(2016, 3, 28)) == calendar.first_step(date(2016, 3, 27)) + 46
    assert calendar.first_step(date(2000, 1, 1)) == 0
    assert calendar.first_step(date(1999, 12, 31)) == -48


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
    told = "2015-08-14 in Asia/Pyongyang is not a whole number of steps .* 2016-06-01 begins within a step"
    with pytest.raises(ParameterError, match=told):
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
