"""The table [schedule]: when nights run under `optstream serve`."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, time, timedelta
from functools import cache
from typing import Any

from pydantic import Field

from tasks.config.tables.base import Section
from tasks.config.tables.fields import CRON_FIELDS, Cron

EVERY_HOUR = "5 * * * *"
"""When a stream that is released by the hour runs, where nothing is said."""
CRON = 'five fields of numbers as cron takes them, such as "0 3 * * *"'


class Schedule(Section):
    """A configuration need not have it. Until which hour dumps are waited for is [watch] late_after."""

    cron: Cron = Field("0 3 * * *", validate_default=True, description=CRON)
    look_every_minutes: int = Field(30, ge=1, le=720, description="an integer in [1, 720]")
    catch_up_days: int = Field(7, ge=1, le=366, description="a number of days, an integer in [1, 366]")
    watch_cron: Cron = Field("5 * * * *", validate_default=True, description=CRON)
    port: int | None = Field(None, ge=1024, le=65535, description="an integer in [1024, 65535]")


def clock_of(cron: str) -> int | None:
    """The minute of the day at which a cron fires, or None if it does at several."""
    minute, hour, *_ = cron.split()
    return 60 * int(hour) + int(minute) if minute.isdigit() and hour.isdigit() else None


def next_fire(crons: Iterable[str], after: datetime) -> datetime | None:
    """The next minute, by the clock of its time zone, at which one of the crons fires after an instant; None
    where none does within a year.
    """
    minute = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    end = minute + timedelta(days=366)
    while minute < end:
        at = minute.astimezone(after.tzinfo)
        fits = [_fits(cron, at) for cron in crons]
        if any(in_hour and in_minute for in_hour, in_minute in fits):
            return at
        minute += timedelta(minutes=1 if any(in_hour for in_hour, _ in fits) else 60 - at.minute)
    return None


def _fits(cron: str, at: datetime) -> tuple[bool, bool]:
    """Whether a cron fires in this hour of this day, and at this minute of an hour.

    As cron has it, a day fits by its month's day or by its week's where neither is "*".
    """
    now = (at.minute, at.hour, at.day, at.month, at.isoweekday() % 7)
    minute, hour, day, month, weekday = (
        value in _numbers(field, limits)
        for field, value, limits in zip(cron.split(), now, CRON_FIELDS, strict=True)
    )
    of_day = day and weekday if "*" in (cron.split()[2], cron.split()[4]) else day or weekday
    return hour and month and of_day, minute


@cache
def _numbers(field: str, limits: tuple[int, int]) -> frozenset[int]:
    """The numbers of a field; Sunday, 7, is 0."""
    found = set[int]()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        least, greatest = limits if span == "*" else (int(first), int(last or first))
        found.update(range(least, greatest + 1, int(step or 1)))
    return frozenset(number % 7 for number in found) if limits == (0, 7) else frozenset(found)


def minutes_of(clock: str) -> int:
    """The minute of the day of a clock time."""
    parsed = time.fromisoformat(clock)
    return 60 * parsed.hour + parsed.minute


def schedule_problems(schedule: Schedule, watch: Any, stream: Any) -> Iterator[str]:
    """A night begins before the hour at which its day is late; hours are not released once a day."""
    begins = clock_of(schedule.cron)
    if stream.period == "hour":
        if begins is not None and "cron" in schedule.model_fields_set:
            yield (
                f'schedule.cron must fire every hour for stream.period "hour", such as "{EVERY_HOUR}"; '
                f"got {schedule.cron!r}"
            )
        return
    if begins is not None and begins >= minutes_of(watch.late_after):
        yield (
            f"schedule.cron must begin before watch.late_after, {watch.late_after}, until which dumps are "
            f"waited for; got {schedule.cron!r}"
        )
