"""What `optstream ledger show` tells: plain values, in dates where the calendar is known."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Literal

from optstream.errors import ParameterError
from optstream.ledger import GuaranteeLoss, ReleaseState, StreamTerms
from optstream.ledger.accounting.by_stream import SharedWindow
from optstream.stream import Calendar

_CALENDAR = re.compile(r"([0-9]+) min, (.+?), (elapsed|fixed)(, by the hour)?")


@dataclass(frozen=True)
class ChargedRelease:
    """A release and the most that it alone takes from any window, in the privacy budget's currency."""

    period: str
    revision: int
    state: ReleaseState
    epsilon: Fraction


@dataclass(frozen=True)
class StreamPage:
    """A stream's terms, how many releases it has in each state, and those of the days that are shown."""

    terms: StreamTerms
    counts: Mapping[ReleaseState, int]
    releases: tuple[ChargedRelease, ...]


@dataclass(frozen=True)
class DayHeadroom:
    """A day: the least that any window with one of its steps has left.

    left: minus infinity where noise was compromised.
    may: whether the configured stream may be released on it, with what would stop it; None where it has a
    release already, or where the stream is not of this budget.
    """

    day: date
    left: Fraction | float
    may: bool | None = None
    because: str = ""


@dataclass(frozen=True)
class WindowHeadroom:
    """The windows that begin at first_step to last_step have this left, as `DayHeadroom` says it.

    Times: None without a calendar.
    """

    first_step: int
    last_step: int
    begin_first: datetime | None
    begin_last: datetime | None
    left: Fraction | float


@dataclass(frozen=True)
class BudgetSummary:
    """A privacy budget: its streams, days and windows.

    model: of any of its streams, for they agree. free_from, free_from_time: every window that begins there
    or later has the whole privacy budget; None if nothing was ever charged, or without a calendar. shared:
    what each stream is charged in the fullest window with a step of these days; None without any step.
    """

    name: str
    terms: StreamTerms
    calendar: Calendar | None
    streams: tuple[StreamPage, ...]
    days: tuple[DayHeadroom, ...]
    windows: tuple[WindowHeadroom, ...]
    free_from: int | None
    free_from_time: datetime | None
    shared: SharedWindow | None = None

    @property
    def shared_words(self) -> str:
        """What each stream is charged in the fullest window; "" for a budget of one stream."""
        if self.shared is None or len(self.shared.by_stream) < 2:
            return ""
        start = self.shared.first_step
        begin = (
            f"step {start}" if self.calendar is None else f"{self.calendar.local_time(start):%Y-%m-%d %H:%M}"
        )
        parts = ", ".join(f"{name} {_amount(lost)}" for name, lost in self.shared.by_stream)
        return (
            f"{parts}; together {self.terms.model.currency} {_amount(self.shared.total)} of "
            f"{_amount(self.terms.model.budget)}, in the "
            f"fullest window of these days, which begins at {begin}"
        )


def _amount(epsilon: Fraction | float) -> str:
    return f"{float(epsilon):.6g}"


def in_words(one: GuaranteeLoss) -> str:
    """What a plan would do to a privacy guarantee that it breaks."""
    lost = f"some window would lose {one.guarantee.currency} {float(one.loss.epsilon):.6g}"
    if one.free_from is None:
        return lost
    gives = float(one.guarantee.budget)
    return f"{lost} by privacy guarantee {one.number}, which gives {gives:.6g} and holds for days in it"


def calendar_of(terms: StreamTerms) -> Calendar | None:
    """The calendar that `tasks.release.run.terms_of` wrote into a stream's terms; None if others did."""
    found = _CALENDAR.fullmatch(terms.calendar)
    if found is None:
        return None
    try:
        kind: Literal["elapsed", "fixed"] = "fixed" if found[3] == "fixed" else "elapsed"
        return Calendar(int(found[1]), found[2], kind, "hour" if found[4] else "day")
    except ParameterError:
        return None
