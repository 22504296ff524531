"""The overview's row of a stream, and its page: live, or written out as one file."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import IntEnum
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import polars as pl

from optstream.catalogue import digest_of
from optstream.catalogue.index import day_entries
from optstream.ledger import ReleaseOutline
from optstream.privacy import PrivacyModel
from optstream.stream import day_of
from tasks.config import Settings
from tasks.config.schema import next_fire
from tasks.ledger.show import BudgetSummary
from tasks.monitor.alarms import DEPENDS, AlarmGroup, alarm_groups
from tasks.monitor.days import by_day
from tasks.monitor.facts import MOST_DAYS, MOST_SHOWN, SUSPECT_DAYS
from tasks.pages.calendar import RECENT_DAYS, Mark, calendar, counted_states, marks_of_days
from tasks.pages.render import (
    Chart,
    Z,
    amount,
    chart,
    line,
    page,
    quantity_of,
    seconds,
    span,
    span_in_words,
    unit_of,
)
from tasks.pages.snapshot import Snapshot, length_of
from tasks.trusted.verdicts import folder_of

MOST_ALARMS = 100  # of one kind that are listed
FEW_NODES = 40  # that are listed all at once; of more, the leaves are folded
NO_SERVER = "no Prefect server is named: start `optstream ui` with PREFECT_API_URL to see runs here"


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
    alarms: Sequence[AlarmGroup] = ()
    oldest: str = ""
    budget: tuple[str, float] = ("", 0.0)
    band: str = ""
    nights: str = ""
    curve: Chart | None = None


def overview(snapshots: Sequence[Snapshot], now: datetime) -> tuple[StreamRow, ...]:
    """Return a row a stream, sorted by what needs a person, then by name; ages are counted to now. Pure."""
    return tuple(sorted((_row(one, now) for one in snapshots), key=lambda row: (row.need, row.name)))


def _row(snapshot: Snapshot, now: datetime) -> StreamRow:
    seen, problem = span_in_words(now - snapshot.at), snapshot.problem or ""
    view, settings = snapshot.view, snapshot.settings
    if view is None or settings is None:
        return StreamRow(snapshot.stream, Need.BLIND, problem, seen)
    groups = alarm_groups(view.alarms, snapshot.since)
    need = Need.WARNING if all(group.is_warning for group in groups) else Need.ALARM
    strip = marks_of_days(by_day(view.days)[-RECENT_DAYS:], settings.called)
    known = [group.since for group in groups if group.since is not None]
    took = [length for _, length in _nights(snapshot)]
    budget, zone = view.facts.budget, ZoneInfo(settings.stream.time_zone)
    share = float(budget.spent / budget.grant) if isfinite(budget.spent) and budget.grant else 1.0
    root = _listed_figures(snapshot).filter(pl.col("node") == settings.tree_of(snapshot.at.date()).nodes[0])
    return StreamRow(
        snapshot.stream,
        Need.BLIND if problem else need if groups else Need.NOTHING,
        problem,
        seen,
        strip[-1] if strip else None,
        max((day.day for day in view.days if day.listed is not None), default=None),
        strip,
        counted_states(strip),
        f"{next_fire([settings.scheduling.cron], now.astimezone(zone)):%Y-%m-%d %H:%M %Z}",
        groups,
        span_in_words(now - min(known)) if known else "",
        (f"{amount(budget.spent)} of {amount(budget.grant)}", min(max(share, 0.0), 1.0)),
        _band(root),
        f"{span_in_words(took[-1])}, at most {span_in_words(max(took))}" if took else "",
        _curve(settings, root),
    )


def _nights(snapshot: Snapshot) -> list[tuple[date, timedelta]]:
    """Return the periods of the last 60 days that were published, rising, and how long each took."""
    days = [] if snapshot.view is None else [day_of(one.day) for one in snapshot.view.days]
    first = max(days[-1] - timedelta(days=RECENT_DAYS - 1), days[0]) if days else date.max
    return [
        (day, one.took)
        for day, one in sorted(snapshot.nights.items())
        if day_of(day) >= first and one.took is not None
    ]


def _listed_figures(snapshot: Snapshot) -> pl.DataFrame:
    """Return `figures` of the last 60 days' listed files, with `at`, the day's start, rising."""
    view = snapshot.view
    catalogue, figures = (None, None) if view is None else (view.facts.catalogue, view.facts.figures)
    if catalogue is None or figures is None or not catalogue.listed:
        return pl.DataFrame(schema={"node": pl.String})
    days = day_entries(catalogue.listed)
    oldest = days[-1].period - timedelta(days=RECENT_DAYS - 1)
    at = {one.file_hash: seconds(one.period) for one in days if one.period >= oldest}
    listed = pl.DataFrame({"file_hash": [*at], "at": [*at.values()]})
    return figures.join(listed, on="file_hash").sort("at")


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


def static_page(snapshot: Snapshot) -> bytes:
    """Return the page as one file that fetches nothing, with links to the published folder if it is here."""
    settings, values = snapshot.settings, stream_page(snapshot, snapshot.at, all_days=True)
    assert settings is not None  # it was looked at
    folder, here = settings.published_folder, settings.report_folder
    links = os.path.relpath(folder, here) + "/" if isinstance(folder, Path) else None
    contracts = os.path.relpath(folder_of(settings), here) + "/"
    return page(
        "stream", is_static=True, home=None, links=links, contracts=contracts, now=snapshot.at, **values
    )


def stream_page(snapshot: Snapshot, now: datetime, *, all_days: bool = False) -> dict[str, Any]:
    """Return the template's values; ages are counted to now. all_days: also those before the last 60."""
    view, settings, row = snapshot.view, snapshot.settings, _row(snapshot, now)
    if view is None or settings is None:
        return {"row": row, "facts": None}
    facts, curves = view.facts, snapshot.curves
    guarantees = guarantee_rows(snapshot.guarantees, facts.releases)
    tree = settings.tree_of(settings.local_day(now))
    leaves = frozenset(tree.leaves)
    lost = curves.get("lost", {}) | {str(day): what for day, what in facts.lost.items()}
    return {
        "snapshot": snapshot,
        "facts": facts,
        "row": row,
        "called": settings.called,
        "curves": curves.get("chart"),
        "curves_are_old": curves and facts.catalogue and curves["catalogue"] != digest_of(facts.catalogue),
        "faint": curves.get("faint", ()),
        "lost": dict(sorted(lost.items())),
        "plots": list(_plots(snapshot, settings)),
        "calendar": calendar(marks_of_days(by_day(view.days), settings.called), all_days=all_days),
        "newest": day_of(view.days[-1].day) if view.days else None,
        "runs": [
            (run, length_of(run, now), [
                (step.name, length_of(step, now)) for step in sorted(run.steps, key=lambda one: one.begins)
            ])
            for run in snapshot.runs or ()
        ],
        "runs_problem": snapshot.runs_problem or (NO_SERVER if snapshot.runs is None else ""),
        "windows": window_chart(facts.page, guarantees, settings.stream.time_zone),
        "guarantees": guarantees,
        "compared": facts.surprises,
        "compared_days": MOST_DAYS,
        "unit": unit_of(settings.published.value),
        "has_check": settings.mechanism.kind.has_self_check,
        "replaced": facts.replaced(),
        "suspect_days": SUSPECT_DAYS,
        "most_regions": MOST_SHOWN,
        "depends": DEPENDS,
        "inner": [node for node in tree.nodes if node not in leaves],
        "leaves": tree.leaves,
        "few": FEW_NODES,
        "most": MOST_ALARMS,
    }  # fmt: skip


