"""What the page of a stream shows: its alarms, calendar, runs, budget, surprises and nodes."""

from datetime import datetime
from typing import Any

from optstream.stream import day_of
from tasks.monitor.alarms import DEPENDS
from tasks.monitor.days import by_day
from tasks.monitor.facts import MOST_DAYS, MOST_SHOWN, SUSPECT_DAYS, newest_day, replaced
from tasks.reports.drawing.calendar import marks_of_days, used_states, years_of
from tasks.reports.numbers import unit_of
from tasks.ui.runs import bars_of, length_of
from tasks.ui.snapshot import Snapshot
from tasks.ui.views.guarantees import guarantee_rows
from tasks.ui.views.overview import row_of
from tasks.ui.views.window_plot import window_plot
from tasks.ui.words import size_in_words, span_in_words

MOST_ALARMS = 100
"""Of one kind that are listed."""
MOST_REGIONS = 12
"""Of the newest day that are listed beside their history."""
FEW_NODES = 40
"""That are listed all at once; of more, the leaves are folded."""
OPEN_YEARS = 2
NO_SERVER = "no Prefect server is named: start `optstream ui` with PREFECT_API_URL to see runs here"


def stream_page(snapshot: Snapshot, now: datetime) -> dict[str, Any]:
    """Return the values of the template, by name; ages are counted to now. Pure."""
    view, settings = snapshot.view, snapshot.settings
    called = str if settings is None else settings.called
    marks = () if view is None else marks_of_days(by_day(view.days), called)
    guarantees = guarantee_rows(snapshot.guarantees, {} if view is None else view.facts.releases)
    budget = None if view is None else view.facts.page
    tree = None if settings is None else settings.tree_of(settings.local_day(now))
    nodes, leaves = ((), ()) if tree is None else (tree.nodes, tree.leaves)
    parts = () if snapshot.growth is None else snapshot.growth.parts
    compared = snapshot.surprises if view and settings else None
    return {
        "snapshot": snapshot,
        "row": row_of(snapshot, now),
        "called": called,
        "years": years_of(marks),
        "open_years": OPEN_YEARS,
        "legend": used_states(marks),
        "newest": day_of(view.days[-1].day) if view and view.days else None,
        "runs": [(run, span_in_words(length_of(run, now)), bars_of(run, now)) for run in snapshot.runs or ()],
        "runs_problem": snapshot.runs_problem or (NO_SERVER if snapshot.runs is None else ""),
        "windows": window_plot(budget, guarantees),
        "shared": "" if budget is None else budget.shared_words,
        "guarantees": guarantees,
        "compared": compared if compared and compared.newest else None,
        "compared_days": MOST_DAYS,
        "most_regions": MOST_REGIONS,
        "unit": unit_of(settings.published.value) if settings else "",
        "has_check": settings is not None and settings.mechanism.kind.has_self_check,
        "unlike": () if view is None else view.facts.unlike[::-1],
        "replaced": () if view is None else replaced(view.facts),
        "replaced_day": None if view is None else newest_day(view.facts),
        "replaced_days": SUSPECT_DAYS,
        "most_replaced": MOST_SHOWN,
        "depends": DEPENDS,
        "nodes": nodes,
        "inner": [node for node in nodes if node not in leaves],
        "leaves": leaves,
        "few": FEW_NODES,
        "most": MOST_ALARMS,
        "sizes": [(part.name, size_in_words(part.size), size_in_words(part.new)) for part in parts],
    }
