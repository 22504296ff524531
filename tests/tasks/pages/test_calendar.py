"""The calendar of a page: every day in its place, in its state, in words for those who do not see it."""

from dataclasses import replace
from datetime import date, timedelta

from tasks.monitor.days import DayState, State
from tasks.pages.calendar import (
    Mark,
    calendar,
    marks_of_days,
    marks_of_facts,
    stretches,
    used_states,
)
from tests.tasks.pages.conftest import FIRST, GONE, N_DAYS, facts_of

DAY = date(2015, 12, 30)


def test_the_last_sixty_days_stand_in_their_months_and_columns_and_older_ones_when_asked():
    marks = [Mark(DAY + timedelta(days=number), "published") for number in range(70)]
    for all_days in (False, True):
        shown = calendar(marks, all_days=all_days)
        assert shown["n_older"] == 10
        found = {"months": marks[10:], "older": marks[:10] if all_days else []}
        for name, own in found.items():
            rows = [row for _, row in shown[name]]
            assert sorted(mark.day for row in rows for mark in row if mark) == [mark.day for mark in own]
            for row in rows:
                assert all(mark is None or mark.day.day == n for n, mark in enumerate(row, start=1))
    assert [name for name, _ in shown["months"]] == ["Mar 2016", "Feb 2016", "Jan 2016"]


def test_readers_know_published_restated_withdrawn_and_absent(forty_days):
    marks = {mark.day: mark.state for mark in marks_of_facts(facts_of(forty_days))}
    assert len(marks) == N_DAYS
    assert marks[GONE] == "withdrawn"
    assert sorted(set(marks.values())) == ["published", "withdrawn"]
    assert marks[FIRST] == "published"


def test_a_day_that_the_zone_skipped_is_none_that_is_absent(forty_days):
    facts = facts_of(forty_days)
    ends = zip(facts.catalogue.entries, (date(2011, 12, 29), date(2012, 1, 1)), strict=False)
    entries = tuple(entry.changed(period=day) for entry, day in ends)
    facts = replace(
        facts,
        catalogue=facts.catalogue.changed(periods=entries),
        statement=facts.statement.changed(time_zone="Pacific/Apia"),
    )
    marks = {mark.day.day: mark.state for mark in marks_of_facts(facts)}
    assert marks == {29: "published", 31: "absent", 1: "published"}


def test_a_day_that_waits_says_for_what_and_which_nodes_it_leaves_unknown():
    late = DayState(day=DAY, state=State.LATE, note=f"{DAY}: no dump", waiting_for=("84",), levels=(1, 1))
    (mark,) = marks_of_days([late], {"84": "North (84)"}.get)
    assert mark.words == (
        "30 Dec 2015: late, North (84); its day: no dump; unknown nodes: 1 of level 0, 1 of level 1"
    )


def test_neighbouring_days_that_are_alike_are_one_line_the_newest_first():
    marks = [Mark(DAY + timedelta(days=number), "published") for number in range(8)]
    for number, state in ((2, "late"), (3, "late"), (5, "late"), (6, "void")):
        marks[number] = Mark(marks[number].day, state)
    found = [(when, state, n_days) for when, state, _, n_days in stretches(marks)]
    assert found == [
        ("5 Jan 2016", "void", 1),
        ("4 Jan 2016", "late", 1),
        ("1 Jan 2016 to 2 Jan 2016", "late", 2),
    ]
    assert [mark.state for mark, _ in used_states(marks)] == ["published", "void", "late"]
