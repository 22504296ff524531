"""Publish staged releases, and withdraw them: immutable files, then the catalogue that names them
(docs/data/published.md).
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from optstream.catalogue import layout
from optstream.catalogue.backends import Transaction, change_folder, open_storage
from optstream.catalogue.index import Catalogue, Entry, find_catalogue, settle_times
from optstream.catalogue.layout import DATA, ERRORS, SUPERSEDED, SUPERSEDED_ERRORS, folder_of, release_name
from optstream.catalogue.metadata import blank_page
from optstream.catalogue.read import encode_day, read_file, read_release
from optstream.catalogue.signing import Signer, put_catalogue
from optstream.catalogue.statement import Manifest, StagedRelease, decode
from optstream.errors import PublicationError
from optstream.storage.store import Location
from optstream.stream.period import Hour, day_of

# Releases, published in one transaction.


@dataclass(frozen=True)
class Publication:
    """A release as the catalogue lists it, and whether it was not there, whole, already."""

    entry: Entry
    changed: bool


def publish(
    folder: Location | str,
    releases: Sequence[StagedRelease],
    head_after: Callable[[str | None], str],
    signer: Signer | None = None,
) -> tuple[Publication, ...]:
    """Publish staged releases, each of a period of its own: all of them or none.

    In one transaction: write each file and manifest under names that hold the file's hash, never over an
    existing path; replace the catalogue once; move what these replace to superseded/. After a crash at any
    point the catalogue lists only whole files, and the same call completes the work. `head_after` returns the
    ledger's head, given that of the catalogue (None without one), or raises if the ledger does not contain
    that.
    """
    if any(one.statement.simulated for one in releases):
        raise PublicationError(
            "simulated noise protects nobody: draw the release with secure noise to publish it"
        )
    for one in releases:
        _ = one.named_files  # refuses others than the statement's
    if len({one.statement.period for one in releases}) < len(releases):
        raise PublicationError(
            "two releases of one period cannot be published at once: the newer comes after"
        )
    if not releases:
        return ()

    def work(transaction: Transaction) -> tuple[Publication, ...]:
        known = find_catalogue(transaction)
        try:
            for one in releases:
                _check_order(known, one)
        except PublicationError:
            if known is not None and transaction.is_again:
                _take_back(transaction, known, releases)
            raise
        head = head_after(known.ledger_head if known else None)
        if signer is not None:
            signer.take_up(transaction, known)
        return _put(transaction, known, releases, head, signer)

    remedy = "fix it and publish again: the release is kept, and all listed files are whole"
    return change_folder(folder, work, "the published folder", remedy)


def _check_order(known: Catalogue | None, staged: StagedRelease) -> None:
    """Refuse releases that would turn a published folder back, or give one name two contents."""
    statement = staged.statement
    if known is None:
        return
    _check_stream(known, statement.stream, statement.value_column, "give each stream a folder of its own")
    before = known.entry(statement.period)
    if before is None:
        return
    known_as = f"{statement.period} revision {before.revision} vintage {before.vintage}"
    if before.withdrawn and statement.revision <= before.revision:
        raise PublicationError(f"{known_as} was withdrawn; only a higher revision may replace it")
    rank, published = (statement.revision, statement.vintage), (before.revision, before.vintage)
    if rank < published:
        raise PublicationError(f"{known_as} is published, and an earlier one may not take its place")
    if rank == published and (before.file_hash, before.rows_hash) != (
        staged.file_hash,
        staged.footer.rows_hash,
    ):
        raise PublicationError(
            f"{known_as} is published with other bytes; "
            "a new estimate is a new vintage, new measurements are a new revision"
        )


def _check_stream(known: Catalogue, stream: str, value_column: str, remedy: str) -> None:
    if (known.stream, known.value_column) != (stream, value_column):
        raise PublicationError(f"the published folder belongs to another stream or value column; {remedy}")


def _take_back(transaction: Transaction, known: Catalogue, releases: Sequence[StagedRelease]) -> None:
    """Remove files of a transaction that met a conflict, for days that have since moved on."""
    for one in releases:
        entry = known.entry(one.statement.period)
        if entry is not None and entry.withdrawn:
            delete_files(transaction, entry.period, entry.revision)
        elif entry is not None:
            clear_superseded(transaction, entry)


def _put(
    transaction: Transaction,
    known: Catalogue | None,
    releases: Sequence[StagedRelease],
    head: str,
    signer: Signer | None,
) -> tuple[Publication, ...]:
    entries, fresh = [], []
    for staged in releases:
        stated, digest = staged.statement, staged.file_hash
        before = known.entry(stated.period) if known else None
        is_listed = before is not None and before.file_hash == digest
        entry = Entry(
            period=stated.period,
            revision=stated.revision,
            vintage=stated.vintage,
            file_hash=digest,
            rows_hash=staged.footer.rows_hash,
            ledger_head=head,
            closed_in=before.closed_in if before is not None and is_listed else None,
        )
        entries.append(entry)
        if not is_listed:
            fresh.append(entry)
        if before is not None and before.withdrawn:
            # a withdrawal that a crash cut short must not end with its files in superseded/
            delete_files(transaction, before.period, before.revision)
    transaction.prepare()
    written = [_write(transaction, *one) for one in zip(entries, releases, strict=True)]
    first = releases[0].statement
    catalogue = known or Catalogue(stream=first.stream, value_column=first.value_column, ledger_head=head)
    is_unsigned = signer is not None and not signer.has_signed(transaction, catalogue)
    if fresh or is_unsigned:
        catalogue = list_entries(transaction, known, catalogue, fresh, signer)
    elif any(written) and not transaction.is_alone:
        transaction.confirm_catalogue()  # or a restored catalogue may have been superseded meanwhile
    listed = [found for entry in entries if (found := catalogue.entry(entry.period))]
    cleared = [clear_superseded(transaction, entry) for entry in listed]
    names = [(one.statement.period, name) for one in releases for name in one.named_files]
    settle_times(transaction, catalogue, listed, names)
    return tuple(
        Publication(entry, any((is_new, had_others, entry in fresh, is_unsigned)))
        for entry, is_new, had_others in zip(listed, written, cleared, strict=True)
    )


def _write(transaction: Transaction, entry: Entry, staged: StagedRelease) -> bool:
    """Write a release's files; return whether any was missing."""
    manifest = Manifest(
        file=layout.data_file(entry.period, entry.file_hash),
        file_hash=entry.file_hash,
        rows_hash=entry.rows_hash,
        statement=staged.footer.statement,
    ).to_bytes()
    several = {**staged.named_files, entry.file: staged.data, entry.manifest: manifest}
    written = [transaction.create_new(name, data) for name, data in several.items()]
    return any(written)


