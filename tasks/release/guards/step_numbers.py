"""Refuse a day beside days whose steps have other numbers by the time zone data of today.

Steps are counted in elapsed time, so which numbers a day has depends on every change of the clock before it,
as far as the machine's time zone data know. Where they learn of one after days were released, or another
machine's data differ, the same step has two numbers: windows over both would be added up over steps that are
not theirs, and equally spaced measurements, or blocks, would lie closer together than they are priced for.
"""

from datetime import timedelta

from optstream.errors import LedgerError, ParameterError
from optstream.ledger import Ledger
from optstream.stream import Calendar, day_of, period_from
from tasks.config import Settings
from tasks.release.day import Stage

MARGIN = timedelta(days=2)
"""Beyond a window: a day for a period that began before it, one for how far numbers may be moved."""


def refuse_renumbered(settings: Settings, ledger: Ledger, asked: Stage) -> None:
    """Raise LedgerError if the ledger has a period of any stream of the privacy budget, in the windows of the
    day that is asked for, at other steps than the calendar says now.

    Reads the history that these windows see. What is asked for itself may be planned anew.
    """
    calendar, stream = settings.calendar, settings.stream.name
    first, end = calendar.first_step(asked.day), calendar.first_step(asked.day) + calendar.n_steps(asked.day)
    longest = max((one.window_length for one in ledger.guarantees(stream).values()), default=0)
    reach = longest + MARGIN.days * calendar.slots
    for name in (stream, *(terms.stream for terms in ledger.siblings(stream))):
        for one in tuple(ledger.outlines(name, range(first - reach, end + reach))):
            is_asked = (name, one.period, one.revision) == (stream, asked.day.isoformat(), asked.revision)
            if not is_asked and _steps_of(calendar, one.period) != range(one.first_step, one.end):
                raise LedgerError(
                    f"the ledger has {one.period} of stream {name!r} at steps {one.first_step} to "
                    f"{one.end - 1}, and by this machine's time zone data of {calendar.time_zone} it has "
                    "others: the data changed since it was released, or differ between machines. Windows "
                    "over both would be added up wrongly, so nothing was reserved. Give all machines the "
                    "newest data (tzdata); where that is so already, days are released again that begin a "
                    f"window and {MARGIN.days} days after {day_of(period_from(one.period))}"
                )


def _steps_of(calendar: Calendar, period: str) -> range | None:
    """The steps that a period has by the calendar; None where it has no such period any more."""
    try:
        named = period_from(period)
        first = calendar.first_step(named)
        return range(first, first + calendar.n_steps(named))
    except (ParameterError, ValueError):
        return None
