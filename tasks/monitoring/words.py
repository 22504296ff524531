"""Days in letters, and alarms in lines for terminals and notifications: days of one kind are one line."""

from collections.abc import Iterable, Sequence
from datetime import date

from optstream.stream import Hour, follows
from tasks.monitoring.alarms.alarm import Alarm
from tasks.monitoring.days import State

MOST_LINES = 40
LETTERS = {
    State.PUBLISHED: ".",
    State.RESTATED: "R",
    State.LOST: "X",
    State.WITHDRAWN: "W",
    State.HELD: "h",
    State.RUNNING: "r",
    State.WAITING: "w",
    State.LATE: "L",
    State.MISSING: "M",
    State.FAILED: "F",
    State.VOID: "V",
}
"""What stands for a day in a calendar."""


def periods_in_words(n_periods: int, first: date, last: date) -> str:
    """Return "3 days, 2016-06-01 to 2016-06-04", or so of hours: for lists that people read."""
    return f"{n_periods} {'hours' if isinstance(first, Hour) else 'days'}, {first} to {last}"


def lines_of(alarms: Iterable[Alarm], prefix: str = "") -> list[str]:
    """A line for each alarm or run of alike ones, in their order; of very many only the last are shown."""
    groups: list[list[Alarm]] = []
    open_groups: dict[tuple[str, str], list[Alarm]] = {}
    for alarm in alarms:
        alike = (alarm.kind.value, alarm.node or "")
        group = open_groups.get(alike)
        if group is not None and _follows(group[-1], alarm):
            group.append(alarm)
        else:
            open_groups[alike] = [alarm]
            groups.append(open_groups[alike])
    lines = [prefix + _line(group) for group in groups]
    cut = len(lines) - MOST_LINES
    return lines if cut <= 0 else [f"{cut} earlier ones: see `optstream status --json`", *lines[cut:]]


def _follows(before: Alarm, alarm: Alarm) -> bool:
    return before.day is not None and alarm.day is not None and follows(before.day, alarm.day)


def _line(group: Sequence[Alarm]) -> str:
    first, last = group[0], group[-1]
    said = f"{last.severity}: {last.kind}: "
    if len(group) == 1:
        return said + last.words
    assert first.day is not None  # alike ones without a day are never in a row
    assert last.day is not None
    return f"{said}{periods_in_words(len(group), first.day, last.day)}; the last: {last.words}"