def _plots(snapshot: Snapshot, settings: Settings) -> Iterator[tuple[str, str, Chart]]:
    errors = _errors_by_level(snapshot, settings)
    if errors is not None:
        yield "Error by level", "of daily means, root mean square over the nodes of a level", errors
    arrived = snapshot.disk.arrived if snapshot.disk else {}
    latest = sorted(arrived.items(), key=lambda one: -one[1][-1][1])[:MOST_SHOWN]
    at = sorted({day for _, own in latest for day, _ in own}, key=str)
    if at:
        lines = [
            line(
                settings.called(part) if part else "all regions",
                [dict(own).get(day) for day in at],
                "several",
            )
            for part, own in latest
        ]
        most = "" if len(arrived) == len(latest) else f", the {MOST_SHOWN} latest of the newest"
        words = f"when the last file of a day's dump was written, in hours after the day's end{most}"
        days = span("days", [seconds(day) for day in at], [lines])
        yield "Arrival by region", words, chart("arrival", "h", [days], few=True)
    nights = _nights(snapshot)
    if nights:
        is_short = max(took for _, took in nights) < timedelta(minutes=2)
        unit, each = ("s", timedelta(seconds=1)) if is_short else ("min", timedelta(minutes=1))
        lines = [line("run time", [took / each for _, took in nights], "bars")]
        days = span("days", [seconds(day) for day, _ in nights], [lines])
        yield "Run time", "from a day's reservation to its publication", chart("run time", unit, [days])


