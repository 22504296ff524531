"""The calendar on a terminal: right for every day, and readable for ten years."""

from datetime import date, timedelta

from flows.cli.watch import LETTERS, month_lines, stretches
from optstream.stream import Hour, partition_of
from tasks.monitor.view import DayState, State

FIRST = date(2006, 1, 15)
TEN_YEARS = [FIRST + timedelta(days=number) for number in range(3653)]


def test_every_state_has_a_letter_of_its_own():
    assert set(LETTERS) == set(State)
    assert len(set(LETTERS.values())) == len(State)
    assert all(len(letter) == 1 and letter.isascii() and letter.isprintable() for letter in LETTERS.values())


def test_each_day_of_ten_years_stands_in_its_column():
    states = list(State)
    days = [DayState(day, states[number % len(states)]) for number, day in enumerate(TEN_YEARS)]
    header, *rows = month_lines(days)
    assert len(rows) == 121
    assert max(map(len, rows)) == 41
    read = {
        date(int(row[:4]), int(row[5:7]), column - 9): letter
        for row in rows
        for column, letter in enumerate(row)
        if column >= 10 and letter != " "
    }
    assert read == {day.day: LETTERS[day.state] for day in days}
    for number in (1, 5, 10, 15, 20, 25, 30):
        assert header[number + 9 :].split()[0] == str(number)


def test_days_that_are_not_fine_are_told_in_stretches_and_fine_ones_not():
    days = [DayState(day, State.PUBLISHED) for day in TEN_YEARS]
    assert list(stretches(days)) == []
    for number in (3, 4, 5, 7):
        days[number] = DayState(TEN_YEARS[number], State.LATE, f"{TEN_YEARS[number]} is missing")
    days[8] = DayState(TEN_YEARS[8], State.MISSING)
    found = [(first.day, last.day, first.state) for first, last in stretches(days)]
    assert found == [
        (TEN_YEARS[3], TEN_YEARS[5], State.LATE),
        (TEN_YEARS[7], TEN_YEARS[7], State.LATE),
        (TEN_YEARS[8], TEN_YEARS[8], State.MISSING),
    ]


def test_two_days_of_hours_without_dumps_are_one_stretch():
    hours = [Hour(FIRST + timedelta(days=number // 24), number % 24) for number in range(48)]
    days = [DayState(hour, State.LATE, f"region=84/{partition_of(hour)} is missing") for hour in hours]
    assert [(first.day, last.day) for first, last in stretches(days)] == [(hours[0], hours[-1])]
