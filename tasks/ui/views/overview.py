"""The overview: a row for each stream, what needs a person first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import IntEnum
from math import isfinite
from zoneinfo import ZoneInfo

import polars as pl

from optstream.stream import day_of
from tasks.config import Settings
from tasks.config.schema import clock_of
from tasks.monitor.alarms import AlarmGroup, alarm_groups
from tasks.monitor.days import by_day
from tasks.monitor.view import StreamView
from tasks.reports.drawing.calendar import Mark, counted, marks_of_days
from tasks.reports.drawing.figures import Z
from tasks.reports.numbers import amount
from tasks.ui.snapshot import Snapshot
from tasks.ui.words import span_in_words

STRIP_DAYS = 60


class Need(IntEnum):
    """How much a stream needs a person, the most first."""

    BLIND = 0
    ALARM = 1
    WARNING = 2
    NOTHING = 3


@dataclass(frozen=True)
class Gauge:
    """What the fullest window was charged of what any window may lose. share: in [0, 1]."""

    words: str
    share: float


@dataclass(frozen=True)
class StreamRow:
    """A stream's row. Texts are for people; "" where nothing is known.

    problem: why it cannot be seen now, if so. seen: how long ago it was. newest: the newest day that is
    expected or known. published: the newest published day; None before the first. strip: the last 60 days,
    the newest last, and the same counted. next_run: by the schedule. alarms: by kind, the worst first.
    oldest: for how long the oldest alarm has lasted, as far as the watch knows. budget: None before anything
    is known. band: half the width of the band of the root's newest daily mean, as a share of it, and which it
    is. nights: minutes from reservation to publication, of the days of the strip that were published; in
    words the newest and the longest.
    """

    name: str
    need: Need
    problem: str
    seen: str
    newest: Mark | None = None
    published: date | None = None
    strip: tuple[Mark, ...] = ()
    strip_words: str = ""
    next_run: str = ""
    alarms: tuple[AlarmGroup, ...] = ()
    oldest: str = ""
    budget: Gauge | None = None
    band: str = ""
    nights: tuple[float, ...] = ()
    nights_words: str = ""


def overview(snapshots: Sequence[Snapshot], now: datetime) -> tuple[StreamRow, ...]:
    """Return a row a stream, sorted by what needs a person, then by name; ages are counted to now. Pure."""
    rows = [row_of(snapshot, now) for snapshot in snapshots]
    return tuple(sorted(rows, key=lambda row: (row.need, row.name)))


def row_of(snapshot: Snapshot, now: datetime) -> StreamRow:
    """Return the row of one stream; see `overview`."""
    seen, problem = span_in_words(now - snapshot.at), snapshot.problem or ""
    view, settings = snapshot.view, snapshot.settings
    if view is None or settings is None:
        return StreamRow(snapshot.stream, Need.BLIND, problem, seen)
    groups = alarm_groups(view.alarms, snapshot.since)
    strip = marks_of_days(by_day(view.days)[-STRIP_DAYS:], settings.called)
    known = [group.since for group in groups if group.since is not None]
    nights = _nights(snapshot, strip)
    return StreamRow(
        snapshot.stream,
        Need.BLIND if problem else _need(groups),
        problem,
        seen,
        strip[-1] if strip else None,
        max((day.day for day in view.days if day.listed is not None), default=None),
        strip,
        counted(strip),
        next_run(settings, now),
        groups,
        span_in_words(now - min(known)) if known else "",
        gauge_of(view),
        _band(snapshot),
        nights,
        _nights_words(nights),
    )


def _need(groups: Sequence[AlarmGroup]) -> Need:
    if not groups:
        return Need.NOTHING
    return Need.WARNING if all(group.is_warning for group in groups) else Need.ALARM


def gauge_of(view: StreamView) -> Gauge:
    """Return what the fullest window was charged; full where noise was compromised."""
    budget = view.facts.budget
    share = float(budget.spent / budget.grant) if isfinite(budget.spent) and budget.grant else 1.0
    return Gauge(f"{amount(budget.spent)} of {amount(budget.grant)}", min(max(share, 0.0), 1.0))


def next_run(settings: Settings, now: datetime) -> str:
    """Return when the schedule begins its next night, in the stream's time zone; its cron where it has no
    single clock time; "" for an archive.
    """
    cron = settings.scheduling.cron
    minute = clock_of(cron)
    if settings.watch is None:
        return ""
    if minute is None or not cron.endswith("* * *"):
        return cron
    zone = ZoneInfo(settings.stream.time_zone)
    today = now.astimezone(zone).date()
    clock = time(*divmod(minute, 60))
    begins = (datetime.combine(today + timedelta(days=number), clock, zone) for number in range(2))
    return f"{next(one for one in begins if one > now):%Y-%m-%d %H:%M %Z}"


def _band(snapshot: Snapshot) -> str:
    """Of the newest listed file that the pages know: the total where the mechanism states it."""
    assert snapshot.view is not None
    assert snapshot.settings is not None
    catalogue, figures = snapshot.view.facts.catalogue, snapshot.figures
    if catalogue is None or figures is None:
        return ""
    listed = catalogue.listed
    if not listed:
        return ""
    root = snapshot.settings.tree_of(listed[-1].period).nodes[0]
    of_newest = figures.filter((pl.col("file_hash") == listed[-1].file_hash) & (pl.col("node") == root))
    for mean, *errors in of_newest.select("mean", "model", "noise").iter_rows():
        for kind, error in zip(("total", "noise only"), errors, strict=True):
            if error is not None and isfinite(error) and isfinite(mean) and mean:
                return f"± {100 * Z * error / abs(mean):.2g} % {kind}"
    return ""


def _nights(snapshot: Snapshot, strip: Sequence[Mark]) -> tuple[float, ...]:
    days = {mark.day for mark in strip}
    took = (night.took for day, night in sorted(snapshot.nights.items()) if day_of(day) in days)
    return tuple(one / timedelta(minutes=1) for one in took if one is not None)


def _nights_words(nights: Sequence[float]) -> str:
    if not nights:
        return ""
    newest, most = (span_in_words(timedelta(minutes=one)) for one in (nights[-1], max(nights)))
    return f"{newest}, at most {most}"