def _errors_by_level(snapshot: Snapshot, settings: Settings) -> Chart | None:
    figures = _listed_figures(snapshot)
    if not figures.height:
        return None
    kind = "model" if figures["model"].count() else "noise"
    tree = settings.tree_of(snapshot.at.date())
    levels = pl.DataFrame({"node": tree.nodes, "level": [int(depth) for depth in tree.depths]})
    errors = (
        figures.join(levels, on="node")
        .group_by("at", "level")
        .agg((pl.col(kind) ** 2).mean().sqrt())
        .pivot("level", index="at", values=kind)
        .sort("at")
    )
    lines = [
        line(tree.level_name(level), errors[str(level)].to_list(), "several")
        for level in range(len(tree.levels))
        if str(level) in errors.columns and errors[str(level)].count()
    ]
    words = "total error" if kind == "model" else "error of the noise alone"
    unit = unit_of(settings.published.value)
    return chart(words, unit, [span("days", errors["at"].to_list(), [lines])]) if lines else None


class GuaranteeRow(NamedTuple):
    """A guarantee and its days; `steps` of windows that touch them, None if counted otherwise."""

    number: int
    model: PrivacyModel
    days: str
    steps: range | None


def guarantee_rows(
    guarantees: Mapping[int, PrivacyModel], releases: Mapping[date, ReleaseOutline]
) -> list[GuaranteeRow]:
    """Return a row for each guarantee that covers some day, and for the current one, newest first."""
    newest, found = max(guarantees, default=0), []
    for number, model in sorted(guarantees.items(), reverse=True):
        own = {day: one for day, one in releases.items() if one.amendment == number}
        if not own and number != newest:
            continue
        steps = None
        if own and number != newest and _counted_by(model) == _counted_by(guarantees[newest]):
            first, end = min(one.first_step for one in own.values()), max(one.end for one in own.values())
            steps = range(first - model.window_length + 1, end)
        days = f"{min(own)} to {max(own)}" if own else ""
        found.append(GuaranteeRow(number, model, days, steps))
    return found


def _counted_by(model: PrivacyModel) -> tuple[object, ...]:
    return model.window_length, model.alpha, model.unit, model.leaves_per_step


def window_chart(
    summary: BudgetSummary | None, guarantees: Sequence[GuaranteeRow], zone: str
) -> Chart | None:
    """Return each window's charge under its limit; None before the first release or without times."""
    if summary is None or not summary.windows:
        return None
    grant, windows = summary.terms.model.budget, [*summary.windows, summary.windows[-1]]
    begins = [one.begin_first for one in summary.windows] + [windows[-1].begin_last]
    at = [int(one.timestamp()) for one in begins if one is not None]
    if len(at) < len(begins):
        return None
    # at most twice the limit: infinite where noise was compromised
    charged = [min(float(grant - one.left), 2 * float(grant)) for one in windows]
    lines = [
        line("charged", charged, "stairs"),
        line("may be charged", [float(grant)] * len(at), "limit"),
    ]
    for one in guarantees:
        if one.steps is not None:  # windows with days of an earlier guarantee keep it
            limit = float(one.model.budget)
            kept = [limit if window.first_step in one.steps else None for window in windows]
            lines.append(line(f"may be charged by guarantee {one.number}", kept, "limit"))
    return chart(summary.terms.model.currency, "", [span("windows", at, [lines])], zone=zone, least=0.0)
