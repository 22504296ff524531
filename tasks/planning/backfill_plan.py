"""Which days of a span are missing: from the ledger's outline and the names of the dumps' folders."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from optstream.ledger import Ledger, ReleaseOutline
from optstream.stream import period_from
from tasks.config import Settings
from tasks.ingest import days_with_dumps


@dataclass(frozen=True)
class BackfillPlan:
    """The days of a span, each in one of these; all rising.

    missing: never reserved, and a dump lies there. begun: reserved or drawn by an earlier run. absent: never
    reserved, and no region has a dump of it. over: what is done with, as the ledger calls it, and how often.
    """

    first: date
    last: date
    missing: tuple[date, ...]
    begun: tuple[date, ...]
    absent: tuple[date, ...]
    over: Mapping[str, int]

    @property
    def to_run(self) -> tuple[date, ...]:
        """What a run would take up."""
        return tuple(sorted((*self.missing, *self.begun)))

    def months(self) -> list[tuple[date, ...]]:
        """The days to run, month by month: each is one subflow."""
        return [tuple(days) for _, days in groupby(self.to_run, key=lambda day: (day.year, day.month))]


def plan_backfill(settings: Settings, ledger: Ledger, days: Sequence[date]) -> BackfillPlan:
    """Sort the days by what is known of them. Opens no dump, changes nothing. days: rising, at least one."""
    known = _newest(settings, ledger, days)
    there = days_with_dumps(settings)
    unknown = [day for day in days if day not in known]
    over = Counter(
        "withdrawn" if one.withdrawn else one.state.lower()
        for one in known.values()
        if not one.state.is_under_way
    )
    return BackfillPlan(
        first=days[0],
        last=days[-1],
        missing=tuple(day for day in unknown if day in there),
        begun=tuple(day for day in days if day in known and known[day].state.is_under_way),
        absent=tuple(day for day in unknown if day not in there),
        over=dict(sorted(over.items())),
    )


def _newest(settings: Settings, ledger: Ledger, days: Sequence[date]) -> dict[date, ReleaseOutline]:
    """The newest revision of each day that the ledger knows."""
    calendar, wanted = settings.calendar, set(days)
    steps = range(calendar.first_step(days[0]), calendar.first_step(days[-1]) + calendar.n_steps(days[-1]))
    # an outline begins at its first spend, and in the ledger's order a later revision comes after
    found = {period_from(one.period): one for one in ledger.outlines(settings.stream.name, steps)}
    return {day: one for day, one in found.items() if day in wanted}
