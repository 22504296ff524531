"""Ledger, published folder and dumps beside each other: clock, seeded noise, markers."""

import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path

from optstream.catalogue import Catalogue, find_catalogue
from optstream.catalogue.backends import Location
from optstream.errors import DumpError, LedgerError, OptStreamError
from optstream.ledger import Ledger, ReleaseState
from optstream.ledger.records import LONGEST_LEASE
from optstream.stream import Measured, period_from
from tasks.config import Layout, Settings
from tasks.config.paths import ledger_database
from tasks.doctor.finding import Finding, note, warning, wrong
from tasks.ingest.arrival.discover import (
    MOST_FILES,
    LateDumpError,
    dated_folders,
    days_with_dumps,
    discover,
)
from tasks.ingest.arrival.folders import entries_of
from tasks.ingest.clock import clock_ahead
from tasks.ingest.sandbox.process import clock_before_ingest
from tasks.ledger.open import find_ledger
from tasks.operations.expired import release_folders
from tasks.operations.permissions import quoted
from tasks.release.guards.witness import behind
from tasks.release.records.lineage_file import told_releases
from tasks.storage.private_files import read_verified

CLOCK_SLACK = timedelta(minutes=5)
MOST_LOOKED_AT = 100_000
"""Files of the trusted folder."""
NEWEST_DAYS = 31
"""Whose dumps are looked at as a run does."""


def record(settings: Settings, now: datetime) -> Iterator[Finding]:
    """Findings about what was recorded, published and delivered."""
    yield from _markers(settings)
    yield from _files_ahead(settings)
    try:
        catalogue = find_catalogue(settings.published_folder)
    except OptStreamError as error:
        yield wrong(settings.published_folder, str(error), "restore the catalogue from a copy")
        return
    try:
        ledger = find_ledger(settings)
    except LedgerError as error:
        yield wrong("ledger.url", str(error), "see that the database is there and answers")
        return
    yield from _clock_ahead(settings, ledger)
    if ledger is None:
        yield from _without_ledger(catalogue, ledger_database(settings.ledger_url))
        yield from _refused(settings, now, set())
        return
    with closing(ledger):
        yield from _clock(settings, ledger, now)
        yield from _leases(settings, ledger, now)
        yield from _heads(settings, ledger, catalogue)
        yield from _restored(settings, ledger)
        yield from _seeded(settings, ledger)
        known = {period_from(one.period) for one in ledger.outlines(settings.stream.name)}
        yield from _refused(settings, now, known)


def _without_ledger(catalogue: Catalogue | None, database: object) -> Iterator[Finding]:
    if catalogue is None:
        yield note(database, "there is no ledger yet", "the first run makes it")
    else:
        yield wrong(
            database,
            "days are published and the ledger is gone: what was spent would be forgotten",
            "restore it from a backup before the next run, or correct ledger.url",
        )


def _clock_ahead(settings: Settings, ledger: Ledger | None) -> Iterator[Finding]:
    """What the calendar of two years will refuse: after the newest release, or from the first dump on."""
    newest = ledger.last_release(settings.stream.name) if ledger else None
    if ledger and newest:
        ahead = clock_ahead(settings, ledger, period_from(newest.period))
    else:
        day = min(days_with_dumps(settings), default=None)
        ahead = clock_before_ingest(settings, day) if day else None
    if ahead is not None:
        rule, _, remedy = ahead.rpartition(": ")
        yield warning("stream.day", rule, remedy)


def _clock(settings: Settings, ledger: Ledger, now: datetime) -> Iterator[Finding]:
    last = ledger.last_event_at(settings.stream.name)
    if last is not None and last > now + CLOCK_SLACK:
        yield wrong(
            "the clock of this machine",
            f"the ledger's newest event is of {last:%Y-%m-%d %H:%M} UTC, which lies ahead: leases and held "
            "days go by the clock",
            "set it (NTP); if it was ahead before, wait for the leases to end",
        )


def _leases(settings: Settings, ledger: Ledger, now: datetime) -> Iterator[Finding]:
    """Leases that end later than any lease can, and days that nobody has taken up for longer than that."""
    clock, stream = ledger.lease_time(now), settings.stream.name
    for one in ledger.outlines(stream):
        record = ledger.find(stream, one.period, one.revision) if one.state.is_under_way else None
        if record is None:
            continue
        place, until = f"{one.period} revision {one.revision}", f"{record.lease_until:%Y-%m-%d %H:%M} UTC"
        if record.lease_until > clock + LONGEST_LEASE:
            yield wrong(
                place,
                f"{record.owner} holds it until {until}, and no lease lasts over a day: its clock ran ahead",
                f"if that run is gone, `optstream ledger release-lease {one.period} --why …` frees it",
            )
        elif record.lease_until < clock - LONGEST_LEASE:
            yield warning(
                place,
                f"it is {one.state.value.lower()}, and the lease of its last run ended {until}",
                f"`optstream run --date {one.period}` finishes it",
            )


