"""One day: what happened in order, what it cost, where it came from, and what an operator can do now."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

from optstream.ledger import ReleaseRecord
from optstream.privacy import PrivacyModel, worst_window
from tasks.config import Settings
from tasks.ingest.arrivals import parts_of
from tasks.monitor.alarms import DEPENDS
from tasks.monitor.view import DayState, State
from tasks.reports.drawing.calendar import marks_of_days
from tasks.ui.day_facts import DayFacts
from tasks.ui.runs import StreamRun
from tasks.ui.snapshot import Snapshot
from tasks.ui.views.dump_rows import dump_rows
from tasks.ui.views.happenings import happened
from tasks.ui.views.stream_page import MOST_ALARMS


@dataclass(frozen=True)
class RevisionRow:
    """A measurement of the day. epsilon: the most that it takes from any window; infinite where its noise is
    known to others. n_estimates: with the first.
    """

    revision: int
    state: str
    epsilon: Fraction | float
    n_estimates: int
    note: str


@dataclass(frozen=True)
class Action:
    """What an operator can do. command: to copy; "" where there is none."""

    words: str
    command: str = ""


def day_page(
    snapshot: Snapshot, facts: DayFacts, day: date, runs: Sequence[StreamRun] = ()
) -> dict[str, Any] | None:
    """Return the values of the template, by name; None for a day that is not on the calendar. Pure.

    runs: those that had it, as far as they are known.
    """
    view, settings = snapshot.view, snapshot.settings
    days = {} if view is None else {one.day: one for one in view.days}
    if view is None or settings is None or day not in days:
        return None
    (mark,), page = marks_of_days([days[day]], settings.called), view.facts.page
    model = settings.model if page is None else page.terms.model
    before, after = (settings.calendar.after(day, number) for number in (-1, 1))
    alarms = tuple(alarm for alarm in view.alarms if alarm.day == day)
    return {
        "name": snapshot.stream,
        "mark": mark,
        "before": before if before in days else None,
        "after": after if after in days else None,
        # the node whose figures of the day lead to all others
        "root": settings.tree_of(day).nodes[0] if days[day].listed is not None else "",
        "alarms": alarms,
        "actions": list(_actions(days[day], facts, settings, snapshot.file, bool(alarms))),
        "happened": happened(facts, runs, {one.link for one in snapshot.docs}, settings.called),
        "lineage": list(_lineage(days[day], facts)),
        "revisions": [_row(one, facts, model) for one in facts.records],
        "dumps": list(
            dump_rows(facts, parts_of(settings, day), settings.called, view.facts.suspect.get(day))
        ),
        "depends": DEPENDS,
        "most": MOST_ALARMS,
    }


def _row(record: ReleaseRecord, facts: DayFacts, model: PrivacyModel) -> RevisionRow:
    epsilon: Fraction | float = inf
    if record.compromised is None:
        epsilon = worst_window(record.spends, model.window_length).epsilon
    note = "; ".join(filter(None, (record.reason, record.withdrawn, record.compromised)))
    n_estimates = len(facts.vintages.get(record.revision, ())) + (record.staged_hash is not None)
    return RevisionRow(record.revision, str(record.state).lower(), epsilon, n_estimates, note)


def _lineage(day: DayState, facts: DayFacts) -> Iterator[tuple[str, str]]:
    """From dumps to readers, as far as the day came: a name, and a line about it."""
    arrival = facts.arrival
    there = 0 if arrival is None else len(arrival.files)
    yield "Dumps", f"{there} complete now"
    if not facts.records:
        return
    newest = facts.records[-1]
    yield "Charged", f"revision {newest.revision}"
    if newest.measurements_hash is None:
        return
    yield "Measured", "once, with noise"
    if newest.staged_hash is None:
        return
    estimates = facts.vintages.get(newest.revision, ())
    yield "Estimated", f"{f'{1 + len(estimates)} times' if estimates else 'once'}, nodes add up"
    if day.file is not None:
        yield "Published", day.file


def _actions(
    day: DayState, facts: DayFacts, settings: Settings, file: Path, has_alarms: bool
) -> Iterator[Action]:
    """What helps, the first thing first."""
    config, on = shlex.quote(str(file)), f"--date {day.day}"
    run = f"optstream run --config {config} {on}"
    restate = Action(
        "It can be measured once more, from the share that `[budget] restatement_share` keeps back",
        f"{run} --restate",
    )
    if not settings.budget.restatement_share:
        restate = Action("It cannot be measured once more: `[budget] restatement_share` keeps nothing back")
    withdraw = Action(
        "It can be taken back from readers, and stays charged",
        f"optstream withdraw --config {config} {on} --reason 'why, without any value'",
    )
    match day.state:
        case State.PUBLISHED | State.RESTATED:
            if not has_alarms:
                yield Action("Nothing needs to be done: readers have it")
            yield from (withdraw, restate)
        case State.LOST:
            yield Action(
                "Write its published file again, for free", f"optstream publish --config {config} {day.day}"
            )
        case State.WITHDRAWN | State.VOID:
            yield restate
        case State.MISSING:
            yield Action("Release it", run)
        case State.FAILED:
            first = "Have the dump delivered anew, then release it"
            yield Action("Let the next run go on with it, or go on now" if facts.records else first, run)
        case State.LATE:
            yield Action("Ask whoever delivers the dump; the next run takes it up, or release it then", run)
        case State.HELD | State.WAITING:
            yield Action("Nothing: the next run takes it up")
        case State.RUNNING:
            yield Action("Nothing: a run has it; if that hangs, end it, and the next run goes on")
    yield Action("See what would be charged, without charging it", f"{run} --dry-run")
