"""Time: which steps a day has, and their running index from the stream's origin."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from optstream.errors import ParameterError
from optstream.privacy.exact import make_plain, one_of
from optstream.stream.period import Hour, PeriodKind, day_of

ORIGIN = date(2000, 1, 1)
"""Local midnight of this day is step 0 of every stream; earlier days have negative steps."""

DayKind = Literal["elapsed", "fixed"]


FOLLOWS_A_MACHINE = ("localtime", "posixrules", "Factory", "posix/", "right/")
"""Names of the time zone data that are no zone: they depend on the machine, or count leap seconds."""


def days_from(first: date, last: date) -> list[date]:
    """Return every day from the first to the last, included; none if the last comes before the first."""
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


@dataclass(frozen=True)
class Calendar:
    """Cuts local days into steps, and into the periods that are released.

    Methods take a period, a local day or an hour of one, whatever `period` is; steps are running indices,
    from local midnight of `ORIGIN`, 2000-01-01, on. They raise ParameterError for a day that has no such
    hour, or whose clock moves by less than a step. Raises ParameterError for a parameter outside its range.

    Args:
        step_minutes: Length of a step; divides a day of 1440 minutes.
        time_zone: IANA name; the day is local.
        day: "elapsed", a day has as many steps as really pass (46, 48 or 50 half-hours); "fixed", the source
            delivers the same slots on every local day, those that do not exist included (as RTE's files do),
            and the slots as delivered are protected.
        period: "day", each local day is released at once; "hour", each hour of one, by the wall clock. Steps
            are counted alike: the hours of a day are its steps, in turn.

    Examples:
        >>> calendar = Calendar(step_minutes=30, time_zone="Europe/Paris")
        >>> calendar.n_steps(date(2016, 3, 26)), calendar.n_steps(date(2016, 3, 27))
        (48, 46)
    """

    step_minutes: int
    time_zone: str
    day: DayKind = "elapsed"
    period: PeriodKind = "day"

    def __post_init__(self) -> None:
        make_plain(self)
        minutes = self.step_minutes
        if isinstance(minutes, bool) or not isinstance(minutes, int) or minutes < 1 or 1440 % minutes:
            raise ParameterError(
                f"step_minutes of Calendar must divide a day of 1440 minutes; got {minutes!r}"
            )
        one_of(self.day, "day of Calendar", get_args(DayKind))
        one_of(self.period, "period of Calendar", get_args(PeriodKind))
        if self.period == "hour" and 60 % minutes:
            raise ParameterError(
                f'step_minutes of Calendar must divide an hour where period is "hour"; got {minutes!r}: take '
                'a shorter step, or period "day"'
            )
        try:
            if self.time_zone.startswith(FOLLOWS_A_MACHINE):
                raise ValueError
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError, AttributeError, TypeError) as error:
            raise ParameterError(
                f'time_zone of Calendar must be an IANA name such as "Europe/Paris", or "Etc/GMT-1", whose '
                f"sign is POSIX's, for an hour ahead of UTC all year; got {self.time_zone!r}"
            ) from error

    @property
    def slots(self) -> int:
        """The number of steps of an ordinary day."""
        return 1440 // self.step_minutes

    @property
    def usual_steps(self) -> int:
        """The number of steps of an ordinary period."""
        return self.slots if self.period == "day" else self.slots // 24

    def n_steps(self, period: date) -> int:
        """Return the number of steps of a day or an hour: of a day `slots`, or as many as pass on it."""
        if isinstance(period, Hour):
            self.first_step(period)
            return self.slots // 24
        return self.first_step(period + timedelta(days=1)) - self.first_step(period)

    def first_step(self, period: date) -> int:
        """Return the running index of the first step of a day or an hour; negative before `ORIGIN`. Raises
        ParameterError where the clock moves by less than a step, or the day has no such hour."""
        if isinstance(period, Hour):
            return self.first_step(day_of(period)) + self.step_of_day(period)
        if self.day == "fixed":
            return (period - ORIGIN).days * self.slots
        step = timedelta(minutes=self.step_minutes)
        steps, rest = divmod(self._elapsed_between(ORIGIN, period), step)
        if rest:
            # the day to blame may lie far away: where the clock did not move back, all since begin so
            between = reversed(days_from(*sorted((period, ORIGIN)))[:-1])
            moved = next(day for day in between if self._elapsed_between(day, day + timedelta(days=1)) % step)
            raise ParameterError(
                f"{moved} in {self.time_zone} is not a whole number of steps of {self.step_minutes} minutes, "
                f"for its clock moves by part of one, and {period} begins within a step: before the first "
                'release, set a shorter step or day = "fixed"; afterwards such days are left out'
            )
        return steps

    def _elapsed_between(self, first: date, last: date) -> timedelta:
        return _midnight(last, self.time_zone) - _midnight(first, self.time_zone)

    def steps_over(self, first: date, last: date) -> range:
        """Return the steps of all days from the first to the last, whole or not."""
        if self.day == "fixed":
            return range(self.first_step(first), self.first_step(last + timedelta(days=1)))
        step = timedelta(minutes=self.step_minutes)
        end = self._elapsed_between(ORIGIN, last + timedelta(days=1))
        return range(self._elapsed_between(ORIGIN, first) // step, -(-end // step))

    def step_of_day(self, period: date) -> int:
        """Return how many steps of its day lie before a period; 0 for a day."""
        if not isinstance(period, Hour):
            return 0
        day = day_of(period)
        hours = _hours(day, self.time_zone if self.day == "elapsed" else None)
        if period not in hours:
            where = f"in {self.time_zone}" if self.day == "elapsed" else "of fixed slots"
            raise ParameterError(f"{day} {where} has no hour {period.clock.removeprefix('T')}")
        return hours.index(period) * (self.slots // 24)

    def periods_of(self, day: date) -> tuple[date, ...]:
        """Return the periods of a local day: itself, or its hours, 23 or 25 where the clock changes. A day
        that the zone skipped, as on a change of sides of the date line, has none. Raises ParameterError where
        the clock moves by part of an hour that day."""
        if self.period == "day":
            return () if self.skips(day) else (day,)
        return _hours(day, self.time_zone if self.day == "elapsed" else None)

    def skips(self, day: date) -> bool:
        """Return whether the zone's clock skipped a whole day; never for "fixed" slots."""
        return self.day == "elapsed" and not self._elapsed_between(day, day + timedelta(days=1))

    def leaves_out(self, day: date) -> bool:
        """Return whether a day has no period to release. The zone skipped it, or moves its clock by part of
        an hour where periods are hours."""
        try:
            return not self.periods_of(day)
        except ParameterError:
            return True

    def check_period(self, period: date) -> None:
        """Raise ParameterError for a period of the other kind, or an hour that its day does not have."""
        if self.skips(day_of(period)):
            raise ParameterError(
                f"{day_of(period)} was no day in {self.time_zone}, whose clock went from the day before it "
                "to the one after: nothing is due for it, and nothing can be released"
            )
        if isinstance(period, Hour) != (self.period == "hour"):
            example = "2016-02-14T13" if self.period == "hour" else "2016-02-14"
            raise ParameterError(
                f"{period} is no {self.period}, and this stream is released by the {self.period}: ask for "
                f"one such as {example}"
            )
        self.first_step(period)

    def periods(self, first: date, last: date) -> list[date]:
        """Return every period from the first to the last, included; none if the last comes before the first.
        Where periods are hours, a day stands for its first or its last hour; a day left out has none."""
        days = [day for day in days_from(day_of(first), day_of(last)) if not self.leaves_out(day)]
        found = [period for day in days for period in self.periods_of(day)]
        if isinstance(first, Hour):
            found = [period for period in found if first <= period]
        return [period for period in found if period <= last] if isinstance(last, Hour) else found

    def after(self, period: date, n_periods: int = 1) -> date:
        """Return the period that comes n_periods, negative for before, after one of this calendar's kind."""
        one, is_hour = timedelta(days=1 if n_periods > 0 else -1), isinstance(period, Hour)
        if is_hour and not self.leaves_out(day_of(period)):
            period = self.period_from_step(self.first_step(period) + n_periods * self.usual_steps)
            if not self.leaves_out(day_of(period)):
                return period
        day = day_of(period)
        for _ in range(1 if is_hour else abs(n_periods)):
            day += one
            while self.leaves_out(day):
                day += one
        return self.periods_of(day)[0 if n_periods > 0 else -1] if is_hour else day

    def period_at(self, instant: datetime) -> date:
        """Return the period of an instant, by the time zone's clock."""
        return self._period_of(instant.astimezone(ZoneInfo(self.time_zone)))

    def period_from_step(self, step: int) -> date:
        """Return the period of a step."""
        return self._period_of(self.local_time(step))

    def _period_of(self, local: datetime) -> date:
        if self.period == "day":
            day, after = local.date(), local.date() + timedelta(days=1)
            # where the clock went back past midnight, the day has begun all the same
            begun = self.day == "elapsed" and local.astimezone(UTC) >= _midnight(after, self.time_zone)
            return after if begun else day
        return Hour(local.date(), local.hour, bool(local.fold) and self.day == "elapsed")

    def begins_at(self, period: date) -> datetime:
        """Return the instant, with its zone, at which a day or an hour begins. For a fixed slot that the zone
        skips it is the time that its clock would show."""
        hour, fold = (period.hour, int(period.again)) if isinstance(period, Hour) else (0, 0)
        zone = ZoneInfo(self.time_zone)
        return datetime(period.year, period.month, period.day, hour, fold=fold, tzinfo=zone)

    def ends_at(self, period: date) -> datetime:
        """Return the instant, with its zone, at which a day or an hour is over."""
        if not isinstance(period, Hour):
            return self.begins_at(period + timedelta(days=1))
        if self.day == "fixed":
            return self.begins_at(self.after(period))
        end = self.begins_at(period).astimezone(UTC) + timedelta(hours=1)
        return end.astimezone(ZoneInfo(self.time_zone))

    def local_time(self, step: int) -> datetime:
        """Return the local start of a step, with its zone; without for "fixed" slots."""
        if self.day == "fixed":
            days, slot = divmod(step, self.slots)
            midnight = datetime(ORIGIN.year, ORIGIN.month, ORIGIN.day) + timedelta(days=days)
            return midnight + slot * timedelta(minutes=self.step_minutes)
        start = _midnight(ORIGIN, self.time_zone) + step * timedelta(minutes=self.step_minutes)
        return start.astimezone(ZoneInfo(self.time_zone))

    def local_times(self, period: date) -> tuple[datetime, ...]:
        """Return the wall-clock start of each step; "elapsed" days show an hour twice in autumn."""
        begins, zone = self.begins_at(period), ZoneInfo(self.time_zone)
        since = [number * timedelta(minutes=self.step_minutes) for number in range(self.n_steps(period))]
        if self.day == "fixed":
            return tuple(begins.replace(tzinfo=None) + one for one in since)
        stamps = ((begins.astimezone(UTC) + one).astimezone(zone) for one in since)
        return tuple(stamp.replace(tzinfo=None, fold=0) for stamp in stamps)

    def utc_times(self, period: date) -> tuple[datetime | None, ...]:
        """Return the UTC start of each step; None for a fixed slot that the local day does not have. Of an
        hour that happens twice it is the first."""
        if self.day == "elapsed":
            start, step = self.begins_at(period).astimezone(UTC), timedelta(minutes=self.step_minutes)
            return tuple(start + number * step for number in range(self.n_steps(period)))
        zone = ZoneInfo(self.time_zone)
        local = self.local_times(period)
        stamps = [one.replace(tzinfo=zone).astimezone(UTC) for one in local]
        is_there = [utc.astimezone(zone).replace(tzinfo=None) for utc in stamps]
        return tuple(
            utc if there == one else None for utc, there, one in zip(stamps, is_there, local, strict=True)
        )


@lru_cache(maxsize=4096)
def _midnight(day: date, time_zone: str) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(time_zone)).astimezone(UTC)


@lru_cache(maxsize=4096)
def _hours(day: date, time_zone: str | None) -> tuple[Hour, ...]:
    """The hours of a local day, in turn; without a zone those of fixed slots."""
    if time_zone is None:
        return tuple(Hour(day, hour) for hour in range(24))
    zone, hours = ZoneInfo(time_zone), list[Hour]()
    at, end = _midnight(day, time_zone), _midnight(day + timedelta(days=1), time_zone)
    while at < end:
        local = at.astimezone(zone)
        if local.minute or local.second or end - at < timedelta(hours=1):
            raise ParameterError(
                f"{day} in {time_zone} is not a whole number of clock hours, for its clock moves by part of "
                'one: before the first release, set period = "day"; afterwards such days are left out'
            )
        hours.append(Hour(local.date(), local.hour, bool(local.fold)))
        at += timedelta(hours=1)
    return tuple(hours)
