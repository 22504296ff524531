"""Steps by the clock of a column of timestamps, and the first day to come that a change of it will refuse."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from optstream.errors import ParameterError
from optstream.stream import Calendar, day_of, days_from, period_from
from tasks.config import Settings
from tasks.config.fields import SINCE_EPOCH
from tasks.trusted.verdicts import RAW, newest_results

if TYPE_CHECKING:
    from optstream.ledger import Ledger  # which the process that reads dumps does without

EPOCH = datetime(1970, 1, 1)
ONE, TWO_YEARS = timedelta(days=1), timedelta(days=731)
NEEDED = {
    "elapsed": "deliver days on which the clock changes with a time zone or in UTC, which others need not "
    '(of metered text with input.stamps_zone = "UTC", too); '
    'or before the first release set [stream] day = "fixed", which takes every day by its wall clock',
    "fixed": "deliver days on which the clock changes by the wall clock, without a time zone, which others "
    'need not; or before the first release set [stream] day = "elapsed", of the steps that pass',
    "ends": "deliver days on which the clock changes by the starts of steps, which others need not, and say "
    'so in [[input.changes]] with stamps = "start"; or before the first release set [stream] '
    'day = "elapsed" and deliver instants',
}
"""By `stream.day`, how timestamps of the other kind are put right; and ends of steps by the wall clock."""


@lru_cache(maxsize=1024)
def start_of(calendar: Calendar, period: date, *, zoned: bool) -> int | None:
    """Seconds from the epoch to the first step, on the column's clock; None if its steps are uneven."""
    times = calendar.utc_times(period) if zoned else calendar.local_times(period)
    length = timedelta(minutes=calendar.step_minutes)
    bare = [None if stamp is None else stamp.replace(tzinfo=None) for stamp in times]
    first = bare[0]
    if first is None or any(stamp != first + number * length for number, stamp in enumerate(bare)):
        return None
    return int((first - EPOCH).total_seconds())


@lru_cache(maxsize=1024)
def shifted_slots(calendar: Calendar, period: date) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the "fixed" slots that the clock skips on a day, and those that it shows twice: public facts."""
    times, zone = calendar.local_times(period), ZoneInfo(calendar.time_zone)
    offsets = [{one.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)} for one in times]
    moved = [slot for slot, found in enumerate(offsets) if len(found) > 1]
    there = calendar.utc_times(period) if moved else ()
    return tuple(one for one in moved if there[one] is None), tuple(one for one in moved if there[one])


def hides_ends(calendar: Calendar, period: date) -> bool:
    """Whether the wall clock at its end does not say which "fixed" slot of a day is meant: a public fact."""
    day = day_of(period)
    return any(shifted_slots(calendar, day)) or any(0 in own for own in shifted_slots(calendar, day + ONE))


def turn_of(calendar: Calendar, period: date, *, is_partial: bool) -> tuple[int, ...]:
    """Return the slots of what a day's clock shows when it is set, and would show; () where none begin.

    is_partial: whether the file may have the row that ends as a day begins, which is of the day before.
    """
    (skipped, doubled), day = shifted_slots(calendar, period), day_of(period)
    tomorrow, n_slots = shifted_slots(calendar, day + ONE)[0], 1440 // calendar.step_minutes
    if not (skipped or doubled) and 0 in tomorrow:
        return n_slots + len(tomorrow), n_slots
    if 0 in skipped:
        return (len(skipped), 0) if is_partial else ()
    slots, moved = skipped or doubled, 60 * calendar.step_minutes * len(skipped or doubled)
    passes = calendar.ends_at(day).timestamp() - calendar.begins_at(day).timestamp()
    if not slots or not slots[0] or abs(passes - ONE.total_seconds()) != moved:
        return ()
    first, after = slots[0], slots[-1] + 1
    return (after, first) if skipped else (first, after)


def unsure_ends(settings: Settings, period: date) -> bool:
    """Whether rows by the wall clock at their ends may be absent: none decides which hours others mean."""
    layout = settings.input_of(period)
    are_instants = layout.stamps_zone is not None or layout.stamps_format == SINCE_EPOCH
    by_wall = settings.calendar.day == "fixed" and not are_instants
    return by_wall and layout.stamps == "end" and (settings.metered or layout.missing_rows == "zero")


def foresee(
    calendar: Calendar, since: date, fits: bool, released: Iterable[date] = (), *, ends: bool = False
) -> str | None:
    """Return the first day of two years that will be refused for its clock or ends, why, and a remedy."""
    first = day_of(since)
    before = (one for one in released if first - TWO_YEARS < day_of(one) < first)
    fits = fits and not ends
    if not fits and any(start_of(calendar, one, zoned=calendar.day == "fixed") is None for one in before):
        return None
    return _foreseen(calendar, first, fits, ends)


@lru_cache(maxsize=64)
def _foreseen(calendar: Calendar, first: date, fits: bool, ends: bool) -> str | None:
    def is_uneven(period: date) -> bool:
        if ends:
            return hides_ends(calendar, period)
        return start_of(calendar, period, zoned=calendar.day == "fixed") is None

    for day in days_from(first, first + TWO_YEARS):
        try:
            calendar.first_step(day)
            if calendar.begins_at(day).utcoffset() == calendar.begins_at(day + ONE).utcoffset():
                continue
            periods = calendar.periods_of(day)
            if all(map(calendar.n_steps, periods)) and (fits or not any(map(is_uneven, periods))):
                continue
        except ParameterError as error:
            return f"{day} will be refused: {error}"
        has = "no time zone" if calendar.day == "elapsed" else "a time zone"
        has, needed = ("only the ends of steps", "ends") if ends else (has, calendar.day)
        return (
            f"{day} will be refused if it is delivered as the days before: the clock of {calendar.time_zone} "
            f"changes, and timestamps have {has}: {NEEDED[needed]}"
        )
    return None


def clock_ahead(settings: Settings, ledger: "Ledger", newest: date) -> str | None:
    """Return what `foresee` says after a period that was released, by its newest validation result."""
    calendar, fits = settings.calendar, True
    for day, suite, document in newest_results(settings, {newest}):
        with suppress(KeyError, TypeError):
            fits &= suite != RAW or day.isoformat() not in document["meta"]["unfit_clock"]
    steps = calendar.steps_over(day_of(newest) - TWO_YEARS, day_of(newest))
    released = (period_from(one.period) for one in ledger.outlines(settings.stream.name, steps))
    return foresee(calendar, newest, fits, released, ends=unsure_ends(settings, newest))
