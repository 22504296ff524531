"""The calendar of a page: every day in its place, in its state, in words for those who do not see it."""

from datetime import date, timedelta

from tasks.monitor.view import DayState, State
from tasks.reports.drawing.calendar import (
    Mark,
    level_rows,
    marks_of_days,
    marks_of_facts,
    month_spans,
    stretches,
    used_states,
    years_of,
)
from tests.tasks.reports.conftest import FIRST, GONE, N_DAYS, facts_of

DAY = date(2015, 12, 30)


def test_each_day_stands_in_its_month_and_column():
    marks = [Mark(DAY + timedelta(days=number), "published") for number in range(70)]
    years = years_of(marks)
    assert [year.number for year in years] == [2016, 2015]
    found = [mark for year in years for month in year.months for mark in month.marks if mark]
    assert sorted(mark.day for mark in found) == [mark.day for mark in marks]
    for year in years:
        for month in year.months:
            for number, mark in enumerate(month.marks, start=1):
                assert mark is None or (mark.day.day, mark.day.year) == (number, year.number)


def test_readers_know_published_restated_withdrawn_and_absent(forty_days):
    marks = {mark.day: mark.state for mark in marks_of_facts(facts_of(forty_days))}
    assert len(marks) == N_DAYS
    assert marks[GONE] == "withdrawn"
    assert sorted(set(marks.values())) == ["published", "withdrawn"]
    assert marks[FIRST] == "published"


def test_the_watch_s_days_say_which_level_waits():
    late = DayState(day=DAY, state=State.LATE, note=f"{DAY}: no dump", waiting_for=("84",), levels=(1, 1))
    (mark,) = marks_of_days([late])
    assert (mark.state, mark.lacking) == ("late", (1, 1))
    assert mark.note == "84; its day: no dump"
    root, regions = level_rows([mark], [1, 12])
    assert root.name == "Level 0, 1 node"
    assert root.cells[0][1] == "L1"
    assert regions.cells[0][2] == "30 Dec 2015: late, nodes that cannot be known yet: 1"


def test_neighbouring_days_that_are_alike_are_one_line_the_newest_first():
    marks = [Mark(DAY + timedelta(days=number), "published") for number in range(8)]
    for number, state in ((2, "late"), (3, "late"), (5, "late"), (6, "void")):
        marks[number] = Mark(marks[number].day, state)
    found = [(one.when, one.state, one.n_days) for one in stretches(marks)]
    assert found == [
        ("5 Jan 2016", "void", 1),
        ("4 Jan 2016", "late", 1),
        ("1 Jan 2016 to 2 Jan 2016", "late", 2),
    ]
    assert [state for state, _, _ in used_states(marks)] == ["published", "void", "late"]
    assert list(month_spans(marks)) == [("Dec 2015", 2), ("Jan 2016", 6)]
