"""File times are functions of what is published, never of when: a draw's duration depends on what is drawn
(docs/privacy.md, section 6).
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from optstream.catalogue import layout
from optstream.catalogue.backends import Transaction
from optstream.catalogue.index import Catalogue, Entry
from optstream.stream.period import Hour, day_of

PARTS = (layout.DATA, layout.SUPERSEDED, layout.MEASUREMENTS, layout.ERRORS, layout.SUPERSEDED_ERRORS)
"""What has a folder of each day."""
HIDDEN = (layout.INCOMING, layout.LOCK)
"""What copies of the folder carry along too, though no reader needs it."""

SIGNED = datetime(2000, 1, 1, tzinfo=UTC)
"""Of every signature, and of their folder: a file is named by what it signs, so its bytes are always the
same, and it need not look newer than another.
"""

MOST_CHANGES = 2**31
"""Seconds; nobody publishes so often, but anyone may have written the revisions of a catalogue."""


def release_time(period: date) -> datetime:
    """Return the modification time of a period's files: when its date or hour ends, as UTC."""
    if isinstance(period, Hour):
        return datetime.combine(period, datetime.min.time(), UTC) + timedelta(hours=period.hour + 1)
    return datetime.combine(period + timedelta(days=1), datetime.min.time(), UTC)


def catalogue_time(catalogue: Catalogue) -> datetime:
    """Return the newest period's time, and a second for each change, so that it rises with every one."""
    newest = max(entry.period for entry in catalogue.entries)
    changes = sum(1 + entry.revision + entry.vintage + entry.withdrawn for entry in catalogue.entries)
    return release_time(newest) + timedelta(seconds=min(changes, MOST_CHANGES))


def settle_times(
    transaction: Transaction,
    catalogue: Catalogue,
    touched: Iterable[Entry],
    beside: Iterable[tuple[date, str]] = (),
) -> None:
    """Give what a publication touched those times; beside: files beside releases, each with its day."""
    listed = catalogue_time(catalogue)
    places: dict[str, datetime] = {}
    for entry in touched:
        places |= dict.fromkeys((entry.file, entry.manifest), release_time(entry.period))
        days = {day_of(entry.period), entry.period}
        places |= dict.fromkeys((layout.folder_of(part, one) for part in PARTS for one in days), listed)
        if entry.closed_in:
            places[entry.shown_in] = release_time(day_of(entry.period))
            places[entry.shown_in.rpartition("/")[0]] = listed
    places |= {name: release_time(period) for period, name in beside}
    places |= dict.fromkeys((layout.CATALOGUE, layout.MANIFESTS, *PARTS, *HIDDEN, "."), listed)
    transaction.settle(places)


def settle_page_time(transaction: Transaction, catalogue: Catalogue) -> None:
    """The page that was made of a catalogue has its time: not before, or caches would keep the one before."""
    if catalogue.entries:
        names = (layout.PAGE, layout.ABOUT, layout.HIERARCHY, *layout.DESCRIPTIONS, layout.CURVES)
        transaction.settle(dict.fromkeys((*names, *HIDDEN, "."), catalogue_time(catalogue)))
