"""Readings that were clamped, absent or doubled: shown by region to operators, and alarmed."""

from datetime import date, timedelta

import pytest

from flows.cli.output import Terminal
from flows.cli.read import show_view
from tasks.monitor.alarms import Kind, Severity
from tasks.monitor.facts import Suspect
from tests.tasks.two_regions import in_another_unit

FIRST, SECOND = date(2016, 6, 1), date(2016, 6, 2)
QUIET = Suspect(0.0, 0.0, 0.0)


SPAN = [FIRST + timedelta(days=number) for number in range(11)]


def shown(installation, *days):
    """Days that are released, and pages of them."""
    installation.release(*days)
    installation.write_pages()


FAR, SUSPECT = ("far-from-history", 11, "84"), ("suspect-readings", 11, "84")


@pytest.mark.parametrize(
    ("factor", "seen"), [(1000, [SUSPECT]), (-1, [FAR, SUSPECT]), (1 / 1000, [FAR]), (1, [])]
)
def test_a_region_in_another_unit_or_sign_is_published_green_and_seen(watched, capsys, factor, seen):
    """From dumps to alarms. Clamped to the bounds, a thousandfold load is at the upper one, 20,000 and not
    ten times as much as usual, and a negated one at zero, far below; a thousandth stays within them, so
    nothing of it is clamped and only published history shows it. The control is an ordinary day.
    """
    watched.configure('epsilon = "1"', 'epsilon = "50"')
    watched.simulate(*SPAN)
    watched.at("2016-06-12 12:00")
    watched.once(shown, *SPAN[:-1])
    in_another_unit(watched, "84", SPAN[-1], factor)
    assert [kind for kind, _, _ in watched.alarms()] == ["missing"]
    (day,) = watched.release(SPAN[-1]).values()
    assert day.outcome.status == "published"
    watched.write_pages()
    assert sorted(watched.alarms()) == seen
    view = watched.watch(live=False)
    words = {str(alarm.kind): alarm.words for alarm in view.alarms}
    assert all(alarm.node == "84" and alarm.day == SPAN[-1] for alarm in view.alarms)
    if FAR in seen:
        assert " of the median of the days before" in words["far-from-history"]
        assert {one.severity for one in view.alarms if one.kind is Kind.FAR} == {Severity.WARNING}
    show_view(watched.settings, view, Terminal())
    printed = " ".join(capsys.readouterr().out.split())
    report = watched.settings.report_file.read_text()
    assert ("84: 100.0% clamped" in printed) is (SUSPECT in seen)
    assert ("Replaced readings" in report) is (SUSPECT in seen)
    public = (watched.folder / "published/index.html").read_text()
    assert "clamped on" not in public
    assert "suspect" not in public
