"""What an operator should hear of: a stream's calendar, its budget, and the alarms. Nothing is changed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from optstream.ledger import Ledger
from tasks.config import Settings
from tasks.monitor.alarms import Alarm, Kind, Severity, alarms_of
from tasks.monitor.days import DayState, State, days_of
from tasks.monitor.facts import Facts, look

# All that is to be said of a stream at one moment.


@dataclass(frozen=True)
class StreamView:
    """A stream's days, rising, what a person should act on, and the facts that they were judged from."""

    stream: str
    at: datetime
    facts: Facts
    days: tuple[DayState, ...]
    alarms: tuple[Alarm, ...]

    @property
    def counts(self) -> Mapping[State, int]:
        """How many days are in each state."""
        return dict(sorted(Counter(day.state for day in self.days).items()))


def view_of(settings: Settings, facts: Facts, now: datetime) -> StreamView:
    """Judge the facts. Pure: the same facts, settings and instant give the same view."""
    days = days_of(settings, facts, now)
    return StreamView(settings.stream.name, now, facts, days, alarms_of(settings, facts, days, now))


def watch(settings: Settings, ledger: Ledger | None, now: datetime, *, live: bool = True) -> StreamView:
    """Look and judge; ledger: None before the first run. Raises LedgerError as `look`.

    live: whether days up to yesterday are expected; else an archive's end is its end.
    """
    return view_of(settings, look(settings, ledger, now, live=live), now)


__all__ = [
    "Alarm",
    "DayState",
    "Facts",
    "Kind",
    "Severity",
    "State",
    "StreamView",
    "look",
    "view_of",
    "watch",
]
