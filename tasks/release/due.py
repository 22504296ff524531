"""Which published days are due a new estimate, by what is measured of them and of the days after.

What is smoothed: a day's measurements and those of the days after it. An amendment, a change of the
hierarchy that is more than new codes, a restatement, a withdrawal, compromised noise, or a day that is drawn
and not published yet stops it there; a day that was
never drawn is passed over.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import takewhile

from optstream.errors import LedgerError
from optstream.ledger import ReleaseOutline, ReleaseRecord, ReleaseState
from optstream.stream import day_of, period_from
from tasks.release.run import Run
from tasks.release.stages import Stage

AFTER_ALL = 2**62
"""A step after all others."""
MARGIN = timedelta(days=31)
"""How far before the newest draw the newest published day may lie: held, void or failed days between."""

LONGEST = timedelta(days=366)
"""For so long at most a day gets new estimates: the most that `release.revise_days` may be."""

Days = Mapping[date, Sequence[ReleaseOutline]]
"""The releases of each day, by revision; days rising."""


@dataclass(frozen=True)
class Due(Stage):
    """A published day that is due a new estimate.

    later: the days after it that the estimate is made of, each with the hash of its measurements; none where
    it is the first estimate again. basis: what identifies these and the day's own.
    """

    basis: str
    later: tuple[tuple[date, str], ...]

    @property
    def last(self) -> date:
        """The last day that the estimate is made of."""
        return self.later[-1][0] if self.later else self.day


def due(run: Run, asked: Iterable[date] = ()) -> list[Due]:
    """The days whose newest vintage was made of fewer measurements of the `release.revise_days` after them
    than there are by now, rising: near the newest day, and near those that this run was asked for.
    """
    n_days, calendar = run.settings.revise_days, run.settings.calendar
    newest = run.ledger.drawn_before(run.stream, AFTER_ALL) if n_days else None
    if newest is None:
        return []
    reach, last = timedelta(days=n_days), day_of(period_from(newest.period))
    looked_at = {day_of(day) - timedelta(days=ago) for day in asked for ago in range(n_days + 1)}
    first = min({last - reach - MARGIN, *looked_at})
    steps = range(calendar.steps_over(first, first).start, newest.first_step + 1)
    return list(_due(run, steps, looked_at, reach))


def _days_at(run: Run, steps: range) -> Days:
    """The days that begin at one of these steps and have a release."""
    days: dict[date, list[ReleaseOutline]] = {}
    for one in run.ledger.outlines(run.stream, steps):
        days.setdefault(period_from(one.period), []).append(one)
    return days


def _due(run: Run, steps: range, looked_at: Collection[date], reach: timedelta) -> Iterator[Due]:
    days, known = _days_at(run, steps), run.ledger.vintages(run.stream, steps=steps)
    guarantee = run.ledger.guarantee_number(run.stream)
    published = [day for day, found in days.items() if _is_as_published(found, guarantee)]
    for day in published:
        if not (day_of(day) in looked_at or day_of(day) >= day_of(published[-1]) - reach):
            continue
        later = tuple(_smoothed(run, days, day, guarantee, day_of(day) + reach))
        vintages = known.get((day.isoformat(), 0), ())
        # where all that a vintage was made of was taken back, the first estimate takes its place
        if not later and not any(one.published for one in vintages):
            continue
        basis = _basis(day, days[day][-1].measurements_hash, later)
        if not vintages or (vintages[-1].basis, vintages[-1].published) != (basis, True):
            yield Due(day, 0, basis, later)


def _basis(day: date, digest: str | None, later: Sequence[tuple[date, str]]) -> str:
    """What identifies the measurements that an estimate is made of: the day's own, and those after it."""
    told = json.dumps([[str(one), known] for one, known in ((day, digest or ""), *later)])
    return hashlib.sha256(told.encode()).hexdigest()


def _smoothed(
    run: Run, days: Days, day: date, guarantee: int, until: date = date.max
) -> Iterator[tuple[date, str]]:
    """The days after this one, with the hashes of their measurements, up to the first that stops it."""
    hierarchy = run.settings.dated_hierarchy
    never_drawn = (ReleaseState.RESERVED, ReleaseState.VOID)
    after = ((one, found) for one, found in days.items() if one > day and day_of(one) <= until)
    drawn = ((one, found) for one, found in after if len(found) > 1 or found[0].state not in never_drawn)
    for one, found in takewhile(lambda entry: _is_as_published(entry[1], guarantee), drawn):
        if hierarchy.changes_between(day, one) and not hierarchy.map_between(day, one).is_renaming:
            return
        yield one, found[0].measurements_hash or ""


def _is_as_published(found: Sequence[ReleaseOutline], guarantee: int) -> bool:
    """Whether a day was released once, under this guarantee, and readers have it as it was."""
    (first, *again) = found
    clean = not again and first.withdrawn is None and first.compromised is None
    return clean and first.state is ReleaseState.PUBLISHED and first.amendment == guarantee


def check_later(run: Run, due: Due) -> None:
    """Raise LedgerError unless all days that the new estimate is made of are published as they were."""
    first_step = run.settings.calendar.first_step
    steps = range(first_step(due.day), first_step(due.last) + 1)
    now = set(_smoothed(run, _days_at(run, steps), due.day, run.ledger.guarantee_number(run.stream)))
    gone = [day for day, digest in due.later if (day, digest) not in now]
    if gone:
        raise LedgerError(
            f"{gone[0]} was taken back or restated, or its noise became known: the new estimate of "
            f"{due.day} that rests on it is not shown; the next run estimates it anew"
        )


def due_once(run: Run, record: ReleaseRecord, basis: str) -> Due:
    """The day as due for this basis; raises LedgerError if what it was made of was taken back or restated."""
    day, calendar = period_from(record.period), run.settings.calendar
    reach = calendar.steps_over(day_of(day), day_of(day) + LONGEST + MARGIN)
    days = _days_at(run, range(calendar.first_step(day), reach.stop))
    after = tuple(_smoothed(run, days, day, run.ledger.guarantee_number(run.stream)))
    for length in range(len(after) + 1):
        if _basis(day, record.measurements_hash, after[:length]) == basis:
            return Due(day, record.revision, basis, after[:length])
    raise LedgerError(f"a day that the new estimate of {day} was made of was taken back or restated since")
