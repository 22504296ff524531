"""The overview's rows: what needs a person comes first, and what is not known is not said."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import inf, nan

import polars as pl
import pytest

from optstream.catalogue import Catalogue, Entry
from optstream.stream import Hour
from tasks.monitor.view import Kind, Severity, State
from tasks.ui.render import page
from tasks.ui.views.overview import Need, next_run, overview, row_of
from tests.tasks.ui.conftest import AT, FIRST, alarm

LATER = AT + timedelta(minutes=12)


def test_streams_are_sorted_by_what_needs_a_person(snapshot):
    warning = alarm(Kind.EXPIRING, severity=Severity.WARNING)
    found = overview(
        [
            snapshot("calm"),
            snapshot("b-late", alarms=[alarm()]),
            snapshot("warned", alarms=[warning]),
            snapshot("a-late", alarms=[warning, alarm()]),
            snapshot("gone", problem="the ledger refuses"),
        ],
        LATER,
    )
    assert [row.name for row in found] == ["gone", "a-late", "b-late", "warned", "calm"]
    assert [row.need for row in found] == [Need.BLIND, Need.ALARM, Need.ALARM, Need.WARNING, Need.NOTHING]


def test_a_row_says_what_there_is(snapshot):
    one = alarm()
    row = row_of(
        snapshot(
            states=[State.PUBLISHED] * 69 + [State.LATE],
            alarms=[one],
            since={one.key: AT - timedelta(hours=7)},
        ),
        LATER,
    )
    assert row.newest is not None
    assert (row.newest.day, row.newest.state) == (FIRST + timedelta(days=69), "late")
    assert len(row.strip) == 60
    assert row.strip_words == "59 published, 1 late"
    assert (row.oldest, row.seen) == ("7 h", "12 min")
    assert row.budget is not None
    assert (row.budget.words, row.budget.share) == ("0.5 of 1", 0.5)
    assert row.nights == (5.0,) * 59
    assert row.nights_words == "5 min, at most 5 min"
    assert row.next_run == "2016-09-02 03:30 CEST"


def test_a_stream_by_the_hour_shows_its_last_days_each_by_its_worst_hour(snapshot):
    made = snapshot(states=[State.PUBLISHED] * 48)
    assert made.view is not None
    hours = [Hour(FIRST + timedelta(days=number // 24), number % 24) for number in range(48)]
    days = [replace(one, day=hour) for one, hour in zip(made.view.days, hours, strict=True)]
    days[-2] = replace(days[-2], state=State.LATE)
    nights = dict(zip(hours, made.nights.values(), strict=True))
    row = row_of(replace(made, view=replace(made.view, days=tuple(days)), nights=nights), LATER)
    assert [(one.day, one.state) for one in row.strip] == [
        (FIRST, "published"),
        (FIRST + timedelta(days=1), "late"),
    ]
    assert len(row.nights) == 48


@pytest.mark.parametrize(("spent", "share"), [(inf, 1.0), (Fraction(3, 2), 1.0), (Fraction(0), 0.0)])
def test_a_gauge_is_full_at_most(snapshot, spent, share):
    budget = row_of(snapshot(spent=spent), AT).budget
    assert budget is not None
    assert budget.share == share


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2016-09-01 01:29", "2016-09-01 03:30 CEST"),  # 03:29 in Paris
        ("2016-09-01 01:30", "2016-09-02 03:30 CEST"),
        ("2016-10-29 22:00", "2016-10-30 03:30 CET"),  # across the end of summer time
    ],
)
def test_the_next_night_is_in_the_stream_s_time_zone(settings, now, expected):
    assert next_run(settings, datetime.fromisoformat(now).replace(tzinfo=UTC)) == expected


def test_a_cron_of_several_times_is_shown_as_it_is(settings):
    for cron in ("*/30 * * * *", "0 3 * * 1"):
        other = settings.model_copy(
            update={"schedule": settings.scheduling.model_copy(update={"cron": cron})}
        )
        assert next_run(other, AT) == cron


@pytest.mark.parametrize(
    ("model", "noise", "said"),
    [(10.0, 5.0, "± 20 % total"), (None, 5.0, "± 10 % noise only"), (nan, None, ""), (None, None, "")],
)
def test_the_band_is_the_total_where_the_mechanism_states_it(snapshot, model, noise, said):
    columns = {"file_hash": ["h", "h"], "node": ["FR", "84"], "mean": [98.0, 1.0]}
    figures = pl.DataFrame(
        {**columns, "model": [model, 9.0], "noise": [noise, 9.0]},
        schema_overrides={"model": pl.Float64, "noise": pl.Float64},
    )
    stream = snapshot(figures=figures)
    entry = Entry(FIRST, 0, 0, "h", "rows", "head")
    catalogue = Catalogue("two-regions", "load_mw", "head", (entry,))
    facts = replace(stream.view.facts, catalogue=catalogue)
    assert row_of(replace(stream, view=replace(stream.view, facts=facts)), AT).band == said


def test_the_newest_published_day_stands_beside_one_that_waits(snapshot):
    row = row_of(snapshot(states=[State.PUBLISHED, State.WAITING]), AT)
    assert (row.newest.day, row.published) == (FIRST + timedelta(days=1), FIRST)
    assert row_of(snapshot(states=[State.LATE]), AT).published is None


HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def test_hostile_text_is_text(snapshot):
    """Control: the same text, marked as safe, is a tag."""
    shown = snapshot(HOSTILE, alarms=[alarm(node=HOSTILE)], problem=HOSTILE)
    rows = overview([shown], LATER)
    text = page("overview", rows=rows, waiting=1, now=LATER, refresh_seconds=30).decode()
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_the_same_values_give_the_same_bytes(snapshot):
    rows = overview([snapshot(alarms=[alarm()])], LATER)
    values = {"rows": rows, "waiting": 1, "now": LATER, "refresh_seconds": 30}
    assert page("overview", **values) == page("overview", **values)
