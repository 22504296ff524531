"""Time: which steps a day has, and their running index from the stream's origin."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from optstream.errors import ParameterError
from optstream.privacy.exact import make_plain

ORIGIN = date(2000, 1, 1)
"""Local midnight of this day is step 0 of every stream; earlier days have negative steps."""

DayKind = Literal["elapsed", "fixed"]


def days_from(first: date, last: date) -> list[date]:
    """Return every day from the first to the last.

    Args:
        first: First day.
        last: Last day, included.

    Returns:
        The days, rising; none if the last comes before the first.
    """
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


@dataclass(frozen=True)
class Calendar:
    """Cuts local days into steps.

    Args:
        step_minutes: Length of a step; divides a day of 1440 minutes.
        time_zone: IANA name; the day is local.
        day: "elapsed", a day has as many steps as really pass (46, 48 or 50 half-hours); "fixed", the source
            delivers the same slots on every local day, those that do not exist included (as RTE's files do),
            and what is protected is the slots as delivered.

    Raises:
        ParameterError: For a parameter outside its range, naming it and what it got.
    """

    step_minutes: int
    time_zone: str
    day: DayKind = "elapsed"

    def __post_init__(self) -> None:
        make_plain(self)
        minutes = self.step_minutes
        if isinstance(minutes, bool) or not isinstance(minutes, int) or minutes < 1 or 1440 % minutes:
            raise ParameterError(
                f"step_minutes of Calendar must divide a day of 1440 minutes; got {minutes!r}"
            )
        if self.day not in ("elapsed", "fixed"):
            raise ParameterError(f'day of Calendar must be "elapsed" or "fixed"; got {self.day!r}')
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ParameterError(
                f'time_zone of Calendar must be an IANA name such as "Europe/Paris"; got {self.time_zone!r}'
            ) from error

    @property
    def slots(self) -> int:
        """The number of steps of an ordinary day."""
        return 1440 // self.step_minutes

    def n_steps(self, day: date) -> int:
        """Return how many steps a day has.

        Args:
            day: Local day.

        Returns:
            As many as `slots`, or as pass on a day whose clock changes.

        Raises:
            ParameterError: As `first_step`.
        """
        return self.first_step(day + timedelta(days=1)) - self.first_step(day)

    def first_step(self, day: date) -> int:
        """Return the running index of a day's first step, skipped days included.

        Args:
            day: Local day.

        Returns:
            Steps since local midnight of `ORIGIN`, 2000-01-01; negative before it.

        Raises:
            ParameterError: Where the clock moves by less than a step.
        """
        if self.day == "fixed":
            return (day - ORIGIN).days * self.slots
        elapsed = _midnight(day, self.time_zone) - _midnight(ORIGIN, self.time_zone)
        steps, rest = divmod(elapsed, timedelta(minutes=self.step_minutes))
        if rest:
            raise ParameterError(
                f"{day} in {self.time_zone} is not a whole number of steps of {self.step_minutes} minutes; "
                'use a shorter step, or day "fixed"'
            )
        return steps

    def local_time(self, step: int) -> datetime:
        """Return the local start of any step.

        Args:
            step: Running index.

        Returns:
            With its zone; without for "fixed" slots.
        """
        if self.day == "fixed":
            days, slot = divmod(step, self.slots)
            midnight = datetime(ORIGIN.year, ORIGIN.month, ORIGIN.day) + timedelta(days=days)
            return midnight + slot * timedelta(minutes=self.step_minutes)
        start = _midnight(ORIGIN, self.time_zone) + step * timedelta(minutes=self.step_minutes)
        return start.astimezone(ZoneInfo(self.time_zone))

    def local_times(self, day: date) -> tuple[datetime, ...]:
        """Return the wall-clock start of each step of a day.

        Args:
            day: Local day.

        Returns:
            Without zone; "elapsed" days show an hour twice in autumn.

        Raises:
            ParameterError: As `first_step`.
        """
        step = timedelta(minutes=self.step_minutes)
        if self.day == "fixed":
            midnight = datetime(day.year, day.month, day.day)
            return tuple(midnight + number * step for number in range(self.slots))
        zone = ZoneInfo(self.time_zone)
        return tuple(stamp.astimezone(zone).replace(tzinfo=None, fold=0) for stamp in self._elapsed(day))

    def utc_times(self, day: date) -> tuple[datetime | None, ...]:
        """Return the UTC start of each step of a day.

        Args:
            day: Local day.

        Returns:
            None for a slot that the local day does not have; of an hour that happens twice, the first.

        Raises:
            ParameterError: As `first_step`.
        """
        if self.day == "elapsed":
            return tuple(self._elapsed(day))
        zone = ZoneInfo(self.time_zone)
        stamps: list[datetime | None] = []
        for local in self.local_times(day):
            # Of an hour that happens twice, the fixed slots deliver one: taken as the first.
            stamp = local.replace(tzinfo=zone).astimezone(UTC)
            stamps.append(stamp if stamp.astimezone(zone).replace(tzinfo=None) == local else None)
        return tuple(stamps)

    def _elapsed(self, day: date) -> list[datetime]:
        start = _midnight(day, self.time_zone)
        return [start + timedelta(minutes=self.step_minutes * number) for number in range(self.n_steps(day))]


@lru_cache(maxsize=4096)
def _midnight(day: date, time_zone: str) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(time_zone)).astimezone(UTC)
