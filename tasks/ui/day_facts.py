"""What is known of one day beside the snapshot of its stream: read when its page is asked for."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date

from optstream.catalogue.backends import Location
from optstream.ledger import ReleaseEvent, ReleaseRecord, Vintage
from tasks.config import Settings
from tasks.ingest import Arrival, arrivals_of
from tasks.ingest.formats import FileFacts, facts_of
from tasks.ledger.open import ledger_if_any
from tasks.trusted.verdicts import ResultFile, result_files


@dataclass(frozen=True)
class DayFacts:
    """What ledger and folders know of one day.

    arrival: what is there of its dump; None where that cannot be listed. files: of each part of it that is
    complete, sizes and times of its files, of those still there. results: contract results, the newest first.
    objected: names of those files in which something did not hold, of this day or of another of its run.
    records: its releases by revision. vintages: new estimates by revision, of those that have any. events:
    what happened to its releases, in the ledger's order.
    """

    arrival: Arrival | None = None
    files: Mapping[str, tuple[FileFacts, ...]] = field(default_factory=dict)
    results: tuple[ResultFile, ...] = ()
    objected: frozenset[str] = frozenset()
    records: tuple[ReleaseRecord, ...] = ()
    vintages: Mapping[int, tuple[Vintage, ...]] = field(default_factory=dict)
    events: tuple[ReleaseEvent, ...] = ()


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
        return DayFacts(
            arrival, files, results, objected, records, vintages, ledger.events_of(stream, period)
        )


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
