"""What a run that was stopped leaves: the days that it holds, until when, and those that it never began."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from optstream.ledger import Ledger, ReleaseState
from tasks.config import Settings
from tasks.planning.backfill_plan import plan_backfill

MOST_LISTED = 10


@dataclass(frozen=True)
class UnderWay:
    """A day that is reserved or drawn. until: the end of its lease (UTC); None where it is free already."""

    day: date
    state: ReleaseState
    until: datetime | None


@dataclass(frozen=True)
class LeftBehind:
    """Of the days that were asked for. missing: those that nobody began, though a dump lies there."""

    n_asked: int
    under_way: tuple[UnderWay, ...]
    missing: tuple[date, ...]


def left_behind(settings: Settings, ledger: Ledger, days: Sequence[date], now: datetime) -> LeftBehind:
    """Return what is left of days whose run was stopped: those under way, with the ends of their leases, and
    those that were never begun. Changes nothing. days: that were asked for, rising, at least one.
    """
    plan, now = plan_backfill(settings, ledger, days), ledger.lease_time(now)
    under_way = []
    for day in plan.begun:
        record = ledger.latest(settings.stream.name, day.isoformat())
        if record is not None and record.state.is_under_way:
            until = record.lease_until if record.lease_until > now else None
            under_way.append(UnderWay(day, record.state, until))
    return LeftBehind(len(days), tuple(under_way), plan.missing)


def words_of(left: LeftBehind, again: str) -> list[str]:
    """Return what an operator is told who stopped a run, in lines; again: the command that goes on."""
    if not left.under_way and not left.missing:
        return ["interrupted: every day that was asked for is done with, or has no dump; nothing is left"]
    lines = [
        f"interrupted: of {left.n_asked} days {len(left.under_way)} are under way and {len(left.missing)} "
        "were not begun; nothing is lost, and nothing is drawn twice"
    ]
    for one in left.under_way[:MOST_LISTED]:
        held = f"held by the stopped run until {one.until:%Y-%m-%d %H:%M:%S} UTC" if one.until else "free"
        lines.append(f"  {one.day} {one.state}: {held}")
    if len(left.under_way) > MOST_LISTED:
        lines.append(f"  and {len(left.under_way) - MOST_LISTED} more")
    until = max((one.until for one in left.under_way if one.until), default=None)
    if until is None:
        return [*lines, f"go on at any time with `{again}`"]
    held_day = next(one.day for one in left.under_way if one.until)
    return [
        *lines,
        f"go on after {until:%H:%M:%S} UTC with `{again}`, which before that leaves held days alone; once "
        "that run is gone for certain, "
        f"`optstream ledger release-lease {held_day} --why …` frees a day at once",
    ]
