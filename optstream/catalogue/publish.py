"""Publish staged releases: immutable files, then the catalogue that names them (docs/data/published.md)."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import groupby
from typing import Any

from optstream.catalogue.backends import Transaction, change_folder, open_storage
from optstream.catalogue.index import Catalogue, Entry, find_catalogue
from optstream.catalogue.layout import (
    DATA,
    LARGEST_RELEASE,
    MANIFESTS,
    SUPERSEDED,
    closed_file,
    data_file,
    folder_of,
    release_name,
)
from optstream.catalogue.metadata import blank_page
from optstream.catalogue.read import encode_day, read_file, read_rows
from optstream.catalogue.signing import Signer, put_catalogue
from optstream.catalogue.stage import StagedRelease, decode
from optstream.catalogue.statement import Manifest, ReleaseStatement
from optstream.catalogue.sweep import (
    clear_superseded,
    delete_answers,
    delete_files,
    finish_listing,
    settle_times,
)
from optstream.errors import PublicationError
from optstream.storage.store import Location
from optstream.stream.period import Hour, day_of

# Days whose hours are over, each closed into one file in one transaction; the hours' own files move to
# superseded/, where readers of an older catalogue find them. What changes an hour opens its day first.


def open_days(catalogue: Catalogue) -> dict[date, list[Entry]]:
    """Return the days published by the hour without a file of their own, with their entries, rising."""
    found: dict[date, list[Entry]] = {}
    for entry in catalogue.entries:
        if isinstance(entry.period, Hour):
            found.setdefault(day_of(entry.period), []).append(entry)
    return {day: own for day, own in found.items() if any(_is_open(entry) for entry in own)}


def _is_open(entry: Entry) -> bool:
    return not entry.withdrawn and entry.closed_in is None


def close_days(
    folder: Location | str, days: Collection[date], signer: Signer | None = None
) -> tuple[date, ...]:
    """Put each day into one file, all in one transaction; return the days that were closed."""
    work = partial(_close, days=days, signer=signer)
    return change_folder(folder, work, "the published folder", "what is listed is whole")


def finish_closing(folder: Location | str, catalogue: Catalogue, since: date) -> None:
    """Move out of data/ the hours' own files that an interrupted close left there, from a first day on."""
    closed = (one for one in catalogue.entries if one.closed_in and day_of(one.period) >= since)
    for _, own in groupby(closed, key=lambda entry: day_of(entry.period)):
        entries = [*own]
        # they are moved in the order of the hours, so the last one tells of all
        last = entries[-1]
        with suppress(FileNotFoundError):
            open_storage(folder).read(data_file(last.period, last.file_hash), LARGEST_RELEASE)
            for entry in entries:
                finish_listing(folder, entry.period)


def _close(transaction: Transaction, days: Collection[date], signer: Signer | None) -> tuple[date, ...]:
    known = find_catalogue(transaction)
    if known is None:
        return ()
    if signer is not None:
        signer.take_up(transaction, known)
    transaction.prepare()
    fresh: dict[date, Entry] = {}
    for day, entries in open_days(known).items():
        own = [entry for entry in entries if not entry.withdrawn]
        if day not in days or not all(map(_is_open, own)):
            continue
        frames = [read_rows(transaction, known, entry, verify=True) for entry in own]
        if len({tuple(frame.schema.items()) for frame in frames}) > 1:
            continue
        data = encode_day(own, frames)
        digest = hashlib.sha256(data).hexdigest()
        transaction.create_new(closed_file(day, digest), data)
        fresh |= {entry.period: entry.changed(closed_in=digest) for entry in own}
    if not fresh:
        return ()
    catalogue = put_catalogue(transaction, known, known.changed(periods=known.periods | fresh), signer)
    for entry in fresh.values():
        clear_superseded(transaction, entry)
        transaction.remove(folder_of(DATA, entry.period), ())
    settle_times(transaction, catalogue, fresh.values())
    return tuple(sorted({day_of(period) for period in fresh}))


Left = tuple[tuple[str, str], ...]
"""Folders and names of files that are to be removed once the catalogue no longer needs them."""


def reopened(
    transaction: Transaction, catalogue: Catalogue, periods: Iterable[date]
) -> tuple[Catalogue, Left]:
    """Put the hours of closed days back into data/; return the new catalogue, and what to remove after."""
    days = {day_of(period) for period in periods}
    own = [one for one in catalogue.entries if one.closed_in and day_of(one.period) in days]
    for entry in own:
        # in data/ still, where whoever closed the day died before it was moved
        data = read_file(transaction, entry, verify=True)
        transaction.create_new(data_file(entry.period, entry.file_hash), data)
    names = [(folder_of(SUPERSEDED, one.period), release_name(one.file_hash)) for one in own]
    files = {one.shown_in.rpartition("/")[::2] for one in own}
    opened = {one.period: one.changed(closed_in=None) for one in own}
    return catalogue.changed(periods=catalogue.periods | opened), (*names, *sorted(files))