# Days whose hours are over, each closed into one file in one transaction; the hours' own files move to
# superseded/, where readers of an older catalogue find them. What changes an hour opens its day first.


def open_days(catalogue: Catalogue) -> dict[date, list[Entry]]:
    """Return the days published by the hour without a file of their own, with their entries, rising."""
    hours = (entry for entry in catalogue.entries if isinstance(entry.period, Hour))
    days = {day: list(own) for day, own in groupby(hours, key=lambda entry: day_of(entry.period))}
    return {day: own for day, own in days.items() if any(map(_is_open, own))}


def _is_open(entry: Entry) -> bool:
    return not entry.withdrawn and entry.closed_in is None


def close_days(
    folder: Location | str, days: Collection[date], signer: Signer | None = None
) -> tuple[date, ...]:
    """Put each day into one file, all in one transaction; return the days that were closed."""

    def work(transaction: Transaction) -> tuple[date, ...]:
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
            frames = [read_release(transaction, known, entry, verify=True)[0] for entry in own]
            if len({tuple(frame.schema.items()) for frame in frames}) > 1:
                continue
            data = encode_day(own, frames)
            digest = hashlib.sha256(data).hexdigest()
            transaction.create_new(layout.closed_file(day, digest), data)
            fresh |= {entry.period: entry.changed(closed_in=digest) for entry in own}
        if not fresh:
            return ()
        catalogue = put_catalogue(transaction, known, known.changed(periods=known.periods | fresh), signer)
        for entry in fresh.values():
            clear_superseded(transaction, entry)
            transaction.remove(folder_of(DATA, entry.period), ())
        settle_times(transaction, catalogue, fresh.values())
        return tuple(sorted({day_of(period) for period in fresh}))

    return change_folder(folder, work, "the published folder", "all listed files are whole")


def finish_closing(folder: Location | str, catalogue: Catalogue, since: date) -> None:
    """Move out of data/ the hours' own files that an interrupted close left there, from a first day on."""
    closed = (one for one in catalogue.entries if one.closed_in and day_of(one.period) >= since)
    storage = open_storage(folder)
    for _, own in groupby(closed, key=lambda entry: day_of(entry.period)):
        *_, last = entries = [*own]
        # files move in the order of the hours: once the last one is gone, all are
        if storage.is_file(layout.data_file(last.period, last.file_hash)):
            for entry in entries:
                finish_listing(folder, entry.period)


