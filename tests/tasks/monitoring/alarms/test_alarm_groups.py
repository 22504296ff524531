"""Alarms of one kind are one line."""

from datetime import timedelta

from tasks.monitor.alarms import alarm_groups
from tasks.monitor.view import Kind, Severity
from tests.tasks.ui.conftest import AT, FIRST, alarm


def test_a_hundred_days_are_one_group():
    alarms = [alarm(Kind.BUDGET, FIRST + timedelta(days=number)) for number in range(100)]
    (group,) = alarm_groups(alarms, {})
    assert group.when == "100 days, 2016-06-01 to 2016-09-08"
    assert group.alarms[0].day == FIRST + timedelta(days=99)
    assert group.since is None


def test_a_group_s_runs_are_the_newest_first_and_each_is_of_days_in_a_row():
    alarms = [alarm(Kind.BUDGET, FIRST + timedelta(days=number)) for number in (0, 1, 2, 5, 6)]
    (group,) = alarm_groups(alarms, {})
    assert [run.alarms for run in group.runs] == [tuple(alarms[3:]), tuple(alarms[:3])]


def test_the_oldest_comes_first_and_warnings_last():
    late, void = alarm(Kind.LATE), alarm(Kind.VOID)
    expiring, unknown = alarm(Kind.EXPIRING, severity=Severity.WARNING), alarm(Kind.FAILED)
    since = {late.key: AT, void.key: AT - timedelta(days=2), expiring.key: AT - timedelta(days=9)}
    groups = alarm_groups([expiring, unknown, late, void], since)
    assert [group.kind for group in groups] == ["void", "late", "failed", "expiring"]
    assert [group.is_warning for group in groups] == [False, False, False, True]


def test_alarms_without_a_day_have_no_when():
    (group,) = alarm_groups([alarm(Kind.LEDGER, day=None)], {})
    assert group.when == ""


def test_two_kinds_that_nobody_saw_are_in_the_order_of_their_names():
    groups = alarm_groups([alarm(Kind.VOID), alarm(Kind.LATE)], {})
    assert [group.kind for group in groups] == ["late", "void"]
