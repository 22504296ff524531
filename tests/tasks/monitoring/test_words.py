"""Alarms of periods in a row are one line for people, and what they say of each is not lost."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from optstream.stream import Hour
from tasks.monitor.days import alarm_runs, but_for_dates, day_or_hour, lines_of, periods_in_words
from tasks.monitor.view import Kind, Severity
from tests.tasks.ui.conftest import FIRST, alarm

HOURS = [Hour(FIRST + timedelta(days=number // 24), number % 24) for number in range(48)]
DAYS = [FIRST + timedelta(days=number) for number in range(48)]


def test_a_span_is_told_in_what_it_is_made_of():
    day = date(2016, 6, 1)
    assert periods_in_words(2, day, date(2016, 6, 3)) == "2 days, 2016-06-01 to 2016-06-03"
    assert periods_in_words(3, Hour(day, 1), Hour(day, 3)) == "3 hours, 2016-06-01T01 to 2016-06-01T03"
    assert (day_or_hour(day), day_or_hour(Hour(day, 1))) == ("day", "hour")


@pytest.mark.parametrize("periods", [HOURS, DAYS])
@pytest.mark.parametrize("same_words", [False, True])
def test_two_days_of_hours_are_one_run_over_midnight_as_days_are(periods, same_words):
    late = [alarm(day=one) for one in periods]
    (run,) = alarm_runs(late, same_words=same_words)
    assert run.alarms == tuple(late)
    assert (run.first, run.last) == (late[0], late[-1])
    assert run.when == periods_in_words(48, periods[0], periods[-1])
    assert run.words == f"{run.when}; the last: {late[-1].words}"
    assert lines_of(late) == [f"alarm: late: {run.words}"]


def test_what_is_not_alike_stays_apart_and_gaps_are_not_bridged():
    one = alarm(day=HOURS[0])
    for other in (
        alarm(Kind.VOID, HOURS[1]),
        alarm(day=HOURS[1], node="84"),
        alarm(day=HOURS[1], severity=Severity.WARNING),
        alarm(day=HOURS[2]),
    ):
        assert [run.alarms for run in alarm_runs([one, other])] == [(one,), (other,)]
    none = [alarm(day=None), alarm(day=None)]
    assert [(run.alarms, run.when) for run in alarm_runs(none)] == [((each,), "") for each in none]


def test_other_words_are_a_run_of_their_own_where_all_are_to_be_read():
    late = [alarm(day=one) for one in HOURS[:4]]
    late[2] = replace(late[2], words=f"{HOURS[2]}: something else")
    assert [run.alarms for run in alarm_runs(late, same_words=True)] == [
        (late[0], late[1]),
        (late[2],),
        (late[3],),
    ]
    assert len(alarm_runs(late)) == 1


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("2016-06-01: the dump of 84 by 2016-06-02 06:00 (UTC)", ": the dump of 84 by  (UTC)"),
        ("2016-10-30T02B: `run --date 2016-10-30T02B`", ": `run --date `"),
        ("region=84/date=2016-06-01/hour=02B is missing", "region=84/date= is missing"),
        ("region=84/date=2016-06-01 is missing", "region=84/date= is missing"),
        ("0.25 of 12 left", "0.25 of 12 left"),
    ],
)
def test_a_text_but_for_its_dates(text, left):
    assert but_for_dates(text) == left