def list_entries(
    transaction: Transaction,
    known: Catalogue | None,
    catalogue: Catalogue,
    fresh: Sequence[Entry],
    signer: Signer | None,
) -> Catalogue:
    """Replace the known catalogue by one with these entries; closed days among them are opened first."""
    days = {day_of(entry.period) for entry in fresh}
    own = [one for one in catalogue.entries if one.closed_in and day_of(one.period) in days]
    for entry in own:
        # still in data/ where the process that closed the day died before it moved the file
        data = read_file(transaction, entry, verify=True)
        transaction.create_new(layout.data_file(entry.period, entry.file_hash), data)
    changed = {one.period: one.changed(closed_in=None) for one in own} | {one.period: one for one in fresh}
    head = fresh[0].ledger_head if fresh else catalogue.ledger_head
    catalogue = catalogue.changed(ledger_head=head, periods=catalogue.periods | changed)
    catalogue = put_catalogue(transaction, known, catalogue, signer)
    for entry in own:
        transaction.remove(folder_of(SUPERSEDED, entry.period), [release_name(entry.file_hash)])
    for folder, name in sorted({one.shown_in.rpartition("/")[::2] for one in own}):
        transaction.remove(folder, [name])
    return catalogue


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
    """Replace the published release of a day by a tombstone, and delete the day's files.

    In one transaction: list the tombstone, blank the page, which may show the day, and delete every revision
    up to the entry's or `last_revision`; the manifests stay. After a crash at any point no listed file is
    missing, and the same call completes the work. In an object store the catalogue is always replaced, so
    that who publishes the day at the same moment meets a conflict. `tell_ledger` records the withdrawal,
    given the day's entry and the catalogue's head (None without them), and returns the ledger's head.
    """

    def work(transaction: Transaction) -> Withdrawal:
        catalogue = find_catalogue(transaction)
        if catalogue is not None:
            remedy = "withdraw with the configuration that published it"
            _check_stream(catalogue, stream, value_column or catalogue.value_column, remedy)
        elif value_column is None and not transaction.is_alone:
            raise PublicationError("to withdraw a day of a folder without a catalogue, name its value column")
        entry = catalogue.entry(period) if catalogue else None
        ledger_head = tell_ledger(entry, catalogue.ledger_head if catalogue else None)
        if signer is not None and catalogue is not None:
            signer.take_up(transaction, catalogue)
        if catalogue is None or entry is None:
            if not transaction.is_alone:
                new = catalogue or Catalogue(
                    stream=stream, value_column=str(value_column), ledger_head=ledger_head
                )
                _relist(transaction, catalogue, new.changed(ledger_head=ledger_head), signer)
            # a publisher that died before it replaced the catalogue may have left files
            delete_files(transaction, period, last_revision)
            return Withdrawal(None, False)
        transaction.prepare()
        changed = not entry.withdrawn
        if changed:
            entry = entry.changed(ledger_head=ledger_head, withdrawn=True, closed_in=None)
            catalogue = list_entries(transaction, catalogue, catalogue, [entry], signer)
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

    remedy = f"fix it and withdraw {period} again: until then some of its files may still be there"
    withdrawn = change_folder(folder, work, "the published folder", remedy)
    delete_answers(folder)
    return withdrawn


def _relist(
    transaction: Transaction, catalogue: Catalogue | None, new: Catalogue, signer: Signer | None
) -> Catalogue:
    """Replace the catalogue by one with another head: every publisher who has read it begins again."""
    if new == catalogue:
        transaction.confirm_catalogue()
        return new
    return put_catalogue(transaction, catalogue, new, signer)


# What leaves data/. Lemma: a release whose rank (revision, vintage) is at most that of its day's entry is
# never listed again, so it may go; higher ones are spared where others can publish.

Rank = tuple[int, ...]
NO_RANK: Rank = ()  # below all others
LAST = 2**31  # a vintage above all others


def clear_superseded(transaction: Transaction, entry: Entry) -> bool:
    """Move every other release of the period out of data/; return whether there were any."""
    rank = entry.revision, entry.vintage
    current = None if entry.closed_in else release_name(entry.file_hash)
    dead = _dead_files(transaction, DATA, entry.period, rank, current)
    _move(transaction, entry.period, dead, DATA, SUPERSEDED)
    if entry.closed_in is None:
        _remove_dead_days(transaction, entry.period, rank, entry.file_hash)
    replaced = _dead_files(transaction, ERRORS, entry.period, rank)
    own = _files_of(transaction, entry) if replaced else set()
    replaced = [name for name in replaced if f"{folder_of(ERRORS, entry.period)}/{name}" not in own]
    _move(transaction, entry.period, replaced, ERRORS, SUPERSEDED_ERRORS)
    if (dead or replaced) and not transaction.is_alone:
        # a day that was withdrawn meanwhile leaves nothing
        catalogue = find_catalogue(transaction)
        now = catalogue.entry(entry.period) if catalogue else None
        if now is not None and now.withdrawn:
            delete_files(transaction, entry.period, now.revision)
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


