"""The page of a day: its curve, what happened in order, its cost, its lineage, and what can be done now."""

import json
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

from optstream.catalogue.backends import Location
from optstream.errors import PublicationError
from optstream.ledger import ReleaseEvent, ReleaseRecord, Vintage
from optstream.privacy import PrivacyModel, worst_window
from optstream.stream import day_of
from tasks.config import Settings
from tasks.ingest import Arrival, arrivals_of
from tasks.ingest.arrivals import parts_of
from tasks.ingest.formats import FileFacts, facts_of
from tasks.ledger.open import ledger_if_any
from tasks.monitor.alarms import DEPENDS
from tasks.monitor.facts import Suspect
from tasks.monitor.view import DayState, State
from tasks.pages.calendar import marks_of_days
from tasks.pages.charts import Chart
from tasks.pages.node import Span, node_chart
from tasks.pages.snapshot import RunLink, Snapshot, StreamRun
from tasks.pages.stream import MOST_ALARMS
from tasks.pages.words import counted, share_in_percent, size_in_words
from tasks.trusted.verdicts import ResultFile, result_files

KINDS = {
    "reserved": "Its plan was charged to the privacy budget",
    "taken over": "Another run took it over, for the one before had died",
    "adopted": "Another run took up the finished draw",
    "draw begun": "The draw of noise began",
    "draw called off": "The draw was called off before the first sample",
    "drawn": "It was measured with noise, once",
    "staged": "Its rows were staged",
    "published": "It was published",
    "lease released": "The run gave it back",
    "void": "It became void, and stays charged",
    "withdrawn": "It was withdrawn",
    "compromised": "Its noise was declared known to others",
    "vintage staged": "A new estimate was staged",
    "vintage published": "A new estimate was published",
}
"""The ledger's events in words."""


@dataclass(frozen=True)
class DayFacts:
    """What ledger and folders know of one day.

    arrival: what is there of its dump; None where that cannot be listed. files: of each part of it that is
    complete, sizes and times of its files, of those still there. results: contract results, the newest first.
    objected: names of those files in which something did not hold, of this day or of another of its run.
    records: its releases by revision. vintages: new estimates by revision, of those that have any. events:
    those of its releases, in the ledger's order. curve: of the root, as published; None where it is not.
    """

    arrival: Arrival | None = None
    files: Mapping[str, tuple[FileFacts, ...]] = field(default_factory=dict)
    results: tuple[ResultFile, ...] = ()
    objected: frozenset[str] = frozenset()
    records: tuple[ReleaseRecord, ...] = ()
    vintages: Mapping[int, tuple[Vintage, ...]] = field(default_factory=dict)
    events: tuple[ReleaseEvent, ...] = ()
    curve: Chart | None = None


def read_day(settings: Settings, day: date) -> DayFacts:
    """Return what is known of one day; opens no dump. Raises LedgerError if the database refuses."""
    arrival = None
    with suppress(OSError):
        arrival = arrivals_of(settings, [day]).get(day)
    files = {} if arrival is None else {part: _facts(own) for part, own in arrival.files.items()}
    results = tuple(
        one
        for one in result_files(settings)
        if one.first <= day <= one.last and one.path.suffix == ".json" and not one.path.name.startswith(".")
    )
    objected = frozenset(one.path.name for one in results if not _holds(one))
    stream, period = settings.stream.name, day.isoformat()
    with ledger_if_any(settings) as ledger:
        newest = None if ledger is None else ledger.latest(stream, period)
        if ledger is None or newest is None:
            return DayFacts(arrival, files, results, objected)
        revisions = range(newest.revision + 1)
        records = tuple(filter(None, (ledger.find(stream, period, one) for one in revisions)))
        vintages = {one: ledger.vintages_of(stream, period, one) for one in revisions}
        events = ledger.events_of(stream, period)
    return DayFacts(arrival, files, results, objected, records, vintages, events, _curve(settings, day))


def _curve(settings: Settings, day: date) -> Chart | None:
    with suppress(PublicationError, OSError):
        found = node_chart(settings, settings.tree_of(day).nodes[0], Span(day_of(day), day_of(day)))
        if found["spans"][0]["at"]:
            return found
    return None


