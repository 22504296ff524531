"""When things are, by the configuration: the periods of its calendar, and what its clock times mean."""

from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo

from optstream.stream import Calendar, Hour, day_of
from tasks.config.checks import period_lengths
from tasks.config.folders import Folders
from tasks.config.tables.fields import step_minutes


class Clocks(Folders):
    """The calendar of the stream, and what is asked of it."""

    @cached_property
    def calendar(self) -> Calendar:
        """The calendar that cuts local days into steps."""
        stream = self.stream
        return Calendar(step_minutes(stream.step), stream.time_zone, stream.day, stream.period)

    @cached_property
    def period_lengths(self) -> tuple[int, ...]:
        """Steps of every kind of period that the calendar has, rising."""
        return tuple(sorted(period_lengths(self.calendar)))

    def publish_from(self, period: date) -> datetime | None:
        """Return the instant before which a period is not published; None where it may be at any time."""
        not_before = self.published.not_before
        return None if not_before is None else self.clock_after(period, not_before)

    def clock_after(self, period: date, clock: str) -> datetime:
        """Return what a time such as "06:00" means: on the day after a day, or so long after an hour."""
        after = time.fromisoformat(clock)
        if isinstance(period, Hour):
            ends = self.calendar.ends_at(period).astimezone(UTC)
            return ends + timedelta(hours=after.hour, minutes=after.minute)
        return datetime.combine(period + timedelta(days=1), after, ZoneInfo(self.stream.time_zone))

    def local_period(self, now: datetime) -> date:
        """Return the period that it is in the stream's zone."""
        return self.calendar.period_at(now)

    def local_day(self, now: datetime) -> date:
        """Return the day that it is in the stream's zone."""
        return day_of(self.local_period(now))
