"""The overview's rows: what needs a person comes first, and what is not known is not said."""

from datetime import timedelta

from tasks.monitor.alarms import Kind
from tasks.pages.overview import Need, overview
from tasks.pages.render import page
from tests.tasks.pages.snapshots import AT, alarm

LATER = AT + timedelta(minutes=12)


def test_streams_are_sorted_by_what_needs_a_person(snapshot):
    warning = alarm(Kind.EXPIRING)
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


HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def test_hostile_text_is_text(snapshot):
    """Control: the same text, marked as safe, is a tag."""
    shown = snapshot(HOSTILE, alarms=[alarm(node=HOSTILE)], problem=HOSTILE)
    rows = overview([shown], LATER)
    text = page("overview", rows=rows, waiting=1, large=True, now=LATER, refresh_seconds=30).decode()
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)" in text
