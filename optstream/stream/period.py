"""The period that a stream is released by: a local day, or an hour of one."""

import re
from datetime import date
from typing import Literal, NoReturn, SupportsIndex

from optstream.errors import ParameterError

PeriodKind = Literal["day", "hour"]

_PARTITION = re.compile(r"date=([^/=]+)(?:/hour=([0-9]{2}B?))?")
_HOUR = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2})(B?)")


class Hour(date):
    """An hour of a local day: a date that has a clock hour too, wherever a date stands as a period.

    It is never equal to a date, is not compared with one, and nothing is added to it: see `Calendar`. Its
    text is "2016-02-14T13", the second of an hour that a local day repeats "2016-10-30T02B": sorted texts are
    sorted hours.
    """

    __slots__ = ("_key",)
    _key: tuple[int, int, bool]

    def __new__(cls, day: date, hour: int, again: bool = False) -> "Hour":
        if hour not in range(24):
            raise ParameterError(f"hour must be an integer in [0, 23]; got {hour!r}")
        made = super().__new__(cls, day.year, day.month, day.day)
        made._key = (made.toordinal(), int(hour), bool(again))
        return made

    @property
    def hour(self) -> int:
        """The clock hour at which it begins."""
        return self._key[1]

    @property
    def again(self) -> bool:
        """Whether it is the second time that the local day has this hour: the clock was put back."""
        return self._key[2]

    def isoformat(self) -> str:
        """Return its text, "2016-02-14T13"."""
        return f"{super().isoformat()}{self.clock}"

    @property
    def clock(self) -> str:
        """What its text has after the date: "T13", "T02B"."""
        return f"T{self.hour:02}{'B' if self.again else ''}"

    def __str__(self) -> str:
        return self.isoformat()

    def __repr__(self) -> str:
        return f"Hour({self.isoformat()!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (Hour, (day_of(self), self.hour, self.again))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hour) and self._key == other._key

    def __ne__(self, other: object) -> bool:  # that of date would compare the days
        return not self == other

    def __lt__(self, other: date) -> bool:
        return self._key < other._key if isinstance(other, Hour) else _not_compared(other)

    def __le__(self, other: date) -> bool:
        return self._key <= other._key if isinstance(other, Hour) else _not_compared(other)

    def __gt__(self, other: date) -> bool:
        return self._key > other._key if isinstance(other, Hour) else _not_compared(other)

    def __ge__(self, other: date) -> bool:
        return self._key >= other._key if isinstance(other, Hour) else _not_compared(other)

    def __add__(self, other: object) -> NoReturn:
        raise TypeError("nothing is added to an hour: ask the calendar which comes next")

    __radd__ = __add__
    __sub__ = __add__
    __rsub__ = __add__

    def replace(self, year: SupportsIndex = 0, month: SupportsIndex = 0, day: SupportsIndex = 0) -> NoReturn:
        raise TypeError("an hour has no other date: make one of another day")


def _not_compared(other: object) -> NoReturn:
    raise TypeError(f"an hour is compared with hours, not with {other!r}: take the day of the hour")


def day_of(period: date) -> date:
    """Return the local day of a period, as a plain date."""
    return date(period.year, period.month, period.day) if isinstance(period, Hour) else period


def follows(before: date, after: date) -> bool:
    """Return whether one period comes right after another of its kind, by their names, without a calendar."""
    if isinstance(before, Hour) and isinstance(after, Hour):
        hours = 24 * (after.toordinal() - before.toordinal()) + after.hour - before.hour
        return before < after and hours <= 1
    return after.toordinal() - before.toordinal() == 1


def period_from(text: str) -> date:
    """Return the period with this `isoformat`, "2016-02-14" or "2016-02-14T13"; others raise ValueError."""
    found = _HOUR.fullmatch(text)
    if found is None:
        return date.fromisoformat(text)
    day, hour, again = found.groups()
    if int(hour) > 23:
        raise ValueError("hour must be in 0..23")
    return Hour(date.fromisoformat(day), int(hour), bool(again))


def partition_of(period: date) -> str:
    """Return a period's folder of a hive-partitioned dataset, such as "date=2016-02-14/hour=13"."""
    day = f"date={date.isoformat(period)}"
    return f"{day}/hour={period.clock.removeprefix('T')}" if isinstance(period, Hour) else day


def period_from_partition(folder: str) -> date:
    """Return the period of a folder of `partition_of`; others raise ValueError."""
    found = _PARTITION.fullmatch(folder)
    if found is None:
        raise ValueError(f"not the folder of a period: {folder!r:.80}")
    day, hour = found.groups()
    return period_from(day if hour is None else f"{day}T{hour}")
