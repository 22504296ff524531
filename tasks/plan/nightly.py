"""A scheduled night: when it looks, at which days, and whether something is left that should be published."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from optstream.errors import ConfigurationError, OptStreamError
from optstream.ledger import Ledger
from optstream.stream import day_of, period_from
from tasks.config import Settings
from tasks.config.schema import clock_of, minutes_of, schedule_problems
from tasks.monitor.facts import last_ended, late_from
from tasks.release.run import Ended, Status

LOOK_EVERY = 30  # minutes between the looks of a night
PATIENT = (Status.WAITING, Status.BUSY)  # what may end well by itself, until the day is late


class UnreleasedError(OptStreamError):
    """A night ended with a day that should be published and is not."""


def looks_of(settings: Settings) -> tuple[str, ...]:
    """Return the crons of the night's looks, half-hourly until [watch] late_after, in the stream's zone."""
    schedule = settings.scheduling
    for problem in schedule_problems(schedule, settings.watching, settings.stream):
        raise ConfigurationError(f"{settings.file}: {problem}")
    first = clock_of(schedule.cron)
    if first is None:
        return (schedule.cron,)
    last, days = minutes_of(settings.watching.late_after), " ".join(schedule.cron.split()[2:])
    hours: dict[int, list[str]] = {}
    for minute in [*range(first, last, LOOK_EVERY), last]:
        hours.setdefault(minute % 60, []).append(str(minute // 60))
    return tuple(f"{minute} {','.join(found)} {days}" for minute, found in hours.items())


def days_of_night(settings: Settings, ledger: Ledger, now: datetime) -> list[date]:
    """Return yesterday and, rising, the days before that a night still takes up."""
    last = last_ended(settings, now)
    first = settings.watching.first_day
    if first is None:
        known = (day_of(period_from(one.period)) for one in ledger.outlines(settings.stream.name))
        first = min(known, default=day_of(last))
    first = max(first, day_of(last) - timedelta(days=settings.scheduling.catch_up_days - 1))
    given_up = set(settings.watching.accepted_gaps)
    return [one for one in settings.calendar.periods(first, last) if day_of(one) not in given_up]


@dataclass(frozen=True)
class Night:
    """How a look ended, in words that hold no reading. left: what should be published and is not."""

    words: str
    left: tuple[str, ...] = ()


def night_of(settings: Settings, ended: Sequence[Ended], absent: Iterable[date], now: datetime) -> Night:
    """Judge a look: a day that waits for its dump, or is with another run, has time until it is late."""
    words: list[str] = []
    left: list[str] = []
    for day in absent:
        said = f"{day} waiting: no dump"
        (left if now >= late_from(settings, day) else words).append(said)
    for one in ended:
        status = one.outcome.status
        said = f"{one.day} {status.value}: {one.outcome.message}"
        if status.is_good:
            words.append(f"{one.day} {status.value}")
        elif status in PATIENT and now < late_from(settings, one.day):
            words.append(said)
        else:
            left.append(said)
    return Night("; ".join(words) or "nothing to do", tuple(left))
