"""The operators' page of a stream: live, or written out as one file. Curves, alarms, calendar, budget."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from optstream.catalogue import digest_of
from optstream.ledger import ReleaseOutline
from optstream.privacy import PrivacyModel
from optstream.stream import day_of
from tasks.ledger.show import BudgetSummary
from tasks.monitor.alarms import DEPENDS
from tasks.monitor.days import by_day
from tasks.monitor.facts import MOST_DAYS, MOST_SHOWN, SUSPECT_DAYS, newest_day, replaced
from tasks.pages.calendar import calendar, marks_of_days
from tasks.pages.charts import Chart, chart, line, seconds, span
from tasks.pages.overview import listed_figures, nights_of, row_of
from tasks.pages.render import amount, decimal, page, size_in_words, span_in_words, unit_of
from tasks.pages.snapshot import Snapshot, length_of
from tasks.trusted.verdicts import folder_of

MOST_ALARMS = 100
"""Of one kind that are listed."""
MOST_REGIONS = 12
"""In a table or a plot."""
FEW_NODES = 40
"""That are listed all at once; of more, the leaves are folded."""
NO_SERVER = "no Prefect server is named: start `optstream ui` with PREFECT_API_URL to see runs here"


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
    view, settings = snapshot.view, snapshot.settings
    called = str if settings is None else settings.called
    marks = () if view is None else marks_of_days(by_day(view.days), called)
    guarantees = guarantee_rows(snapshot.guarantees, {} if view is None else view.facts.releases)
    catalogue = None if view is None else view.facts.catalogue
    tree = None if settings is None else settings.tree_of(settings.local_day(now))
    nodes, leaves = ((), ()) if tree is None else (tree.nodes, tree.leaves)
    compared = snapshot.surprises if view and settings else None
    curves = snapshot.curves
    lost = {} if view is None else {str(day): what for day, what in view.facts.lost.items()}
    return {
        "snapshot": snapshot,
        "facts": None if view is None else view.facts,
        "row": row_of(snapshot, now),
        "called": called,
        "curves": curves.get("chart"),
        "curves_are_old": bool(curves and catalogue and curves["catalogue"] != digest_of(catalogue)),
        "faint": curves.get("faint", ()),
        "lost": dict(sorted((curves.get("lost", {}) | lost).items())),
        "plots": list(_plots(snapshot)),
        "calendar": calendar(marks, all_days=all_days),
        "newest": day_of(view.days[-1].day) if view and view.days else None,
        "runs": [
            (run, span_in_words(length_of(run, now)), [
                f"{step.name} {span_in_words(length_of(step, now))}"
                for step in sorted(run.steps, key=lambda one: one.begins)
            ])
            for run in snapshot.runs or ()
        ],
        "runs_problem": snapshot.runs_problem or (NO_SERVER if snapshot.runs is None else ""),
        "windows": window_chart(None if view is None else view.facts.page, guarantees, snapshot),
        "guarantees": guarantees,
        "compared": compared if compared and compared.newest else None,
        "compared_days": MOST_DAYS,
        "most_regions": MOST_REGIONS,
        "unit": unit_of(settings.published.value) if settings else "",
        "has_check": settings is not None and settings.mechanism.kind.has_self_check,
        "replaced": () if view is None else replaced(view.facts),
        "replaced_day": None if view is None else newest_day(view.facts),
        "suspect_days": SUSPECT_DAYS,
        "most_replaced": MOST_SHOWN,
        "depends": DEPENDS,
        "inner": [node for node in nodes if node not in leaves],
        "leaves": leaves,
        "few": FEW_NODES,
        "most": MOST_ALARMS,
        "sizes": [
            (name, size_in_words(size), size_in_words(new))
            for name, size, new in (snapshot.disk.parts if snapshot.disk else ())
        ],
    }  # fmt: skip


def _plots(snapshot: Snapshot) -> Iterator[tuple[str, str, Chart]]:
    """Title, a sentence, and what is drawn."""
    errors, settings = _errors_by_level(snapshot), snapshot.settings
    if errors is not None:
        yield "Error by level", "of daily means, root mean square over the nodes of a level", errors
    arrived = snapshot.disk.arrived if snapshot.disk and settings else {}
    latest = sorted(arrived.items(), key=lambda one: -one[1][-1][1])[:MOST_REGIONS]
    at = sorted({day for _, own in latest for day, _ in own}, key=str)
    if at and settings:
        lines = [
            line(
                settings.called(part) if part else "all regions",
                [dict(own).get(day) for day in at],
                "several",
            )
            for part, own in latest
        ]
        most = "" if len(arrived) == len(latest) else f", the {MOST_REGIONS} latest of the newest"
        words = f"when the last file of a day's dump was written, in hours after the day's end{most}"
        document = chart("arrival", "h", [span("days", [seconds(day) for day in at], [lines])], few=True)
        yield "Arrival by region", words, document
    nights = nights_of(snapshot)
    if nights:
        is_short = max(took for _, took in nights) < timedelta(minutes=2)
        unit, each = ("s", timedelta(seconds=1)) if is_short else ("min", timedelta(minutes=1))
        lines = [line("run time", [took / each for _, took in nights], "bars")]
        days = span("days", [seconds(day) for day, _ in nights], [lines])
        yield "Run time", "from a day's reservation to its publication", chart("run time", unit, [days])


def _errors_by_level(snapshot: Snapshot) -> Chart | None:
    figures, settings = listed_figures(snapshot), snapshot.settings
    if settings is None or not figures.height:
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


@dataclass(frozen=True)
class GuaranteeRow:
    """A guarantee; `steps` of windows that touch its days, None if counted otherwise."""

    number: int
    epsilon: str
    window: str
    alpha: str
    days: str
    now: bool
    steps: range | None = None
    limit: float = 0.0


def guarantee_rows(
    guarantees: Mapping[int, PrivacyModel], releases: Mapping[date, ReleaseOutline]
) -> tuple[GuaranteeRow, ...]:
    """Return a row for each guarantee in force for some day, and the one of now, the newest first."""
    newest, found = max(guarantees, default=0), []
    for number, model in sorted(guarantees.items(), reverse=True):
        own = {day: one for day, one in releases.items() if one.amendment == number}
        if not own and number != newest:
            continue
        steps = None
        if own and number != newest and _counted_by(model) == _counted_by(guarantees[newest]):
            first, end = min(one.first_step for one in own.values()), max(one.end for one in own.values())
            steps = range(first - model.window_length + 1, end)
        found.append(
            GuaranteeRow(
                number,
                f"{amount(model.epsilon)}{f' at delta {float(model.delta):g}' if model.delta else ''}",
                f"{model.window_length} step{'' if model.window_length == 1 else 's'}",
                decimal(model.alpha),
                f"{min(own)} to {max(own)}" if own else "",
                number == newest,
                steps,
                float(model.budget),
            )
        )
    return tuple(found)


def _counted_by(model: PrivacyModel) -> tuple[object, ...]:
    return model.window_length, model.alpha, model.unit, model.leaves_per_step


def window_chart(
    summary: BudgetSummary | None, guarantees: Sequence[GuaranteeRow], snapshot: Snapshot
) -> Chart | None:
    """Return each window's charge under its limit; None before the first release or without times."""
    if summary is None or not summary.windows or snapshot.settings is None:
        return None
    grant, windows = summary.terms.model.budget, summary.windows
    begins = [one.begin_first for one in windows] + [windows[-1].begin_last]
    at = [int(one.timestamp()) for one in begins if one is not None]
    if len(at) < len(begins):
        return None
    # at most twice the limit: infinite where noise was compromised
    charged = [min(float(grant - one.left), 2 * float(grant)) for one in (*windows, windows[-1])]
    lines = [
        line("charged", charged, "stairs"),
        line("may be charged", [float(grant)] * len(at), "limit"),
    ]
    for one in guarantees:
        if one.steps is not None:  # windows with days of an earlier guarantee keep it
            kept = [
                one.limit if window.first_step in one.steps else None for window in (*windows, windows[-1])
            ]
            lines.append(line(f"may be charged by guarantee {one.number}", kept, "limit"))
    currency = summary.terms.model.currency
    zone = snapshot.settings.stream.time_zone
    return chart(currency, "", [span("windows", at, [lines])], zone=zone, least=0.0)
