"""When a night looks, at which days, and what it calls left."""

from datetime import UTC, date, datetime, timedelta

import pytest

from optstream.ledger import open_ledger
from tasks.plan.nightly import days_of_night, looks_of, night_of
from tasks.release.stages import Requested, Status
from tests.tasks.two_regions import CONFIGURATION

DAY = date(2016, 6, 1)
EARLY = datetime(2016, 6, 2, 1, tzinfo=UTC)
LATE = datetime(2016, 6, 2, 10, tzinfo=UTC)
"""Noon in Paris."""


@pytest.fixture
def load(load_text):
    """Load a configuration with these lines at its end."""
    return lambda lines="": load_text(f"{CONFIGURATION}\n{lines}\n")


def times(crons):
    """The clock times of crons whose minutes and hours are lists."""
    return sorted(
        (int(hour), int(minute))
        for cron in crons
        for minute in cron.split()[0].split(",")
        for hour in cron.split()[1].split(",")
    )


def test_a_night_looks_until_its_day_is_late(load):
    crons = looks_of(load())
    assert crons == ("0 3,4,5,6,7,8,9,10,11,12 * * *", "30 3,4,5,6,7,8,9,10,11 * * *")


@pytest.mark.parametrize(("begins", "until"), [(150, 395), (0, 1439), (59, 60)])
def test_every_look_and_a_last_one_at_the_hour(load, begins, until):
    crons = looks_of(
        load(
            f'[schedule]\ncron = "{begins % 60} {begins // 60} * * 1-5"\n'
            f'[watch]\nlate_after = "{until // 60:02d}:{until % 60:02d}"'
        )
    )
    expected = sorted({*range(begins, until, 30), until})
    assert times(crons) == [(minute // 60, minute % 60) for minute in expected]
    assert all(cron.endswith(" * * 1-5") for cron in crons)


def days(settings, now=EARLY):
    ledger = open_ledger(settings.ledger_url)
    try:
        return days_of_night(settings, ledger, now)
    finally:
        ledger.close()


def test_before_anything_was_released_a_night_is_of_yesterday(load):
    assert days(load()) == [DAY]
    # Paris is two hours ahead: at 21:59 its second of June is not over, at 22:00 it is
    assert days(load(), datetime(2016, 6, 2, 21, 59, tzinfo=UTC)) == [DAY]
    assert days(load(), datetime(2016, 6, 2, 22, 0, tzinfo=UTC)) == [DAY + timedelta(days=1)]


def test_a_night_takes_up_the_days_before_but_none_before_the_first_and_none_given_up(load):
    ago = lambda number: DAY - timedelta(days=number)  # noqa: E731
    assert days(load(f"[watch]\nfirst_day = {ago(30)}")) == [ago(number) for number in (6, 5, 4, 3, 2, 1, 0)]
    assert days(load(f"[watch]\nfirst_day = {ago(2)}")) == [ago(2), ago(1), DAY]
    lines = f"[schedule]\ncatch_up_days = 3\n[watch]\nfirst_day = {ago(30)}\naccepted_gaps = [{ago(1)}]"
    assert days(load(lines)) == [ago(2), DAY]
    assert days(load(f"[watch]\nfirst_day = {DAY + timedelta(days=1)}")) == []


@pytest.mark.parametrize(
    ("status", "may_end_well"),
    [
        (Status.WAITING, True),
        (Status.BUSY, True),
        (None, True),  # no region has a dump
        (Status.REFUSED, False),
        (Status.VOID, False),
        (Status.FAILED, False),
    ],
)
def test_only_a_day_that_may_end_well_has_time_until_it_is_late(load, status, may_end_well):
    words = f"{DAY} waiting: no dump" if status is None else f"{DAY} {status}: why"
    look = ([], [DAY]) if status is None else ([Requested(DAY).ended(status, "why")], [])
    early, late = (night_of(load(), *look, now) for now in (EARLY, LATE))
    assert (early.words, early.left) == ((words, ()) if may_end_well else ("nothing to do", (words,)))
    assert late.left == (words,)
