"""Until when what should have happened: instants from the configuration and a day."""

from datetime import date, datetime, timedelta
from math import floor

from tasks.config import Settings
from tasks.config.tables.fields import step_minutes


def late_from(settings: Settings, day: date) -> datetime:
    """From then on a day that is not released is an alarm."""
    return settings.clock_after(day, settings.watching.late_after)


def raw_expires(settings: Settings, day: date) -> datetime | None:
    """When the raw readings of a day are deleted; None where no retention is configured."""
    kept = settings.input.raw_retention_days
    return None if kept is None else settings.calendar.ends_at(day) + timedelta(days=kept)


def days_left(expires: datetime, now: datetime) -> int:
    """Whole days until then; negative when it is past."""
    return floor((expires - now) / timedelta(days=1))


def max_runtime(settings: Settings) -> timedelta:
    """For how long a day may be under way."""
    return timedelta(minutes=step_minutes(settings.watching.max_runtime))


def last_ended(settings: Settings, now: datetime) -> date:
    """The newest local day, or hour, that is over."""
    return settings.calendar.after(settings.local_period(now), -1)
