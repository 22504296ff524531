"""The page of a day: its curve, its events, its cost, its lineage, and possible actions."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from optstream.errors import PublicationError
from optstream.ledger import Key, ReleaseEvent, ReleaseRecord, Vintage
from optstream.privacy import worst_window
from optstream.storage.store import Location
from optstream.stream import day_of
from tasks.config import Settings
from tasks.ingest import Arrival, arrivals_of
from tasks.ingest.arrivals import parts_of
from tasks.ingest.formats import FileFacts, facts_of
from tasks.ledger import ledger_if_any
from tasks.monitor.alarms import DEPENDS
from tasks.monitor.days import DayState, State
from tasks.monitor.facts import Suspect, may_restate
from tasks.pages.calendar import marks_of_days
from tasks.pages.node import Span, node_chart
from tasks.pages.render import Chart, counted, share_in_percent
from tasks.pages.snapshot import RunLink, Snapshot, StreamRun
from tasks.pages.stream import MOST_ALARMS
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
    """What ledger and folders know of one day; `arrival` is None where the input cannot be listed."""

    arrival: Arrival | None = None
    files: Mapping[str, Sequence[FileFacts]] = field(default_factory=dict)
    results: tuple[ResultFile, ...] = ()
    objected: frozenset[str] = frozenset()
    records: tuple[ReleaseRecord, ...] = ()
    vintages: Mapping[int, tuple[Vintage, ...]] = field(default_factory=dict)
    events: tuple[ReleaseEvent, ...] = ()
    curve: Chart | None = None


def read_day(settings: Settings, day: date) -> DayFacts:
    """Return the facts of one day; opens no dump. Raises LedgerError if the database refuses."""
    arrival = None
    with suppress(OSError):
        arrival = arrivals_of(settings, [day]).get(day)
    files = {} if arrival is None else {part: _facts(own) for part, own in arrival.files.items()}
    results = tuple(one for one in result_files(settings, ".json") if one.first <= day <= one.last)
    objected = frozenset(one.path.name for one in results if _objects(one))
    stream, period = settings.stream.name, day.isoformat()
    with ledger_if_any(settings) as ledger:
        newest = None if ledger is None else ledger.latest(stream, period)
        if ledger is None or newest is None:
            return DayFacts(arrival, files, results, objected)
        revisions = range(newest.revision + 1)
        records = tuple(filter(None, (ledger.find(Key(stream, period, one)) for one in revisions)))
        vintages = {one: ledger.vintages_of(Key(stream, period, one)) for one in revisions}
        events = ledger.events_of(stream, period)
    curve = None
    with suppress(PublicationError, OSError):
        found = node_chart(settings, settings.tree_of(day).nodes[0], Span(day_of(day), day_of(day)))
        curve = found if found["spans"][0]["at"] else None
    return DayFacts(arrival, files, results, objected, records, vintages, events, curve)


def _objects(result: ResultFile) -> bool:
    """Whether something that the suite expects failed, as far as the file can be read."""
    with suppress(OSError, ValueError, AttributeError):
        return json.loads(result.path.read_bytes()).get("success") is False
    return False


def _facts(files: Iterable[Location]) -> list[FileFacts]:
    """A file that is gone since it was listed is left out."""
    found = []
    for file in files:
        with suppress(OSError):
            found.append(facts_of(file))
    return found


def day_page(
    snapshot: Snapshot, facts: DayFacts, day: date, runs: Sequence[StreamRun] = ()
) -> dict[str, Any]:
    """Return the template's values of a day of the calendar. runs: the day's runs."""
    view, settings = snapshot.view, snapshot.settings
    assert view is not None and settings is not None  # noqa: PT018 - it has a calendar
    days = {one.day: one for one in view.days}
    (mark,), page = marks_of_days([days[day]], settings.called), view.facts.page
    length = (settings.model if page is None else page.terms.model).window_length
    before, after = (settings.calendar.after(day, number) for number in (-1, 1))
    alarms = tuple(alarm for alarm in view.alarms if alarm.day == day)
    docs = {one.path.name for one in snapshot.docs}
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
        "happened": sorted(_happened(facts, runs, docs, settings.called), key=lambda one: one.at),
        "lineage": list(_lineage(days[day], facts)),
        "revisions": [
            (
                one,
                worst_window(one.spends, length).epsilon if one.compromised is None else inf,
                len(facts.vintages.get(one.revision, ())) + (one.staged_hash is not None),
            )
            for one in facts.records
        ],
        "dumps": list(_dumps(facts, settings, day, view.facts.suspect.get(day, {}))),
        "depends": DEPENDS,
        "most": MOST_ALARMS,
    }


def _lineage(day: DayState, facts: DayFacts) -> Iterator[tuple[str, str]]:
    """From dumps to readers, as far as the day came: a name, and a line about it."""
    yield "Dumps", f"{0 if facts.arrival is None else len(facts.arrival.files)} complete now"
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
    config, on, state = shlex.quote(str(file)), f"--date {day.day}", day.state
    run = f"optstream run --config {config} {on}"
    restate = (
        "It can be measured once more, from the share that `[budget] restatement_share` keeps back",
        f"{run} --restate",
    )
    if facts.records and not may_restate(settings, facts.records[-1].revision):
        restate = (
            "It cannot be measured once more: `[budget] restatement_share` keeps nothing more for it",
            "",
        )
    is_fine = state in (State.PUBLISHED, State.RESTATED)
    if state is State.FAILED and facts.records:
        yield "Let the next run continue it, or continue now", run
    elif state.advice and not (is_fine and has_alarms):
        publish = f"optstream publish --config {config} {day.day}"
        yield state.advice, {"": "", "run": run, "publish": publish}[state.action]
    if is_fine:
        withdraw = f"optstream withdraw --config {config} {on} --reason 'why, without any value'"
        yield "It can be withdrawn from readers, and stays charged", withdraw
    if is_fine or state.action == "restate":
        yield restate
    yield "See what would be charged, without charging it", f"{run} --dry-run"


class Happening(NamedTuple):
    """An event. runs: each run followed by the one that started it. doc: the file of its page; "" without."""

    at: datetime
    words: str
    runs: Sequence[StreamRun | RunLink] = ()
    doc: str = ""


def _happened(
    facts: DayFacts, runs: Sequence[StreamRun], docs: set[str], called: Callable[[str], str]
) -> Iterator[Happening]:
    """The events of a day, in no order. docs: the files of Great Expectations' pages that can be shown."""
    for run in runs:
        yield Happening(run.begins, "A run of it began", [run] if run.parent is None else [run, run.parent])
        if run.ends is not None:
            yield Happening(run.ends, f"A run of it ended, {run.state.lower()}", [run])
    written = [(one.written, part) for part, own in facts.files.items() for one in own if one.written]
    if written:
        at, part = max(written)
        of = called(part) if part else "all regions"
        yield Happening(at, f"The last file of its dump was written, of {of}")
    many = len(facts.records) > 1
    for event in facts.events:
        words = KINDS.get(event.kind, event.kind.capitalize())
        yield Happening(event.at, f"{words} (revision {event.revision})" if many else words)
    for result in reversed(facts.results):
        doc = result.path.with_suffix(".html").name
        words = f"The suite {result.suite or 'of contracts'} judged it"
        if result.path.name in facts.objected:
            words += ", and objects to it"
            words += "" if result.first == result.last else " or to another day of its run"
        yield Happening(result.at, words, doc=doc if doc in docs else "")


class DumpRow(NamedTuple):
    """A region's dump. written: of its last file. replaced: shares of its readings; "" where not known."""

    region: str
    words: str
    is_complete: bool
    size: int
    written: datetime | None
    replaced: str


def _dumps(
    facts: DayFacts, settings: Settings, day: date, suspect: Mapping[str, Suspect]
) -> Iterator[DumpRow]:
    """A row for each part of the day's dump; none where the input folder cannot be listed."""
    arrival = facts.arrival
    if arrival is None:
        return
    for part in parts_of(settings, day):
        known = facts.files.get(part, ()) if part in arrival.files else ()
        shares = suspect[part]._asdict().items() if part in suspect else ()
        replaced = ", ".join(f"{share_in_percent(share)} {kind}" for kind, share in shares if share)
        words = arrival.broken.get(part) or arrival.waiting.get(part) or "not there"
        if part in arrival.files:
            words = f"complete, {counted(len(arrival.files[part]), 'file')}"
        yield DumpRow(
            settings.called(part) if part else "all",
            words,
            part in arrival.files,
            sum(one.size for one in known),
            max((one.written for one in known if one.written is not None), default=None),
            replaced or ("none" if shares else ""),
        )
