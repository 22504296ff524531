"""What leaves data/. Lemma: a release whose rank (revision, vintage) is at most that of its day's entry is
never listed again, so it may go; higher ones are spared where others can publish.
"""

import hashlib
from datetime import date
from itertools import groupby

from optstream.catalogue.backends import Transaction, change_folder, open_storage
from optstream.catalogue.index import Entry, find_catalogue
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