def remove_left(transaction: Transaction, left: Left) -> None:
    """Remove what `reopened` named."""
    for folder, name in left:
        transaction.remove(folder, [name])


# Releases, published in one transaction.


Releases = Sequence[tuple[StagedRelease, ReleaseStatement]]


@dataclass(frozen=True)
class Publication:
    """A release as the catalogue lists it, and whether it was not there, whole, already."""

    entry: Entry
    changed: bool

    def in_words(self) -> str:
        """Return one line for the operator, without any published value."""
        what = f"{self.entry.period} revision {self.entry.revision} vintage {self.entry.vintage}"
        return f"published {what}" if self.changed else f"{what} was published already; nothing changed"


def publish(
    folder: Location | str,
    releases: Releases,
    head_after: Callable[[str | None], str],
    signer: Signer | None = None,
) -> tuple[Publication, ...]:
    """Make staged releases, each of a period of its own, the published ones: all of them or none.

    In one transaction: write each file and manifest under names that hold the file's hash, never over an
    existing path; replace the catalogue atomically, once; move files that these replace to superseded/. After
    a crash at any point the catalogue lists only whole files, and publishing the same releases again
    completes the work.

    `head_after` is called inside each transaction with the head that the catalogue carries (None without
    one), and returns the ledger's head for the new catalogue, or raises if the ledger does not contain the
    given one. So the heads of a catalogue stand in the ledger in the order of its publications. Raises
    PublicationError, with nothing listed, where the releases or the folder do not fit; or where the folder
    cannot be written.
    """
    if any(statement.simulated for _, statement in releases):
        raise PublicationError(
            "simulated noise protects nobody: draw the release with secure noise to publish it"
        )
    documents = [_staged_document(staged, statement) for staged, statement in releases]
    if len({statement.period for _, statement in releases}) < len(releases):
        raise PublicationError(
            "two releases of one period cannot be published at once: the newer comes after"
        )
    if not releases:
        return ()
    return change_folder(
        folder,
        lambda transaction: _publish_in_transaction(transaction, releases, documents, head_after, signer),
        "the published folder",
        "mend it and publish again: the release is kept, and what is listed is whole",
    )


@dataclass(frozen=True)
class _File:
    """A release's files to be written, with its statement as the footer has it."""

    entry: Entry
    data: bytes
    document: dict[str, Any]
    beside: tuple[tuple[str, bytes], ...]


def _publish_in_transaction(
    transaction: Transaction,
    releases: Releases,
    documents: Sequence[dict[str, Any]],
    head_after: Callable[[str | None], str],
    signer: Signer | None,
) -> tuple[Publication, ...]:
    known = find_catalogue(transaction)
    try:
        for staged, statement in releases:
            _check_order(known, staged, statement)
    except PublicationError:
        if known is not None and transaction.is_again:
            _take_back(transaction, known, releases)
        raise
    head = head_after(known.ledger_head if known else None)
    if signer is not None:
        signer.take_up(transaction, known)
    files = []
    for (staged, statement), document in zip(releases, documents, strict=True):
        before = known.entry(statement.period) if known else None
        is_same = before is not None and before.file_hash == staged.file_hash
        closed_in = before.closed_in if before is not None and is_same else None
        entry = Entry(
            period=statement.period,
            revision=statement.revision,
            vintage=statement.vintage,
            file_hash=staged.file_hash,
            rows_hash=staged.rows_hash,
            ledger_head=head,
            closed_in=closed_in,
        )
        files.append(_File(entry, staged.data, document, _files_beside(staged, statement)))
    return _put(transaction, known, files, signer)


def _take_back(transaction: Transaction, known: Catalogue, releases: Releases) -> None:
    """Remove what a transaction that met a conflict wrote of days that have since gone further."""
    for _, statement in releases:
        entry = known.entry(statement.period)
        if entry is not None and entry.withdrawn:
            delete_files(transaction, entry.period, entry.revision)
        elif entry is not None:
            clear_superseded(transaction, entry)