def _holds(result: ResultFile) -> bool:
    """Whether nothing that the suite expects failed, as far as the file can be read."""
    with suppress(OSError, ValueError, AttributeError):
        return json.loads(result.path.read_bytes()).get("success") is not False
    return True


def _facts(files: Iterable[Location]) -> tuple[FileFacts, ...]:
    """A file that is gone since it was listed is left out."""
    found = []
    for file in files:
        with suppress(OSError):
            found.append(facts_of(file))
    return tuple(found)


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
    dumps = list(dump_rows(facts, parts_of(settings, day), settings.called, view.facts.suspect.get(day)))
    return {
        "name": snapshot.stream,
        "mark": mark,
        "before": before if before in days else None,
        "after": after if after in days else None,
        "curve": facts.curve,
        # the node whose figures of the day lead to all others
        "root": settings.tree_of(day).nodes[0] if days[day].listed is not None else "",
        "alarms": alarms,
        "actions": list(_actions(days[day], facts, settings, snapshot.file, bool(alarms))),
        "happened": happened(facts, runs, {one.path.name for one in snapshot.docs}, settings.called),
        "lineage": list(_lineage(days[day], facts)),
        "revisions": [_revision(one, facts, model) for one in facts.records],
        "lacking": [one for one in dumps if not one.is_complete],
        "complete": [one for one in dumps if one.is_complete],
        "has_shares": any(one.replaced for one in dumps),
        "depends": DEPENDS,
        "most": MOST_ALARMS,
    }


def _revision(
    record: ReleaseRecord, facts: DayFacts, model: PrivacyModel
) -> tuple[int, str, Fraction | float, int, str]:
    """A measurement of the day: its number, its state, the most that it takes from any window, infinite where
    its noise was compromised, its number of estimates, and a note.
    """
    epsilon: Fraction | float = inf
    if record.compromised is None:
        epsilon = worst_window(record.spends, model.window_length).epsilon
    note = "; ".join(filter(None, (record.reason, record.withdrawn, record.compromised)))
    n_estimates = len(facts.vintages.get(record.revision, ())) + (record.staged_hash is not None)
    return record.revision, str(record.state).lower(), epsilon, n_estimates, note


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
) -> Iterator[tuple[str, str]]:
    """What helps, the first thing first: in words, and a command to copy or ""."""
    config, on = shlex.quote(str(file)), f"--date {day.day}"
    run = f"optstream run --config {config} {on}"
    restate = (
        "It can be measured once more, from the share that `[budget] restatement_share` keeps back",
        f"{run} --restate",
    )
    if not settings.budget.restatement_share:
        restate = ("It cannot be measured once more: `[budget] restatement_share` keeps nothing back", "")
    withdraw = (
        "It can be withdrawn from readers, and stays charged",
        f"optstream withdraw --config {config} {on} --reason 'why, without any value'",
    )
    match day.state:
        case State.PUBLISHED | State.RESTATED:
            if not has_alarms:
                yield "Nothing needs to be done: readers have it", ""
            yield from (withdraw, restate)
        case State.LOST:
            yield "Write its published file again, for free", f"optstream publish --config {config} {day.day}"
        case State.WITHDRAWN | State.VOID:
            yield restate
        case State.MISSING:
            yield "Release it", run
        case State.FAILED:
            first = "Have the dump delivered again, then release it"
            yield ("Let the next run continue it, or continue now" if facts.records else first), run
        case State.LATE:
            yield "Ask the supplier of the dump; the next run releases it, or release it then", run
        case State.HELD | State.WAITING:
            yield "Nothing: the next run releases it", ""
        case State.RUNNING:
            yield "Nothing: a run processes it; if that hangs, end it, and the next run continues", ""
    yield "See what would be charged, without charging it", f"{run} --dry-run"


@dataclass(frozen=True)
class Happening:
    """Something that happened at a time. runs: those that it names, each followed by the one that started
    it. doc: the file of Great Expectations' page of it; "" without one.
    """

    at: datetime
    words: str
    runs: tuple[RunLink, ...] = ()
    doc: str = ""


