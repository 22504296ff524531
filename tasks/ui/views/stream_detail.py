"""One stream: its alarms, calendar, runs and budget."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime

from tasks.monitoring.alarms.alarm_groups import AlarmGroup
from tasks.monitoring.days import by_day
from tasks.monitoring.replaced import Replaced, newest_day, replaced
from tasks.reports.drawing.calendar import Year, marks_of_days, used_states, years_of
from tasks.reports.operator import DataDoc
from tasks.ui.runs import Bar, StreamRun, bars_of, length_of
from tasks.ui.snapshot import Snapshot
from tasks.ui.views.guarantees import GuaranteeRow, guarantee_rows
from tasks.ui.views.overview import StreamRow, row_of
from tasks.ui.views.surprise_table import SurpriseTable, surprise_table
from tasks.ui.views.window_plot import WindowPlot, window_plot
from tasks.ui.words import size_in_words, span_in_words

MOST_ALARMS = 100
"""Of one kind that are listed."""
OPEN_YEARS = 2
NO_SERVER = "no Prefect server is named: start `optstream ui` with PREFECT_API_URL to see runs here"


@dataclass(frozen=True)
class RunRow:
    """A run, how long it took, and the bars of its steps."""

    run: StreamRun
    took: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class StreamDetail:
    """What the page of a stream shows.

    Attributes:
        row: As on the overview.
        groups: Alarms by kind.
        warnings: Levels that are as good as nothing.
        years: The calendar, the newest first.
        legend: State, letter and meaning of the states that occur.
        windows: What windows are charged; None where nothing is.
        shared: What each stream of the budget is charged in the fullest window; "" where there is one.
        guarantees: The guarantees that days were planned under, the newest first.
        sizes: What ledger and folders take: a name, how much, and how much of it is new.
        runs: The last ones; empty without an orchestrator.
        runs_problem: Why runs are not known, if so.
        surprises: The newest days beside their history; None where nothing can be compared yet.
        replaced: Regions with clamped, absent or doubled readings in the last weeks, the most first.
        replaced_day: The newest day that this is known of, if any.
        docs: Great Expectations' pages of the last weeks.
    """

    row: StreamRow
    groups: tuple[AlarmGroup, ...]
    warnings: tuple[str, ...]
    years: tuple[Year, ...]
    legend: tuple[tuple[str, str, str], ...]
    windows: WindowPlot | None
    guarantees: tuple[GuaranteeRow, ...]
    sizes: tuple[tuple[str, str, str], ...]
    runs: tuple[RunRow, ...]
    runs_problem: str
    surprises: SurpriseTable | None
    replaced: tuple[Replaced, ...]
    replaced_day: date | None
    docs: tuple[DataDoc, ...]
    shared: str = ""


def _called(snapshot: Snapshot) -> Callable[[str], str]:
    return str if snapshot.settings is None else snapshot.settings.called


def stream_detail(snapshot: Snapshot, now: datetime) -> StreamDetail:
    """Return what the page of a stream shows. Pure."""
    row, view = row_of(snapshot, now), snapshot.view
    marks = () if view is None else marks_of_days(by_day(view.days), _called(snapshot))
    guarantees = guarantee_rows(snapshot.guarantees, {} if view is None else view.facts.releases)
    parts = () if snapshot.growth is None else snapshot.growth.parts
    return StreamDetail(
        row,
        row.alarms,
        snapshot.warnings,
        years_of(marks),
        tuple(used_states(marks)),
        None if view is None else window_plot(view.facts.page, guarantees),
        guarantees,
        tuple((part.name, size_in_words(part.size), size_in_words(part.new)) for part in parts),
        tuple(
            RunRow(run, span_in_words(length_of(run, now)), bars_of(run, now)) for run in snapshot.runs or ()
        ),
        snapshot.runs_problem or (NO_SERVER if snapshot.runs is None else ""),
        surprise_table(snapshot),
        () if view is None else replaced(view.facts),
        None if view is None else newest_day(view.facts),
        snapshot.docs,
        view.facts.page.shared_words if view is not None and view.facts.page is not None else "",
    )