def _put(
    transaction: Transaction, known: Catalogue | None, files: Sequence[_File], signer: Signer | None
) -> tuple[Publication, ...]:
    before = [known.entry(file.entry.period) if known else None for file in files]
    for entry in before:
        if entry is not None and entry.withdrawn:
            # a withdrawal that a crash cut short must not end with its files in superseded/
            delete_files(transaction, entry.period, entry.revision)
    transaction.prepare(MANIFESTS)
    written = [_write(transaction, file, signer) for file in files]
    fresh = [
        file.entry
        for file, entry in zip(files, before, strict=True)
        if entry is None or entry.file_hash != file.entry.file_hash
    ]
    first = files[0]
    catalogue = known or Catalogue(
        stream=first.document["stream"],
        value_column=first.document["value_column"],
        ledger_head=first.entry.ledger_head,
    )
    signed_anew = signer is not None and not signer.has_signed(transaction, catalogue)
    if fresh or signed_anew:
        catalogue, left = reopened(transaction, catalogue, [entry.period for entry in fresh])
        catalogue = put_catalogue(
            transaction, known, catalogue.with_entries(fresh) if fresh else catalogue, signer
        )
        remove_left(transaction, left)
    elif any(written) and not transaction.is_alone:
        transaction.confirm_catalogue()  # or what was put back may have been superseded meanwhile
    listed = [entry for file in files if (entry := catalogue.entry(file.entry.period))]
    cleared = [clear_superseded(transaction, entry) for entry in listed]
    names = [(file.entry.period, name) for file in files for name, _ in file.beside]
    settle_times(transaction, catalogue, listed, names)
    changes = zip(listed, written, cleared, strict=True)
    return tuple(
        Publication(entry, any((new, old, entry in fresh, signed_anew))) for entry, new, old in changes
    )


def _write(transaction: Transaction, file: _File, signer: Signer | None) -> bool:
    manifest = _manifest(file.entry, file.document)
    changed = sum(transaction.create_new(name, data) for name, data in file.beside) > 0
    changed = transaction.create_new(file.entry.file, file.data) or changed
    changed = transaction.create_new(file.entry.manifest, manifest) or changed
    return changed if signer is None else signer.sign(transaction, manifest) or changed


def _files_beside(staged: StagedRelease, statement: ReleaseStatement) -> tuple[tuple[str, bytes], ...]:
    """Return where the files beside a release go, and their bytes; that of errors may be missing."""
    stated, optional = statement.beside, statement.errors and statement.errors.file_hash
    known = {hashlib.sha256(data).hexdigest(): data for data in staged.beside.values()}
    if {digest for _, digest in stated} - {optional} != known.keys() - {optional}:
        raise PublicationError(
            f"the files beside the release of {statement.period} differ from their hashes in its statement; "
            "stage it again"
        )
    return tuple((name, known[digest]) for name, digest in stated if digest in known)


def _staged_document(staged: StagedRelease, statement: ReleaseStatement) -> dict[str, Any]:
    """Return the statement in the file's footer, after checking that file, hashes and statement agree."""
    if hashlib.sha256(staged.data).hexdigest() != staged.file_hash or staged.name != release_name(
        staged.file_hash
    ):
        raise PublicationError("the bytes of a staged release differ from its file hash; stage it again")
    _, footer = decode(staged.data, ())
    if footer.rows_hash != staged.rows_hash or ReleaseStatement.read(footer.statement) != statement:
        raise PublicationError(
            "the statement to publish differs from the one in the staged file; stage it again"
        )
    return footer.statement


def _manifest(entry: Entry, statement: dict[str, Any]) -> bytes:
    file, hashes = data_file(entry.period, entry.file_hash), (entry.file_hash, entry.rows_hash)
    return Manifest(file=file, file_hash=hashes[0], rows_hash=hashes[1], statement=statement).to_bytes()


def _check_order(known: Catalogue | None, staged: StagedRelease, statement: ReleaseStatement) -> None:
    """Refuse what would turn a published folder back, or make two things of one name."""
    if known is None:
        return
    if (known.stream, known.value_column) != (statement.stream, statement.value_column):
        raise PublicationError(
            "the published folder belongs to another stream or value column; "
            "give each stream a folder of its own"
        )
    before = known.entry(statement.period)
    if before is None:
        return
    known_as = f"{statement.period} revision {before.revision} vintage {before.vintage}"
    if before.withdrawn and statement.revision <= before.revision:
        raise PublicationError(f"{known_as} was withdrawn; only a higher revision may replace it")
    rank, published = (statement.revision, statement.vintage), (before.revision, before.vintage)
    if rank < published:
        raise PublicationError(f"{known_as} is published, and an earlier one may not take its place")
    if rank == published and (before.file_hash, before.rows_hash) != (staged.file_hash, staged.rows_hash):
        raise PublicationError(
            f"{known_as} is published with other bytes; "
            "a new estimate is a new vintage, new measurements are a new revision"
        )


