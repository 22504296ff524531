"""What leaves data/. Lemma: a release whose rank (revision, vintage) is at most that of its day's entry is
never listed again, so it may go; higher ones are spared where others can publish.
"""

import hashlib
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import groupby

from optstream.catalogue import layout
from optstream.catalogue.backends import Transaction, change_folder, open_storage
from optstream.catalogue.index import Catalogue, Entry, find_catalogue
from optstream.catalogue.layout import (
    ANSWERS,
    ANSWERS_INDEX,
    DATA,
    ERRORS,
    LARGEST_RELEASE,
    MEASUREMENTS,
    SUPERSEDED,
    SUPERSEDED_ERRORS,
    closed_file,
    errors_name,
    folder_of,
    is_release_name,
    manifest_file,
    measurements_name,
    release_name,
)
from optstream.catalogue.stage import decode
from optstream.catalogue.statement import LARGEST_MANIFEST, Manifest, ReleaseStatement
from optstream.errors import PublicationError
from optstream.storage.store import Location
from optstream.stream.period import Hour, day_of

# File times are functions of what is published, never of when: a draw's duration depends on what is drawn
# (docs/privacy.md, section 6).


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


# What leaves data/.


Rank = tuple[int, int]


def clear_superseded(transaction: Transaction, entry: Entry) -> bool:
    """Move every other release of the period out of data/; return whether there were any."""
    folder = folder_of(DATA, entry.period)
    current = None if entry.closed_in else release_name(entry.file_hash)
    others = [name for name in transaction.names_in(folder) if is_release_name(name) and name != current]
    dead = [
        name for name in others if _is_dead(transaction, f"{folder}/{name}", (entry.revision, entry.vintage))
    ]
    for name in dead:
        transaction.move(f"{folder}/{name}", f"{folder_of(SUPERSEDED, entry.period)}/{name}")
    if entry.closed_in is None:
        _remove_dead_days(transaction, entry.period, (entry.revision, entry.vintage), entry.file_hash)
    folder = folder_of(ERRORS, entry.period)
    replaced = _dead_errors(transaction, folder, (entry.revision, entry.vintage))
    own = _files_beside(transaction, entry) if replaced else set()
    replaced = [name for name in replaced if f"{folder}/{name}" not in own]
    for name in replaced:
        transaction.move(f"{folder}/{name}", f"{folder_of(SUPERSEDED_ERRORS, entry.period)}/{name}")
    if (dead or replaced) and not transaction.is_alone:
        _follow_a_withdrawal(transaction, entry.period)
    return bool(dead or replaced)


def finish_listing(folder: Location | str, period: date) -> None:
    """Complete the work of a publisher that died after it had replaced the catalogue with this day listed."""

    def finish(transaction: Transaction) -> None:
        catalogue = find_catalogue(transaction)
        entry = catalogue.entry(period) if catalogue else None
        if entry is not None and not entry.withdrawn:
            transaction.confirm_catalogue()
            clear_superseded(transaction, entry)

    open_storage(folder).change(finish)


def _follow_a_withdrawal(transaction: Transaction, period: date) -> None:
    """Delete the files of a day that was withdrawn while they were moved."""
    catalogue = find_catalogue(transaction)
    entry = catalogue.entry(period) if catalogue else None
    if entry is not None and entry.withdrawn:
        delete_files(transaction, period, entry.revision)


def delete_answers(folder: Location | str) -> None:
    """Delete the answers to questions that a version before 0.3 published: nothing keeps them right."""
    names = open_storage(folder).names_below(ANSWERS)
    if not names and not open_storage(folder).is_file(ANSWERS_INDEX):
        return

    def delete(transaction: Transaction) -> None:
        transaction.remove("", [ANSWERS_INDEX])
        for above, below in groupby(names, key=lambda name: name.rpartition("/")[0]):
            transaction.remove(above, [name.rpartition("/")[2] for name in below])
        transaction.remove(ANSWERS, [])

    change_folder(folder, delete, ANSWERS_INDEX, "fix the problem, then run `optstream report`")