def happened(
    facts: DayFacts, runs: Sequence[StreamRun], docs: Collection[str], called: Callable[[str], str] = str
) -> tuple[Happening, ...]:
    """Return what happened to a day, by time. Pure.

    docs: the files of Great Expectations' pages that can be shown. called: the name of a region.
    """
    return tuple(sorted(_happened(facts, runs, docs, called), key=lambda one: one.at))


def _happened(
    facts: DayFacts, runs: Sequence[StreamRun], docs: Collection[str], called: Callable[[str], str]
) -> Iterator[Happening]:
    for run in runs:
        started_by = () if run.parent is None else (run.parent,)
        yield Happening(run.begins, "A run of it began", (run.link, *started_by))
        if run.ends is not None:
            yield Happening(run.ends, f"A run of it ended, {run.state.lower()}", (run.link,))
    for at, words in when_written(facts, called):
        yield Happening(at, words)
    many = len(facts.records) > 1
    for event in facts.events:
        words = KINDS.get(event.kind, event.kind.capitalize())
        yield Happening(event.at, f"{words} (revision {event.revision})" if many else words)
    for result in reversed(facts.results):
        doc = result.path.with_suffix(".html").name
        told = f"The suite {result.suite or 'of contracts'} judged it"
        if result.path.name in facts.objected:
            others = "" if result.first == result.last else " or to another day of its run"
            told += f", and objects to it{others}"
        yield Happening(result.at, told, doc=doc if doc in docs else "")


@dataclass(frozen=True)
class DumpRow:
    """What is there of a region's dump. size: "" and written: None where nothing is, or the folder does not
    say; written: of the file that was written last. replaced: which shares of its readings were clamped,
    absent or doubled when the day was judged, in words; "" where that is not known.
    """

    region: str
    words: str
    is_complete: bool = False
    size: str = ""
    written: datetime | None = None
    replaced: str = ""


def dump_rows(
    facts: DayFacts,
    parts: tuple[str, ...],
    called: Callable[[str], str] = str,
    suspect: Mapping[str, Suspect] | None = None,
) -> Iterator[DumpRow]:
    """Yield a row for each part of a day's dump, those that are not complete first; none where the input
    folder cannot be listed. Pure.

    called: the name of a region. suspect: by region, shares of its readings.
    """
    shares = {region: _replaced(one) for region, one in (suspect or {}).items()}
    arrival = facts.arrival
    if arrival is None:
        return
    for part in sorted(parts, key=lambda one: one in arrival.files):
        named, known = called(part) if part else "all", facts.files.get(part, ())
        if part not in arrival.files:
            told = arrival.broken.get(part) or arrival.waiting.get(part) or "not there"
            yield DumpRow(named, told, replaced=shares.get(part, ""))
            continue
        size = size_in_words(sum(one.size for one in known)) if known else ""
        times = [one.written for one in known if one.written is not None]
        words, newest = f"complete, {counted(len(arrival.files[part]), 'file')}", max(times, default=None)
        yield DumpRow(named, words, True, size, newest, shares.get(part, ""))


def when_written(facts: DayFacts, called: Callable[[str], str] = str) -> Iterator[tuple[datetime, str]]:
    """Yield when files of the dump were written, the first and the last of them, in words. Pure."""
    found = [
        (one.written, called(part) if part else "all regions")
        for part, own in facts.files.items()
        for one in own
        if one.written is not None
    ]
    if not found:
        return
    size = size_in_words(sum(one.size for own in facts.files.values() for one in own))
    n_files = sum(len(own) for own in facts.files.values())
    if len(found) > 1:
        at, part = min(found)
        yield at, f"The first file of its dump was written, of {part}"
    at, part = max(found)
    last = "The last file" if len(found) > 1 else "The file"
    yield at, f"{last} of its dump was written, of {part}: {counted(n_files, 'file')}, {size}"


def _replaced(one: Suspect) -> str:
    """ "3.1 % absent, 50.0 % doubled", or "none"."""
    return ", ".join(f"{share_in_percent(share)} {kind}" for kind, share in one.shares if share) or "none"