def _files_ahead(settings: Settings) -> Iterator[Finding]:
    """Files of the trusted folder from the future, by this machine's clock: what goes by age keeps them."""
    latest, found = time.time() + CLOCK_SLACK.total_seconds(), list[Path]()
    for path in islice(settings.trusted_folder.rglob("*"), MOST_LOOKED_AT):
        with suppress(OSError):
            if path.lstat().st_mtime > latest:
                found.append(path)
    if found:
        first = min(found)
        yield warning(
            first,
            f"it was written {datetime.fromtimestamp(first.lstat().st_mtime, UTC):%Y-%m-%d %H:%M} UTC, which "
            "lies ahead" + (f"; so were {len(found) - 1} more" if len(found) > 1 else ""),
            f"set the clock (NTP); if it was ahead before, `touch {quoted(first)}`",
        )


def _heads(settings: Settings, ledger: Ledger, catalogue: Catalogue | None) -> Iterator[Finding]:
    if catalogue is not None and ledger.missing_heads([catalogue.ledger_head]):
        yield wrong(
            settings.published_folder,
            "its catalogue was written with another ledger than the configured one, or a newer copy",
            "bring that ledger back; no day will be released before",
        )


def _restored(settings: Settings, ledger: Ledger) -> Iterator[Finding]:
    """What witnesses, trusted folder and lineage know and the ledger does not."""
    for said in behind(settings, ledger):
        yield wrong("ledger.url", said, "no day will be released before (docs/recover.md)")
    # files first: whoever wrote them had told the ledger before
    folders = {
        key: folder
        for parent in (settings.staging_folder, settings.measurements_folder)
        for key, folder in release_folders(parent / settings.stream.name)
    }
    told = dict.fromkeys(told_releases(settings), settings.lineage_folder) | folders
    known = {(one.period, one.revision) for one in ledger.outlines(settings.stream.name)}
    unknown = sorted(set(told) - known)
    if unknown:
        (period, revision), others = unknown[0], len(unknown) - 1
        yield wrong(
            told[unknown[0]],
            f"it knows a release of {period} revision {revision}"
            + (f", and there are {others} more," if others else "")
            + " that the ledger does not: the ledger is an older copy, or another one",
            "bring the newest ledger back; no such day will be released before (docs/recover.md)",
        )


def _seeded(settings: Settings, ledger: Ledger) -> Iterator[Finding]:
    """Simulated noise costs the privacy budget like any other, and the publisher refuses it."""
    for release in ledger.releases(settings.stream.name):
        if release.state is not ReleaseState.DRAWN:
            continue
        day = period_from(release.period)
        folder = settings.measurements_of(day, release.revision)
        with suppress(OptStreamError, OSError):
            if Measured.from_bytes(read_verified(folder, release.measurements_hash)).simulated:
                yield wrong(
                    folder,
                    f"{day} was drawn with seeded noise, which protects nobody: it is charged, and will "
                    "never be published",
                    "find who runs this stream with simulated_noise, and stop that",
                )


def _markers(settings: Settings) -> Iterator[Finding]:
    """Find markers that the supplier never sets: those days would wait without end."""
    delivered: dict[Layout, bool] = {}
    for day, folder in dated_folders(settings):
        layout = settings.input_of(day)
        names = set() if delivered.get(layout) else _names(folder)
        if any(name.endswith(".parquet") for name in names):
            delivered[layout] = layout.announcement in names
    for layout in (layout for layout, is_announced in delivered.items() if not is_announced):
        since = "" if layout.valid_from is None else f" of {layout.valid_from} and later"
        yield warning(
            settings.input_folder,
            f"dumps{since} are there, and none has {layout.announcement}: every such day will wait",
            "have the supplier write it last, or correct "
            + layout.key("marker" if layout.file_list is None else "file_list"),
        )


def _refused(settings: Settings, now: datetime, known: set[date]) -> Iterator[Finding]:
    """What the next run will refuse of the newest days that none has taken, as it looks for their dumps."""
    there = days_with_dumps(settings)
    after = settings.calendar.after(max(there)) if there else settings.calendar.period_at(now)
    refused: dict[str, list[date]] = {}
    for day, found in discover(settings, [*sorted(there - known)[-NEWEST_DAYS:], after]).items():
        if isinstance(found, DumpError) and not isinstance(found, LateDumpError):
            refused.setdefault(str(found).removeprefix(f"{day}: "), []).append(day)
    for message, days in refused.items():
        more = f" and {len(days) - 1} more" if len(days) > 1 else ""
        yield warning(
            settings.input_folder,
            f"the next run refuses {days[0]}{more}: {message}",
            "nothing is charged for it; once it is mended, the next run takes it",
        )


def _names(folder: Location) -> set[str]:
    """Of what lies in a folder; none where it cannot be listed, which is told of elsewhere."""
    try:
        return set(entries_of(folder, MOST_FILES))
    except OSError:
        return set()