def delete_files(transaction: Transaction, period: date, through: int) -> bool:
    """Delete a withdrawn day's files up to the revision `through`; return whether there were any."""
    found = False
    for folder in (folder_of(DATA, period), folder_of(SUPERSEDED, period)):
        named = [name for name in transaction.names_in(folder) if is_release_name(name)]
        dead = [name for name in named if _is_dead(transaction, f"{folder}/{name}", (through, 2**31))]
        transaction.remove(folder, dead)
        found |= bool(dead)
    found |= _remove_dead_days(transaction, period, (through, 2**31))
    folder = folder_of(MEASUREMENTS, period)
    known = [(name, measurements_name(name)) for name in transaction.names_in(folder)]
    # a file whose name is no measurements' is nobody's to list
    drawn = [name for name, told in known if told and (transaction.is_alone or told[0] <= through)]
    transaction.remove(folder, drawn)
    for folder in (folder_of(ERRORS, period), folder_of(SUPERSEDED_ERRORS, period)):
        told = _dead_errors(transaction, folder, (through, 2**31))
        transaction.remove(folder, told)
        found |= bool(told)
    return found or bool(drawn)


def _remove_dead_days(transaction: Transaction, period: date, rank: Rank, listed: str | None = None) -> bool:
    """Remove unlisted closed days that show this hour up to this rank; return whether there were any."""
    if not isinstance(period, Hour):
        return False
    folder = closed_file(day_of(period), "").rpartition("/")[0]
    dead = []
    for name in transaction.names_in(folder):
        shown = _shown_of(transaction, f"{folder}/{name}", period)
        own = shown and shown != listed and _stated_rank(transaction, shown)
        if own and own <= rank:
            dead.append(name)
    if dead:
        transaction.remove(folder, dead)
    return bool(dead)


def _shown_of(transaction: Transaction, name: str, period: date) -> str | None:
    """Return the hash of the release that a closed day's file shows of an hour; None if it tells of none."""
    try:
        hours = decode(transaction.read(name, LARGEST_RELEASE), ())[1].statement["hours"]
        return next((str(one[1]) for one in hours if one[0] == period.isoformat()), None)
    except (FileNotFoundError, PublicationError, KeyError, IndexError, TypeError):
        return None


def _stated_rank(transaction: Transaction, file_hash: str) -> Rank | None:
    """Return the rank of a release by its manifest, which stays; None where that does not tell."""
    try:
        stated = Manifest.from_bytes(transaction.read(manifest_file(file_hash), LARGEST_MANIFEST)).stated
        return stated.revision, stated.vintage
    except (FileNotFoundError, PublicationError):
        return None


def _dead_errors(transaction: Transaction, folder: str, rank: Rank) -> list[str]:
    """Return the files of errors in a folder of releases up to this rank; of all where one is alone."""
    known = [(name, errors_name(name)) for name in transaction.names_in(folder)]
    return [name for name, told in known if told and (transaction.is_alone or told[:2] <= rank)]


def _files_beside(transaction: Transaction, entry: Entry) -> set[str]:
    """Return a listed release's files by its manifest, else all of its rank."""
    try:
        data = transaction.read(entry.manifest, LARGEST_MANIFEST)
        return set(dict(Manifest.from_bytes(data).stated.beside))
    except (FileNotFoundError, PublicationError):
        folder = folder_of(ERRORS, entry.period)
        told = {name: errors_name(name) for name in transaction.names_in(folder)}
        rank = (entry.revision, entry.vintage)
        return {f"{folder}/{name}" for name, known in told.items() if known and known[:2] == rank}


def _is_dead(transaction: Transaction, name: str, listed: Rank) -> bool:
    """Return whether nobody can be about to list this file."""
    if transaction.is_alone:
        return True
    rank = _rank_of(transaction, name)
    return rank is None or rank <= listed


def _rank_of(transaction: Transaction, name: str) -> Rank | None:
    """Return the rank of a file; None of what is gone, or no whole release. Raises OSError if unreadable."""
    try:
        data = transaction.read(name, LARGEST_RELEASE)
        if release_name(hashlib.sha256(data).hexdigest()) != name.rpartition("/")[2]:
            return None
        stated = ReleaseStatement.read(decode(data)[1].statement)
    except (FileNotFoundError, PublicationError):
        return None
    return stated.revision, stated.vintage