def delete_files(transaction: Transaction, period: date, through: int) -> bool:
    """Delete a withdrawn day's files up to the revision `through`; return whether there were any."""
    rank, found = (through, LAST), False
    for part in layout.PARTS:
        names = _dead_files(transaction, part, period, rank)
        transaction.remove(folder_of(part, period), names)
        found |= bool(names)
    return _remove_dead_days(transaction, period, rank) or found


def delete_answers(folder: Location | str) -> None:
    """Delete the answers to questions that a version before 0.3 published: nothing keeps them right."""
    storage = open_storage(folder)
    names = storage.names_below(layout.ANSWERS)
    if not names and not storage.is_file(layout.ANSWERS_INDEX):
        return

    def delete(transaction: Transaction) -> None:
        transaction.remove("", [layout.ANSWERS_INDEX])
        for above, below in groupby(names, key=lambda name: name.rpartition("/")[0]):
            transaction.remove(above, [name.rpartition("/")[2] for name in below])
        transaction.remove(layout.ANSWERS, [])

    change_folder(folder, delete, layout.ANSWERS_INDEX, "fix the problem, then run `optstream report`")


def _move(transaction: Transaction, period: date, names: Sequence[str], source: str, target: str) -> None:
    for name in names:
        transaction.move(f"{folder_of(source, period)}/{name}", f"{folder_of(target, period)}/{name}")


def _dead_files(
    transaction: Transaction, part: str, period: date, listed: Rank, current: str | None = None
) -> list[str]:
    """Return a period's files of a part, but for the current one, that nobody can be about to list: all where
    one is alone, else those of no higher rank."""
    folder, dead = folder_of(part, period), []
    for name in transaction.names_in(folder):
        if name == current or (named := layout.numbers_and_hash(part, name)) is None:
            continue
        numbers, digest = named
        if transaction.is_alone or (numbers or _rank_of(transaction, f"{folder}/{name}", digest)) <= listed:
            dead.append(name)
    return dead


def _rank_of(transaction: Transaction, name: str, digest: str) -> Rank:
    """Return the rank of a release's file; that of none where it is gone, or no whole release."""
    try:
        data = transaction.read(name)
        stated = decode(data)[1].stated
    except (FileNotFoundError, PublicationError):
        return NO_RANK
    is_whole = hashlib.sha256(data).hexdigest() == digest
    return (stated.revision, stated.vintage) if is_whole else NO_RANK


def _remove_dead_days(transaction: Transaction, period: date, rank: Rank, listed: str | None = None) -> bool:
    """Remove unlisted closed days that show this hour up to this rank; return whether there were any."""
    if not isinstance(period, Hour):
        return False
    folder, dead = layout.closed_file(day_of(period), "").rpartition("/")[0], []
    for name in transaction.names_in(folder):
        # unreadable footers and manifests, which stay, tell of no release
        with suppress(FileNotFoundError, PublicationError, KeyError, IndexError, TypeError):
            hours = decode(transaction.read(f"{folder}/{name}"), ())[1].statement["hours"]
            shown = next((str(one[1]) for one in hours if one[0] == period.isoformat()), None)
            if shown and shown != listed:
                stated = Manifest.from_bytes(transaction.read(layout.manifest_file(shown))).stated
                if (stated.revision, stated.vintage) <= rank:
                    dead.append(name)
    if dead:
        transaction.remove(folder, dead)
    return bool(dead)


def _files_of(transaction: Transaction, entry: Entry) -> set[str]:
    """Return a listed release's files by its manifest, else all of its rank."""
    try:
        return set(dict(Manifest.from_bytes(transaction.read(entry.manifest)).stated.attachments))
    except (FileNotFoundError, PublicationError):
        folder, rank = folder_of(ERRORS, entry.period), (entry.revision, entry.vintage)
        known = {name: layout.numbers_and_hash(ERRORS, name) for name in transaction.names_in(folder)}
        return {f"{folder}/{name}" for name, own in known.items() if own and own[0] == rank}
