"""Days in letters, and alarms in lines for people: periods in a row that are alike are one line."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
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
_DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}B?|/hour=[0-9]{2}B?| [0-9]{2}:[0-9]{2})?")


def day_or_hour(period: date) -> str:
    """Return what a period is: "day" or "hour"."""
    return "hour" if isinstance(period, Hour) else "day"


def periods_in_words(n_periods: int, first: date, last: date) -> str:
    """Return "3 days, 2016-06-01 to 2016-06-04", or so of hours: for lists that people read."""
    return f"{n_periods} {day_or_hour(first)}s, {first} to {last}"


def but_for_dates(text: str) -> str:
    """Return a text without its dates, hours of dates, and the clock times behind them: two that are equal
    then say the same of two periods.
    """
    return _DATED.sub("", text)


@dataclass(frozen=True)
class AlarmRun:
    """Alarms of one kind, severity and node and of periods in a row, the earliest first; or a single one."""

    alarms: tuple[Alarm, ...]

    @property
    def first(self) -> Alarm:
        """The earliest."""
        return self.alarms[0]

    @property
    def last(self) -> Alarm:
        """The newest, whose words stand for all."""
        return self.alarms[-1]

    @property
    def when(self) -> str:
        """How many periods they are of, the first and the last; "" for a single alarm."""
        first, last = self.first.day, self.last.day
        if len(self.alarms) == 1 or first is None or last is None:
            return ""
        return periods_in_words(len(self.alarms), first, last)

    @property
    def words(self) -> str:
        """What people read of all of them."""
        return f"{self.when}; the last: {self.last.words}" if self.when else self.last.words


def alarm_runs(alarms: Iterable[Alarm], *, same_words: bool = False) -> tuple[AlarmRun, ...]:
    """Return alarms, which come by period, rising, with those in a row together. Pure.

    same_words: whether only those are together that say the same, but for dates and clock times; else the
    words of the last stand for what others of its kind and node say, too.
    """
    runs: list[list[Alarm]] = []
    newest: dict[tuple[str, ...], list[Alarm]] = {}
    for alarm in alarms:
        said = but_for_dates(alarm.words) if same_words else ""
        alike = (alarm.kind, alarm.severity, alarm.node or "", said)
        run = newest.get(alike)
        if run is not None and _follows(run[-1], alarm):
            run.append(alarm)
        else:
            newest[alike] = [alarm]
            runs.append(newest[alike])
    return tuple(AlarmRun(tuple(run)) for run in runs)


def lines_of(alarms: Iterable[Alarm], prefix: str = "") -> list[str]:
    """A line for each alarm or run of alike ones, in their order; of very many only the last are shown."""
    lines = [f"{prefix}{run.last.severity}: {run.last.kind}: {run.words}" for run in alarm_runs(alarms)]
    cut = len(lines) - MOST_LINES
    return lines if cut <= 0 else [f"{cut} earlier ones: see `optstream status --json`", *lines[cut:]]


def _follows(before: Alarm, alarm: Alarm) -> bool:
    return before.day is not None and alarm.day is not None and follows(before.day, alarm.day)