# Taking a day back: a tombstone in the catalogue first, then its files out of the folder.


@dataclass(frozen=True)
class Withdrawal:
    """A day's tombstone, None for a day that the catalogue never listed, and whether anything changed."""

    entry: Entry | None
    changed: bool

    def in_words(self) -> str:
        """Return one line for the operator, without any published value."""
        if self.entry is None:
            return "given up before it was published; it stays charged"
        what = f"{self.entry.period} revision {self.entry.revision}"
        if not self.changed:
            return f"{what} was withdrawn already; nothing changed"
        return f"withdrawn {what}: its files are deleted, its manifest stays, and it stays charged"


def withdraw(
    folder: Location | str,
    period: date,
    tell_ledger: Callable[[Entry | None, str | None], str],
    *,
    stream: str,
    value_column: str | None = None,
    last_revision: int = 0,
    signer: Signer | None = None,
) -> Withdrawal:
    """Make the published release of a day a tombstone, and delete the day's files.

    In one transaction: replace the catalogue atomically by one in which the entry says `withdrawn` and
    carries the ledger's head; then blank the page, which may show the day, and delete every revision of the
    day from data/ and superseded/. The manifests stay, and the tombstone names the last one. After a crash at
    any point no listed file is missing, and the same call completes the work; so does the publication of a
    higher revision, the only thing that takes the tombstone's place.

    In an object store nobody can be kept from publishing the day at the same moment. There a withdrawal
    always replaces the catalogue, by an empty one of `value_column` where there is none, so that such a
    publisher meets a conflict and asks the ledger again; `last_revision` is the highest that the ledger
    withdraws.

    `tell_ledger` is called inside each transaction with what the catalogue lists of the day (None if nothing)
    and its head, records the withdrawal and returns the ledger's head.
    """

    def work(transaction: Transaction) -> Withdrawal:
        catalogue = find_catalogue(transaction)
        wanted = (stream, value_column or (catalogue and catalogue.value_column))
        if catalogue is not None and (catalogue.stream, catalogue.value_column) != wanted:
            raise PublicationError(
                "the published folder belongs to another stream or value column; "
                "withdraw with the configuration that published it"
            )
        if catalogue is None and value_column is None and not transaction.is_alone:
            raise PublicationError("to withdraw a day of a folder without a catalogue, name its value column")
        entry = catalogue.entry(period) if catalogue else None
        ledger_head = tell_ledger(entry, catalogue.ledger_head if catalogue else None)
        if signer is not None and catalogue is not None:
            signer.take_up(transaction, catalogue)
        if catalogue is None or entry is None:
            if not transaction.is_alone:
                new = (
                    catalogue.changed(ledger_head=ledger_head)
                    if catalogue
                    else Catalogue(stream=stream, value_column=str(value_column), ledger_head=ledger_head)
                )
                _relist(transaction, catalogue, new, signer)
            # a publisher that died before it replaced the catalogue may have left files
            delete_files(transaction, period, last_revision)
            return Withdrawal(None, False)
        transaction.prepare()
        changed = not entry.withdrawn
        if changed:
            entry = entry.changed(ledger_head=ledger_head, withdrawn=True, closed_in=None)
            opened, left = reopened(transaction, catalogue, [entry.period])
            catalogue = put_catalogue(transaction, catalogue, opened.with_entries([entry]), signer)
            remove_left(transaction, left)
        elif signer is not None and not signer.has_signed(transaction, catalogue):
            changed, signed = True, catalogue.changed(ledger_head=ledger_head)
            catalogue = put_catalogue(transaction, catalogue, signed, signer)
        elif transaction.is_alone:
            transaction.confirm_catalogue()
        else:
            catalogue = _relist(transaction, catalogue, catalogue.changed(ledger_head=ledger_head), signer)
        blank_page(transaction, catalogue)
        changed |= delete_files(transaction, period, max(entry.revision, last_revision))
        settle_times(transaction, catalogue, [entry])
        return Withdrawal(entry, changed)

    withdrawn = change_folder(
        folder,
        work,
        "the published folder",
        f"mend it and withdraw {period} again: until then some of its files may still be there",
    )
    delete_answers(folder)
    return withdrawn


def _relist(
    transaction: Transaction, catalogue: Catalogue | None, new: Catalogue, signer: Signer | None
) -> Catalogue:
    """Replace the catalogue by one with the new head, so that every publisher who has read it begins
    again. One that carries the head already needs no replacement.
    """
    if new == catalogue:
        transaction.confirm_catalogue()
        return new
    return put_catalogue(transaction, catalogue, new, signer)
