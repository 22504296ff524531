"""Days whose steps have other numbers by the time zone data of today: refused before, told after.

Steps are counted in elapsed time, so which numbers a day has depends on every change of the clock before it,
as far as the machine's time zone data know. Where they learn of one after days were released, or another
machine's data differ, the same step has two numbers: windows over both would be added up over steps that are
not theirs, and equally spaced measurements, or blocks, would lie closer together than they are priced for.
"""

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

from optstream.errors import LedgerError, ParameterError
from optstream.ledger import Ledger, ReleaseOutline
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
    reach = _reach(settings, ledger)
    for name in _of_budget(ledger, stream):
        for one in tuple(ledger.outlines(name, range(first - reach, end + reach))):
            is_asked = (name, one.period, one.revision) == (stream, asked.day.isoformat(), asked.revision)
            if not is_asked and _moved_by(calendar, one) != (0, 0):
                raise LedgerError(
                    f"the ledger has {one.period} of stream {name!r} at steps {one.first_step} to "
                    f"{one.end - 1}, and by this machine's time zone data of {calendar.time_zone} it has "
                    "others: the data changed since it was released, or differ between machines. Windows "
                    "over both would be added up wrongly, so nothing was reserved. Give all machines the "
                    "newest data (tzdata); where that is so already, days are released again that begin a "
                    f"window and {MARGIN.days} days after {day_of(period_from(one.period))}"
                )


def told_of_renumbered(settings: Settings, ledger: Ledger) -> Iterator[str]:
    """Yield a line for each two neighbours of the releases of the privacy budget, within a window of each
    other, whose distance in steps is not what the calendar says now.
    """
    calendar, stream, reach = settings.calendar, settings.stream.name, _reach(settings, ledger)
    names = _of_budget(ledger, stream)
    known = ((one, name, _moved_by(calendar, one)) for name in names for one in ledger.outlines(name))
    in_order = sorted(known, key=lambda release: (release[0].first_step, release[0].end))
    for (one, name, moved), (after, other, moved_after) in pairwise(in_order):
        if after.first_step - one.end <= reach and moved != moved_after:
            yield (
                f"the ledger has {one.period} of stream {name!r} at steps {one.first_step} to {one.end - 1} "
                f"and {after.period} of stream {other!r} at {after.first_step} to {after.end - 1}; by this "
                f"machine's time zone data of {calendar.time_zone} they lie otherwise, so windows over both "
                "were added up wrongly and may have cost more than the ledger says. Look again with the "
                "newest data (tzdata); what stays was released under other data, and cannot be taken back"
            )


def _of_budget(ledger: Ledger, stream: str) -> tuple[str, ...]:
    """The streams of a stream's privacy budget, its own first."""
    return (stream, *(terms.stream for terms in ledger.siblings(stream)))


def _reach(settings: Settings, ledger: Ledger) -> int:
    """The steps of the longest window that any guarantee of the stream had, and MARGIN."""
    longest = max((one.window_length for one in ledger.guarantees(settings.stream.name).values()), default=0)
    return longest + MARGIN.days * settings.calendar.slots


def _moved_by(calendar: Calendar, release: ReleaseOutline) -> tuple[int, int] | None:
    """By how many steps the ledger has a release's begin and end away from the calendar's; None where the
    calendar has no such period any more.
    """
    try:
        named = period_from(release.period)
        first = calendar.first_step(named)
        return release.first_step - first, release.end - first - calendar.n_steps(named)
    except (ParameterError, ValueError):
        return None
