"""The overview: a row for each stream, what needs a person first, and its published series."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import IntEnum
from math import isfinite
from zoneinfo import ZoneInfo

import polars as pl

from optstream.catalogue.index import day_entries
from optstream.stream import day_of
from tasks.config import Settings
from tasks.config.schema import clock_of
from tasks.monitor.alarms import AlarmGroup, alarm_groups
from tasks.monitor.days import by_day
from tasks.pages.calendar import RECENT_DAYS, Mark, counted_states, marks_of_days
from tasks.pages.charts import Chart, Z, chart, line, seconds, span
from tasks.pages.render import amount, quantity_of, span_in_words, unit_of
from tasks.pages.snapshot import Snapshot


class Need(IntEnum):
    """How much a stream needs a person, the most first."""

    BLIND = 0
    ALARM = 1
    WARNING = 2
    NOTHING = 3


@dataclass(frozen=True)
class StreamRow:
    """A stream's row; texts are for people, and `budget` is the fullest window's charge and share."""

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
    budget: tuple[str, float] = ("", 0.0)
    band: str = ""
    nights: str = ""
    curve: Chart | None = None


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
    need = Need.WARNING if all(group.is_warning for group in groups) else Need.ALARM
    strip = marks_of_days(by_day(view.days)[-RECENT_DAYS:], settings.called)
    known = [group.since for group in groups if group.since is not None]
    took = [length for _, length in nights_of(snapshot)]
    budget = view.facts.budget
    share = float(budget.spent / budget.grant) if isfinite(budget.spent) and budget.grant else 1.0
    root = root_of(snapshot)
    return StreamRow(
        snapshot.stream,
        Need.BLIND if problem else need if groups else Need.NOTHING,
        problem,
        seen,
        strip[-1] if strip else None,
        max((day.day for day in view.days if day.listed is not None), default=None),
        strip,
        counted_states(strip),
        next_run(settings, now),
        groups,
        span_in_words(now - min(known)) if known else "",
        (f"{amount(budget.spent)} of {amount(budget.grant)}", min(max(share, 0.0), 1.0)),
        _band(root),
        f"{span_in_words(took[-1])}, at most {span_in_words(max(took))}" if took else "",
        _curve(settings, root),
    )


def nights_of(snapshot: Snapshot) -> list[tuple[date, timedelta]]:
    """Return the periods of the last 60 days that were published, rising, and how long each took."""
    days = [] if snapshot.view is None else [day_of(one.day) for one in snapshot.view.days]
    first = max(days[-1] - timedelta(days=RECENT_DAYS - 1), days[0]) if days else date.max
    return [
        (day, one.took)
        for day, one in sorted(snapshot.nights.items())
        if day_of(day) >= first and one.took is not None
    ]


def next_run(settings: Settings, now: datetime) -> str:
    """Return the schedule's next night; its cron where it has no single clock time; "" for an archive."""
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


def listed_figures(snapshot: Snapshot) -> pl.DataFrame:
    """Return `figures` of the last 60 days' listed files, with `at`, the day's start, rising. Pure."""
    view, figures = snapshot.view, snapshot.figures
    catalogue = None if view is None else view.facts.catalogue
    if catalogue is None or figures is None or not catalogue.listed:
        return pl.DataFrame()
    days = day_entries(catalogue.listed)
    oldest = days[-1].period - timedelta(days=RECENT_DAYS - 1)
    listed = [one for one in days if one.period >= oldest]
    at = pl.DataFrame(
        {"file_hash": [one.file_hash for one in listed], "at": [seconds(one.period) for one in listed]}
    )
    return figures.join(at, on="file_hash").sort("at")


def root_of(snapshot: Snapshot) -> pl.DataFrame:
    """Return `listed_figures` of the root."""
    figures, settings = listed_figures(snapshot), snapshot.settings
    if not figures.height or settings is None:
        return figures
    return figures.filter(pl.col("node") == settings.tree_of(snapshot.at.date()).nodes[0])


def _band(root: pl.DataFrame) -> str:
    """Of the newest listed day: the total where the mechanism states it."""
    for mean, *errors in root.tail(1).select("mean", "model", "noise").iter_rows() if root.height else ():
        for kind, error in zip(("total", "noise only"), errors, strict=True):
            if error is not None and isfinite(error) and isfinite(mean) and mean:
                return f"± {100 * Z * error / abs(mean):.2g} % {kind}"
    return ""


def _curve(settings: Settings, root: pl.DataFrame) -> Chart | None:
    if not root.height:
        return None
    at, mean, error = (root[name].to_list() for name in ("at", "mean", "model"))
    name, value = settings.called(root["node"][0]), settings.published.value
    means = span("daily means of the last 60 days", at, [[line(name, mean, error=error)]])
    least = 0.0 if settings.counts_known else None
    return chart(quantity_of(value), unit_of(value), [means], nodes=[name], least=least)
