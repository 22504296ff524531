"""Public facts of a step: its time on the clock, and the kind of its day."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.errors import ParameterError
from optstream.privacy.exact import make_plain, whole
from optstream.stream.calendar import ORIGIN, Calendar

WORKDAY, SATURDAY, REST_DAY = 0, 1, 2  # kinds of day; a public holiday counts as a Sunday
UNKNOWN_WEEK = -1
DAYS_OF_A_WEEK = 7


@dataclass(frozen=True)
class PublicDays:
    """Running steps as days and slots of a day, with kinds of day, from public facts. Raises ParameterError
    naming the value out of range.

    Args:
        steps_per_day: Slots of an ordinary day, or of another cycle of the series (52 weeks, 12 months).
        first_weekday: Of day 0, Monday 0; None where days have no week.
        holidays: Numbers of days.
        calendar: Of a stream whose clock changes: its days have other numbers of steps, or slots that the
            clock skips; None for days of one length.
    """

    steps_per_day: int
    first_weekday: int | None = None
    holidays: frozenset[int] = frozenset()
    calendar: Calendar | None = None

    def __post_init__(self) -> None:
        make_plain(self)
        weekday = self.first_weekday
        whole(self.steps_per_day, "steps_per_day", 1)
        if weekday is not None and weekday not in range(7):
            raise ParameterError(f"first_weekday must be in [0, 6], Monday 0, or None; got {weekday!r}")

    @classmethod
    def from_date(cls, first_day: date, steps_per_day: int, holidays: Iterable[date] = ()) -> "PublicDays":
        """Return days of one length, step 0 being the first slot of `first_day`. Raises ParameterError for a
        first day that is no date, and no steps a day.

        Args:
            first_day: The day of step 0.
            steps_per_day: Slots of each day.
            holidays: Days that are like Sundays.

        Examples:
            >>> PublicDays.from_date(date(2016, 12, 19), steps_per_day=48, holidays=[date(2016, 12, 25)])
            PublicDays(steps_per_day=48, first_weekday=0, holidays=frozenset({6}), calendar=None)
        """
        if not isinstance(first_day, date):
            raise ParameterError(
                f"first_day of PublicDays must be a day such as date(2016, 2, 1); got {first_day!r:.80}"
            )
        numbers = frozenset((day - first_day).days for day in holidays)
        return cls(steps_per_day, first_day.weekday(), numbers)

    @classmethod
    def from_calendar(cls, calendar: Calendar, holidays: Iterable[date] = ()) -> "PublicDays":
        """Return the local days of a stream; its step 0 is local midnight of `ORIGIN`.

        Args:
            calendar: Of the stream.
            holidays: Days that are like Sundays.
        """
        numbers = frozenset((day - ORIGIN).days for day in holidays)
        return cls(calendar.slots, ORIGIN.weekday(), numbers, calendar)

    def clock(self, steps: ArrayLike) -> NDArray[np.int64]:
        """Return day times `steps_per_day` plus slot, of the same shape as `steps`.

        It runs as the local clock does: an hour that a day lacks is left out, and both passes of a repeated
        hour have the same places.

        Args:
            steps: Running indices.
        """
        running = np.asarray(steps, dtype=np.int64)
        if self.calendar is None or self.calendar.day == "fixed" or not running.size:
            return running
        flat = running.ravel()
        origins, numbers = _days_between(self.calendar, int(flat.min()), int(flat.max()))
        at = np.searchsorted(origins, flat, side="right") - 1
        found = numbers[at] * self.steps_per_day + flat - origins[at]
        for place in np.flatnonzero((np.diff(origins) != self.steps_per_day)[at]):  # the clock changes
            found[place] = _local(self.calendar, int(flat[place]))
        return found.reshape(running.shape)

    def hold_skipped(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether blocks hold a slot that the wall clock skips, whose 0 is no reading, (n,).

        Args:
            starts: First steps of the blocks, (n,).
            lengths: Of the blocks, in steps, (n,).
        """
        if self.calendar is None or self.calendar.day == "elapsed" or not starts.size:
            return np.zeros(starts.shape, dtype=np.bool_)
        first, last = int(starts.min()), int((starts + lengths).max())
        days = range(first // self.steps_per_day, last // self.steps_per_day + 1)
        found = [one for day in days for one in _skipped(self.calendar, day)]
        return np.searchsorted(found, starts + lengths) > np.searchsorted(found, starts)

    def day_of(self, step: int) -> int:
        """Return the number of a step's day, counted from that of clock place 0."""
        return int(self.clock(step)) // self.steps_per_day

    def kinds(self, clock: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return `WORKDAY`, `SATURDAY` or `REST_DAY` for each place, `UNKNOWN_WEEK` without weeks."""
        days = clock // self.steps_per_day
        if self.first_weekday is None:
            return np.full(days.shape, UNKNOWN_WEEK)
        weekday = (days + self.first_weekday) % DAYS_OF_A_WEEK
        kinds = np.where(weekday < 5, WORKDAY, np.where(weekday == 5, SATURDAY, REST_DAY))
        if self.holidays:
            kinds = np.where(np.isin(days, list(self.holidays)), REST_DAY, kinds)
        return kinds


@lru_cache(maxsize=64)
def _days_between(calendar: Calendar, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first steps of the days from one step's to another's, and of the next; and their numbers."""
    start, end = (calendar.local_time(step).date() for step in (first, last))
    days = [start + timedelta(days=number) for number in range((end - start).days + 2)]
    # days that begin within a step are never released: between two that are, they only lie in the way
    origins = np.array([calendar.steps_over(day, day).start for day in days], dtype=np.int64)
    return origins, np.array([(day - ORIGIN).days for day in days], dtype=np.int64)


@lru_cache(maxsize=1 << 12)
def _skipped(calendar: Calendar, number: int) -> tuple[int, ...]:
    """Return the steps of a day of "fixed" slots that the clock skips."""
    day = ORIGIN + timedelta(days=number)
    begins, ends = (calendar.begins_at(day + timedelta(days=ahead)) for ahead in (0, 1))
    if begins.utcoffset() == ends.utcoffset():
        return ()
    first = calendar.first_step(day)
    return tuple(first + slot for slot, at in enumerate(calendar.utc_times(day)) if at is None)


@lru_cache(maxsize=1 << 16)
def _local(calendar: Calendar, step: int) -> int:
    local = calendar.local_time(step)
    since = timedelta(hours=local.hour, minutes=local.minute)
    return (local.date() - ORIGIN).days * calendar.slots + since // timedelta(minutes=calendar.step_minutes)
